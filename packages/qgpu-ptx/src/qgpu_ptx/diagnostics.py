"""Source positions, and every error this package raises.

An error is data first (span, found, expected, hint); text is made only by `render`. Each class
has a code (P001 ...) that stays the same across releases, so that tests and users can name it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar


@dataclass(frozen=True)
class CudaLocation:
    """A place in the CUDA source, from `.file` and `.loc` (PTX ISA, Debugging Directives)."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        # Compilers write column 0 for a whole line.
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


@dataclass(frozen=True)
class SourceText:
    """A file's name and whole text; turns offsets into lines and columns.

    `compiled` says that a compiler has just written the text: no user has seen its lines.
    `cuda_places` are filled in once `.loc` lines are known: offsets in order, and the CUDA place
    of what stands from there on.
    """

    filename: str
    text: str
    compiled: bool = False
    cuda_places: list[tuple[int, CudaLocation | None]] = field(
        default_factory=list, compare=False, repr=False
    )

    @cached_property
    def _line_starts(self) -> tuple[int, ...]:
        return (0, *(i + 1 for i, ch in enumerate(self.text) if ch == "\n"))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1."""
        line = bisect_right(self._line_starts, max(0, min(offset, len(self.text))))
        return line, offset - self._line_starts[line - 1] + 1

    def cuda_location(self, offset: int) -> CudaLocation | None:
        """The CUDA place of an offset, None where none is known."""
        index = bisect_right(self.cuda_places, offset, key=lambda place: place[0])
        return self.cuda_places[index - 1][1] if index else None

    def line(self, number: int) -> str:
        """The text of line `number` (from 1) without its end of line."""
        start = self._line_starts[number - 1]
        return self.text[start:].split("\n", 1)[0].rstrip("\r")

    def span(self, start: int, end: int) -> Span:
        """The half-open range [start, end) of offsets."""
        return Span(self, start, max(start, end))


@dataclass(frozen=True)
class Span:
    """A half-open range of offsets in one source text."""

    source: SourceText
    start: int
    end: int

    @property
    def filename(self) -> str:
        """Name of the file, as given to the reader."""
        return self.source.filename

    @property
    def line(self) -> int:
        """First line, from 1."""
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        """First column, from 1; a tab counts as one column."""
        return self.source.position(self.start)[1]

    @property
    def cuda_location(self) -> CudaLocation | None:
        """The place in the CUDA source, None where none is known."""
        return self.source.cuda_location(self.start)

    @property
    def text(self) -> str:
        """The source text that the span covers."""
        return self.source.text[self.start : self.end]

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column}"

    def with_caret(self) -> str:
        """The first source line of the span, and carets under the part it covers."""
        line, column = self.source.position(self.start)
        text = self.source.line(line)
        covered = self.text.split("\n", 1)[0]
        width = max(1, min(len(covered), len(text) - column + 1))
        # Tabs are kept in the padding so that the caret stands under its character.
        padding = "".join("\t" if ch == "\t" else " " for ch in text[: column - 1])
        return f"    {text}\n    {padding}{'^' * width}"


class QgpuPtxError(Exception):
    """Base of all errors of this package: a message for a user, with its place in the source.

    `found` is what stands in the source, `expected` what would be legal there, `hint` one
    sentence on what to do. All but `message` may be missing.
    """

    code: ClassVar[str] = "P000"

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        found: str | None = None,
        expected: Sequence[str] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.found = found
        self.expected = tuple(expected)
        self.hint = hint

    @property
    def cuda_location(self) -> CudaLocation | None:
        """The place in the CUDA source, None where none is known."""
        return self.span.cuda_location if self.span else None

    def details(self) -> tuple[str, ...]:
        """Lines printed below the source line; subclasses add theirs."""
        lines = []
        if self.cuda_location and self.span and not self.span.source.compiled:
            lines.append(f"CUDA source: {self.cuda_location}")
        if self.expected:
            lines.append("expected: " + ", ".join(self.expected))
        if self.hint:
            lines.append("hint: " + self.hint)
        return tuple(lines)

    def render(self) -> str:
        """`file:line:col: error: [code] message`, the source line with a caret, and details.

        An error in PTX that was compiled just now is placed in the CUDA source, if that is known.
        """
        span, where, note = self.span, "", ""
        if span and span.source.compiled and self.cuda_location:
            where, note = f"{self.cuda_location}: ", f"  PTX line {span.line}:\n"
        elif span:
            where = f"{span}: "
        lines = [f"{where}error: [{self.code}] {self.message}"]
        if span:
            lines.append(note + span.with_caret())
        lines.extend("  " + line for line in self.details())
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


class PtxSyntaxError(QgpuPtxError):
    """The text is not PTX."""

    code = "P001"


class PtxNameError(QgpuPtxError):
    """A name is missing, declared twice, or of the wrong kind."""

    code = "P002"


class UnsupportedError(QgpuPtxError):
    """Base of errors about legal code that this package, or the machine, does not carry out."""


class UnsupportedInstructionError(UnsupportedError):
    """No entry of the instruction table takes this opcode with these modifiers."""

    code = "P003"


class OperandError(QgpuPtxError):
    """An operand's count, kind or width does not fit the instruction."""

    code = "P004"


