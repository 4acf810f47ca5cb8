"""The text that a check reads, cut into sequences of token ids."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from qgpu_merge.check.chat_prompts import CHAT_PROMPTS
from qgpu_merge.errors import CheckError
from qgpu_merge.read_checkpoint import Checkpoint

PROMPT_TOKENS = 64
"""Longest prompt that a greedy continuation starts from."""


@dataclass(frozen=True)
class Corpus:
    """Sequences of token ids, each [T] with T >= 2.

    Attributes:
        description: where they come from, for the report.
        prompts: what greedy continuations start from, each [T].
    """

    description: str
    sequences: list[torch.Tensor]
    prompts: list[torch.Tensor]

    @property
    def tokens(self) -> int:
        return sum(len(ids) for ids in self.sequences)


def read_corpus(
    original: Checkpoint, files: Sequence[Path], *, tokens: int, sequence: int, seed: int
) -> Corpus:
    """At least two sequences of at most `sequence` tokens, `tokens` in all or what there is.

    Raises:
        CheckError: a file or the tokenizer cannot be read, or there is too little text.
    """
    sequence = min(sequence, tokens // 2)
    tokenizer = _tokenizer(original.folder)
    vocabulary = original.shape.axes["vocab"]
    if tokenizer is None:
        if files:
            raise CheckError(f"{original.folder} has no tokenizer, so --text cannot be read")
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(vocabulary, (tokens,), generator=generator)
        return _corpus("random token ids: the original has no tokenizer", [], ids, tokens, sequence)
    chats: list[torch.Tensor] = []
    if files:
        description = "text of " + ", ".join(path.name for path in files)
        pieces = [_read(path) for path in files]
    else:
        chats = [_encode_chat(tokenizer, text)[:sequence] for text in CHAT_PROMPTS]
        template = "chat template" if tokenizer.chat_template else "no chat template"
        description = f"Python language reference and {len(chats)} chat prompts ({template})"
        pieces = _language_reference(seed)
    found: list[int] = []
    for piece in pieces:
        found += tokenizer(piece + "\n\n", add_special_tokens=False)["input_ids"]
        if len(found) >= tokens:
            break
    corpus = _corpus(description, chats, torch.tensor(found, dtype=torch.long), tokens, sequence)
    largest = max(int(ids.max()) for ids in corpus.sequences)
    if largest >= vocabulary:
        raise CheckError(
            f"the tokenizer of {original.folder} gives id {largest}, "
            f"but the model has {vocabulary} tokens"
        )
    return corpus


def _corpus(
    description: str, chats: list[torch.Tensor], ids: torch.Tensor, tokens: int, sequence: int
) -> Corpus:
    # Chats fill at most half, so that a short run still reads text.
    sequences: list[torch.Tensor] = []
    for chat in chats:
        if sum(map(len, sequences)) + len(chat) <= tokens // 2:
            sequences.append(chat)
    rest = ids[: tokens - sum(map(len, sequences))]
    texts = [piece for piece in torch.split(rest, sequence) if len(piece) >= 2]
    sequences += texts
    if len(sequences) < 2:
        raise CheckError(
            f"the text gives {len(sequences)} sequences of {sequence} tokens and at least 2 are "
            "needed; give more text or tokens, or a smaller --sequence"
        )
    prompts = chats or [piece[: PROMPT_TOKENS // 2] for piece in texts]
    return Corpus(description, sequences, [prompt[:PROMPT_TOKENS] for prompt in prompts])


def _tokenizer(folder: Path) -> Any:
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.json")):
        return None
    from transformers import AutoTokenizer

    auto: Any = AutoTokenizer
    try:
        return auto.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # tokenizers raises plain Exception for a damaged file
        raise CheckError(
            f"cannot read the tokenizer in {folder}: {str(error).splitlines()[0]}"
        ) from None


def _encode_chat(tokenizer: Any, prompt: str) -> torch.Tensor:
    text = prompt
    if tokenizer.chat_template:
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
        )
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return torch.tensor(ids, dtype=torch.long)


def _language_reference(seed: int) -> list[str]:
    """English text that every Python has: the language reference, topic by topic."""
    from pydoc_data.topics import topics

    texts = [topics[name] for name in sorted(topics)]
    random.Random(seed).shuffle(texts)
    return texts


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckError(f"cannot read {path}: {error}") from None
