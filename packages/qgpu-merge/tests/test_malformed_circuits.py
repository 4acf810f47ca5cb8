"""A circuit folder that is malformed is one clear line, and nothing is written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from qgpu_merge.cli import main
from safetensors.torch import load_file, save_file

GATE = "layers.0.mlp.gate_proj.weight"
INDEX, VALUE = f"{GATE}.index", f"{GATE}.value"


def refused(circuit: Path, base: Path, out: Path) -> str:
    arguments = ["build", "--circuit", str(circuit), "--base", str(base), "-o", str(out)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert not list(out.parent.glob("out*"))
    return result.stderr


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: d.update(machine="nano"), 'machine is "nano"; it must be an object'),
        (lambda d: d["machine"].update(lanes="2"), 'lanes is "2"'),
        (lambda d: d.update(tensors=None), "tensors is null"),
        (lambda d: d["tensors"].update({GATE: 5}), f"{GATE} is 5"),
        (lambda d: d["tensors"][GATE].update(shape="ab"), 'shape is "ab"'),
        (lambda d: d["tensors"][GATE].update(fill="0"), 'fill is "0"'),
        (lambda d: d["shape"].update(hidden_size="192"), 'hidden_size is "192"'),
        (lambda d: d["shape"].update(hidden_size=64), "base_hidden is 64; it must be below"),
        (lambda d: d["shape"].update(rms_norm_eps=0), "rms_norm_eps is 0"),
        (lambda d: d["residual"].update(text_gate=999), "text_gate is 999"),
        (lambda d: d["residual"].update(text_gate=3), "text_gate is 3"),
        (lambda d: d["residual"].update(code=191), "code is 191"),
        (lambda d: d["residual"].update(text_gate=68), "are one"),
        (lambda d: d["memory"].update(banks=[[5]]), "banks is [[5]]"),
        (lambda d: d["memory"].update(banks=[[[0, 0]]]), "1 memory banks for 2 lanes"),
        (lambda d: d["memory"].update(rows_per_head=1), "too few words"),
        (lambda d: d.update(digest=5), "digest is 5"),
    ],
)
def test_manifests(
    tmp_path: Path,
    circuit_folder: Path,
    base_folder: Path,
    edit: Callable[[dict[str, Any]], object],
    message: str,
) -> None:
    circuit = tmp_path / "circuit"
    shutil.copytree(circuit_folder, circuit)
    data = json.loads((circuit / "circuit.json").read_text())
    edit(data)
    (circuit / "circuit.json").write_text(json.dumps(data))
    assert message in refused(circuit, base_folder, tmp_path / "out")


@pytest.mark.parametrize(
    "edit",
    [
        lambda t: t[INDEX].fill_(10**6),
        lambda t: t[INDEX].fill_(-1),
        lambda t: t[VALUE].fill_(float("nan")),
        lambda t: t.update({VALUE: t[VALUE].int()}),
        lambda t: t.update({INDEX: t[INDEX].float()}),
        lambda t: t.update({INDEX: t[INDEX][0].clone()}),
        lambda t: t.update({VALUE: t[VALUE][:-1].clone()}),
    ],
)
def test_elements(
    tmp_path: Path,
    circuit_folder: Path,
    base_folder: Path,
    edit: Callable[[dict[str, torch.Tensor]], object],
) -> None:
    circuit = tmp_path / "circuit"
    shutil.copytree(circuit_folder, circuit)
    tensors = load_file(circuit / "circuit.safetensors")
    edit(tensors)
    save_file(tensors, circuit / "circuit.safetensors")
    text = refused(circuit, base_folder, tmp_path / "out")
    assert f"the elements of {GATE} do not fit it" in text
