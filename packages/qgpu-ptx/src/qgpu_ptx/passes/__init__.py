"""The passes from raw to final IR, in order; each can be left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qgpu_ptx.ir import Function
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.passes.choose_ways import choose_ways
from qgpu_ptx.passes.coalesce import coalesce
from qgpu_ptx.passes.fold_addresses import fold_addresses
from qgpu_ptx.passes.fold_parts import fold_parts
from qgpu_ptx.passes.fold_ranges import fold_ranges
from qgpu_ptx.passes.hoist_setup import hoist_setup
from qgpu_ptx.passes.keep_together import close_rounds, drop_arrivals
from qgpu_ptx.passes.propagate import propagate
from qgpu_ptx.passes.recombine import recombine
from qgpu_ptx.passes.remove_dead import remove_dead
from qgpu_ptx.passes.rename_locals import rename_locals
from qgpu_ptx.passes.separate_exchanges import separate_exchanges
from qgpu_ptx.passes.share_common import share_common
from qgpu_ptx.passes.simplify_flow import simplify_flow
from qgpu_ptx.passes.sink import sink
from qgpu_ptx.passes.sink_values import sink_values
from qgpu_ptx.passes.split_pointers import split_pointers


@dataclass(frozen=True)
class Pass:
    """A named transformation of the IR that keeps its meaning."""

    name: str
    run: Callable[[Function, LaunchShape], Function]


def _plain(name: str, run: Callable[[Function], Function]) -> Pass:
    """A pass that needs nothing but the IR."""
    return Pass(name, lambda function, shape: run(function))


CHOOSE = "ways"
"""Without this pass, there is nothing to choose from either."""

PIPELINE = (
    _plain("arrivals", drop_arrivals),
    _plain("flow", simplify_flow),
    _plain("exchanges", separate_exchanges),
    _plain("dead", remove_dead),
    _plain("locals", rename_locals),
    _plain("propagate", propagate),
    Pass(CHOOSE, choose_ways),
    _plain("flow-1", simplify_flow),
    _plain("locals-1", rename_locals),
    _plain("propagate-1", propagate),
    _plain("common", share_common),
    _plain("propagate-2", propagate),
    Pass("ranges", fold_ranges),
    _plain("recombine", recombine),
    _plain("propagate-3", propagate),
    _plain("parts", fold_parts),
    _plain("propagate-4", propagate),
    _plain("flow-2", simplify_flow),
    _plain("addresses", fold_addresses),
    Pass("pointers", split_pointers),
    _plain("propagate-5", propagate),
    _plain("dead-2", remove_dead),
    Pass("sink", sink),
    _plain("hoist", hoist_setup),
    _plain("flow-3", simplify_flow),
    Pass("sink-branches", sink_values),
    _plain("coalesce", coalesce),
    _plain("locals-2", rename_locals),
    _plain("dead-3", remove_dead),
    _plain("rounds", close_rounds),
)
