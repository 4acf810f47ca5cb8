"""A base is a folder or a name on the hub; what is neither says what to do. Nothing is fetched."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from click.testing import CliRunner
from huggingface_hub import constants, errors
from qgpu_merge.cli import main
from qgpu_merge.resolve_base import BaseError, resolve_base

NAME = "Qwen/Qwen3.5-2B"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache; the client is offline."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def fill(hub: Path, *names: str, index: dict[str, Any] | None = None) -> Path:
    """A snapshot in the layout of the hub's cache: blobs, and links to them."""
    repository = hub / f"models--{NAME.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    (repository / "blobs").mkdir(parents=True)
    (repository / "refs").mkdir()
    snapshot.mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    for number, name in enumerate(names):
        (repository / "blobs" / str(number)).write_text("{}")
        (snapshot / name).symlink_to(repository / "blobs" / str(number))
    if index is not None:
        (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    return snapshot


@pytest.mark.parametrize("base", [NAME, f"{NAME}@main", f"{NAME}@{COMMIT}"])
def test_the_cache_is_enough_offline(hub: Path, base: str) -> None:
    snapshot = fill(hub, "config.json", "model.safetensors")
    assert resolve_base(base) == snapshot


def test_offline_without_a_copy(hub: Path) -> None:
    with pytest.raises(BaseError, match=r"HF_HUB_OFFLINE is set.*hf download Qwen/.*its folder"):
        resolve_base(NAME)
    fill(hub, "config.json", "model.safetensors")
    with pytest.raises(BaseError, match=r"Qwen3\.5-2B --revision v2"):
        resolve_base(f"{NAME}@v2")


def test_a_partial_copy_is_refused(hub: Path) -> None:
    snapshot = fill(hub, "tokenizer.json", index={"weight_map": {"a": "1.safetensors"}})
    with pytest.raises(BaseError, match=r"lacks config\.json"):
        resolve_base(NAME)
    (snapshot / "config.json").write_text("{}")
    with pytest.raises(BaseError, match=r"lacks 1\.safetensors"):
        resolve_base(NAME)
    (snapshot / "model.safetensors.index.json").write_text("[]")
    with pytest.raises(BaseError, match="holds no JSON object"):
        resolve_base(NAME)
    (snapshot / "model.safetensors.index.json").unlink()
    with pytest.raises(BaseError, match="lacks its safetensors"):
        resolve_base(NAME)


def test_what_exists_wins(hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(hub, "config.json", "model.safetensors")
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAME).mkdir(parents=True)
    assert resolve_base(NAME) == Path(NAME)


@pytest.mark.parametrize(
    "base", ["nowhere", "./a/b", "/a/b", "a/b/c", "~/a", "a/b@", "a b/c", "", "-a/b"]
)
def test_neither_folder_nor_name(hub: Path, tmp_path: Path, base: str) -> None:
    if not base:
        assert resolve_base(base) == Path()
        return
    with pytest.raises(BaseError, match=r"not a checkpoint folder.*such as Qwen/"):
        resolve_base(base)


def answer(kind: type[errors.HfHubHTTPError], text: str) -> errors.HfHubHTTPError:
    """An error of the hub without a response, as some versions need one and others do not."""
    error = kind.__new__(kind)
    Exception.__init__(error, text)
    return error


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: answer(errors.GatedRepoError, "403"), "accept its licence.*HF_TOKEN"),
        (lambda: answer(errors.RepositoryNotFoundError, "404"), "check the name.*HF_TOKEN"),
        (lambda: answer(errors.RevisionNotFoundError, "404"), "no revision v9"),
        (lambda: answer(errors.HfHubHTTPError, "500"), "try again later"),
        (lambda: errors.HFValidationError("no"), "neither a folder nor"),
        (lambda: errors.LocalEntryNotFoundError("Got: ConnectError\nx"), "give its folder"),
        (lambda: OSError(28, "No space left on device"), "No space left on device"),
        (lambda: RuntimeError("reset by peer"), "reset by peer; run the command again"),
    ],
)
def test_refusals_say_what_to_do(
    hub: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[], Exception], message: str
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise make()

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(BaseError, match=message) as caught:
        resolve_base(f"{NAME}@v9")
    assert "\n" not in str(caught.value)


def test_only_harmless_files_are_asked_for(
    hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub.utils import filter_repo_objects

    asked: dict[str, Any] = {}
    snapshot = fill(hub, "config.json", "model.safetensors")

    def take(name: str, **options: Any) -> str:
        asked.update(options, name=name)
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", take)
    lines: list[str] = []
    resolve_base(f"{NAME}@v1", lines.append)
    assert len(lines) == 1
    assert (asked["name"], asked["revision"]) == (NAME, "v1")
    offered = [
        "config.json",
        "model.safetensors-00001-of-00002.safetensors",
        "model.safetensors.index.json",
        "tokenizer.json",
        "video_preprocessor_config.json",
        "chat_template.jinja",
        "LICENSE",
        "README.md",
        "pytorch_model.bin",
        "modeling_qwen.py",
        "onnx/model.safetensors",
        "model.pt",
        "figure.png",
    ]
    taken = filter_repo_objects(
        offered, allow_patterns=asked["allow_patterns"], ignore_patterns=asked["ignore_patterns"]
    )
    assert list(taken) == offered[:8]


def test_the_command_line_says_it_in_one_line(hub: Path, circuit_folder: Path) -> None:
    arguments = ["build", "--circuit", str(circuit_folder), "--base", NAME, "-o", str(hub / "x")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "hf download" in result.output
    assert "Traceback" not in result.output
    assert not (hub / "x").exists()
