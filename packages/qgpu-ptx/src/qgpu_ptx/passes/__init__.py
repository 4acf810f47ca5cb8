"""The passes from raw to final IR, in order; each can be left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from qgpu_ptx.ir import Function
from qgpu_ptx.passes.coalesce import coalesce
from qgpu_ptx.passes.fold_addresses import fold_addresses
from qgpu_ptx.passes.propagate import propagate
from qgpu_ptx.passes.remove_dead import remove_dead
from qgpu_ptx.passes.rename_locals import rename_locals
from qgpu_ptx.passes.separate_exchanges import separate_exchanges
from qgpu_ptx.passes.share_common import share_common
from qgpu_ptx.passes.simplify_flow import simplify_flow


@dataclass(frozen=True)
class Pass:
    """A named transformation of the IR that keeps its meaning."""

    name: str
    run: Callable[[Function], Function]


PIPELINE = (
    Pass("flow", simplify_flow),
    Pass("exchanges", separate_exchanges),
    Pass("dead", remove_dead),
    Pass("locals", rename_locals),
    Pass("propagate", propagate),
    Pass("flow-again", simplify_flow),
    Pass("common", share_common),
    Pass("propagate-again", propagate),
    Pass("addresses", fold_addresses),
    Pass("dead-again", remove_dead),
    Pass("coalesce", coalesce),
    Pass("locals-again", rename_locals),
)
