"""Which tensors the merged checkpoint holds and how each is made, before any is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from qgpu_isa.vocabulary import vocabulary

from qgpu_merge.errors import MergeError
from qgpu_merge.qwen35_layout import (
    EMBEDDING,
    FINAL_NORM,
    HEAD,
    LINEAR,
    Axes,
    Qwen35Shape,
    checkpoint_name,
)
from qgpu_merge.read_checkpoint import Checkpoint
from qgpu_merge.read_circuit import Circuit
from qgpu_merge.widen_residual import Widening, pad

QGPU_FORMAT = 1

TEXT_MARK = 2.0**-16
"""Value of the text dimension in text embeddings: too small to matter to any RMS."""

TEXT_GAIN = 128.0
"""Final norm's gain on the text dimension."""

TEXT_MUTE = -(2.0**30)
"""Weight of GPU tokens' logits on the text dimension: with mark and gain, -2**21 over the RMS."""


@dataclass(frozen=True)
class TensorTask:
    """One tensor of the merged checkpoint; `make` builds it, in bf16."""

    name: str
    shape: tuple[int, ...]
    make: Callable[[], torch.Tensor]


@dataclass(frozen=True)
class MergePlan:
    """Everything about the merged checkpoint that is known before it is written.

    Attributes:
        config: config.json.
        tasks: the tensors in the order in which they are written.
    """

    config: dict[str, Any]
    tasks: tuple[TensorTask, ...]

    @property
    def bytes(self) -> int:
        """Size of all tensors."""
        return sum(2 * torch.Size(task.shape).numel() for task in self.tasks)


def plan_merge(circuit: Circuit, base: Checkpoint, provenance: dict[str, Any]) -> MergePlan:
    """Plans the merge of a circuit and a base.

    Raises:
        MergeError: they do not fit together.
    """
    _check_fit(circuit, base)
    config = _merged_config(circuit, base, provenance)
    shape = Qwen35Shape.from_config(config)
    tensors = _TensorMaker(circuit, base, shape)
    tasks = []
    for name, axes in shape.tensors():
        make = partial(tensors.make, name, axes)
        tasks.append(TensorTask(checkpoint_name(name), shape.size(axes), make))
    return MergePlan(config, tuple(tasks))


def _check_fit(circuit: Circuit, base: Checkpoint) -> None:
    if "qgpu" in base.raw_config:
        raise MergeError(f"{base.folder} is already merged with a qgpu circuit")
    wanted = {
        "hidden_size": circuit.base_hidden,
        "linear_conv_kernel_dim": 4,
        **{
            name: circuit.sizes[name]
            for name in (
                "linear_num_key_heads",
                "linear_num_value_heads",
                "linear_key_head_dim",
                "linear_value_head_dim",
            )
        },
    }
    problems = [
        f"{name} is {base.config.get(name)} in the base, the circuit needs {value}"
        for name, value in wanted.items()
        if base.config.get(name) != value
    ]
    if problems:
        listed = "\n  ".join(problems)
        raise MergeError(f"{base.folder} does not fit {circuit.folder}:\n  {listed}")
    if "full_attention" not in base.shape.layer_types:
        raise MergeError(
            f"{base.folder} has no full attention layer; transformers needs one to count positions"
        )


def _merged_config(
    circuit: Circuit, base: Checkpoint, provenance: dict[str, Any]
) -> dict[str, Any]:
    base_vocab = base.shape.axes["vocab"]
    gpu_vocab = vocabulary(circuit.machine).size
    config = dict(base.config)
    config.pop("quantization_config", None)
    config |= {
        "architectures": ["Qwen3_5ForCausalLM"],
        "model_type": "qwen3_5_text",
        "dtype": "bfloat16",
        "vocab_size": base_vocab + gpu_vocab,
        "hidden_size": circuit.hidden_size,
        "intermediate_size": max(
            base.shape.axes["intermediate"], int(circuit.sizes["intermediate_size"])
        ),
        "num_hidden_layers": circuit.num_layers + len(base.shape.layer_types),
        "layer_types": [LINEAR] * circuit.num_layers + list(base.shape.layer_types),
        "rms_norm_eps": circuit.sizes["rms_norm_eps"],
        "tie_word_embeddings": False,
        "qgpu": {
            "format": QGPU_FORMAT,
            "machine": circuit.machine_fields(),
            "token_offset": base_vocab,
            "memory": circuit.memory,
            "circuit_layers": circuit.num_layers,
            "base_hidden": circuit.base_hidden,
            "text_dimension": circuit.spare_dimension,
            "digest": circuit.digest,
            "provenance": provenance,
        },
    }
    return config


class _TensorMaker:
    """Builds merged tensors by name."""

    def __init__(self, circuit: Circuit, base: Checkpoint, shape: Qwen35Shape) -> None:
        self.circuit = circuit
        self.base = base
        self.shape = shape
        self.widening = Widening(circuit.base_hidden, circuit.hidden_size)
        self.text_dimension = circuit.spare_dimension

    def make(self, name: str, axes: Axes) -> torch.Tensor:
        if name == EMBEDDING:
            return self._embedding(axes)
        if name == HEAD:
            return self._head(axes)
        if name == FINAL_NORM:
            return self._final_norm(axes)
        _, number, stem = name.split(".", 2)
        layer = int(number)
        if layer < self.circuit.num_layers:
            tensor = self.circuit.tensor(name)
        else:
            source = f"layers.{layer - self.circuit.num_layers}.{stem}"
            tensor = self.widening.widen(name, axes, self.base.tensor(source))
        return pad(tensor, axes, "intermediate", self.shape.axes["intermediate"])

    def _embedding(self, axes: Axes) -> torch.Tensor:
        text = self.widening.widen(EMBEDDING, axes, self.base.tensor(EMBEDDING))
        if self.text_dimension is not None:
            text[:, self.text_dimension] = TEXT_MARK
        return torch.cat([text, self.circuit.tensor(EMBEDDING)])

    def _head(self, axes: Axes) -> torch.Tensor:
        text = self.widening.widen(HEAD, axes, self.base.tensor(HEAD))
        gpu = self.circuit.tensor(HEAD)
        if self.text_dimension is not None:
            gpu[:, self.text_dimension] = TEXT_MUTE
        return torch.cat([text, gpu])

    def _final_norm(self, axes: Axes) -> torch.Tensor:
        out = self.circuit.tensor(FINAL_NORM)
        base = self.widening.widen(FINAL_NORM, axes, self.base.tensor(FINAL_NORM))
        out[: self.circuit.base_hidden] = base[: self.circuit.base_hidden]
        if self.text_dimension is not None:
            out[self.text_dimension] = TEXT_GAIN - 1.0
        return out
