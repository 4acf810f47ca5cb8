"""The merged checkpoint's README.md has metadata that the hub reads, and says how to use it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from huggingface_hub import ModelCard, metadata_load
from qgpu_merge import cli
from qgpu_merge.base_files import hub_source
from qgpu_merge.model_card import card_fields
from qgpu_merge.weights_to_checkpoint import build_checkpoint

COMMIT = "0123456789abcdef0123456789abcdef01234567"

BASE_CARD = """\
---
library_name: transformers
license: apache-2.0
license_link: LICENSE
pipeline_tag: image-text-to-text
language: [en, zh]
---

# Qwen3.5-2B
"""


def metadata(folder: Path) -> dict[str, Any]:
    path = folder / "README.md"
    data = ModelCard.load(path).data.to_dict()
    assert metadata_load(path) == data
    return data


@pytest.fixture(scope="module")
def published(
    tmp_path_factory: pytest.TempPathFactory,
    circuit_folder: Path,
    base_folder: Path,
    qwen_tokenizer: Any,
) -> Path:
    """A merge with a base that lies in the hub's cache, with a card, a licence and a tokenizer."""
    folder = tmp_path_factory.mktemp("card")
    base = folder / "models--Qwen--Qwen3.5-2B" / "snapshots" / COMMIT
    shutil.copytree(base_folder, base)
    qwen_tokenizer.write_qwen_tokenizer(base)
    (base / "README.md").write_text(BASE_CARD)
    (base / "LICENSE").write_text("Apache")
    build_checkpoint(circuit_folder, base, folder / "merged")
    return folder / "merged"


def test_metadata(published: Path) -> None:
    data = metadata(published)
    assert data["base_model"] == "Qwen/Qwen3.5-2B"
    assert data["base_model_relation"] == "merge"
    assert data["license"] == "apache-2.0"
    assert data["license_link"] == "LICENSE"
    assert data["language"] == ["en", "zh"]
    assert data["library_name"] == "transformers"
    assert data["pipeline_tag"] == "text-generation"
    assert "qgpu" in data["tags"]
    assert (published / "LICENSE").read_text() == "Apache"


def test_text(published: Path) -> None:
    text = (published / "README.md").read_text()
    config = json.loads((published / "config.json").read_text())
    assert text.count("---\n") == 2
    for part in (
        "| machine | nano |",
        f"| layers in all | {config['num_hidden_layers']} |",
        "qgpu-run launch kernel.cu --model PATH",
        "qgpu-merge check Qwen/Qwen3.5-2B PATH",
        "qgpu-merge extract PATH -o Qwen3.5-2B",
        "apply_chat_template",
        COMMIT,
        *config["qgpu"]["provenance"]["inputs"].values(),
    ):
        assert part in text


def test_the_commands_exist(published: Path) -> None:
    text = (published / "README.md").read_text()
    names = set(re.findall(r"^qgpu-merge (\w+)", text, re.MULTILINE))
    assert names == {"inspect", "check", "extract"}
    for name in names:
        assert CliRunner().invoke(cli.main, [name, "--help"]).exit_code == 0


def test_the_chat_example_is_python(published: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (published / "README.md").read_text(), re.S)
    compile(code, "README.md", "exec")


def test_a_base_of_unknown_origin(merged_folder: Path) -> None:
    data = metadata(merged_folder)
    assert not {"base_model", "base_model_relation", "license"} & set(data)
    text = (merged_folder / "README.md").read_text()
    assert "without a tokenizer" in text
    assert "qgpu-merge check ORIGINAL PATH" in text


@pytest.mark.parametrize("text", [None, "", "no metadata", "---\n{: [\n---\n", "---\n- a\n---\n"])
def test_cards_that_say_nothing(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "README.md").write_text(text)
    assert card_fields(tmp_path) == {}


def test_the_name_on_the_hub(tmp_path: Path) -> None:
    assert hub_source(tmp_path) is None
    folder = Path("/hub/models--Qwen--Qwen3.5-2B/snapshots/abc")
    assert hub_source(folder) == ("Qwen/Qwen3.5-2B", "abc")
    assert hub_source(Path("/hub/models--a/snapshots/abc")) is None
