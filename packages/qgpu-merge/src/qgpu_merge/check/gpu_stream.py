"""A short stream of GPU tokens, to see which tokens the merged model chooses on them."""

from __future__ import annotations

import torch
from qgpu_isa.errors import ConfigError
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.vocabulary import vocabulary

from qgpu_merge.check.open_pair import Pair

GPU_TOKENS = 384


def gpu_stream(pair: Pair, seed: int) -> torch.Tensor:
    """Ids [T]: the first token of every class, tokens spread evenly, and random ones."""
    ids = pair.gpu_tokens
    chosen = _first_of_classes(pair)
    spread = (GPU_TOKENS - len(chosen)) // 2
    chosen += torch.linspace(ids.start, ids.stop - 1, spread).long().tolist()
    generator = torch.Generator().manual_seed(seed)
    rest = GPU_TOKENS - len(chosen)
    chosen += torch.randint(ids.start, ids.stop, (rest,), generator=generator).tolist()
    return torch.tensor(chosen)


def _first_of_classes(pair: Pair) -> list[int]:
    try:
        machine = MachineConfig(**pair.merged.raw_config["qgpu"]["machine"])
    except (KeyError, TypeError, ConfigError):
        return []
    tokens = vocabulary(machine)
    if tokens.size != len(pair.gpu_tokens):
        return []
    return [pair.text_tokens + tokens.range_of(cls).start for cls in tokens.classes]
