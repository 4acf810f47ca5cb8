"""The model as it chats: prompts in, tokens out, with what was read before kept in its cache."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgpu_isa.checked_json import load_object

from qgpu_run.errors import ModelError

SETTINGS = "qgpu_chat.json"
"""File in a checkpoint that says how to talk with its model; most have none."""


@dataclass(frozen=True)
class ChatSettings:
    """How a model is to be talked with.

    Attributes:
        tools_in_prompt: whether the template is to describe the tools; a model that was made for
            them knows them.
        prompts: system message by mode, instead of the usual one; empty for none.
        note: what a user is to know about the model.
    """

    tools_in_prompt: bool = True
    prompts: dict[str, str] | None = None
    note: str = ""

    @classmethod
    def read(cls, folder: Path) -> ChatSettings:
        """The settings in a checkpoint, or the usual ones.

        Raises:
            ModelError: the file is malformed.
        """
        path = folder / SETTINGS
        if not path.exists():
            return cls()
        found = load_object(path, ModelError)
        prompts = found.get("prompts")
        known = {
            "tools_in_prompt": isinstance(found.get("tools_in_prompt", True), bool),
            "prompts": prompts is None
            or (isinstance(prompts, dict) and all(isinstance(x, str) for x in prompts.values())),
            "note": isinstance(found.get("note", ""), str),
        }
        wrong = [name for name in found if not known.get(name, False)]
        if wrong:
            raise ModelError(f"{path}: '{wrong[0]}' is not what qgpu reads there")
        return cls(**found)

    def write(self, folder: Path) -> None:
        """Writes the file."""
        values = {
            "tools_in_prompt": self.tools_in_prompt,
            "prompts": self.prompts,
            "note": self.note,
        }
        (folder / SETTINGS).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


@dataclass
class _Read:
    """Tokens that a cache has read."""

    ids: list[int]
    cache: Any


class TextModel:
    """A merged model that reads and writes text, greedily, in bf16, around its GPU's layers.

    Args:
        folder: the merged checkpoint.
        device: torch device.

    Raises:
        ModelError: it cannot be loaded, or has no tokenizer or chat template.
    """

    def __init__(self, folder: Path, *, device: str = "cpu") -> None:
        from qgpu_run.load_model import load_model
        from qgpu_run.skip_text_layers import skip_text_layers

        self.folder = folder
        self.settings = ChatSettings.read(folder)
        loaded = load_model(folder, device=device)
        skip_text_layers(loaded)
        self.model, self.manifest = loaded.model, loaded.manifest
        self.tokenizer = load_tokenizer(folder)
        parameters = inspect.signature(self.model.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._now: _Read | None = None
        self._kept: _Read | None = None
        self._ends = self._end_tokens()

    def prompt(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]], *, begin: bool
    ) -> list[int]:
        """Messages as token ids.

        Args:
            messages: as chat templates take them.
            tools: definitions that the prompt is to have.
            begin: whether the assistant's next turn begins at the end.
        """
        text = self.tokenizer.apply_chat_template(
            list(messages),
            tools=list(tools) or None,
            add_generation_prompt=begin,
            enable_thinking=False,
            tokenize=False,
        )
        ids: list[int] = self.tokenizer(text, add_special_tokens=False).input_ids
        return ids

    def write(
        self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]], limit: int
    ) -> Iterator[int]:
        """The assistant's next turn, token by token, without the one that ends it.

        A generator that is left early leaves the model usable.

        Args:
            messages: the conversation.
            tools: definitions that the prompt is to have.
            limit: most tokens to write.
        """
        ids = self.prompt(messages, tools, begin=True)
        logits = self._read(ids, self._stable(ids, messages, tools))
        for _ in range(limit):
            token = int(logits.argmax())
            if token in self._ends:
                return
            yield token
            assert self._now is not None
            logits = self._feed(self._now, [token])

    def _stable(
        self, ids: list[int], messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]
    ) -> int:
        """How many tokens of a prompt later ones will have too: up to what the user said.

        Templates leave thoughts out of earlier turns, so what comes behind may be worded anew.
        """
        if messages[-1]["role"] != "user":
            return 0
        before = self.prompt(messages, tools, begin=False)
        return len(before) if ids[: len(before)] == before else 0

    def _read(self, ids: list[int], stable: int) -> Any:
        """Reads a prompt; returns the logits behind it."""
        fitting = [
            read
            for read in (self._now, self._kept)
            if read is not None and len(read.ids) < len(ids) and ids[: len(read.ids)] == read.ids
        ]
        best = max(fitting, key=lambda read: len(read.ids), default=None)
        if best is None:
            self._now = _Read([], None)
        elif best is self._kept:
            self._now = _Read(list(best.ids), copy.deepcopy(best.cache))
        assert self._now is not None
        if stable > len(self._now.ids):
            self._feed(self._now, ids[len(self._now.ids) : stable])
            self._kept = _Read(list(self._now.ids), copy.deepcopy(self._now.cache))
        return self._feed(self._now, ids[len(self._now.ids) :])

    def _feed(self, read: _Read, ids: list[int]) -> Any:
        import torch

        past = {} if read.cache is None else {self._cache_name: read.cache}
        tokens = torch.tensor([ids], device=self.model.device)
        # What is interrupted in here leaves a cache that has read a part of it.
        self._now = None
        with torch.inference_mode():
            output = self.model(tokens, use_cache=True, logits_to_keep=1, **past)
        read.cache = output[self._cache_name]
        read.ids += ids
        self._now = read
        return output.logits[0, -1]

    def _end_tokens(self) -> set[int]:
        ends = self.model.generation_config.eos_token_id
        found = set(ends if isinstance(ends, list) else [] if ends is None else [ends])
        for token in ("<|im_end|>", "<|endoftext|>"):
            number = self.tokenizer.convert_tokens_to_ids(token)
            if number is not None and number != self.tokenizer.unk_token_id:
                found.add(number)
        return found


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a checkpoint, which has a chat template.

    Raises:
        ModelError: there is none, or it cannot be read.
    """
    from transformers import AutoTokenizer

    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer_config.json")):
        raise ModelError(f"{folder} has no tokenizer, so it cannot be talked with")
    loader: Any = AutoTokenizer
    try:
        tokenizer = loader.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(f"{folder} has no tokenizer that can be loaded: {reason}") from None
    if not tokenizer.chat_template:
        raise ModelError(f"the tokenizer of {folder} has no chat template")
    return tokenizer
