"""`qgpu-ptx lower --without`: every pass can be left out, and kernels stay right."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from qgpu_isa import PROFILES
from qgpu_isa.interpreter import run_launch
from qgpu_ptx import load_launch_spec, parse_ptx
from qgpu_ptx.cli import main
from qgpu_ptx.ir import ZERO, Address, BasicBlock, Edge, Function, Imm, Op, Reg, Terminator
from qgpu_ptx.lower import lower_launch
from qgpu_ptx.memory_layout import read_outputs
from qgpu_ptx.passes import EVERY, GROUPS, PIPELINE, SWITCHES, left_out
from qgpu_ptx.passes.legalize import legalize

ROOT = Path(__file__).resolve().parents[3] / "kernels"
SAMPLE = (
    "reduce/norm2",
    "reduce/block_sum",
    "reduce/atomic_sum",
    "atomics/atomic_min_max",
    "control/state_machine",
    "control/nested_calls",
    "scan/block_scan",
    "matrix/trace",
    "elementwise/vector_add",
    "expression/checked_sum",
)
"""Barriers, shuffles, atomics, shared memory, calls, loops, blocks that cannot be reached."""


@pytest.fixture(scope="module")
def kernels() -> list[tuple[object, object]]:
    files = [ROOT / f"{name}.ptx" for name in SAMPLE]
    return [
        (parse_ptx(file.read_text(), str(file)), load_launch_spec(file.with_suffix(".toml")))
        for file in files
    ]


@pytest.mark.parametrize("name", [*SWITCHES, "all of them"])
def test_kernels_are_right_without(name: str, kernels: list) -> None:
    without = tuple(SWITCHES) if name == "all of them" else (name,)
    for module, spec in kernels:
        placed = lower_launch(module, spec, PROFILES["default"], without=without)
        machine, _ = run_launch(placed.launch())
        outputs = read_outputs(machine.state.memory, placed.layout)
        assert {key: outputs[key] for key in spec.expected} == {
            key: list(values) for key, values in spec.expected.items()
        }, spec.kernel


def test_all_but_what_is_needed_can_be_left_out_and_is_in_the_help() -> None:
    needed = [step.name for step in PIPELINE if step.needed]
    assert needed == ["exchanges"]
    assert {step.name for step in PIPELINE} - set(needed) <= set(SWITCHES)
    assert len({step.name for step in PIPELINE}) == len(PIPELINE)
    text = CliRunner().invoke(main, ["lower", "--help"]).output
    listed = text.split("leaves out:\n")[1]
    assert [line.split()[0] for line in listed.splitlines() if line.strip()] == list(SWITCHES)


def test_names_of_several_passes() -> None:
    assert left_out(["every-dead", "sink"]) == {"dead", "dead-2", "dead-3", "sink"}
    assert all(name.startswith(EVERY) and len(members) > 1 for name, members in GROUPS.items())
    with pytest.raises(ValueError, match="no pass exchanges that can be left out"):
        left_out(["exchanges"])


def test_a_pass_that_was_left_out_cannot_be_shown() -> None:
    kernel = str(ROOT / "reduce/dot.ptx")
    arguments = ["lower", kernel, "--without", "every-dead", "--dump", "dead-2"]
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, "dead-2 was left out" in done.output) == (2, True)


def test_an_address_of_two_numbers_becomes_one() -> None:
    load = Op("ld", Reg(1), address=Address("lea2", Imm(0x100), Imm(12)))
    block = BasicBlock("entry", (load,), Terminator(Edge(None)))
    (op,) = legalize(Function("k", (block,))).blocks[0].ops
    assert op.address == Address("add", Imm(0x40C), ZERO)
