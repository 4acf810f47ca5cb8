"""The transformers engine on a small random model: chunks, caches, memory layout."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from qgpu_isa.machine_config import NANO
from qgpu_isa.vocabulary import vocabulary
from qgpu_run.engines import transformers_engine
from qgpu_run.engines.transformers_engine import TransformersEngine, bf16_step
from qgpu_run.load_model import LoadedModel, ModelManifest

OFFSET = 50
MEMORY = {
    "columns": 32,
    "rows_per_head": 16,
    "banks": [[[0, 0], [1, 0], [0, 2], [1, 2]], [[0, 1], [1, 1], [0, 3], [1, 3]]],
}


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    from transformers import Qwen3_5TextConfig
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM

    config = Qwen3_5TextConfig(
        vocab_size=OFFSET + vocabulary(NANO).size,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        layer_types=["linear_attention", "linear_attention", "full_attention"],
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        linear_num_key_heads=4,
        linear_num_value_heads=4,
        linear_key_head_dim=16,
        linear_value_head_dim=64,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 1e4,
            "partial_rotary_factor": 0.5,
            "mrope_section": [2, 1, 1],
        },
    )
    torch.manual_seed(1)
    model: Any = Qwen3_5ForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(8.0)
    manifest = ModelManifest(Path("random"), NANO, OFFSET, MEMORY, "random", 0, 0)
    return LoadedModel(model.eval(), manifest)


def some_tokens(count: int) -> list[int]:
    generator = torch.Generator().manual_seed(2)
    return torch.randint(0, vocabulary(NANO).size, (count,), generator=generator).tolist()


def test_prefill_decode_and_chunks_agree(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = some_tokens(90)
    engine = TransformersEngine(loaded)
    stepwise = [engine.feed([token]) for token in tokens]
    memory = engine.read_memory()
    for size in (7, 64, 1000):
        monkeypatch.setattr(transformers_engine, "PREFILL_TOKENS", size)
        engine.reset()
        assert [p.token for p in engine.score(tokens, 0)] == [p.token for p in stepwise]
        assert engine.read_memory() == memory
        # A second stretch of several tokens on top of an existing cache, as between two CTAs.
        engine.reset()
        engine.feed(tokens[:30])
        engine.feed([tokens[30]])
        assert [p.token for p in engine.score(tokens[31:], 40)] == [p.token for p in stepwise[71:]]
        assert engine.read_memory() == memory


def test_argmax_is_over_text_and_gpu_tokens(loaded: LoadedModel) -> None:
    tokens = some_tokens(600)
    chosen = [p.token for p in TransformersEngine(loaded).score(tokens, 0)]
    with torch.no_grad():
        logits = loaded.model(torch.tensor([tokens]) + OFFSET).logits[0]
    ids = [t + OFFSET if t >= 0 else -1 - t for t in chosen]
    assert ids == logits.argmax(-1).tolist()
    assert min(chosen) < 0 < max(chosen)


def test_reset_forgets(loaded: LoadedModel) -> None:
    engine = TransformersEngine(loaded)
    first = engine.feed(some_tokens(5))
    engine.feed([3])
    engine.reset()
    assert engine.read_memory() == [0] * NANO.memory_words
    assert engine.feed(some_tokens(5)) == first


@torch.inference_mode()
def test_memory_words_are_where_the_manifest_says(loaded: LoadedModel) -> None:
    engine = TransformersEngine(loaded)
    engine.feed(some_tokens(2))
    for layer in (0, 1):
        engine._cache.layers[layer].recurrent_states[0].zero_()
    # Address 2 * (16 + 5) + 1: bank 1, second group of rows (layer 1, head 1), row 5.
    row = engine._cache.layers[1].recurrent_states[0][0, 1, 5]
    row[0], row[4], row[31], row[40] = 3.0, 0.1, 2.0, 9.0
    row[7] = -2.0
    words = engine.read_memory()
    assert words[43] == 1 << 31 | 1 << 4 | 1
    assert sum(words) == words[43]


def test_steps_of_bf16() -> None:
    values = torch.tensor([1.0, 1.5, 2.0, 100.0, 0.75])
    following = (values.bfloat16().view(torch.int16) + 1).view(torch.bfloat16)
    assert torch.equal(bf16_step(values), following.float() - values)


def test_margins_are_finite_and_positive(loaded: LoadedModel) -> None:
    margins = [p.margin for p in TransformersEngine(loaded).score(some_tokens(10), 0)]
    assert all(math.isfinite(m) and m >= 0 for m in margins)
