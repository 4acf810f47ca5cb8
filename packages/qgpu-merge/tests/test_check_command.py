"""`qgpu-merge check`: what it prints, and what it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from qgpu_merge.cli import main

QUICK = ("--tokens", 640, "--sequence", 64, "--layer-tokens", 96, "--continuation-tokens", 12)

KEYS = {
    "kl_fp32", "kl_fp32_ci", "kl_bf16", "kl_bf16_ci", "kl_bf16_original_vs_fp32",
    "kl_bf16_merged_vs_fp32", "kl_bf16_merged_fp32norms_vs_fp32",
    "kl_bf16_merged_fp32norms_vs_fp32_ci", "argmax_agreement", "gpu_token_mass_max", "text_wins",
    "residual_exact", "residual_proof", "base_reach", "greedy_identical", "peak_bytes", "seconds",
    "tokens", "corpus", "passed", "failures",
}  # fmt: skip


def check(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)])


def facts(*arguments: object, code: int = 0) -> dict[str, Any]:
    result = check(*arguments, *QUICK, "--json")
    assert result.exit_code == code, result.output
    data: dict[str, Any] = json.loads(result.stdout)
    return data


def refuses(result: Result, *parts: str) -> None:
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    for part in parts:
        assert part in result.output


def test_a_good_merge_passes(base_folder: Path, merged_folder: Path) -> None:
    data = facts(base_folder, merged_folder)
    assert data.keys() >= KEYS
    assert data["passed"]
    assert data["failures"] == []
    assert data["kl_fp32"] < 1e-7
    low, high = data["kl_bf16_ci"]
    assert low < data["kl_bf16"] < high
    assert data["residual_exact"]
    assert data["skipped_layers"] == 2
    assert data["greedy_identical"]
    assert data["text_wins"] == 0
    assert data["tokens"] == 640
    assert "no tokenizer" in data["corpus"]
    assert data["peak_bytes"] >= data["measuring_peak_bytes"] > 2**20


def test_running_all_layers_measures_the_same(base_folder: Path, merged_folder: Path) -> None:
    skipping = facts(base_folder, merged_folder, "--continuations", 0)
    running = facts(base_folder, merged_folder, "--continuations", 0, "--all-layers")
    assert running["skipped_layers"] == 0
    assert running["greedy_identical"] is None
    for key in ("kl_fp32", "kl_bf16_ci", "kl_bf16_merged_fp32norms_vs_fp32", "argmax_agreement"):
        assert skipping[key] == running[key]


def test_a_gain_that_is_off_is_caught(
    tmp_path: Path, base_folder: Path, merged_folder: Path
) -> None:
    helper: Any = sys.modules["edited_merge"]

    def change(tensors: dict[str, torch.Tensor]) -> None:
        tensors["model.layers.2.input_layernorm.weight"][3] += 0.5

    broken = helper.edit_tensors(merged_folder, tmp_path / "broken", change)
    data = facts(base_folder, broken, code=1)
    assert not data["passed"]
    assert data["residual_exact"]
    assert any("KL in fp32" in failure for failure in data["failures"])
    assert not data["greedy_identical"]
    assert any("with a margin of" in failure for failure in data["failures"])
    assert any("ratio of KL" in failure for failure in data["failures"])


def test_a_mute_that_is_missing_is_caught(
    tmp_path: Path, base_folder: Path, merged_folder: Path
) -> None:
    helper: Any = sys.modules["edited_merge"]

    def change(tensors: dict[str, torch.Tensor]) -> None:
        tensors["model.layers.0.mlp.gate_proj.weight"][8, helper.GATE] = 0.0
        tensors["model.layers.0.mlp.down_proj.weight"][20, 8] = 4.0

    broken = helper.edit_tensors(merged_folder, tmp_path / "broken", change)
    data = facts(base_folder, broken, code=1)
    assert not data["residual_exact"]
    assert data["skipped_layers"] == 0
    assert data["kl_fp32"] > 1e-5
    assert any("text changes" in failure for failure in data["failures"])
    assert any("row 8 is not muted" in failure for failure in data["failures"])


def test_gpu_tokens_that_win_on_text_are_caught(
    tmp_path: Path, base_folder: Path, merged_folder: Path
) -> None:
    helper: Any = sys.modules["edited_merge"]

    def change(tensors: dict[str, torch.Tensor]) -> None:
        # All logits of GPU tokens are 0 then, and nothing lowers those of text tokens.
        tensors["model.norm.weight"][68:] = -1.0

    broken = helper.edit_tensors(merged_folder, tmp_path / "broken", change)
    data = facts(base_folder, broken, code=1)
    assert data["gpu_token_mass_max"] > 1e-9
    assert data["text_wins"] > 0
    assert any("probability of GPU tokens" in failure for failure in data["failures"])
    assert any("a text token wins" in failure for failure in data["failures"])


def test_help_and_wrong_folders_need_no_torch(base_folder: Path) -> None:
    code = "import sys; from qgpu_merge.cli import main\ntry: main(sys.argv[1:])\n"
    code += "except SystemExit: sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    for arguments in (["--help"], [base_folder, base_folder]):
        command = [sys.executable, "-c", code, "check", *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True)


def test_wrong_folders(tmp_path: Path, base_folder: Path, merged_folder: Path) -> None:
    refuses(check(merged_folder, base_folder), "merged checkpoint", "the other way round")
    refuses(check(merged_folder, merged_folder), "is a merged checkpoint, not an original")
    refuses(check(base_folder, base_folder), "not a merged checkpoint", "qgpu-merge build")
    refuses(check(base_folder, tmp_path), "config.json")
    refuses(check(base_folder), "MERGED")
    refuses(check(base_folder, merged_folder, "--device", "tpu9"), "cannot use device")
    text = ("--text", tmp_path / "a.txt")
    refuses(check(base_folder, merged_folder, *text), "no tokenizer")


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("base_hidden", 60, "width"),
        ("token_offset", 300, "vocabulary"),
        ("circuit_layers", 3, "number of layers"),
        ("circuit_layers", 1, "with layers below 1"),
        ("marks", {"text_gate": 3, "text_head": 68, "gpu_head": 69}, "does not fit the model"),
        ("marks", {}, "has no text_gate"),
    ],
)
def test_models_that_do_not_belong_together(
    tmp_path: Path, base_folder: Path, merged_folder: Path, field: str, value: object, what: str
) -> None:
    other = tmp_path / "other"
    shutil.copytree(merged_folder, other)
    config = json.loads((other / "config.json").read_text())
    config["qgpu"][field] = value
    (other / "config.json").write_text(json.dumps(config))
    refuses(check(base_folder, other), what)


def test_few_tokens_are_cut_in_two(base_folder: Path, merged_folder: Path) -> None:
    few = ("--tokens", 100, "--sequence", 100, "--continuations", 0)
    assert "100 tokens in 2 sequences" in check(base_folder, merged_folder, *few).output


def test_damaged_shards(tmp_path: Path, base_folder: Path, merged_folder: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(merged_folder, other)
    shard = sorted(other.glob("*.safetensors"))[-1]
    shard.write_bytes(shard.read_bytes()[:-100])
    refuses(check(base_folder, other), "damaged or cut short")
    shard.unlink()
    refuses(check(base_folder, other), "missing")
