"""Which tensors the merged checkpoint holds and how each is made, before any is made."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from qgpu_isa.qgpu_section import QGPU_FORMAT
from qgpu_isa.qwen35_config import LINEAR
from qgpu_isa.vocabulary import vocabulary

from qgpu_merge.errors import MergeError, already_merged
from qgpu_merge.finite_weights import finite_rows, finite_tensor
from qgpu_merge.head_choice import HeadChoice
from qgpu_merge.make_tensors import KEPT_DTYPES, LARGEST_EMBEDDING, TensorMaker
from qgpu_merge.qwen35_layout import (
    EMBEDDING,
    FINAL_NORM,
    HEAD,
    VISION_OUT,
    Qwen35Shape,
    checkpoint_name,
    row_ranges,
)
from qgpu_merge.read_checkpoint import Checkpoint
from qgpu_merge.read_circuit import Circuit
from qgpu_merge.residual_scale import choose_scale
from qgpu_merge.widen_residual import Widening

MOST_EXTRA = 128
"""Dimensions that every merge adds; more is padding."""

STORED_NAMES = {torch.bfloat16: "BF16", torch.float32: "F32", torch.float16: "F16"}
"""Names of dtypes in a safetensors header."""


@dataclass(frozen=True)
class TensorTask:
    """One tensor of the merged checkpoint.

    Attributes:
        pieces: makes it, as consecutive rows (or whole).
    """

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    pieces: Callable[[], Iterator[torch.Tensor]]

    @property
    def stored_dtype(self) -> str:
        """Its dtype in a safetensors header."""
        return STORED_NAMES[self.dtype]

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.dtype.itemsize * torch.Size(self.shape).numel()


@dataclass(frozen=True)
class MergePlan:
    """Everything about the merged checkpoint that is known before it is written.

    Attributes:
        config: config.json.
        tasks: the tensors in the order in which they are written.
        dropped: stored names of the base's tensors that the merged model does without.
        notices: what the user should know.
        tokenizer: the files of the merged tokenizer, by name.
    """

    config: dict[str, Any]
    tasks: tuple[TensorTask, ...]
    dropped: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    tokenizer: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Size of all tensors."""
        return sum(task.bytes for task in self.tasks)


def plan_merge(
    circuit: Circuit,
    base: Checkpoint,
    provenance: dict[str, Any],
    *,
    may_pad: bool = False,
    head: HeadChoice = HeadChoice.AUTO,
) -> MergePlan:
    """Plans the merge of a circuit and a base.

    Args:
        circuit: the circuit that will stand in front.
        base: a Qwen3.5 checkpoint.
        provenance: recorded in the config.
        may_pad: whether the base's layers may grow to what the circuit needs.
        head: whether a head that is the base's embedding stays so.

    Raises:
        MergeError: they do not fit together.
    """
    _check_fit(circuit, base)
    notices = list(_padding_notices(circuit, base))
    if notices and not may_pad:
        raise MergeError(f"{notices[0]}; let the base grow with --pad, or take another circuit")
    vision = _takes_vision(base)
    dropped = list(base.draft)
    if base.draft:
        notices.append(
            "multi-token prediction is left out: engines hand it the normalised residual stream, "
            "in which the merged model has more than the base's dimensions (`extract` restores it)"
        )
    if base.vision and not vision:
        dropped += base.vision
        notices.append("the vision tower is left out: its last layer is not where Qwen3.5 has it")
    config, text = _merged_config(circuit, base, vision=vision)
    widening, tied = _widening(circuit, base, head)
    for section in (config, config.get("text_config")):
        if section is not None and (
            base.config["tie_word_embeddings"] or "tie_word_embeddings" in section
        ):
            section["tie_word_embeddings"] = tied
    shape = Qwen35Shape.from_config(text)
    if base.config["tie_word_embeddings"] and not base.tied:
        notices.append(
            f"the base stores a {HEAD} that is not the embedding, though its config says "
            "tie_word_embeddings: both are kept, as transformers loads them"
        )
    if base.tied and not tied:
        numbers = shape.axes["vocab"] * shape.axes["hidden"]
        more = f"{KEPT_DTYPES[base.dtype(EMBEDDING)].itemsize * numbers >> 20} MiB more"
        notices.append(
            f"the head becomes a matrix of its own, as --head own asks for: {more}"
            if head is HeadChoice.OWN
            else "the head becomes a matrix of its own, since as the embedding its norm would "
            f"round too much in bf16: {more} (--head tied keeps it)"
        )
    config["qgpu"]["residual_scale"] = widening.scale
    config["qgpu"]["provenance"] = provenance | {"dropped": sorted(dropped), "notices": notices}
    maker = TensorMaker(circuit, base, shape, widening, tied=tied)
    tasks = []
    for name, axes in shape.tensors():
        if name == HEAD and tied:
            continue
        stored = checkpoint_name(name, multimodal=base.multimodal)
        dtype, pieces = maker.task(name, axes)
        tasks.append(TensorTask(stored, shape.size(axes), dtype, pieces))
    for stored in base.vision if vision else ():
        size, dtype, pieces = maker.vision_task(stored)
        tasks.append(TensorTask(stored, size, dtype, pieces))
    return MergePlan(config, tuple(tasks), tuple(dropped), tuple(notices))