class UnsupportedDeclarationError(UnsupportedError):
    """A declaration is legal PTX that this package does not carry out."""

    code = "P005"


class LaunchError(QgpuPtxError):
    """Grid, block or arguments do not fit the kernel."""

    code = "P020"


class LaunchSpecError(QgpuPtxError):
    """A launch specification (TOML) is malformed."""

    code = "P030"


class LaunchArgumentError(QgpuPtxError):
    """Options of the command line that make no launch."""

    code = "P031"


class CompilerNotFoundError(QgpuPtxError):
    """No CUDA compiler, or not the one asked for, is installed."""

    code = "P041"


class CudaCompileError(QgpuPtxError):
    """The CUDA compiler refused the source; `log` is its whole output."""

    code = "P042"

    def __init__(
        self, message: str, *, log: str, span: Span | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, span=span, hint=hint)
        self.log = log

    def details(self) -> tuple[str, ...]:
        return (*self.log.strip().splitlines(), *super().details())


class InputFileError(QgpuPtxError):
    """A file cannot be read or written."""

    code = "P050"


@dataclass(frozen=True)
class ThreadName:
    """Which thread of a launch: kernel, CTA index, thread index."""

    kernel: str
    cta: tuple[int, int, int]
    thread: tuple[int, int, int]

    def __str__(self) -> str:
        return f"kernel {self.kernel}, CTA {self.cta}, thread {self.thread}"


class ExecutionError(QgpuPtxError):
    """A running kernel did something that has no defined result.

    `thread` names the thread, `instruction` is the instruction's PTX text.
    """

    code = "P010"

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        thread: ThreadName | None = None,
        instruction: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, span=span, hint=hint)
        self.thread = thread
        self.instruction = instruction

    def details(self) -> tuple[str, ...]:
        lines = []
        if self.thread:
            lines.append(f"in: {self.thread}")
        if self.instruction:
            lines.append(f"instruction: {self.instruction}")
        return (*lines, *super().details())


class MemoryFaultError(ExecutionError):
    """An access outside every allocation of its state space."""

    code = "P011"


class MisalignedAccessError(ExecutionError):
    """An address is not a multiple of the access size (PTX ISA, Addresses as Operands)."""

    code = "P012"


class DeadlockError(ExecutionError):
    """No thread of the CTA can run, and some wait at a barrier."""

    code = "P013"


class StepLimitError(ExecutionError):
    """The launch executed more warp instructions than `max_steps`."""

    code = "P014"


class UninitialisedRegisterError(ExecutionError):
    """A register was read before it was written, and the caller asked to be told."""

    code = "P015"


class TrapError(ExecutionError):
    """The kernel executed `trap`."""

    code = "P016"


class CallDepthError(ExecutionError):
    """Calls nested deeper than the interpreter's bound."""

    code = "P017"


class WarpOperationError(ExecutionError):
    """A warp-wide operation whose result PTX leaves undefined."""

    code = "P018"
