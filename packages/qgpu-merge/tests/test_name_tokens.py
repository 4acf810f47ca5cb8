"""A folder to be served: all GPU tokens named, text cut as before, weights not copied."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st
from qgpu_isa.errors import OutputError
from qgpu_isa.machine_config import NANO
from qgpu_isa.token_names import token_name
from qgpu_isa.verify_files import verify_files
from qgpu_isa.vocabulary import Token, TokenClass, vocabulary
from qgpu_merge.cli import main
from qgpu_merge.errors import MergeError
from qgpu_merge.extract_base import extract_base
from qgpu_merge.name_tokens import name_tokens
from qgpu_merge.weights_to_checkpoint import build_checkpoint

OFFSET = 320
VOCAB = vocabulary(NANO)
ENDS = [OFFSET + VOCAB.encode(Token(TokenClass.END))]
ENDS += [OFFSET + number for number in VOCAB.range_of(TokenClass.FAULT)]


@pytest.fixture(scope="module")
def folders(
    tmp_path_factory: pytest.TempPathFactory,
    circuit_folder: Path,
    base_folder: Path,
    qwen_tokenizer: Any,
) -> tuple[Path, Path]:
    """A base with a tokenizer, and its merge with all names."""
    root = tmp_path_factory.mktemp("named")
    base, merged, named = (root / name for name in ("base", "merged", "named"))
    shutil.copytree(base_folder, base)
    qwen_tokenizer.write_qwen_tokenizer(base)
    (base / "generation_config.json").write_text(
        json.dumps({"eos_token_id": 301, "temperature": 0.7, "do_sample": True})
    )
    build_checkpoint(circuit_folder, base, merged, shard_bytes=1 << 19)
    result = CliRunner().invoke(main, ["name-tokens", str(merged), "-o", str(named), "--json"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["tokens"] == VOCAB.size
    assert facts["text"] is True
    assert facts["ends"] == [301, *ENDS]
    assert facts["copied"] == 0
    assert facts["linked"] == len([*merged.rglob("*.safetensors")])
    return base, named


@pytest.fixture(scope="module")
def pair(folders: tuple[Path, Path]) -> tuple[Any, Any]:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folders[0]), AutoTokenizer.from_pretrained(folders[1])


def test_all_tokens_can_be_read_and_written(pair: tuple[Any, Any]) -> None:
    _, named = pair
    names = [token_name(VOCAB.decode(number)) for number in range(VOCAB.size)]
    ids = list(range(OFFSET, OFFSET + VOCAB.size))
    text = "".join(names)
    assert named(text)["input_ids"] == ids
    assert named.decode(ids, skip_special_tokens=True) == text
    stream = [named.decode([number], skip_special_tokens=True) for number in ids]
    assert stream == names


@given(st.text() | st.text("gpu:<|>END()STOP,03 \n\u0301the"))
@example("<|im_start|>user\nthe fox<|im_end|>\n<think>")
@example("<|gpu:RAW(300)|> <|gpu:END|")
def test_text_is_cut_as_before(pair: tuple[Any, Any], text: str) -> None:
    base, named = pair
    if "<|gpu:" in text and "|>" in text and "(300)" not in text:
        return
    ids = base(text)["input_ids"]
    assert named(text)["input_ids"] == ids
    for skip in (False, True):
        kept = base.decode(ids, skip_special_tokens=skip)
        assert named.decode(ids, skip_special_tokens=skip) == kept


def test_what_else_stays(folders: tuple[Path, Path], pair: tuple[Any, Any]) -> None:
    base, named = pair
    assert type(named) is type(base)
    assert named.chat_template == base.chat_template
    for name in ("eos_token_id", "pad_token_id", "all_special_ids", "model_max_length"):
        assert getattr(named, name) == getattr(base, name)
    generation = json.loads((folders[1] / "generation_config.json").read_text())
    assert generation == {"eos_token_id": [301, *ENDS], "temperature": 0.7, "do_sample": True}


def test_weights_are_the_same_files(folders: tuple[Path, Path]) -> None:
    named = folders[1]
    merged = named.parent / "merged"
    for path in merged.rglob("*.safetensors"):
        assert path.samefile(named / path.relative_to(merged))
    for name in ("config.json", "vocab.json", "chat_template.jinja", "qgpu-base/tensors.json"):
        assert (named / name).read_bytes() == (merged / name).read_bytes()
        assert not (named / name).samefile(merged / name)
    card = (named / "README.md").read_text()
    assert card.startswith((merged / "README.md").read_text())
    assert "transformers serve" in card


def test_the_folder_is_a_merged_checkpoint(folders: tuple[Path, Path], tmp_path: Path) -> None:
    base, named = folders
    listed = verify_files(named)
    assert {"tokenizer.json", "generation_config.json", "config.json"} < set(listed)
    extract_base(named, tmp_path / "again")
    name = "model.safetensors"
    assert (tmp_path / "again" / name).read_bytes() == (base / name).read_bytes()
    assert (tmp_path / "again" / "generation_config.json").read_text().count("301") == 1


def test_where_files_have_one_name_they_are_copied(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    def link(source: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    named = name_tokens(folders[1].parent / "merged", tmp_path / "copied", link=link)
    assert named.linked == 0
    assert named.copied == len([*folders[1].rglob("*.safetensors")])
    assert verify_files(named.path) == verify_files(folders[1])
    assert not (named.path / "model.safetensors.index.json").samefile(
        folders[1] / "model.safetensors.index.json"
    )


def test_a_base_without_tokenizer_gets_one_of_gpu_tokens(
    merged_folder: Path, tmp_path: Path
) -> None:
    from transformers import AutoProcessor, AutoTokenizer, GenerationConfig

    named = name_tokens(merged_folder, tmp_path / "named")
    assert not named.text
    assert list(named.ends) == ENDS
    assert GenerationConfig.from_pretrained(named.path).eos_token_id == ENDS
    for loader in (AutoTokenizer, AutoProcessor):
        tokenizer = loader.from_pretrained(named.path)
        ids = [ENDS[0], OFFSET + 7, OFFSET]
        text = "<|gpu:END|><|gpu:RAW(7)|><|gpu:RAW(0)|>"
        assert tokenizer(text)["input_ids"] == ids
        assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_errors(merged_folder: Path, base_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(MergeError, match="not a merged checkpoint"):
        name_tokens(base_folder, tmp_path / "named")
    with pytest.raises(OutputError, match="inside the input"):
        name_tokens(merged_folder, merged_folder / "named")
    (tmp_path / "there").mkdir()
    with pytest.raises(OutputError, match="exists; use --force"):
        name_tokens(merged_folder, tmp_path / "there")
    assert not [*tmp_path.glob("named*")]
