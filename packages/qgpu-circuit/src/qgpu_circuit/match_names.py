"""Nets and ops by a part of their name."""

from __future__ import annotations

from collections.abc import Sequence

from qgpu_isa.errors import QgpuError
from qgpu_isa.suggestions import did_you_mean


class NoMatchError(QgpuError):
    """A part of a name that no name has."""


def match_names(names: Sequence[str], part: str, what: str) -> list[int]:
    """Positions of the names that contain `part`.

    Raises:
        NoMatchError: there are none; says what is near, and how names begin.
    """
    found = [i for i, name in enumerate(names) if part in name]
    if not found:
        # Near misses of whole families: `live_out/row` rather than its 64 bits.
        families = dict.fromkeys(name.split("[")[0] for name in names)
        units = dict.fromkeys(name.split("/")[0] for name in families)
        hint = did_you_mean(part, (*units, *families))
        raise NoMatchError(
            f"no {what} has '{part}' in its name{hint or ''}\nnames begin with {', '.join(units)}"
        )
    return found
