"""Names of a base checkpoint's files, beside its tensors and its config."""

from __future__ import annotations

import re
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
    "qgpu_chat.json",
    "preprocessor_config.json",
    "video_preprocessor_config.json",
    "processor_config.json",
    "LICENSE*",
    "NOTICE*",
)
"""What a published model has beside its tokenizer."""

CARD = "README.md"

HUB_SNAPSHOT = re.compile(r"models--(?P<owner>[^/]+?)--(?P<name>[^/]+)/snapshots/(?P<commit>\w+)")
"""How the hub client's cache names the folder of a model."""


def hub_source(folder: Path) -> tuple[str, str] | None:
    """Name and commit of the model on the hub that a folder of the hub's cache holds."""
    match = HUB_SNAPSHOT.search(folder.absolute().as_posix() + "/")
    return None if match is None else (f"{match['owner']}/{match['name']}", match["commit"])
