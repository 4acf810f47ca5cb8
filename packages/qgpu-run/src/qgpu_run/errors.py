"""Errors of a launch, each with one readable message and an exit status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu_isa.errors import ExecutionError, QgpuError

SHOWN_WORDS = 8
"""Words listed in a message."""


class ModelError(QgpuError):
    """A checkpoint that is not a merged qgpu model, or that is damaged."""


class RequestError(QgpuError):
    """A kernel file, argument or option that makes no launch."""


class ServerError(QgpuError):
    """A server that is not there, refuses, fails, or carries no GPU."""


class RankError(QgpuError):
    """A process of several that run a launch together has failed, or was lost."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class TokenLimitError(ExecutionError):
    """The model wrote more tokens than it was allowed to."""


class KernelFaultError(ExecutionError):
    """The kernel accessed memory it may not access, or trapped."""


@dataclass(frozen=True)
class SharedWord:
    """A word of global memory for which the order of two CTAs matters.

    Attributes:
        address: word address.
        place: array and elements that lie there, as in `c[3]`; else empty.
        first, second: the CTAs; `first` wrote the word.
        stale: whether `second` reads it; if not, it writes it too.
    """

    address: int
    place: str
    first: int
    second: int
    stale: bool

    def __str__(self) -> str:
        where = f"{self.place} (word {self.address})" if self.place else f"word {self.address}"
        if self.stale:
            return f"{where}: written by CTA {self.first}, read by CTA {self.second}"
        return f"{where}: written by CTA {self.first} and CTA {self.second}"


class CtaDependenceError(ExecutionError):
    """CTAs that were to run side by side need what another one writes, or write the same word.

    Attributes:
        kernel: name of the kernel.
        words: each word that more than one of them needs, with the reason.
    """

    def __init__(self, kernel: str, words: Sequence[SharedWord]) -> None:
        self.kernel = kernel
        self.words = tuple(words)
        shown = [f"  {word}" for word in self.words[:SHOWN_WORDS]]
        if len(self.words) > SHOWN_WORDS:
            shown.append(f"  and {len(self.words) - SHOWN_WORDS} more words")
        head = (
            f"{kernel}: its CTAs depend on each other; run them one after the other "
            "(--sms 1, in one process)"
        )
        super().__init__("\n".join([head, *shown]))


class ForeignTokenError(ExecutionError):
    """The model wrote a token that is not one of the machine's."""
