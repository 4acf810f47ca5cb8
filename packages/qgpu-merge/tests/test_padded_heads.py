"""A base with fewer DeltaNet heads than the circuit: the rest are zeros, and come off again."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from qgpu_merge.cli import main
from qgpu_merge.read_checkpoint import Checkpoint
from qgpu_merge.read_circuit import Circuit
from qgpu_merge.synthetic_base import SyntheticSizes, write_synthetic_base
from qgpu_merge.widen_residual import pad
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

QUICK = ("--tokens", 640, "--sequence", 64, "--layer-tokens", 96, "--continuation-tokens", 12)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def succeeds(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def refuses(result: Result, *parts: str) -> None:
    assert result.exit_code == 2, result.output
    assert all(part in result.output for part in parts), result.output


@pytest.fixture(scope="module", params=[1, 2], ids=["one value head", "two value heads"])
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> SimpleNamespace:
    """A circuit with two key heads, a base with one, and their merge."""
    helper: Any = sys.modules["fake_circuit"]
    folder = tmp_path_factory.mktemp("heads")
    circuit = helper.write_fake_circuit(folder / "circuit", values_per_key=request.param)
    sizes = replace(
        SyntheticSizes.for_circuit(Circuit(circuit)),
        linear_num_key_heads=1,
        linear_num_value_heads=request.param,
    )
    base, merged = folder / "base", folder / "merged"
    write_synthetic_base(base, sizes, seed=7)
    (base / "qgpu_chat.json").write_text('{"system": ""}')
    build = ("build", "--circuit", circuit, "--base", base, "-o", merged)
    refuses(run(*build), "needs layers", "2 key heads", "and 1:", "--pad")
    assert not merged.exists()
    assert "padded with zeros" in succeeds(*build, "--pad")
    return SimpleNamespace(circuit=circuit, base=base, merged=merged, values=request.param)


def test_the_config_says_so(made: SimpleNamespace) -> None:
    config = json.loads((made.merged / "config.json").read_text())
    assert config["linear_num_key_heads"] == 2
    assert config["linear_num_value_heads"] == 2 * made.values
    inspected = json.loads(succeeds("inspect", made.merged, "--json"))
    assert (inspected["linear_key_heads"], inspected["linear_value_heads"]) == (2, 2 * made.values)
    plan = ("build", "--circuit", made.circuit, "--base", made.base, "--dry-run", "--pad")
    assert f"2 key and {2 * made.values} value heads" in succeeds(*plan)
    facts = json.loads(succeeds(*plan, "--json"))
    written = sum(
        t.nbytes for path in made.merged.glob("*.safetensors") for t in load_file(path).values()
    )
    assert facts["bytes"] == written
    assert "padded with zeros" in facts["notices"][0]


def test_queries_keys_and_values_are_padded_each(made: SimpleNamespace) -> None:
    base, merged = Checkpoint(made.base), Checkpoint(made.merged)
    for name in ("linear_attn.in_proj_qkv.weight", "linear_attn.conv1d.weight"):
        ours = merged.tensor(f"layers.2.{name}")
        rows = base.tensor(f"layers.0.{name}")
        sizes = (16, 16, 16 * made.values)
        for size, old, new in zip(
            sizes, rows.split(sizes), ours.split([2 * s for s in sizes]), strict=True
        ):
            assert torch.equal(new[:size].bool().flatten(1).any(1), old.bool().flatten(1).any(1))
            assert not new[size:].any()
    for name in ("in_proj_z.weight", "in_proj_a.weight", "in_proj_b.weight", "dt_bias", "A_log"):
        ours = merged.tensor(f"layers.2.linear_attn.{name}")
        half = len(ours) // 2
        assert ours[:half].any(1).all() if ours.dim() == 2 else True
        assert not ours[half:].any()
    out = merged.tensor("layers.2.linear_attn.out_proj.weight")
    assert not out[:, out.shape[1] // 2 :].any()


def test_text_is_untouched(made: SimpleNamespace) -> None:
    tokens = torch.randint(0, 320, (1, 40), generator=torch.Generator().manual_seed(3))
    logits = []
    for folder in (made.base, made.merged):
        model, info = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, output_loading_info=True
        )
        assert not any(
            info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")
        )
        with torch.no_grad():
            logits.append(model.eval()(tokens).logits)
    difference = (logits[0] - logits[1][..., :320]).abs().max()
    assert float(difference) < 1e-4 * float(logits[0].abs().max())


def test_check_passes(made: SimpleNamespace) -> None:
    result = run("check", made.base, made.merged, *QUICK, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["passed"]
    assert found["kl_fp32"] < 1e-5


def test_the_base_comes_back(made: SimpleNamespace, tmp_path: Path) -> None:
    succeeds("extract", made.merged, "-o", tmp_path / "out")
    for path in made.base.iterdir():
        if path.suffix != ".safetensors":
            assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()
    assert (made.merged / "qgpu_chat.json").exists()
    ours, theirs = (
        load_file(folder / "model.safetensors") for folder in (tmp_path / "out", made.base)
    )
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert ours[name].dtype == tensor.dtype
        assert torch.equal(ours[name].view(torch.uint8), tensor.view(torch.uint8)), name


@pytest.mark.parametrize(
    ("keys", "values", "what"),
    [
        (4, 4, "linear_num_key_heads is 4 in the base, the circuit needs 2"),
        (1, 2, "linear_num_value_heads is 2 in the base, the circuit needs 2 for 2 key heads"),
    ],
)
def test_heads_that_cannot_be_padded(
    tmp_path: Path, circuit_folder: Path, keys: int, values: int, what: str
) -> None:
    sizes = replace(
        SyntheticSizes.for_circuit(Circuit(circuit_folder)),
        linear_num_key_heads=keys,
        linear_num_value_heads=values,
    )
    write_synthetic_base(tmp_path / "base", sizes)
    build = ("build", "--circuit", circuit_folder, "--base", tmp_path / "base", "--pad")
    refuses(run(*build, "-o", tmp_path / "x"), what)


def test_another_base_is_no_original(
    tmp_path: Path, base_folder: Path, merged_folder: Path, circuit_folder: Path
) -> None:
    sizes = SyntheticSizes.for_circuit(Circuit(circuit_folder))
    for keys, values, what in (
        (3, 3, "key_heads size of the original is 3, the merged model has 2"),
        (1, 2, "value heads to a key head of the original is 2, the merged model has 1"),
    ):
        base = tmp_path / f"{keys}"
        heads = {"linear_num_key_heads": keys, "linear_num_value_heads": values}
        write_synthetic_base(base, replace(sizes, **heads))
        refuses(run("check", base, merged_folder), what)


def test_segments_are_padded_each() -> None:
    tensor = torch.arange(1, 6).view(5, 1)
    found = pad(tensor, 0, (1, 1, 3), (2, 2, 4)).flatten().tolist()
    assert found == [1, 0, 2, 0, 3, 4, 5, 0]
    assert pad(tensor, 0, (5,), (5,)) is tensor
