"""The base's tokenizer with names for the GPU's tokens; ordinary text is cut as before.

The GPU's tokens stand behind the base's vocabulary, at ids that do not follow the tokenizer's own:
a base has more rows than tokens. Neither `added_tokens` of tokenizer.json nor
`added_tokens_decoder` of tokenizer_config.json keeps such ids: transformers takes only the texts
from them, and numbers anew. It does keep the id of an added token that is also in the BPE
vocabulary. So all added tokens, the base's too, are put there as well. No merge leads to them, so
no text becomes one by itself.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qgpu_isa.checked_json import Fields
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.token_names import token_name
from qgpu_isa.vocabulary import TokenClass, vocabulary

from qgpu_merge.errors import CheckpointError, MergeError
from qgpu_merge.read_checkpoint import read_json

TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"

UNNAMED = frozenset(
    {
        TokenClass.RAW,
        TokenClass.UNIFORM,
        TokenClass.LINEAR,
        TokenClass.LINEAR4,
        TokenClass.GROUP,
        TokenClass.ROW,
        TokenClass.MEM,
    }
)
"""Classes whose tokens are numbers and addresses. On the default machine they are 126 thousand of
136 thousand tokens: named too, they would have a tokenizer of Qwen's size load in 3 s instead of
0.7 s. The others add 0.1 s. Tokens without a name decode to nothing; `qgpu-merge name-tokens` names
them too."""


@dataclass(frozen=True)
class Naming:
    """Which GPU tokens have names, and what tokenizers do with them.

    Attributes:
        unnamed: classes without names.
        special: whether `skip_special_tokens` leaves the names out.
    """

    unnamed: frozenset[TokenClass] = UNNAMED
    special: bool = True

    @property
    def flags(self) -> dict[str, bool]:
        """The flags of an added token."""
        flags = ("single_word", "lstrip", "rstrip", "normalized")
        return dict.fromkeys(flags, False) | {"special": self.special}


CONTROL_TOKENS = Naming()
ALL_TOKENS = Naming(frozenset(), special=False)

GPU_ONLY: dict[str, dict[str, Any]] = {
    TOKENIZER: {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "vocab": {}, "merges": []},
    },
    TOKENIZER_CONFIG: {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
    },
}
"""A tokenizer that knows no text."""


def named_tokens(
    machine: MachineConfig, token_offset: int, naming: Naming = CONTROL_TOKENS
) -> dict[str, int]:
    """Names of a machine's tokens, and their ids in a model's vocabulary."""
    vocab = vocabulary(machine)
    return {
        token_name(vocab.decode(number)): token_offset + number
        for cls in vocab.classes
        if cls not in naming.unnamed
        for number in vocab.range_of(cls)
    }


def merged_tokenizer(
    base: Path, machine: MachineConfig, token_offset: int, naming: Naming = CONTROL_TOKENS
) -> dict[str, dict[str, Any]]:
    """The base's tokenizer.json and tokenizer_config.json with the GPU's tokens, by file name.

    A base without tokenizer.json gives none.

    Args:
        base: folder of the base.
        machine: whose tokens.
        token_offset: id of the machine's token 0.
        naming: which tokens are named.

    Raises:
        MergeError: the base's tokenizer is no byte-level BPE, or has ids behind the vocabulary.
    """
    if not (base / TOKENIZER).is_file():
        return {}
    names = named_tokens(machine, token_offset, naming)
    files = {TOKENIZER: read_json(base / TOKENIZER, "a tokenizer's folder")}
    fields = Fields(files[TOKENIZER], str(base / TOKENIZER), CheckpointError)
    _extend(fields, names, token_offset, naming)
    if (base / TOKENIZER_CONFIG).is_file():
        config = read_json(base / TOKENIZER_CONFIG, "a tokenizer's folder")
        # Where it is, it stands in for tokenizer.json's list.
        if "added_tokens_decoder" in config:
            fields = Fields(config, str(base / TOKENIZER_CONFIG), CheckpointError)
            config["added_tokens_decoder"] = fields.inner("added_tokens_decoder").data | {
                str(number): {"content": name, **naming.flags} for name, number in names.items()
            }
        files[TOKENIZER_CONFIG] = config
    return files


def gpu_only_tokenizer(machine: MachineConfig, token_offset: int) -> dict[str, dict[str, Any]]:
    """The files of a tokenizer that names all of a machine's tokens and knows no text."""
    files = copy.deepcopy(GPU_ONLY)
    names = named_tokens(machine, token_offset, ALL_TOKENS)
    fields = Fields(files[TOKENIZER], TOKENIZER, CheckpointError)
    _extend(fields, names, token_offset, ALL_TOKENS)
    return files


def _extend(fields: Fields, names: dict[str, int], token_offset: int, naming: Naming) -> None:
    data, where = fields.data, fields.where
    model = fields.inner("model")
    # Files of old versions of the library leave the type out.
    if model.data.get("type", "BPE") != "BPE" or model.data.get("ignore_merges"):
        raise MergeError(
            f"{where} is no BPE by merges, as Qwen3.5's is: its GPU tokens cannot be named"
        )
    known = _ids(model.inner("vocab"))
    added = fields.array("added_tokens") if "added_tokens" in fields else []
    own = {}
    for entry in added:
        token = Fields({"entry": entry}, f"{where}: added_tokens", CheckpointError).inner("entry")
        own[token.text("content")] = token.integer("id", least=0)
    last = max([-1, *known.values(), *own.values()])
    if last >= token_offset:
        raise MergeError(
            f"{where} has a token {last}, but the model's vocabulary ends at {token_offset}"
        )
    clash = names.keys() & (known.keys() | own.keys())
    if clash:
        raise MergeError(f"{where} has a token {min(clash)} of its own")
    for name, number in (*own.items(), *names.items()):
        known.setdefault(name, number)
    data["model"]["vocab"] = known
    data["added_tokens"] = [
        *added,
        *({"id": number, "content": name, **naming.flags} for name, number in names.items()),
    ]


def _ids(vocab: Fields) -> dict[str, int]:
    for name, number in vocab.data.items():
        if type(number) is not int or number < 0:
            vocab.fail(name, "a whole number from 0 on")
    return dict(vocab.data)
