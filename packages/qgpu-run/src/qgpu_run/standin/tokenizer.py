"""The stand-in's tokenizer: byte-level BPE with Qwen's special tokens and a digit a token."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

from qgpu_run.standin.dialogues import Dialogue, draw_dialogue

VOCABULARY = 1536
SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
)
# Tags; words with the space before them; digits one by one; runs of signs, with the space before
# them and with what separates them from a number or ends the line.
_SPLIT = (
    r"</?\w+(?:=\w+)?>\n?| ?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+(?: (?=\p{N})|\n*)|\s*\n+|\s+"
)
_SAMPLE = 20_000


def train_tokenizer(seed: int) -> Any:
    """Learns the merges from generated dialogues.

    Returns:
        a transformers tokenizer (`PreTrainedTokenizerFast`) of `VOCABULARY` tokens.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    random = Random(seed)
    texts = (_words(draw_dialogue(random)) for _ in range(_SAMPLE))
    tokenizer.train_from_iterator(texts, trainer)
    # Only the outermost are skipped when text is decoded, as in Qwen's.
    tokenizer.add_tokens(
        [
            AddedToken(name, special=name.startswith("<|"), normalized=False)
            for name in SPECIAL_TOKENS
        ]
    )
    tokenizer_class: Any = PreTrainedTokenizerFast
    fast = tokenizer_class(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
    )
    template = resources.files(__package__).joinpath("chat_template.jinja")
    fast.chat_template = template.read_text(encoding="utf-8")
    return fast


def _words(dialogue: Dialogue) -> str:
    parts = []
    for message in dialogue.messages:
        parts += [message["role"], message["content"]]
        for call in message.get("tool_calls", ()):
            function = call["function"]
            parts.append(f"<function={function['name']}>\n")
            for name, value in function["arguments"].items():
                parts.append(f"<parameter={name}>\n{value}\n</parameter>\n</function>\n")
    return "\n".join(parts)


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Writes the tokenizer's files."""
    tokenizer.save_pretrained(folder)
