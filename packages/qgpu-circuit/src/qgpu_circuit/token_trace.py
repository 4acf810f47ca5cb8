"""A file of token ids, as `qgpu-isa trace --ids` writes it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from qgpu_isa import MachineConfig, vocabulary
from qgpu_isa.errors import QgpuError
from qgpu_isa.trace import IDS_HEAD

HINT = "`qgpu-isa trace FILE --ids` writes a trace"


class TraceError(QgpuError):
    """A text that is no trace of the machine's tokens."""


@dataclass(frozen=True)
class TokenTrace:
    """Token ids and the name of the machine they are for, None if the trace does not say."""

    machine: str | None
    ids: list[int]

    def check(self, config: MachineConfig) -> None:
        """Raises TraceError if the trace is not one of this machine."""
        if self.machine not in (None, config.name):
            raise TraceError(f"the trace is for machine '{self.machine}', not for '{config.name}'")
        size = vocabulary(config).size
        for token_id in self.ids:
            if not 0 <= token_id < size:
                raise TraceError(
                    f"token id {token_id} is not below {size}, the tokens of '{config.name}'"
                )


def read_trace(text: str) -> TokenTrace:
    """Reads one id a line, or one JSON list. Lines that begin with `#` are comments.

    Raises:
        TraceError: there is something else, or nothing.
    """
    lines = text.splitlines()
    names = [line.removeprefix(IDS_HEAD).strip() for line in lines if line.startswith(IDS_HEAD)]
    body = "\n".join(line for line in lines if not line.startswith("#")).strip()
    ids = _list(body) if body.startswith("[") else [_number(word) for word in body.split()]
    if not ids:
        raise TraceError(f"the trace is empty; {HINT}")
    return TokenTrace(names[0] if names else None, ids)


def _list(body: str) -> list[int]:
    try:
        found = json.loads(body)
    except ValueError as error:
        raise TraceError(f"the trace is no JSON list: {error}; {HINT}") from None
    for item in found:
        if not isinstance(item, int) or isinstance(item, bool):
            raise TraceError(f"the trace holds {str(item)[:40]}, which is no token id; {HINT}")
    return list(found)


def _number(word: str) -> int:
    if not word.isdecimal():
        raise TraceError(f"the trace holds '{word[:40]}', which is no token id; {HINT}")
    return int(word)
