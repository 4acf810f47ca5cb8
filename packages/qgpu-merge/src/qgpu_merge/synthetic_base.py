"""A small random Qwen3.5 checkpoint with the real layout, for when the real one is absent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qgpu_isa.new_folder import new_folder

if TYPE_CHECKING:
    from qgpu_merge.read_circuit import Circuit


@dataclass(frozen=True)
class SyntheticSizes:
    """Sizes of a synthetic base; the linear heads and the MLP must be the circuit's."""

    hidden_size: int = 64
    intermediate_size: int = 96
    linear_num_key_heads: int = 2
    linear_num_value_heads: int = 2
    linear_key_head_dim: int = 128
    linear_value_head_dim: int = 128
    vocab_size: int = 320
    layer_types: tuple[str, ...] = ("linear_attention", "full_attention")
    rms_norm_eps: float = 1e-6

    @classmethod
    def for_circuit(cls, circuit: Circuit) -> SyntheticSizes:
        """Sizes that fit a circuit."""
        sizes = circuit.sizes
        return cls(
            hidden_size=sizes["base_hidden"],
            intermediate_size=sizes["intermediate_size"],
            linear_num_key_heads=sizes["linear_num_key_heads"],
            linear_num_value_heads=sizes["linear_num_value_heads"],
            linear_key_head_dim=sizes["linear_key_head_dim"],
            linear_value_head_dim=sizes["linear_value_head_dim"],
            rms_norm_eps=sizes["rms_norm_eps"],
        )


def synthetic_config(sizes: SyntheticSizes, *, tied: bool = True) -> Any:
    """The transformers config of a synthetic base."""
    from transformers import Qwen3_5TextConfig

    return Qwen3_5TextConfig(
        vocab_size=sizes.vocab_size,
        hidden_size=sizes.hidden_size,
        intermediate_size=sizes.intermediate_size,
        num_hidden_layers=len(sizes.layer_types),
        layer_types=list(sizes.layer_types),
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        linear_num_key_heads=sizes.linear_num_key_heads,
        linear_num_value_heads=sizes.linear_num_value_heads,
        linear_key_head_dim=sizes.linear_key_head_dim,
        linear_value_head_dim=sizes.linear_value_head_dim,
        rms_norm_eps=sizes.rms_norm_eps,
        # A quarter of each head turns, as in the real model; the three sections split its 4 pairs.
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10_000_000.0,
            "partial_rotary_factor": 0.25,
            "mrope_section": [2, 1, 1],
        },
        tie_word_embeddings=tied,
    )


def write_synthetic_base(
    output: Path,
    sizes: SyntheticSizes,
    *,
    seed: int = 0,
    tied: bool = True,
    force: bool = False,
    shared: bool = False,
) -> None:
    """Writes a random checkpoint, the same for the same seed, in bf16.

    See `new_folder` for `force` and `shared`.

    Raises:
        OutputError: the folder exists or cannot be written.
    """
    import torch
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM
    from transformers.utils import logging

    from qgpu_merge.write_checkpoint import CHECKPOINT_FOLDER

    quiet: Any = logging
    quiet.disable_progress_bar()
    with (
        new_folder(output, CHECKPOINT_FOLDER, force=force, shared=shared) as folder,
        torch.random.fork_rng(devices=[]),
    ):
        torch.manual_seed(seed)
        model: Any = Qwen3_5ForCausalLM(synthetic_config(sizes, tied=tied))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                # Norms are born as exact ones and matrices tiny; neither would show a mistake.
                if name.endswith("norm.weight"):
                    parameter.add_(torch.randn_like(parameter) * 0.2)
                elif parameter.dim() == 2:
                    parameter.mul_(4.0)
        model.to(torch.bfloat16).save_pretrained(folder)
