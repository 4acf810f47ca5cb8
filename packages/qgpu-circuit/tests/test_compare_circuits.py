"""`qgpu-circuit report --diff`: what is counted in the weights is what the plan put there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from qgpu_circuit.circuit_weights import MANIFEST, TENSORS
from qgpu_circuit.cli import main
from qgpu_circuit.compare_circuits import circuit_size
from qgpu_circuit.layers import CircuitPlan
from qgpu_circuit.report import build_report
from qgpu_circuit.signals import Machine


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_the_weights_hold_what_the_plan_says(
    nano: Machine, nano_plan: CircuitPlan, nano_folder: Path
) -> None:
    size = circuit_size(str(nano_folder))
    report = build_report(nano, nano_plan)
    assert size.nonzeros == report.nonzeros
    assert (size.layers, size.heads) == (report.layers, report.heads)
    # One neuron more, in the last layer, changes the marks of the heads.
    assert size.neurons == report.neurons + report.clearing_neurons + 1
    for index, (found, layer) in enumerate(zip(size.per_layer, nano_plan.layers, strict=True), 1):
        assert found.heads == len(layer.heads)
        marks = int(index == size.layers)
        assert found.neurons == len(layer.neurons) + len(layer.cleared) + marks


def test_a_circuit_does_not_differ_from_itself(nano_folder: Path) -> None:
    done = call("report", "--diff", nano_folder, nano_folder, "--json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["same_weights"] is True
    assert set(data["difference"].values()) == {0}
    assert (data["machine"], data["per_layer"]) == ({}, [])
    done = call("report", "--diff", nano_folder, nano_folder)
    assert "the same weights" in done.stdout


def test_what_is_missing_in_one_is_named(nano_folder: Path, tmp_path: Path) -> None:
    shutil.copy(nano_folder / TENSORS, tmp_path)
    manifest = json.loads((nano_folder / MANIFEST).read_text())
    manifest["digest"] = "other"
    manifest["machine"]["registers"] = 4
    # Without its last layer, and with a fill where there was none.
    last = manifest["shape"]["num_layers"] = manifest["shape"]["num_layers"] - 1
    manifest["tensors"] = {
        name: entry
        for name, entry in manifest["tensors"].items()
        if not name.startswith(f"layers.{last}.")
    }
    manifest["tensors"]["layers.0.linear_attn.dt_bias"]["fill"] = 1.0
    (tmp_path / MANIFEST).write_text(json.dumps(manifest))
    whole = circuit_size(str(nano_folder))
    done = call("report", "--diff", nano_folder, tmp_path, "--json")
    data = json.loads(done.stdout)
    assert data["same_weights"] is False
    assert data["machine"] == {"registers": [8, 4]}
    assert data["difference"]["layers"] == -1
    gone = whole.per_layer[-1]
    assert data["per_layer"][1] == {
        "layer": last, "neurons": -gone.neurons, "heads": -gone.heads, "nonzeros": -gone.nonzeros,
    }  # fmt: skip
    first = data["per_layer"][0]
    assert (first["layer"], first["neurons"], first["heads"]) == (0, 0, 0)
    assert first["nonzeros"] > 0
    assert data["difference"]["nonzeros"] == first["nonzeros"] - gone.nonzeros
    shown = call("report", "--diff", nano_folder, tmp_path).stdout
    assert "registers" in shown
    assert "different weights" in shown


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--diff", "nowhere", "nano"), "nowhere is neither a folder nor one of"),
        (("--diff", "nano", "nano", "--profile", "nano"), "leave --profile and --base out"),
        (("--diff", "nano"), "requires 2 arguments"),
    ],
)
def test_what_cannot_be_compared(options: tuple[str, ...], part: str) -> None:
    done = call("report", *options)
    assert (done.exit_code, part in done.output) == (2, True), done.output


def test_a_folder_without_a_circuit(nano_folder: Path, tmp_path: Path) -> None:
    done = call("report", "--diff", nano_folder, tmp_path)
    assert done.exit_code == 2
    assert "holds no readable circuit" in done.output
