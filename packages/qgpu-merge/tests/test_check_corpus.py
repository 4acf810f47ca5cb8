"""The text of a check, and checkpoints in the published multimodal layout."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from qgpu_merge.check.corpus import read_corpus
from qgpu_merge.cli import main
from qgpu_merge.errors import CheckError
from qgpu_merge.read_checkpoint import Checkpoint
from safetensors.torch import load_file, save_file

TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"


def write_tokenizer(folder: Path, *, template: bool, extra: int = 0) -> None:
    """A tokenizer with a token for every byte, behind `extra` others."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    symbols = [f"<{i}>" for i in range(extra)] + sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE({s: i for i, s in enumerate(symbols)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    make: Any = PreTrainedTokenizerFast
    tokenizer = make(tokenizer_object=core)
    if template:
        tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)


@pytest.fixture
def original(tmp_path: Path, base_folder: Path) -> Path:
    folder = tmp_path / "original"
    shutil.copytree(base_folder, folder)
    return folder


def text_of(ids: torch.Tensor, folder: Path) -> str:
    from transformers import AutoTokenizer

    auto: Any = AutoTokenizer
    text: str = auto.from_pretrained(folder).decode(ids)
    return text


def test_the_default_text(original: Path) -> None:
    write_tokenizer(original, template=True)
    corpus = read_corpus(Checkpoint(original), (), tokens=4000, sequence=200, seed=0)
    assert corpus.tokens == 4000
    assert all(2 <= len(ids) <= 200 for ids in corpus.sequences)
    assert "language reference" in corpus.description
    assert "(chat template)" in corpus.description
    first = text_of(corpus.sequences[0], original)
    assert first.startswith("<user>Explain in three")
    assert first.endswith("<assistant>")
    assert text_of(corpus.prompts[0], original).startswith("<user>Explain in three")
    chats = sum(len(ids) for ids in corpus.sequences if text_of(ids, original)[0] == "<")
    assert 1000 < chats <= 2000
    again = read_corpus(Checkpoint(original), (), tokens=4000, sequence=200, seed=1)
    assert not torch.equal(corpus.sequences[-1], again.sequences[-1])


def test_without_a_chat_template(original: Path) -> None:
    write_tokenizer(original, template=False)
    corpus = read_corpus(Checkpoint(original), (), tokens=600, sequence=200, seed=0)
    assert "no chat template" in corpus.description
    assert text_of(corpus.sequences[0], original).startswith("Explain in three")


def test_files_replace_the_default_text(original: Path, tmp_path: Path) -> None:
    write_tokenizer(original, template=True)
    one, other = tmp_path / "one.txt", tmp_path / "other.txt"
    one.write_text("Grüße " * 10, encoding="utf-8")
    other.write_text("end")
    corpus = read_corpus(Checkpoint(original), (one, other), tokens=4000, sequence=30, seed=0)
    assert corpus.description == "text of one.txt, other.txt"
    text = text_of(torch.cat(corpus.sequences), original)
    assert text.strip() == "Grüße " * 10 + "\n\nend"
    assert all(len(prompt) <= 32 for prompt in corpus.prompts)
    other.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CheckError, match=r"cannot read .*other\.txt"):
        read_corpus(Checkpoint(original), (one, other), tokens=4000, sequence=30, seed=0)


def test_tokenizers_that_do_not_fit(original: Path) -> None:
    write_tokenizer(original, template=False, extra=300)
    with pytest.raises(CheckError, match="but the model has 320 tokens"):
        read_corpus(Checkpoint(original), (), tokens=100, sequence=20, seed=0)
    (original / "tokenizer.json").write_text("{")
    with pytest.raises(CheckError, match="cannot read the tokenizer"):
        read_corpus(Checkpoint(original), (), tokens=100, sequence=20, seed=0)


def as_multimodal(source: Path, folder: Path) -> Path:
    """The checkpoint in the published layout: nested config and other tensor names."""
    folder.mkdir()
    text = json.loads((source / "config.json").read_text())
    outer = {name: text.pop(name) for name in ("qgpu",) if name in text}
    tied = text.pop("tie_word_embeddings", False)
    del text["architectures"]
    outer |= {"model_type": "qwen3_5", "text_config": text, "tie_word_embeddings": tied}
    (folder / "config.json").write_text(json.dumps(outer))
    tensors = {
        name.replace("model.", "model.language_model."): tensor
        for path in source.glob("*.safetensors")
        for name, tensor in load_file(path).items()
    }
    tensors["model.visual.patch_embed.weight"] = torch.ones(3)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_multimodal_checkpoints(tmp_path: Path, base_folder: Path, merged_folder: Path) -> None:
    def run(original: Path, merged: Path) -> dict[str, Any]:
        quick = ["--tokens", "320", "--sequence", "64", "--continuation-tokens", "5", "--json"]
        result = CliRunner().invoke(main, ["check", str(original), str(merged), *quick])
        assert result.exit_code in (0, 1), result.output
        facts: dict[str, Any] = json.loads(result.stdout)
        return facts

    text_only = run(base_folder, merged_folder)
    original = as_multimodal(base_folder, tmp_path / "original")
    multimodal = run(original, as_multimodal(merged_folder, tmp_path / "merged"))
    for key in ("kl_fp32", "kl_bf16_ci", "argmax_agreement", "residual_proof", "greedy_identical"):
        assert multimodal[key] == text_only[key]
    assert multimodal["greedy_identical"]
