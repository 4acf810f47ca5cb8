"""A head that is stored beside an embedding that it is said to share."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from qgpu_merge.cli import main
from qgpu_merge.extract_base import extract_base
from qgpu_merge.head_choice import HeadChoice
from qgpu_merge.read_checkpoint import Checkpoint
from qgpu_merge.weights_to_checkpoint import build_checkpoint
from safetensors.torch import load_file, save_file

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
WEIGHTS = "model.safetensors"


def with_head(base: Path, folder: Path, head: torch.Tensor | None) -> Path:
    """A copy of a tied base that stores a head too; None: the embedding once more."""
    shutil.copytree(base, folder)
    assert json.loads((folder / "config.json").read_text())["tie_word_embeddings"]
    tensors = load_file(folder / WEIGHTS)
    tensors[HEAD] = tensors[EMBEDDING].clone() if head is None else head
    save_file(tensors, folder / WEIGHTS, {"format": "pt"})
    return folder


def logits(folder: Path) -> torch.Tensor:
    from transformers import AutoModelForCausalLM

    auto: Any = AutoModelForCausalLM
    tokens = torch.arange(40).view(1, -1)
    with torch.no_grad():
        found: torch.Tensor = auto.from_pretrained(folder, dtype=torch.float32)(tokens).logits
    return found[..., :320].double().log_softmax(-1)


def same_files(folder: Path, other: Path) -> None:
    ours, theirs = load_file(folder / WEIGHTS), load_file(other / WEIGHTS)
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert ours[name].dtype == tensor.dtype
        assert torch.equal(ours[name].view(torch.uint8), tensor.view(torch.uint8)), name
    assert (folder / "config.json").read_bytes() == (other / "config.json").read_bytes()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_another_head_is_kept_as_transformers_loads_it(
    tmp_path: Path, circuit_folder: Path, base_folder: Path, dtype: torch.dtype
) -> None:
    head = torch.randn(320, 64, generator=torch.Generator().manual_seed(7)).to(dtype)
    base, merged = with_head(base_folder, tmp_path / "base", head), tmp_path / "merged"
    assert not Checkpoint(base).tied
    plan = build_checkpoint(circuit_folder, base, merged)
    assert "a lm_head.weight that is not the embedding" in plan.notices[0]
    assert json.loads((merged / "config.json").read_text())["tie_word_embeddings"] is False
    expected, other = logits(base), logits(base_folder)
    kl = (expected.exp() * (expected - logits(merged))).sum(-1)
    assert float(kl.max()) < 1e-5
    assert float((expected.exp() * (expected - other)).sum(-1).max()) > 1e-2
    extract_base(merged, tmp_path / "out")
    same_files(tmp_path / "out", base)


@pytest.mark.parametrize("choice", list(HeadChoice))
def test_the_same_head_is_the_embedding(
    tmp_path: Path, circuit_folder: Path, base_folder: Path, choice: HeadChoice
) -> None:
    base, merged = with_head(base_folder, tmp_path / "base", None), tmp_path / "merged"
    assert Checkpoint(base).tied
    build_checkpoint(circuit_folder, base, merged, head=choice)
    assert Checkpoint(merged).tied is (choice is HeadChoice.TIED)
    extract_base(merged, tmp_path / "out")
    same_files(tmp_path / "out", base)


def test_a_zero_with_another_sign_makes_another_head(
    tmp_path: Path, circuit_folder: Path, base_folder: Path
) -> None:
    """Transformers ties them, as they are equal; to give every bit back, both are needed."""
    head = load_file(base_folder / WEIGHTS)[EMBEDDING].clone()
    head[3, 4] = -0.0
    base = with_head(base_folder, tmp_path / "base", head)
    tensors = load_file(base / WEIGHTS)
    tensors[EMBEDDING][3, 4] = 0.0
    save_file(tensors, base / WEIGHTS, {"format": "pt"})
    build_checkpoint(circuit_folder, base, tmp_path / "merged")
    extract_base(tmp_path / "merged", tmp_path / "out")
    same_files(tmp_path / "out", base)


def test_a_stored_head_of_another_shape(
    tmp_path: Path, circuit_folder: Path, base_folder: Path
) -> None:
    base = with_head(base_folder, tmp_path / "base", torch.zeros(3, 64))
    arguments = ["build", "--circuit", circuit_folder, "--base", base, "-o", tmp_path / "x"]
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 2
    assert "lm_head.weight has shape (3, 64), the config says (320, 64)" in result.output


@pytest.mark.parametrize(("choice", "said"), [("own", "as --head own asks"), ("auto", "since")])
def test_what_is_said_about_a_head_of_its_own(
    circuit_folder: Path, base_folder: Path, choice: str, said: str
) -> None:
    arguments = ["build", "--dry-run", "--circuit", circuit_folder, "--base", base_folder]
    result = CliRunner().invoke(main, [*map(str, arguments), "--head", choice])
    assert result.exit_code == 0, result.output
    assert f"the head becomes a matrix of its own, {said}" in result.output
