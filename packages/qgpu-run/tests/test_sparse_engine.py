"""The sparse engine: the same tokens, margins and memory as transformers on the same checkpoint."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qgpu_isa.interpreter import Launch
from qgpu_isa.machine_config import NANO
from qgpu_isa.random_programs import random_launch
from qgpu_isa.vocabulary import vocabulary
from qgpu_run.check import check_launch
from qgpu_run.engines.sparse.cached_weights import cached_weights
from qgpu_run.engines.sparse.checkpoint_reader import CheckpointReader
from qgpu_run.engines.sparse.engine import SparseEngine, load_sparse_engine
from qgpu_run.engines.sparse.kernel import _largest_two, best_two
from qgpu_run.engines.sparse.pipeline import LEAST
from qgpu_run.engines.sparse.read_weights import _signs, read_weights
from qgpu_run.engines.transformers_engine import TransformersEngine
from qgpu_run.errors import ModelError
from qgpu_run.launch import setup_tokens
from qgpu_run.load_model import load_model, read_manifest
from qgpu_run.verify import verify_launch


@pytest.fixture(scope="module")
def sparse(nano_model: Path) -> SparseEngine:
    return load_sparse_engine(nano_model)


@pytest.fixture(scope="module")
def dense(nano_model: Path) -> TransformersEngine:
    return TransformersEngine(load_model(nano_model))


@pytest.mark.parametrize("seed", range(4))
def test_predictions_margins_and_memory_are_those_of_transformers(
    sparse: SparseEngine, dense: TransformersEngine, seed: int
) -> None:
    launch = random_launch(NANO, seed, max_tokens=60)
    tokens = setup_tokens(launch, 0)
    rng = np.random.default_rng(seed)
    # Then tokens that no launch would have: what they do is arithmetic all the same.
    tokens += rng.integers(0, vocabulary(NANO).size, 40).tolist()
    sparse.reset()
    dense.reset()
    assert sparse.score(tokens, 0) == dense.score(tokens, 0)
    assert sparse.read_memory() == dense.read_memory()


@pytest.mark.parametrize("seed", range(20, 45))
def test_random_programs_decode_exactly(sparse: SparseEngine, seed: int) -> None:
    report = check_launch(random_launch(NANO, seed, max_tokens=200), sparse)
    assert report.exact


def test_a_fault_and_a_second_launch(sparse: SparseEngine, faulty: Launch, scale: Launch) -> None:
    assert check_launch(faulty, sparse).fault is not None
    assert verify_launch(scale, sparse).exact
    assert sparse.read_memory()[16:22] == [200, 210, 220, 230, 240, 0]


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 33])
def test_tiles_of_any_length_leave_the_same_state(sparse: SparseEngine, count: int) -> None:
    tokens = setup_tokens(random_launch(NANO, 5, max_tokens=60), 0)[:200]
    sparse.reset()
    one_by_one = np.concatenate([sparse._read([token]) for token in tokens])
    state = sparse._state
    sparse.reset()
    parts = [sparse._read(tokens[low : low + count]) for low in range(0, len(tokens), count)]
    assert np.array_equal(one_by_one, np.concatenate(parts))
    assert np.allclose(state.memory, sparse._state.memory, rtol=1e-6)
    assert np.array_equal(state.window, sparse._state.window)


def test_the_layers_on_several_cores(sparse: SparseEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [t for seed in range(4) for t in setup_tokens(random_launch(NANO, seed), 0)]
    assert len(tokens) > LEAST
    found = []
    for threads in (1, 2, 5):
        # No more stages than the pool has threads: each waits for the one before.
        with ThreadPoolExecutor(threads) as pool:
            monkeypatch.setattr(sparse, "_threads", threads)
            monkeypatch.setattr(sparse, "_pool", pool)
            sparse.reset()
            found.append((sparse._read_stream(tokens), sparse._state.memory.copy()))
    for codes, memory in found[1:]:
        assert np.array_equal(codes, found[0][0])
        assert np.array_equal(memory, found[0][1])


@given(seed=st.integers(0, 2**32 - 1), bits=st.integers(1, 32), tokens=st.integers(2, 5000))
@settings(max_examples=50, deadline=None)
def test_counting_signs_gives_the_largest_logits(
    sparse: SparseEngine, seed: int, bits: int, tokens: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.choice([1.0, -1.0], (bits, tokens)).astype(np.float32)
    code = rng.choice([1.0, -1.0], bits).astype(np.float32)
    patterns = (rows.view(np.uint32) >> 16).astype(np.uint16)
    weights = sparse._weights._replace(logits=patterns, signs=_signs(patterns))
    assert len(weights.signs) == tokens
    assert best_two(weights, code) == _largest_two(weights, code)
    logits = code @ rows
    token, top, second = best_two(weights, code)
    assert (token, top) == (int(logits.argmax()), logits.max())
    assert second == np.sort(logits)[-2]


def test_the_cache_gives_the_same_weights(
    nano_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QGPU_CACHE", str(tmp_path))
    first = load_sparse_engine(nano_model)
    kept = list((tmp_path / "sparse").iterdir())
    assert len(kept) == 1
    second = load_sparse_engine(nano_model)
    for a, b in zip(first._weights, second._weights, strict=True):
        assert np.array_equal(a, b)
    kept[0].write_bytes(b"PK damaged")
    load_sparse_engine(nano_model)


def edited(model: Path, folder: Path, name: str, row: int, column: int, bits: int) -> Path:
    """A copy of a checkpoint with one weight changed."""
    copy = folder / "model"
    shutil.copytree(model, copy)
    reader = CheckpointReader(copy)
    tensor = reader.tensors[name]
    width = tensor.shape[-1] if len(tensor.shape) > 1 else 1
    with tensor.path.open("r+b") as stream:
        stream.seek(tensor.begin + 2 * (row * width + column))
        stream.write(int.to_bytes(bits, 2, "little"))
    return copy


ONE = 0x3F80
FOREIGN = [
    ("model.embed_tokens.weight", 0, -1, "logits of text tokens read the code of GPU tokens"),
    ("model.layers.3.linear_attn.dt_bias", 0, 0, None),
    ("model.layers.3.linear_attn.A_log", 0, 0, "the state of layer 3 decays"),
    ("model.layers.3.linear_attn.in_proj_a.weight", 0, -1, "the state of layer 3 decays"),
]


@pytest.mark.parametrize(("name", "row", "column", "message"), FOREIGN)
def test_what_cannot_be_left_out_is_refused(
    nano_model: Path,
    sparse: SparseEngine,
    tmp_path: Path,
    name: str,
    row: int,
    column: int,
    message: str | None,
) -> None:
    column = int(sparse._weights.code[0]) if column < 0 else column
    copy = edited(nano_model, tmp_path, name, row, column, ONE)
    if message is None:
        # A rate of e**-60 stays 1 whatever the step.
        read_weights(read_manifest(copy))
        return
    with pytest.raises(ModelError, match=message):
        read_weights(read_manifest(copy))


def test_a_base_layer_that_writes_the_code_is_refused(
    nano_model: Path, sparse: SparseEngine, tmp_path: Path
) -> None:
    config = json.loads((nano_model / "config.json").read_text())
    last = config["num_hidden_layers"] - 1
    name = f"model.layers.{last}.self_attn.o_proj.weight"
    copy = edited(nano_model, tmp_path, name, int(sparse._weights.code[0]), 0, ONE)
    message = f"layer {last} is full_attention and stands among"
    with pytest.raises(ModelError, match=message):
        read_weights(read_manifest(copy))


@pytest.mark.parametrize("mark", ["text_head", "gpu_head"])
def test_text_tokens_without_their_marks_could_win(
    nano_model: Path, tmp_path: Path, mark: str
) -> None:
    section = json.loads((nano_model / "config.json").read_text())["qgpu"]
    layer = section["circuit_layers"] - 1
    name = f"model.layers.{layer}.mlp.down_proj.weight"
    down = CheckpointReader(nano_model).dense(name)
    place = section["marks"][mark]
    (neuron,) = np.flatnonzero(down[place])
    copy = edited(nano_model, tmp_path, name, place, int(neuron), 0)
    engine = SparseEngine(read_manifest(copy), read_weights(read_manifest(copy)))
    with pytest.raises(ModelError, match="text tokens could win"):
        engine.feed([0])


NAN, INFINITE = 0x7FC0, 0xFF80


@pytest.mark.parametrize("bits", [NAN, INFINITE])
@pytest.mark.parametrize(
    "name",
    [
        "layers.{base}.mlp.down_proj.weight",
        "layers.{base}.self_attn.q_norm.weight",
        "layers.3.mlp.up_proj.weight",
        "layers.3.linear_attn.conv1d.weight",
        "embed_tokens.weight",
    ],
)
def test_weights_that_are_not_finite_are_refused(
    nano_model: Path, tmp_path: Path, name: str, bits: int
) -> None:
    layers = json.loads((nano_model / "config.json").read_text())["num_hidden_layers"]
    name = "model." + name.format(base=layers - 1)
    copy = edited(nano_model, tmp_path, name, 0, 0, bits)
    with pytest.raises(ModelError, match=rf"{name} holds a number that is not finite"):
        read_weights(read_manifest(copy))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("hidden_act", "gelu", 'hidden_act is "gelu"; it must be "silu"'),
        ("linear_conv_kernel_dim", 3, "it must be 4"),
        ("attn_output_gate", False, "it must be true"),
        ("rms_norm_eps", "1e-6", "a number above 0"),
        ("linear_key_head_dim", 16, "has shape"),
        ("num_hidden_layers", 5, "the number of layer_types"),
        ("layer_types", 5, "a list"),
        ("hidden_size", 768.0, "a whole number"),
        ("tie_word_embeddings", "false", "true or false"),
    ],
)
def test_a_config_that_the_circuit_cannot_work_with_is_refused(
    nano_model: Path, tmp_path: Path, field: str, value: object, message: str
) -> None:
    for file in nano_model.iterdir():
        if file.is_file():
            (tmp_path / file.name).symlink_to(file)
    config = json.loads((nano_model / "config.json").read_text()) | {field: value}
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=message):
        read_weights(read_manifest(tmp_path))


@pytest.mark.parametrize("weight_map", [None, [], {"a": 3}, {"a": "../b.safetensors"}, {}])
def test_an_index_that_is_damaged_is_refused(
    nano_model: Path, tmp_path: Path, weight_map: object
) -> None:
    (tmp_path / "config.json").symlink_to(nano_model / "config.json")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(ModelError, match=r"weight_map|beside the index"):
        read_weights(read_manifest(tmp_path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": 64}, "64 columns of a head"),
        ({"rows_per_head": 64}, "64 rows"),
        ({"banks": [[[0, 99]], [[0, 98]]]}, "head 99 of layer 0, which is unused"),
    ],
)
def test_memory_that_is_not_where_it_is_said_to_be(
    nano_model: Path, sparse: SparseEngine, changes: dict[str, object], message: str
) -> None:
    manifest = read_manifest(nano_model)
    with pytest.raises(ModelError, match=message):
        SparseEngine(replace(manifest, memory=manifest.memory | changes), sparse._weights)


def test_an_index_that_comes_later_is_seen(
    nano_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the cache holds is of these files and no others."""
    monkeypatch.setenv("QGPU_CACHE", str(tmp_path / "cache"))
    model = tmp_path / "model"
    model.mkdir()
    for name in ("config.json", "model.safetensors"):
        (model / name).symlink_to(nano_model / name)
    cached_weights(read_manifest(model))
    (model / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(ModelError, match="has both"):
        cached_weights(read_manifest(model))


def test_a_truncated_checkpoint_is_refused(nano_model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(nano_model, copy)
    file = next(copy.glob("*.safetensors"))
    with file.open("r+b") as stream:
        stream.truncate(file.stat().st_size // 2)
    with pytest.raises(ModelError, match="damaged or cut short"):
        read_weights(read_manifest(copy))
