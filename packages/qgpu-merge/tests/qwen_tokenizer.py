"""A small byte-level BPE tokenizer in the files and with the settings of Qwen3.5's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer
from transformers.models.qwen3_5.tokenization_qwen3_5 import PRETOKENIZE_REGEX

TEXT = [
    "The quick brown fox jumps over the lazy dog, and then the other one.",
    "def f(x):\n    return x + 1  # naïve café Ελλάδα 中文 हिन्दी",
    "the then there other another brother",
]
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
PLAIN = ("<think>", "</think>")

CHAT_TEMPLATE = (
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content"
    " + '<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}"
    "{{- '<|im_start|>assistant\\n<think>\\n' }}{%- endif %}"
)


def write_qwen_tokenizer(folder: Path, *, vocab_size: int = 300, decoder: bool = True) -> int:
    """Writes the files; returns the number of tokens.

    Args:
        folder: where to.
        vocab_size: tokens of the BPE, to which the added ones come.
        decoder: whether tokenizer_config.json lists the added tokens, as Qwen's does.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated", invert=False)
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, level])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXT, trainer)
    data: dict[str, Any] = json.loads(tokenizer.to_str())
    first = len(data["model"]["vocab"])
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = {
        first + i: {"content": name, **flags, "special": name in SPECIAL}
        for i, name in enumerate((*SPECIAL, *PLAIN))
    }
    data["added_tokens"] = [{"id": number, **entry} for number, entry in added.items()]
    (folder / "tokenizer.json").write_text(json.dumps(data))
    config = {
        "add_prefix_space": False,
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": 262144,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }
    if decoder:
        config["added_tokens_decoder"] = {str(number): entry for number, entry in added.items()}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    (folder / "vocab.json").write_text(json.dumps(data["model"]["vocab"]))
    (folder / "merges.txt").write_text("".join(" ".join(m) + "\n" for m in data["model"]["merges"]))
    return first + len(added)
