"""transformers' own Qwen3.5 layers, run one at a time with weights read when they are needed.

The model is built on torch's meta device, where parameters take no memory, exactly as
`from_pretrained` builds it, so that the config holds the attention that transformers chooses. A
layer gets real tensors for as long as it runs. Inputs of a layer are made as
`Qwen3_5TextModel.forward` makes them; tests compare the logits with `from_pretrained` bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError

from qgpu_merge.errors import CheckpointError
from qgpu_merge.qwen35_layout import EMBEDDING, FINAL_NORM, HEAD, is_residual_norm
from qgpu_merge.read_checkpoint import Checkpoint


@dataclass(frozen=True)
class Precision:
    """The dtypes that a loader gives the parameters.

    Attributes:
        dtype: of all parameters, as `from_pretrained(dtype=...)` casts them.
        fp32_norms: whether norms over the residual stream stay in fp32.
    """

    dtype: torch.dtype
    fp32_norms: bool = False

    def of(self, name: str) -> torch.dtype:
        """The dtype of a tensor by its full name."""
        return torch.float32 if self.fp32_norms and is_residual_norm(name) else self.dtype


FP32 = Precision(torch.float32)
BF16 = Precision(torch.bfloat16)
BF16_FP32_NORMS = Precision(torch.bfloat16, fp32_norms=True)


def text_config(checkpoint: Checkpoint) -> Any:
    """transformers' config of the language model."""
    from transformers import AutoConfig

    auto: Any = AutoConfig
    return auto.from_pretrained(checkpoint.folder, local_files_only=True).get_text_config()


class StreamedModel:
    """A checkpoint whose layers are loaded one by one.

    Attributes:
        layers: number of decoder layers.
        vocabulary: number of tokens.
    """

    def __init__(self, checkpoint: Checkpoint, device: torch.device) -> None:
        from transformers import AutoModelForCausalLM

        self.checkpoint = checkpoint
        self.device = device
        config = text_config(checkpoint)
        auto: Any = AutoModelForCausalLM
        with torch.device("meta"):
            skeleton = auto.from_config(config).eval()
        self._config: Any = skeleton.config
        self._decoder: Any = skeleton.model
        # Its frequencies are computed, not stored: it is the one part that meta cannot stand for.
        self._rotary: Any = type(self._decoder.rotary_emb)(config=self._config).to(device)
        self.layers = len(checkpoint.shape.layer_types)
        self.vocabulary = checkpoint.shape.axes["vocab"]

    def embed(self, ids: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Embeddings [1, T, hidden] of ids [T]."""
        rows = self._read(EMBEDDING)[ids.cpu()]
        return rows.to(device=self.device, dtype=dtype).unsqueeze(0)

    def load_layer(self, index: int, precisions: Sequence[Precision]) -> dict[Precision, Any]:
        """One decoder layer in each precision; what they share is in memory once."""
        states: dict[Precision, dict[str, torch.Tensor]] = {p: {} for p in precisions}
        for stem in self.checkpoint.shape.layer_tensors(index):
            name = f"layers.{index}.{stem}"
            stored = self._read(name)
            cast = {dtype: self._cast(stored, dtype) for dtype in {p.of(name) for p in precisions}}
            for precision, state in states.items():
                state[stem] = cast[precision.of(name)]
        loaded = {}
        for precision, state in states.items():
            layer = deepcopy(self._decoder.layers[index])
            layer.load_state_dict(state, strict=True, assign=True)
            loaded[precision] = layer
        return loaded

    def run_layer(
        self, layer: Any, index: int, hidden: torch.Tensor, *, cache: Any = None, past: int = 0
    ) -> torch.Tensor:
        """The residual stream [1, T, hidden] behind a loaded layer; `past` tokens came before."""
        from transformers.masking_utils import create_causal_mask, create_recurrent_attention_mask

        positions = torch.arange(hidden.shape[1], device=hidden.device) + past
        positions = positions.view(1, 1, -1).expand(4, 1, -1)
        mask_of = {
            "full_attention": create_causal_mask,
            "linear_attention": create_recurrent_attention_mask,
        }[self._config.layer_types[index]]
        mask = mask_of(
            config=self._config,
            inputs_embeds=hidden,
            attention_mask=None,
            cache=cache,
            position_ids=positions[0],
        )
        with torch.no_grad():
            out: torch.Tensor = layer(
                hidden,
                position_embeddings=self._rotary(hidden, positions[1:]),
                attention_mask=mask,
                position_ids=positions[0],
                cache=cache,
            )
        return out

    def new_cache(self) -> Any:
        """An empty cache for `run_layer`."""
        from transformers import DynamicCache

        make: Any = DynamicCache
        return make(config=self._config)

    def final_norm(self, hidden: torch.Tensor, precision: Precision) -> torch.Tensor:
        """What the head reads, of the residual stream behind the last layer."""
        norm = deepcopy(self._decoder.norm)
        weight = self._cast(self._read(FINAL_NORM), precision.of(FINAL_NORM))
        norm.load_state_dict({"weight": weight}, strict=True, assign=True)
        with torch.no_grad():
            out: torch.Tensor = norm(hidden)
        return out

    def head_rows(self, rows: range, dtypes: set[torch.dtype]) -> dict[torch.dtype, torch.Tensor]:
        """Some rows [len(rows), hidden] of the head in each dtype; only they are read."""
        # The tensor is mapped, not read: only the pages of these rows come into memory.
        stored = self._read(HEAD)[rows.start : rows.stop]
        return {dtype: self._cast(stored, dtype) for dtype in dtypes}

    def _read(self, name: str) -> torch.Tensor:
        try:
            return self.checkpoint.tensor(name)
        except (SafetensorError, OSError, RuntimeError) as error:
            raise CheckpointError(
                f"{self.checkpoint.folder}: cannot read {name}: {error}; "
                "the file is damaged, copy or build it again"
            ) from None

    def _cast(self, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return tensor.to(device=self.device, dtype=dtype, copy=True)
