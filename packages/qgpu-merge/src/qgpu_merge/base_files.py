"""Which files of a base checkpoint matter to the merge, beside its tensors and its config."""

from __future__ import annotations

import shutil
from fnmatch import fnmatchcase
from pathlib import Path

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
)

KEPT_PATTERNS = (
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
    "preprocessor_config.json",
    "video_preprocessor_config.json",
    "processor_config.json",
    "LICENSE*",
    "NOTICE*",
)
"""Files that the merged checkpoint keeps as they are."""

CARD = "README.md"


def kept_files(folder: Path) -> list[str]:
    """Names of the files that the merged checkpoint keeps as they are, the tokenizer's aside."""
    names = (path.name for path in folder.iterdir() if path.is_file())
    return sorted(n for n in names if any(fnmatchcase(n, p) for p in KEPT_PATTERNS))


def copy_kept_files(base: Path, folder: Path) -> None:
    """Copies them; of a link, the file that it points to."""
    for name in kept_files(base):
        shutil.copyfile(base / name, folder / name)
