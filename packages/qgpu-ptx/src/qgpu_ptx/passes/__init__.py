"""The passes from raw to final IR, in order; all but those that are needed can be left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from qgpu_ptx.ir import Function
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.passes.choose_ways import choose_ways
from qgpu_ptx.passes.coalesce import coalesce
from qgpu_ptx.passes.fold_addresses import fold_addresses
from qgpu_ptx.passes.fold_parts import fold_parts
from qgpu_ptx.passes.fold_ranges import fold_ranges
from qgpu_ptx.passes.gather_operands import gather_operands
from qgpu_ptx.passes.hoist_setup import hoist_setup
from qgpu_ptx.passes.keep_together import close_rounds, drop_arrivals
from qgpu_ptx.passes.propagate import propagate
from qgpu_ptx.passes.recombine import recombine
from qgpu_ptx.passes.remove_dead import remove_dead
from qgpu_ptx.passes.rename_locals import rename_locals
from qgpu_ptx.passes.round_quotients import round_quotients
from qgpu_ptx.passes.separate_exchanges import separate_exchanges
from qgpu_ptx.passes.share_common import share_common
from qgpu_ptx.passes.simplify_flow import simplify_flow
from qgpu_ptx.passes.sink import sink
from qgpu_ptx.passes.sink_values import sink_values
from qgpu_ptx.passes.split_pointers import split_pointers


@dataclass(frozen=True)
class Pass:
    """A named transformation of the IR that keeps its meaning.

    Attributes:
        name: as on the command line. A pass that runs several times has a number behind it.
        what: what it does, for `--help`.
        needed: whether programs would be wrong without it; all others only make them shorter.
    """

    name: str
    run: Callable[[Function, LaunchShape], Function]
    what: str
    needed: bool = False

    @property
    def family(self) -> str:
        """The name without its number."""
        return re.sub(r"-\d+$", "", self.name)


def _plain(
    name: str, run: Callable[[Function], Function], what: str = "again", *, needed: bool = False
) -> Pass:
    """A pass that needs nothing but the IR."""
    return Pass(name, lambda function, shape: run(function), what, needed)


CHOOSE = "ways"
"""Without this pass, there is nothing to choose from either."""

PIPELINE = (
    _plain("arrivals", drop_arrivals, "drop waits where lanes come together anyway"),
    _plain("flow", simplify_flow, "drop empty and unreachable blocks, join blocks"),
    _plain("exchanges", separate_exchanges, "keep shuffles of passes apart", needed=True),
    _plain("dead", remove_dead, "remove operations whose results do not matter"),
    _plain("locals", rename_locals, "split registers that a block sets several times"),
    _plain("propagate", propagate, "constants and copies, and what they simplify"),
    Pass(CHOOSE, choose_ways, "do some things for all lanes of a pass together"),
    _plain("flow-1", simplify_flow),
    _plain("locals-1", rename_locals),
    _plain("propagate-1", propagate),
    _plain("common", share_common, "compute equal expressions of a block once"),
    _plain("propagate-2", propagate),
    Pass("ranges", fold_ranges, "remove comparisons and masks that ranges decide"),
    _plain("recombine", recombine, "put numbers together that were taken apart"),
    _plain("propagate-3", propagate),
    _plain("quotients", round_quotients, "divide by constants with a rounded reciprocal"),
    _plain("parts", fold_parts, "join operations that take parts of words"),
    _plain("propagate-4", propagate),
    _plain("flow-2", simplify_flow),
    _plain("addresses", fold_addresses, "put address arithmetic into the access"),
    Pass("pointers", split_pointers, "moving pointers become a base and a distance"),
    _plain("propagate-5", propagate),
    Pass("gather", gather_operands, "compute other lanes' operands of atomics again"),
    _plain("propagate-6", propagate),
    _plain("recombine-1", recombine),
    _plain("propagate-7", propagate),
    _plain("dead-2", remove_dead),
    Pass("sink", sink, "move operations to the blocks that read their results"),
    _plain("hoist", hoist_setup, "move preparations in front of a barrier"),
    _plain("flow-3", simplify_flow),
    Pass("sink-branches", sink_values, "move what one way out of a branch reads to it"),
    _plain("coalesce", coalesce, "one name for both sides of a copy"),
    _plain("locals-2", rename_locals),
    _plain("dead-3", remove_dead),
    _plain("rounds", close_rounds, "let lanes wait for each other between rounds"),
)

RECOMPUTE = "recompute"
"""Behind the pipeline, while registers are allocated."""

EVERY = "every-"
"""In front of the name of a pass that runs several times: all of them."""


def _groups() -> dict[str, tuple[str, ...]]:
    families: dict[str, tuple[str, ...]] = {}
    for step in PIPELINE:
        families[step.family] = (*families.get(step.family, ()), step.name)
    return {EVERY + name: members for name, members in families.items() if len(members) > 1}


GROUPS = _groups()

SWITCHES: dict[str, str] = {
    **{step.name: step.what for step in PIPELINE if not step.needed},
    RECOMPUTE: "compute a value again where that takes fewer tokens",
    **{name: ", ".join(members) for name, members in GROUPS.items()},
}
"""All that can be left out, and what it is."""


def left_out(names: Collection[str]) -> frozenset[str]:
    """The passes that names of `SWITCHES` stand for.

    Raises:
        ValueError: a name is none of them.
    """
    unknown = sorted(set(names) - set(SWITCHES))
    if unknown:
        raise ValueError(f"there is no pass {unknown[0]} that can be left out")
    return frozenset(member for name in names for member in GROUPS.get(name, (name,)))
