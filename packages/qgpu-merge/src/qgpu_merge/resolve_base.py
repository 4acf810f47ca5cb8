"""`--base`: a local folder, or the name of a model on the Hugging Face hub."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from qgpu_isa.weight_files import SUFFIX, indexed_files

from qgpu_merge.base_files import CARD, KEPT_PATTERNS, TOKENIZER_FILES
from qgpu_merge.errors import CheckpointError
from qgpu_merge.read_checkpoint import CONFIG

EXAMPLE = "Qwen/Qwen3.5-2B"

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]*"
HUB_ID = re.compile(rf"(?P<name>{_PART}/{_PART})(?:@(?P<revision>[^@\s]+))?")

WANTED = (
    CONFIG,
    f"*{SUFFIX}",
    f"*{SUFFIX}.index.json",
    CARD,
    *TOKENIZER_FILES,
    *KEPT_PATTERNS,
)
"""Nothing that runs: no pickles, no code."""

UNWANTED = ("*/*",)
"""Files in folders: other formats of the same model."""

Report = Callable[[str], None]


class BaseError(CheckpointError):
    """A base that is neither a folder nor a model that can be downloaded."""


def resolve_base(base: str, report: Report | None = None) -> Path:
    """The folder of a base checkpoint, downloaded now if it names a model of the hub.

    Whatever exists on disk wins. A download goes to the hub client's own cache ($HF_HOME,
    $HF_HUB_CACHE), continues where a broken one stopped, and shows its progress on standard error;
    with HF_HUB_OFFLINE=1, or without a connection, what that cache holds is taken.

    Args:
        base: a path, or `OWNER/NAME`, or `OWNER/NAME@REVISION` with a branch, tag or commit.
        report: called with one line before a download.

    Raises:
        BaseError: says what to do.
    """
    path = Path(base)
    if path.exists():
        return path
    match = HUB_ID.fullmatch(base)
    if match is None:
        raise BaseError(
            f"{base} is not a checkpoint folder: there is nothing of that name, and it is no name "
            f"on the hub such as {EXAMPLE} or {EXAMPLE}@REVISION"
        )
    folder = _download(match["name"], match["revision"], report or (lambda _: None))
    _check_complete(folder, base)
    return folder


def _download(name: str, revision: str | None, report: Report) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    report(f"looking for {name} on the hub; there is no folder of that name")
    what = name if revision is None else f"{name}@{revision}"
    try:
        found = snapshot_download(
            name,
            revision=revision,
            allow_patterns=list(WANTED),
            ignore_patterns=list(UNWANTED),
        )
    except GatedRepoError:
        raise BaseError(
            f"{name} is gated: accept its licence on its page on the hub, then set HF_TOKEN to a "
            "token of your account"
        ) from None
    except RepositoryNotFoundError:
        raise BaseError(
            f"{name} is neither a folder nor a public model on the hub: check the name, or set "
            "HF_TOKEN if it is private"
        ) from None
    except RevisionNotFoundError:
        raise BaseError(f"{name} has no revision {revision}: check what follows the @") from None
    except HFValidationError:
        raise BaseError(f"{name} is neither a folder nor a possible name on the hub") from None
    except LocalEntryNotFoundError as error:
        raise BaseError(_offline(what, error)) from None
    except HfHubHTTPError as error:
        raise BaseError(f"the hub refused {what}: {_first_line(error)}; try again later") from None
    except OSError as error:
        raise BaseError(f"cannot keep {what}: {error.strerror or _first_line(error)}") from None
    except Exception as error:
        # The client's network libraries have errors of their own, and change.
        raise BaseError(
            f"the download of {what} broke: {_first_line(error)}; run the command again, it "
            "continues"
        ) from None
    return Path(found)


def _offline(what: str, error: Exception) -> str:
    from huggingface_hub.constants import is_offline_mode

    cause = "HF_HUB_OFFLINE is set" if is_offline_mode() else f"no connection: {_first_line(error)}"
    return (
        f"{what} is not complete in the hub's cache and cannot be downloaded ({cause}): download "
        f"it elsewhere (`hf download {what.replace('@', ' --revision ')}`) and give its folder"
    )


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    text = lines[0].strip() if lines else type(error).__name__
    return re.sub(r"https?://\S+", "the hub", text)[:200]


def _check_complete(folder: Path, base: str) -> None:
    """The hub's cache may hold part of a model only, such as its tokenizer."""
    problem = None
    index = indexed_files(folder, BaseError)
    if not (folder / CONFIG).is_file():
        problem = CONFIG
    elif index is not None:
        problem = min((n for n in index.values() if not (folder / n).is_file()), default=None)
    elif not any(folder.glob(f"*{SUFFIX}")):
        problem = "its safetensors files"
    if problem is not None:
        raise BaseError(
            f"{folder}, the hub's copy of {base}, lacks {problem}: unset HF_HUB_OFFLINE and run "
            "the command again, or give the folder of a complete copy"
        )
