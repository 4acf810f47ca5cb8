"""What a panel shows, as plain JSON values."""

from __future__ import annotations

import math
from typing import Any

from qgpu_run.panel.machine_view import MachineView
from qgpu_run.panel.recording import Recording


def recording_to_dict(recording: Recording) -> dict[str, Any]:
    """The outcome of a launch, and the machine where the recording's view is."""
    view, info = recording.view, recording.info
    return {
        "kernel": info.kernel,
        "machine": info.config.name,
        "engine": info.engine,
        "ended": recording.ended,
        "problem": recording.problem,
        "outcome": dict(recording.outcome),
        "tokens": recording.head,
        "state": view_to_dict(view),
    }


def view_to_dict(view: MachineView) -> dict[str, Any]:
    """The machine as a view knows it; passes without threads and words that are 0 are left out."""
    run = view.run if view.cta_runs else None
    there = [g for g, own in enumerate(view.passes) if own.exists]
    return {
        "position": view.decoded,
        "setup_tokens": view.setup,
        "cta": view.cta,
        "phase": view.phase,
        "running": run and {"block": run.block, "pass": run.pass_, "mask": run.mask},
        "fault": None if view.fault is None else view.fault.name,
        "min_margin_bf16_steps": view.min_margin if math.isfinite(view.min_margin) else None,
        "strange_tokens": view.strange,
        "stores_not_read": view.stores_unread,
        "passes": {
            str(g): {
                "doing": view.doing(g).value,
                "block": view.passes[g].stopped_at,
                "lanes": [
                    sorted([place.block, place.status.name] for place in places)
                    for places in view.passes[g].lanes
                ],
                "registers": [list(row) for row in view.registers[g]],
                "predicates": list(view.predicates[g]),
            }
            for g in there
        },
        "memory": {str(a): word for a, word in enumerate(view.memory) if word},
    }
