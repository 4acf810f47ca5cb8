"""The table of machines in docs/measurements.md is what `qgpu-circuit report` counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from qgpu_circuit.compile_profile import compile_profile
from qgpu_circuit.layers import CircuitPlan
from qgpu_circuit.report import CircuitReport, build_report
from qgpu_circuit.signals import Machine

PAGE = Path(__file__).parents[3] / "docs" / "measurements.md"


def column(machine: str) -> dict[str, str]:
    """The cells of one machine, by what they hold."""
    section = PAGE.read_text(encoding="utf-8").split("## The machines")[1].split("\n## ")[0]
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    return {row[0]: row[head.index(machine)] for row in rows}


def cells(r: CircuitReport) -> dict[str, str]:
    """What the table has to say of a machine."""
    return {
        "GPU layers": f"{r.layers}",
        "hidden size": f"{r.hidden_size}",
        "neurons a layer": f"{r.intermediate_size}",
        "lanes, slots": f"{r.lanes}, {r.slots}",
        "threads x registers, predicates": f"{r.threads} x {r.registers}, {r.predicates}",
        "program blocks": f"{r.rom_blocks}",
        "global + shared words": f"{r.global_words} + {r.shared_words}",
        "GPU tokens": f"{r.vocabulary:,}",
        "neurons that compute / that clear": f"{r.neurons:,} / {r.clearing_neurons:,}",
        "DeltaNet heads in use": f"{r.heads}",
        "non-zero weights": f"{r.nonzeros:,}",
        "smallest logit margin, bf16 steps of the winning logit": f"{r.min_margin:.0f}",
    }


def test_nano(nano: Machine, nano_plan: CircuitPlan) -> None:
    assert column("nano") == cells(build_report(nano, nano_plan))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["small", "default"])
def test_the_larger_machines(name: str) -> None:
    assert column(name) == cells(build_report(*compile_profile(name)))
