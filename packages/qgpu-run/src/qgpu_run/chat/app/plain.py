"""The chat line by line, for pipes and for terminals that can do no more."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from qgpu_run.chat.app.command import complete, is_command, run_command
from qgpu_run.chat.app.commands import COMMANDS
from qgpu_run.chat.app.describe import answer_numbers, call_numbers, clean, response_line
from qgpu_run.chat.app.events import Calculated, ChatEvent, Launched, Loaded, Note, Opened, Progress
from qgpu_run.chat.app.history import History, history_file
from qgpu_run.chat.app.session import ChatOptions, ChatSession, Opener, open_model
from qgpu_run.chat.app.worker import run_job
from qgpu_run.chat.conversation import Answered, Called, Wrote
from qgpu_run.chat.tool_calls import MalformedCall, Text, ToolCall
from qgpu_run.chat.tools import CallRecord
from qgpu_run.errors import RequestError

PROMPT = "> "


class PlainChat:
    """A chat that reads lines and writes lines; thoughts are left out.

    Args:
        options: what to open.
        opener: opens models.
        edits: whether lines are edited, with history and completion, on a terminal.
    """

    theme_name = "terminal"
    panel_shown = False

    def __init__(
        self, options: ChatOptions, *, opener: Opener = open_model, edits: bool = False
    ) -> None:
        self.session = ChatSession(options, self._show, opener=opener)
        self._interactive = sys.stdin.isatty()
        self._edits = edits and self._interactive
        self._history = History(history_file()) if self._edits else None
        self._busy = self._quits = self._within = False

    @property
    def busy(self) -> bool:
        """Whether a job runs; commands come between jobs."""
        return False

    def submit(self, job: Callable[[], None]) -> None:
        """Runs a job."""
        self.session.cancellation.begin()
        self._busy = True
        try:
            run_job(job, self._show)
        finally:
            self._busy = False
            self._end_line()

    def say(self, text: str) -> None:
        """Prints a note."""
        self._show(Note(text))

    def clear(self) -> None:
        """Lines stay where they are."""

    def show_panel(self, shown: bool) -> None:
        """There is none."""
        raise RequestError("line mode has no panel; `qgpu-run watch` shows a launch")

    def set_theme(self, name: str) -> None:
        """There are none."""
        raise RequestError("line mode has no colours")

    def quit(self) -> None:
        """Ends behind this line."""
        self._quits = True

    def run(self) -> int:
        """Chats until the end of the input; the exit status."""
        self._catch_signals()
        if self._edits:
            self._edit_lines()
        self.submit(self.session.begin)
        if not self.session.ready and not self._interactive:
            return 2
        interrupted = False
        while not self._quits:
            try:
                line = input(PROMPT if self._interactive else "")
            except EOFError:
                break
            except KeyboardInterrupt:
                if interrupted:
                    break
                interrupted = True
                print("\nCtrl+C again quits.")
                continue
            interrupted = False
            self._take(line.strip())
        return 0

    def _take(self, line: str) -> None:
        if not line:
            return
        if self._history is not None:
            self._history.add(line)
        if is_command(line):
            run_job(lambda: run_command(self, line, COMMANDS), self._show)
        else:
            self.submit(lambda: self.session.reply(line))

    def _show(self, event: ChatEvent) -> None:
        match event:
            case Wrote(Text(text)):
                print(clean(text), end="", flush=True)
                self._within = not text.endswith("\n")
            case Wrote(ToolCall(_, arguments)):
                self._print_call(dict(arguments))
            case Wrote(MalformedCall(text)):
                self._print_call({"text": text})
            case Called(record):
                self._print_result(record)
            case Calculated(record):
                self._print_result(record)
            case Launched(_, outcome):
                self._print(outcome.to_text())
            case Answered():
                self._end_line()
                if event.stopped:
                    self._print(answer_numbers(event))
            case Note(text, bad):
                self._print(f"error: {text}" if bad else text)
            case Loaded(note):
                if note:
                    self._print(note)
            case Opened(messages):
                self._print(f"{len(messages)} messages")
            case Progress(text):
                if text:
                    self._end_line()
                    print(text, file=sys.stderr)
            case _:
                pass

    def _print_call(self, arguments: dict[str, Any]) -> None:
        for value in arguments.values():
            self._print("\n".join(f"  | {line}" for line in value.strip().splitlines()))

    def _print_result(self, record: CallRecord) -> None:
        line = response_line(record.response, record.failed)
        self._print(f"  {line}  ({call_numbers(record)})")

    def _print(self, text: str) -> None:
        self._end_line()
        print(clean(text), flush=True)

    def _end_line(self) -> None:
        if self._within:
            print()
            self._within = False

    def _catch_signals(self) -> None:
        def interrupt(number: int, frame: FrameType | None) -> None:
            if not self._busy or self.session.opening:
                raise KeyboardInterrupt
            self.session.cancellation.ask()

        def end(number: int, frame: FrameType | None) -> None:
            sys.exit(128 + number)

        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGHUP, end)

    def _edit_lines(self) -> None:
        import readline

        def completion(text: str, state: int) -> str | None:
            found = complete(readline.get_line_buffer(), COMMANDS)
            return found[state].text if state < len(found) else None

        readline.set_completer_delims("")
        readline.set_completer(completion)
        readline.parse_and_bind("tab: complete")
        assert self._history is not None
        for entry in self._history.entries:
            if "\n" not in entry:
                readline.add_history(entry)
