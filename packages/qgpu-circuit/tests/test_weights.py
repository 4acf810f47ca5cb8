"""Emitted weights, evaluated with bf16 rounding, against the netlist and the interpreter."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from qgpu_circuit.circuit_weights import MANIFEST, TENSORS
from qgpu_circuit.cli import main
from qgpu_circuit.evaluate import Evaluator, silu
from qgpu_circuit.numerics import (
    GATE_SCALE,
    VALUE_STEP,
    VALUE_ZERO,
    bf16,
    find_anchor,
    gather_gate,
    is_bf16,
    round_bf16,
)
from qgpu_circuit.teacher_force import first_difference
from qgpu_isa import NANO, Token, vocabulary
from qgpu_isa.random_programs import random_launch

SLOW_SEEDS = [pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3)]


@pytest.mark.parametrize("seed", [0, 1, *SLOW_SEEDS])
def test_the_weights_decode_random_programs(nano_folder: Path, seed: int) -> None:
    evaluator = Evaluator(nano_folder)
    vocab = vocabulary(NANO)
    margins: list[float] = []
    answer: tuple[int, float] = (-1, 0.0)

    def step(token: Token) -> Token:
        nonlocal answer
        if answer[0] == vocab.encode(token):
            margins.append(answer[1])
        answer = evaluator.step(vocab.encode(token))
        return vocab.decode(answer[0])

    assert first_difference(random_launch(NANO, seed), step) is None
    assert len(margins) > 10
    assert min(margins) >= 8


def test_stored_bits_have_the_same_magnitude_in_bf16() -> None:
    y = np.array([VALUE_ZERO, VALUE_ZERO + VALUE_STEP], dtype=np.float32)
    zero, one = round_bf16(silu(y))
    assert zero == -one
    assert all(map(is_bf16, (VALUE_ZERO, VALUE_STEP, VALUE_STEP / 2, VALUE_ZERO + VALUE_STEP / 2)))


def test_gates_are_exact() -> None:
    n = np.arange(-256, 257, dtype=np.float32)
    assert (round_bf16(silu(round_bf16(n * GATE_SCALE))) == np.maximum(n, 0) * GATE_SCALE).all()


@pytest.mark.parametrize("width", [896, 1152, 2176, 2688])
def test_the_anchor_makes_the_norm_the_identity(width: int) -> None:
    anchor = find_anchor(width)
    assert anchor.error < 1e-4
    assert is_bf16(anchor.value)
    assert is_bf16(anchor.weight)


@pytest.mark.parametrize(("rows", "columns"), [(4, 64), (16, 128), (32, 128)])
def test_a_gathered_one_leaves_the_head_as_a_power_of_two(rows: int, columns: int) -> None:
    gate, target = gather_gate(rows, columns)
    assert bf16(bf16((columns / rows) ** 0.5) * gate) == target


def test_report_and_emit_commands(tmp_path: Path) -> None:
    runner = CliRunner()
    done = runner.invoke(main, ["report", "--profile", "nano", "--json"])
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    wanted = "profile layers lanes slots threads registers predicates rom_blocks global_words"
    wanted += " shared_words neurons nonzeros hidden_size min_margin"
    assert set(wanted.split()) <= set(found)
    assert found["min_margin"] >= 8
    folder = tmp_path / "circuit"
    done = runner.invoke(main, ["emit", "--profile", "nano", "-o", str(folder), "--quiet"])
    assert done.exit_code == 0
    digest = json.loads((folder / MANIFEST).read_text())["digest"]
    assert done.stdout == f"{folder}: 32 layers, digest {digest[:16]}\n"


def test_emitting_is_deterministic(nano_folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    CliRunner().invoke(main, ["emit", "--profile", "nano", "-o", str(again), "--quiet"])
    for name in (MANIFEST, TENSORS):
        assert (again / name).read_bytes() == (nano_folder / name).read_bytes()
