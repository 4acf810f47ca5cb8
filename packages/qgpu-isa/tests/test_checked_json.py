"""Values of JSON files are taken for what they are, and for nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qgpu_isa.checked_json import MOST_DEPTH, Fields, load_object
from qgpu_isa.errors import ConfigError
from qgpu_isa.qwen35_config import DEFAULTS, MULTIPLES, SIZES, check_text_config

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)

READS: dict[str, Callable[[Fields], Any]] = {
    "integer": lambda f: f.integer("x"),
    "number": lambda f: f.number("x", 0.0, 1e9),
    "flag": lambda f: f.flag("x", False),
    "text": lambda f: f.text("x"),
    "choice": lambda f: f.text("x", ("a", "b")),
    "array": lambda f: f.array("x"),
    "integers": lambda f: f.integers("x"),
    "inner": lambda f: f.inner("x"),
}


@given(JSON, st.sampled_from(sorted(READS)))
def test_a_value_is_read_or_refused_in_one_line(value: Any, kind: str) -> None:
    try:
        found = READS[kind](Fields({"x": value}, "file", ConfigError))
    except ConfigError as error:
        refused = str(error)
    else:
        refused = ""
        found = found.data if isinstance(found, Fields) else found
        assert found == value
        assert isinstance(found, bool) == isinstance(value, bool)
    assert not refused or refused.startswith("file: x is ")
    assert len(refused.splitlines()) <= 1


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("integer", True), ("integer", 768.0), ("integer", "768"), ("integer", 0), ("integer", -1),
        ("integer", 2**41), ("number", math.nan), ("number", math.inf), ("number", 0),
        ("number", True), ("number", 10**400), ("flag", "false"), ("flag", 0), ("flag", None),
        ("text", 3), ("choice", "c"), ("array", {}), ("integers", [1, 2.0]), ("integers", [True]),
        ("inner", []),
    ],
)  # fmt: skip
def test_what_python_would_take_for_another(kind: str, value: Any) -> None:
    with pytest.raises(ConfigError, match="file: x is "):
        READS[kind](Fields({"x": value}, "file", ConfigError))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.json"

    def refuses(message: str, text: str | None = None) -> None:
        if text is not None:
            path.write_text(text)
        with pytest.raises(ConfigError, match=message):
            load_object(path, ConfigError, "nothing there")

    refuses("nothing there")
    refuses("no JSON object", "[]")
    refuses("it is no JSON", "{")
    refuses("too deeply", "[" * 10**6)
    deep = '{"a":' * MOST_DEPTH + "1" + "}" * MOST_DEPTH
    refuses("too deeply", f'{{"b": {deep}}}')
    path.write_text(deep)
    assert load_object(path, ConfigError) == json.loads(deep)
    path.write_bytes(b"\xff")
    refuses("it is no JSON")
    path.unlink()
    path.mkdir()
    refuses("Is a directory")


GOOD = dict.fromkeys(SIZES, 8) | {"model_type": "qwen3_5_text", "head_dim": 32}


def test_what_a_config_leaves_out() -> None:
    found = check_text_config(GOOD, "base", ConfigError)
    assert found["hidden_act"] == "silu"
    assert found["layer_types"] == (["linear_attention"] * 3 + ["full_attention"]) * 2
    nested = {"model_type": "qwen3_5", "text_config": GOOD, "tie_word_embeddings": True}
    assert check_text_config(nested, "base", ConfigError)["tie_word_embeddings"] is True
    contradiction = nested | {"text_config": GOOD | {"tie_word_embeddings": False}}
    with pytest.raises(ConfigError, match="what text_config says"):
        check_text_config(contradiction, "base", ConfigError)


NAMES = (
    *SIZES, *DEFAULTS, "layer_types", "full_attention_interval", "rope_parameters", "rope_scaling",
    "rope_theta", "partial_rotary_factor", "mrope_section", "dtype", "auto_map", "model_type",
    "text_config", "quantization_config",
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3), st.booleans())
def test_a_config_is_taken_or_refused_in_one_line(changes: dict[str, Any], nested: bool) -> None:
    raw: dict[str, Any] = GOOD | changes
    if nested:
        raw = {"model_type": "qwen3_5", "text_config": raw}
    try:
        found = check_text_config(raw, "base", ConfigError)
    except ConfigError as error:
        refused = str(error)
    else:
        refused = ""
        assert len(found["layer_types"]) == found["num_hidden_layers"]
        assert all(found[many] % found[few] == 0 for many, few in MULTIPLES)
    assert not refused or refused.startswith("base")
    assert len(refused.splitlines()) <= 1