def _widening(circuit: Circuit, base: Checkpoint, head: HeadChoice) -> tuple[Widening, bool]:
    """How the base is widened, and whether head and embedding are one matrix."""
    epsilon = float(circuit.sizes["rms_norm_eps"])
    widening = Widening(circuit.base_hidden, circuit.hidden_size, epsilon)
    exact = replace(widening, scale=widening.exact_scale)
    if not base.tied or head is HeadChoice.OWN:
        return exact, False
    embedding = (
        finite_rows(base, EMBEDDING, first, last, LARGEST_EMBEDDING)
        for first, last in row_ranges(base.shape.axes["vocab"])
    )
    scale, borne = choose_scale(widening, embedding, finite_tensor(base, FINAL_NORM))
    if borne or head is HeadChoice.TIED:
        return replace(widening, scale=scale), True
    return exact, False


def _check_fit(circuit: Circuit, base: Checkpoint) -> None:
    if base.merged:
        raise already_merged(base.folder)
    wanted = {
        "hidden_size": circuit.base_hidden,
        **{
            name: circuit.sizes[name]
            for name in (
                "linear_key_head_dim",
                "linear_value_head_dim",
                "rms_norm_eps",
            )
        },
    }
    problems = [
        f"{name} is {base.config.get(name)} in the base, the circuit needs {value}"
        for name, value in wanted.items()
        if base.config.get(name) != value
    ]
    problems += _head_problems(circuit, base)
    if problems:
        listed = "\n  ".join(problems)
        raise MergeError(f"{base.folder} does not fit {circuit.folder}:\n  {listed}")
    if "full_attention" not in base.shape.layer_types:
        raise MergeError(
            f"{base.folder} has no full attention layer; transformers needs one to count positions"
        )
    for name, tensor in base.tensors.items():
        if tensor.dtype not in KEPT_DTYPES and name not in base.draft:
            raise MergeError(
                f"{base.folder}: {name} is in {tensor.dtype}; a base must be in "
                f"{', '.join(KEPT_DTYPES)} (a quantized one cannot be merged)"
            )


def _head_problems(circuit: Circuit, base: Checkpoint) -> Iterator[str]:
    """A base may have fewer DeltaNet heads than the circuit, as many to a key head."""
    names = "linear_num_key_heads", "linear_num_value_heads"
    keys, values = (int(circuit.sizes[name]) for name in names)
    own_keys, own_values = (base.shape.axes[name] for name in ("key_heads", "value_heads"))
    if own_keys > keys:
        yield f"{names[0]} is {own_keys} in the base, the circuit needs {keys}"
    if own_values * keys != values * own_keys:
        yield (
            f"{names[1]} is {own_values} in the base, "
            f"the circuit needs {values} for {keys} key heads"
        )


def _grown_sizes(circuit: Circuit, base: Checkpoint) -> dict[str, int]:
    """Sizes of the merged model's layers, by their names in a config."""
    names = "hidden_size", "linear_num_key_heads", "linear_num_value_heads"
    inner = max(base.shape.axes["intermediate"], int(circuit.sizes["intermediate_size"]))
    return {name: int(circuit.sizes[name]) for name in names} | {"intermediate_size": inner}


def _padding_notices(circuit: Circuit, base: Checkpoint) -> Iterator[str]:
    """What a base that is smaller than the circuit pays for it."""
    grown = Qwen35Shape.from_config(base.config | _grown_sizes(circuit, base))
    names = "hidden", "intermediate", "key_heads"
    hidden, inner, heads = (base.shape.axes[name] for name in names)
    width, neurons = circuit.hidden_size, int(circuit.sizes["intermediate_size"])
    keys = grown.axes["key_heads"]
    if width <= hidden + MOST_EXTRA and neurons <= inner and keys <= heads:
        return
    before, after = (
        sum(torch.Size(shape.size(axes)).numel() for _, axes in shape.tensors())
        for shape in (base.shape, grown)
    )
    yield (
        f"machine '{circuit.machine.name}' needs layers {width} wide with {neurons} neurons and "
        f"{keys} key heads, {base.folder} is {hidden} wide with {inner} and {heads}: padded with "
        f"zeros, its own weights grow from {before / 1e6:.0f} to {after / 1e6:.0f} million "
        "(its part of text is as much slower; what the GPU's layers cost text: docs/merge.md)"
    )


def _takes_vision(base: Checkpoint) -> bool:
    ends = {f"{VISION_OUT}.weight", f"{VISION_OUT}.bias"}
    return base.multimodal and ends <= set(base.vision) and "vision_config" in base.raw_config


def _merged_config(
    circuit: Circuit, base: Checkpoint, *, vision: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """config.json of the merged checkpoint, and the text config in it."""
    config = copy.deepcopy(base.raw_config)
    text = config["text_config"] if base.multimodal else config
    base_vocab = base.shape.axes["vocab"]
    text.pop("full_attention_interval", None)
    for section in (config, text):
        for name in ("dtype", "torch_dtype"):
            # The range of fp16, in which plain `from_pretrained` would load it, is too small.
            if section.get(name) == "float16":
                section[name] = "float32"
    text |= {
        "vocab_size": base_vocab + vocabulary(circuit.machine).size,
        **_grown_sizes(circuit, base),
        "num_hidden_layers": circuit.num_layers + len(base.shape.layer_types),
        "layer_types": [LINEAR] * circuit.num_layers + list(base.shape.layer_types),
    }
    if "mtp_num_hidden_layers" in text:
        text["mtp_num_hidden_layers"] = 0
    if vision:
        config["vision_config"]["out_hidden_size"] = circuit.hidden_size
    config["qgpu"] = {
        "format": QGPU_FORMAT,
        "machine": circuit.machine_fields(),
        "token_offset": base_vocab,
        "memory": circuit.memory,
        "circuit_layers": circuit.num_layers,
        "base_hidden": circuit.base_hidden,
        "marks": circuit.marks,
        "code": circuit.residual["code"],
        "digest": circuit.digest,
    }
    return config, base.config | text
