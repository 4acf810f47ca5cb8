"""Which block runs next: within a pass, between passes, and across barriers."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa.interpreter.state import PassFlag, State
from qgpu_isa.program import Status


def running(state: State, g: int) -> bool:
    """Whether any lane of a pass can go on without a switch."""
    return Status.RUN in state.statuses[g]


def stop_status(state: State, g: int) -> Status:
    """Why a pass without running lanes stopped: for its warp, for its CTA, or for good."""
    for status in (Status.WARP, Status.CTA):
        if status in state.statuses[g]:
            return status
    return Status.EXIT


def stop_block(state: State, g: int) -> int:
    """The smallest block at which a lane of a stopped pass waits."""
    return min(state.pcs[g])


def next_lanes(state: State, g: int, *, resumed: bool) -> tuple[int, int]:
    """The smallest pending block of a pass and the mask of the lanes that wait for it.

    A pass that goes on considers its running lanes; one that is resumed also those that waited
    for their warp or, when it stopped at a CTA barrier, those that waited there.
    """
    eligible = {Status.RUN}
    if resumed:
        at_cta = state.flags[g] in (PassFlag.CTA0, PassFlag.CTA1)
        eligible |= {Status.CTA} if at_cta else {Status.WARP}
    lanes = [i for i, s in enumerate(state.statuses[g]) if s in eligible]
    block = min(state.pcs[g][i] for i in lanes)
    return block, sum(1 << i for i in lanes if state.pcs[g][i] == block)


@dataclass(frozen=True)
class Switch:
    """The pass that runs next and the barrier phase from then on."""

    next_pass: int
    phase: int


def switch_pass(state: State, g: int, phase: int, status: Status, waits_at: int) -> Switch | None:
    """Chooses the next pass after `g` stopped; None when all have exited.

    Args:
        phase: phase of the CTA's barrier.
        status, waits_at: what `g` waits for, and at which block.

    Ready passes of the same warp go first, as if the warp were one row of lanes of which the
    smallest block runs: of those that wait behind `g` at the block at which `g` was resumed, the
    next; if there is none, of those at the smallest block, the first. So all passes that wait at
    one place leave it before any runs on, and one that has fallen behind catches up. Then any ready
    pass, in a circle from `g` on; then, when all that are left wait, the barrier opens.
    """
    if status is Status.WARP:
        state.flags[g] = PassFlag.READY
    elif status is Status.CTA:
        state.flags[g] = PassFlag.CTA1 if phase else PassFlag.CTA0
    elif status is Status.EXIT:
        state.flags[g] = PassFlag.EXITED
    resumed_at, state.stopped_at[g] = state.stopped_at[g], waits_at
    waiting = PassFlag.CTA1 if phase else PassFlag.CTA0
    released = PassFlag.CTA0 if phase else PassFlag.CTA1
    per_warp = state.config.passes_per_warp
    circle = [(g + 1 + i) % state.config.passes for i in range(state.config.passes)]
    ready = [p for p in circle if state.flags[p] in (PassFlag.READY, released)]
    warp = sorted(p for p in ready if p // per_warp == g // per_warp)
    if warp:
        behind = [p for p in warp if p > g and state.stopped_at[p] == resumed_at]
        smallest = min(state.stopped_at[p] for p in warp)
        first = next(p for p in warp if state.stopped_at[p] == smallest)
        return Switch(behind[0] if behind else first, phase)
    if ready:
        return Switch(ready[0], phase)
    blocked = [p for p in circle if state.flags[p] is waiting]
    return Switch(blocked[0], 1 - phase) if blocked else None
