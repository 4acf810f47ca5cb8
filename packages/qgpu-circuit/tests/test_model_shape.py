"""The shape of a circuit in front of a base that is smaller than it."""

from __future__ import annotations

from pathlib import Path

import pytest
from qgpu_circuit.compile_profile import shape_of
from qgpu_circuit.layers import CircuitError
from qgpu_circuit.model_shape import shape_for_base
from qgpu_isa import profile


def sizes(keys: int, values: int, hidden: int = 2048) -> dict[str, int]:
    return {
        "hidden_size": hidden,
        "intermediate_size": 6144,
        "linear_num_key_heads": keys,
        "linear_num_value_heads": values,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
    }


@pytest.mark.parametrize(
    ("keys", "values", "heads", "value_heads"),
    [(2, 2, 16, 16), (2, 4, 16, 32), (16, 32, 16, 32), (24, 48, 24, 48)],
)
def test_heads_are_padded_and_keep_their_ratio(
    keys: int, values: int, heads: int, value_heads: int
) -> None:
    shape = shape_for_base(profile("small"), sizes(keys, values))
    assert (shape.heads, shape.value_heads) == (heads, value_heads)
    assert (shape.rows, shape.columns) == (128, 128)
    assert shape.padded(sizes(keys, values)) == (keys < 16)


def test_too_few_heads_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = sizes(14, 14)
    monkeypatch.setattr("qgpu_circuit.compile_profile.read_base_config", lambda _: found)
    name, shape = shape_of("fit", tmp_path)
    assert (name, shape.heads) == ("nano", 14)
    found["linear_num_key_heads"] = found["linear_num_value_heads"] = 2
    with pytest.raises(CircuitError, match="6144 neurons and 2 key heads: let"):
        shape_of("fit", tmp_path)
