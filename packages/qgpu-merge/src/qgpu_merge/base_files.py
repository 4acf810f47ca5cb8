"""Names of a base checkpoint's files, beside its tensors and its config."""

from __future__ import annotations

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
"""What a published model has beside its tokenizer."""

CARD = "README.md"
