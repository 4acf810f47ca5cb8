"""A base with too few DeltaNet heads, padded: it launches kernels on both engines, and chats on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from qgpu_merge.cli import main as merge
from qgpu_merge.synthetic_base import SyntheticSizes, write_synthetic_base
from qgpu_run.load_model import load_model
from qgpu_run.skip_text_layers import skip_text_layers
from transformers import AutoModelForCausalLM

KERNEL = Path(__file__).resolve().parents[3] / "kernels" / "elementwise" / "vector_add.ptx"

TEXT = torch.randint(0, 320, (1, 24), generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="module", params=[2, 4], ids="{} value heads".format)
def folders(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Path]]:
    """A base with two key heads of nano's size, which needs twelve, and what was merged from it."""
    folder = tmp_path_factory.mktemp("padded")
    base, merged = folder / "base", folder / "merged"
    sizes = SyntheticSizes(
        linear_num_value_heads=request.param, linear_key_head_dim=32, linear_value_head_dim=64
    )
    write_synthetic_base(base, sizes, seed=2)
    build = ["build", "--profile", "nano", "--base", str(base), "-o", str(merged)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QGPU_CACHE", str(folder / "cache"))
        refused = CliRunner().invoke(merge, build)
        assert refused.exit_code == 2
        assert "no circuit for it" in refused.output
        done = CliRunner().invoke(merge, [*build, "--pad"])
        assert done.exit_code == 0, done.output
        yield base, merged


@pytest.mark.parametrize("engine", ["transformers", "sparse"])
def test_a_launch_is_exact(folders: tuple[Path, Path], engine: str, invoke) -> None:
    status, text, data = invoke(
        "launch", KERNEL, "--model", folders[1], "--engine", engine, "--check", "--block", 4,
        "--arg", "n=4", "--arg", "a=1,2,3,-4", "--arg", "b=10,20,30,40", "--arg", "c=zeros(4)",
        "--json",
    )  # fmt: skip
    assert status == 0, text
    assert data["exact"] is True
    assert data["outputs"] == {"c": [11, 22, 33, 36]}


def test_text_is_the_base_s_with_and_without_the_gpu_layers(folders: tuple[Path, Path]) -> None:
    loaded = load_model(folders[1])
    base = AutoModelForCausalLM.from_pretrained(folders[0], dtype=torch.float32).eval()
    merged = AutoModelForCausalLM.from_pretrained(folders[1], dtype=torch.float32).eval()
    with torch.no_grad():
        expected, found = base(TEXT).logits, merged(TEXT).logits[..., :320]
        plain = loaded.model(TEXT).logits
        undo = skip_text_layers(loaded)
        skipping = loaded.model(TEXT).logits
        undo()
    assert float((expected - found).abs().max()) < 1e-4 * float(expected.abs().max())
    assert torch.equal(plain, skipping)
