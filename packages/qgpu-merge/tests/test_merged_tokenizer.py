"""The merged tokenizer cuts text as the base's does and knows the GPU's tokens by their ids."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from qgpu_isa.machine_config import DEFAULT, NANO
from qgpu_isa.token_names import token_name
from qgpu_isa.vocabulary import Token, TokenClass, vocabulary
from qgpu_merge.errors import MergeError
from qgpu_merge.merged_tokenizer import (
    UNNAMED,
    merged_tokenizer,
    named_tokens,
)
from qgpu_merge.weights_to_checkpoint import build_checkpoint
from qgpu_merge.write_checkpoint import write_json

OFFSET = 320
"""Rows of the base's embedding; the tokenizer has fewer tokens."""


@pytest.fixture(scope="module")
def folders(
    tmp_path_factory: pytest.TempPathFactory,
    circuit_folder: Path,
    base_folder: Path,
    qwen_tokenizer: Any,
) -> tuple[Path, Path]:
    """A base with a tokenizer, and its merge."""
    base, merged = (tmp_path_factory.mktemp("tokenizer") / name for name in ("base", "merged"))
    shutil.copytree(base_folder, base)
    assert qwen_tokenizer.write_qwen_tokenizer(base) < OFFSET - 3
    build_checkpoint(circuit_folder, base, merged)
    return base, merged


@cache
def load(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def pair(folders: tuple[Path, Path]) -> tuple[Any, Any]:
    return load(folders[0]), load(folders[1])


def test_names() -> None:
    names = named_tokens(DEFAULT, 1000)
    assert len(set(names.values())) == len(names) < 12000


def test_ids_are_those_of_the_model(pair: tuple[Any, Any]) -> None:
    base, merged = pair
    vocab = vocabulary(NANO)
    for cls in TokenClass:
        for number in vocab.range_of(cls):
            name = token_name(vocab.decode(number))
            if cls in UNNAMED:
                assert base.encode(name) == merged.encode(name)
            else:
                assert merged.convert_tokens_to_ids(name) == OFFSET + number
                assert merged.convert_ids_to_tokens(OFFSET + number) == name
                assert merged.encode(name) == [OFFSET + number]
    for name in ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "the", "Ġthe"):
        assert merged.convert_tokens_to_ids(name) == base.convert_tokens_to_ids(name)


def test_class_and_special_tokens_stay(pair: tuple[Any, Any]) -> None:
    base, merged = pair
    assert type(merged) is type(base)
    assert merged.is_fast
    for name in ("eos_token_id", "pad_token_id", "bos_token_id", "model_max_length"):
        assert getattr(merged, name) == getattr(base, name)


def test_the_chat_template_stays(folders: tuple[Path, Path], pair: tuple[Any, Any]) -> None:
    base, merged = pair
    messages = [{"role": "user", "content": "the fox"}, {"role": "assistant", "content": "café"}]
    for prompt in (False, True):
        texts = [
            t.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt)
            for t in pair
        ]
        assert texts[0] == texts[1]
        assert "<|im_start|>" in texts[0]
        assert merged.encode(texts[1]) == base.encode(texts[0])
    for name in ("chat_template.jinja", "vocab.json", "merges.txt", "generation_config.json"):
        assert (folders[1] / name).read_bytes() == (folders[0] / name).read_bytes()


@given(st.text() | st.text("gpu:<|>END()STOP,03 \n\u0301the"))
@example("<|im_start|>user\nthe fox<|im_end|>\n<think>")
@example("<|gpu:END|")
@example("<| gpu:END |> gpu:STOP(3,31)")
def test_text_is_cut_as_before(pair: tuple[Any, Any], text: str) -> None:
    base, merged = pair
    if "<|gpu:" in text and "|>" in text:
        return
    assert merged(text)["input_ids"] == base(text)["input_ids"]
    ids = base(text, split_special_tokens=True)["input_ids"]
    assert merged(text, split_special_tokens=True)["input_ids"] == ids
    for skip in (False, True):
        assert merged.decode(ids, skip_special_tokens=skip) == base.decode(
            ids, skip_special_tokens=skip
        )


def test_gpu_tokens_decode_to_names_or_nothing(pair: tuple[Any, Any]) -> None:
    _, merged = pair
    vocab = vocabulary(NANO)
    text = merged.encode("the fox")
    end = OFFSET + vocab.encode(Token(TokenClass.END))
    raw = OFFSET + vocab.encode(Token(TokenClass.RAW, (7,)))
    ids = [*text, end, raw]
    assert merged.decode(ids) == "the fox<|gpu:END|>"
    assert merged.decode(ids, skip_special_tokens=True) == "the fox"


def test_saving_again_keeps_the_ids(pair: tuple[Any, Any], tmp_path: Path) -> None:
    _, merged = pair
    merged.save_pretrained(tmp_path)
    again = load(tmp_path)
    for name, number in named_tokens(NANO, OFFSET).items():
        assert again.convert_tokens_to_ids(name) == number
    assert again.encode("the <|im_start|> fox") == merged.encode("the <|im_start|> fox")


@pytest.mark.parametrize("decoder", [False, True])
@pytest.mark.parametrize("kind", ["qwen3_5", "qwen3_5_text"])
@pytest.mark.parametrize("cls", ["Qwen2Tokenizer", "TokenizersBackend", None])
def test_every_class_keeps_the_ids(
    tmp_path: Path, qwen_tokenizer: Any, cls: str | None, kind: str, decoder: bool
) -> None:
    """tokenizer_config.json and config.json decide which class AutoTokenizer takes."""
    base, merged = tmp_path / "base", tmp_path / "merged"
    base.mkdir()
    merged.mkdir()
    qwen_tokenizer.write_qwen_tokenizer(base, decoder=decoder)
    path = base / "tokenizer_config.json"
    config = json.loads(path.read_text()) | {"tokenizer_class": cls}
    path.write_text(json.dumps({k: v for k, v in config.items() if k != "tokenizer_class" or v}))
    for name, data in merged_tokenizer(base, NANO, OFFSET).items():
        write_json(merged / name, data)
    for folder in (base, merged):
        (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    ours, theirs = load(merged), load(base)
    assert type(ours) is type(theirs)
    for name, number in named_tokens(NANO, OFFSET).items():
        assert ours.convert_tokens_to_ids(name) == number
    text = "<|im_start|>the fox हिन्दी<|im_end|> <think>"
    assert ours.encode(text) == theirs.encode(text)


def test_a_base_without_tokenizer(merged_folder: Path, tmp_path: Path) -> None:
    assert not list(merged_folder.glob("tokenizer*"))
    assert merged_tokenizer(tmp_path, NANO, OFFSET) == {}


def test_tokenizers_that_cannot_be_extended(tmp_path: Path, qwen_tokenizer: Any) -> None:
    def refuses(message: str, offset: int = OFFSET) -> None:
        with pytest.raises(MergeError, match=message):
            merged_tokenizer(tmp_path, NANO, offset)

    count = qwen_tokenizer.write_qwen_tokenizer(tmp_path)
    refuses(f"has a token {count - 1}", offset=count - 1)
    path = tmp_path / "tokenizer.json"
    good = json.loads(path.read_text())
    path.write_text(json.dumps(good | {"model": good["model"] | {"type": "Unigram"}}))
    refuses("no BPE")
    path.write_text(json.dumps(good | {"model": good["model"] | {"ignore_merges": True}}))
    refuses("no BPE")
    path.write_text(json.dumps({"version": "1.0"}))
    refuses("has no model, which must be an object")
    path.write_text("{")
    refuses("cannot read")
