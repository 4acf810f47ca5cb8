"""The stand-in's sizes."""

from __future__ import annotations

from typing import Any

from qgpu_run.standin.tokenizer import VOCABULARY

LAYERS = ("linear_attention", "full_attention") * 3
"""Gated DeltaNet and attention by turns; Qwen3.5 has three of the former for one of the latter."""


def model_config() -> Any:
    """The transformers config, `Qwen3_5TextConfig`.

    DeltaNet's heads have the size that Qwen3.5's have, and are fewer.
    """
    from transformers import Qwen3_5TextConfig

    return Qwen3_5TextConfig(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=len(LAYERS),
        layer_types=list(LAYERS),
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        max_position_embeddings=4096,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 0.25,
            "mrope_section": [3, 3, 2],
        },
        tie_word_embeddings=True,
        # <|endoftext|> and <|im_end|>
        pad_token_id=VOCABULARY - 9,
        eos_token_id=VOCABULARY - 7,
    )
