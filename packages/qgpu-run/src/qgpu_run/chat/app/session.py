"""What a chat does, without a screen: models, replies, calculations, launches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from qgpu_isa.errors import QgpuError

from qgpu_run.chat.app.cancellation import Cancellation
from qgpu_run.chat.app.events import (
    Calculated,
    ChatEvent,
    Launched,
    Loaded,
    Note,
    Opened,
    Progress,
)
from qgpu_run.chat.app.run_arguments import parse_run
from qgpu_run.chat.app.saved_chat import SavedChat
from qgpu_run.chat.app.watch import LaunchWatch
from qgpu_run.chat.conversation import Conversation
from qgpu_run.chat.tool_calls import ToolCall
from qgpu_run.chat.tools import CALCULATE, NORMAL, Tools
from qgpu_run.errors import RequestError
from qgpu_run.open_engine import OpenedMachine
from qgpu_run.panel.events import PanelFeed

STAND_IN = "stand-in"
"""What the model that comes with the package is called."""


@dataclass(frozen=True)
class ChatOptions:
    """What the user said on the command line.

    Attributes:
        model: folder of a merged checkpoint, None for the stand-in.
        profile, engine, device, mode, check: as `open_conversation` takes them.
        load: a saved conversation to go on with.
    """

    model: Path | None = None
    profile: str | None = None
    engine: str = "sparse"
    device: str = "cpu"
    mode: str = NORMAL
    check: bool = True
    load: Path | None = None


class Opener(Protocol):
    """Opens a model; see `open_model`."""

    def __call__(
        self, options: ChatOptions, watch: LaunchWatch, say: Callable[[str], None]
    ) -> Conversation:
        """A conversation with the model of the options."""
        ...


def open_model(
    options: ChatOptions, watch: LaunchWatch, say: Callable[[str], None]
) -> Conversation:
    """A conversation with the model of the options.

    Raises:
        QgpuError, OSError: it cannot be loaded.
    """
    from qgpu_run.chat.open_conversation import open_conversation

    return open_conversation(
        options.model,
        profile=options.profile,
        engine=options.engine,
        mode=options.mode,
        check=options.check,
        device=options.device,
        wrap_engine=watch.wrap,
        around_launch=watch.around,
        say=say,
    )


class ChatSession:
    """A model and a conversation with it.

    The methods that run a model block; they are for a thread of their own. All raise `QgpuError`
    for what is the user's to mend.

    Args:
        options: what to open.
        tell: gets what happens.
        feed: of a panel.
        opener: opens models.

    Attributes:
        cancellation: ends what runs.
        opening: whether a model is being loaded.
    """

    def __init__(
        self,
        options: ChatOptions,
        tell: Callable[[ChatEvent], None],
        *,
        feed: PanelFeed | None = None,
        opener: Opener = open_model,
    ) -> None:
        self.cancellation = Cancellation()
        self.opening = False
        self._options, self._tell, self._opener = options, tell, opener
        self._watch = LaunchWatch(self.cancellation, feed)
        self._talk: Conversation | None = None

    @property
    def ready(self) -> bool:
        """Whether there is a model."""
        return self._talk is not None

    @property
    def talk(self) -> Conversation:
        """The conversation.

        Raises:
            RequestError: there is no model yet.
        """
        if self._talk is None:
            if self.opening:
                raise RequestError("the model is still loading")
            raise RequestError("there is no model: /model FOLDER loads one")
        return self._talk

    @property
    def mode(self) -> str:
        """`normal` or `advanced`."""
        return self._options.mode if self._talk is None else self._talk.mode

    @property
    def checks(self) -> bool:
        """Whether launches are compared with the reference interpreter."""
        return self._options.check if self._talk is None else self._tools().device.checks

    @property
    def model_name(self) -> str:
        """The model, for people."""
        return STAND_IN if self._options.model is None else str(self._options.model)

    def describe_model(self) -> str:
        """The model, its machine and its engine."""
        device, folder = self._tools().device, self.talk.model.folder
        lines = [f"{self.model_name} on machine '{device.config.name}', {device.engine_name}"]
        if self._options.model is None:
            lines.append(f"in {folder}")
        if self.talk.model.settings.note:
            lines.append(self.talk.model.settings.note)
        return "\n".join(lines)

    # What runs a model.

    def begin(self) -> None:
        """Loads the first model, and the conversation that is to go on."""
        options = self._options
        saved = None if options.load is None else SavedChat.read(options.load)
        if saved is not None and options.model is None and saved.model is not None:
            options = replace(options, model=Path(saved.model))
        self._open(options)
        if saved is not None:
            self._take(saved)

    def open(self, model: Path | None) -> None:
        """Loads another model, for which the conversation goes on; after an error the old stays."""
        if model is not None and not model.is_dir():
            raise RequestError(f"there is no folder {model}")
        # A checkpoint knows its machine; the interpreter has to be told.
        profile = self._options.profile if self._options.engine == "interpreter" else None
        options = replace(self._options, model=model, profile=profile, mode=self.mode)
        self._open(replace(options, check=self.checks))

    def _open(self, options: ChatOptions) -> None:
        self.opening = True
        try:
            name = STAND_IN if options.model is None else str(options.model)
            self._tell(Progress(f"loading {name}"))
            opened = self._opener(options, self._watch, lambda line: self._tell(Progress(line)))
            opened.cancelled = self.cancellation.asked
            if self._talk is not None:
                opened.messages = self._talk.messages
            self._talk, self._options = opened, options
        finally:
            self.opening = False
            self._tell(Progress(""))
        self._tell(Loaded(opened.model.settings.note))

    def reply(self, message: str) -> None:
        """Has the model answer; a reply that ends in an error leaves the conversation as it was."""
        talk = self.talk
        before = len(talk.messages)
        try:
            for event in talk.reply(message):
                self._tell(event)
        except BaseException:
            del talk.messages[before:]
            raise

    def calculate(self, expression: str) -> None:
        """Evaluates an expression, past the model's words."""
        call = ToolCall(CALCULATE, {"expression": expression})
        self._tell(Calculated(self._tools().run(call, NORMAL)))

    def run_kernel(self, text: str) -> None:
        """Launches a kernel file.

        Args:
            text: the file and options of `qgpu-run launch`.
        """
        from qgpu_run.commands.launch_command import file_to_request
        from qgpu_run.run_request import run_request

        device = self._tools().device
        file, launch_options = parse_run(text)
        request = file_to_request(file, launch_options, OpenedMachine(device.config))
        try:
            with self._watch.around(request) as ending:
                outcome = ending.outcome = run_request(
                    request, device.engine, check=device.checks, max_tokens=device.max_tokens
                )
        finally:
            device.reset()
        self._tell(Launched(text, outcome))

    # What does not.

    def set_mode(self, mode: str) -> None:
        """Chooses a mode."""
        self.talk.mode = mode

    def set_check(self, check: bool) -> None:
        """Begins or ends comparing launches."""
        self._tools().device.set_check(check)

    def clear(self) -> None:
        """Begins a new conversation."""
        self.talk.clear()

    def save(self, path: Path) -> None:
        """Writes the conversation to a file."""
        model = None if self._options.model is None else str(self._options.model.resolve())
        SavedChat(model, self.mode, tuple(self.talk.messages)).write(path)

    def load(self, path: Path) -> None:
        """Goes on with a conversation that was saved; the model stays."""
        saved = SavedChat.read(path)
        self._take(saved)
        own = None if self._options.model is None else str(self._options.model.resolve())
        if saved.model != own:
            name = saved.model or STAND_IN
            self._tell(Note(f"That was with another model: /model {name} loads it."))

    def _take(self, saved: SavedChat) -> None:
        talk = self.talk
        talk.mode, talk.messages = saved.mode, list(saved.messages)
        self._tell(Opened(saved.messages))

    def _tools(self) -> Tools:
        tools = self.talk.tools
        if not isinstance(tools, Tools):
            raise QgpuError("this model has no GPU")
        return tools
