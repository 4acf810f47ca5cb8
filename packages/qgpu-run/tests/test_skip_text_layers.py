"""Text goes around the GPU's layers with the same logits; GPU tokens go through them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from qgpu_isa.machine_config import NANO
from qgpu_isa.random_programs import random_launch
from qgpu_run.check import check_launch
from qgpu_run.cli import main
from qgpu_run.engines.transformers_engine import TransformersEngine
from qgpu_run.load_model import LoadedModel, load_model
from qgpu_run.skip_text_layers import skip_text_layers
from qgpu_run.text_speed import measure_text_speed


@pytest.fixture(scope="module")
def loaded(nano_model: Path) -> LoadedModel:
    return load_model(nano_model)


def count_calls(loaded: LoadedModel) -> list[int]:
    """Grows by one with every run of the first GPU layer's own code."""
    calls: list[int] = []
    loaded.model.model.layers[0].mlp.register_forward_hook(lambda *_: calls.append(1))
    return calls


def test_logits_of_text_are_identical_and_the_layers_do_not_run(loaded: LoadedModel) -> None:
    calls = count_calls(loaded)
    speed = measure_text_speed(loaded, prompt=9, decode=3, rounds=1)
    assert speed.identical
    assert len(calls) == 4
    assert speed.to_dict()["merged_over"]["decode"]["merged"] == 1.0


def test_a_launch_with_skipping_is_exact(loaded: LoadedModel) -> None:
    undo = skip_text_layers(loaded)
    try:
        engine = TransformersEngine(loaded)
        assert check_launch(random_launch(NANO, 3, max_tokens=30), engine).exact
        # A GPU token among text makes the whole pass run.
        calls = count_calls(loaded)
        with torch.no_grad():
            loaded.model(torch.tensor([[1, 2, loaded.token_offset, 3]]))
            assert len(calls) == 1
            loaded.model(torch.tensor([[1, 2, 3]]))
            assert len(calls) == 1
    finally:
        undo()


def test_command(nano_model: Path) -> None:
    arguments = ["text-speed", "--model", str(nano_model), "--prompt", "4", "--decode", "2"]
    done = CliRunner().invoke(main, [*arguments, "--rounds", "1", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["identical"]
    assert set(found["decode"]) == {"merged", "merged, skipping"}
