"""`qgpu-run tokens`, and the naive lowering's tokens of `qgpu-run launch`."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
from qgpu_isa.interpreter import run_launch
from qgpu_isa.machine_config import DEFAULT
from qgpu_ptx.kernel_source import read_module
from qgpu_ptx.launch_options import LaunchOptions
from qgpu_ptx.passes import SWITCHES
from qgpu_run.lowering import lower_kernel

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
FEW = [
    KERNELS / f"{name}.ptx"
    for name in ("elementwise/vector_add", "control/function_call", "reduce/dot")
]
# Counted by hand, 4 groups of lanes each: 1 + 8 and 1 + 3 * 8 for the first two steps, 1 + 8 for
# the second load, 1 + 0 for the store, 1 for `ret`, and 16 words stored.
VECTOR_ADD = 4 * (9 + 25 + 9 + 1 + 1) + 16 * 3


def test_json_has_every_kernel_and_the_mean(invoke) -> None:
    status, text, data = invoke("tokens", *FEW, "--json")
    assert status == 0, text
    assert [k["kernel"] for k in data["kernels"]] == [
        "control/function_call", "elementwise/vector_add", "reduce/dot",
    ]  # fmt: skip
    assert all(k["ok"] is True and k["ratio"] == k["tokens"] / k["baseline_tokens"]
               for k in data["kernels"])  # fmt: skip
    logs = [math.log(k["ratio"]) for k in data["kernels"]]
    assert data["token_ratio_geomean"] == pytest.approx(math.exp(sum(logs) / 3))
    assert (data["machine"], data["kernels_counted"]) == ("default", 3)


def test_tokens_are_those_that_a_launch_decodes(invoke) -> None:
    _, _, measured = invoke("tokens", FEW[0], "--profile", "small", "--json")
    _, _, launched = invoke(
        "launch", FEW[0], "--profile", "small", "--engine", "interpreter", "--json"
    )
    (kernel,) = measured["kernels"]
    assert kernel["tokens"] == launched["tokens"]
    assert kernel["baseline_tokens"] == launched["baseline_tokens"] == VECTOR_ADD


def test_a_launch_with_arguments_has_a_baseline(invoke, tmp_path: Path) -> None:
    path = shutil.copy(FEW[0], tmp_path / "k.ptx")
    arguments = ("--arg", "x=5,6", "--arg", "y=7,8", "--arg", "z:s32*=zeros(2)", "--arg", "n=2")
    status, text, data = invoke(
        "launch", path, "--profile", "nano", "--block", 2, "--engine", "interpreter", "--json",
        *arguments,
    )  # fmt: skip
    assert status == 0, text
    assert data["baseline_tokens"] == 9 + 25 + 9 + 1 + 1 + 2 * 3


def test_a_wrong_result_exits_with_1_and_is_in_the_page(invoke, tmp_path: Path) -> None:
    path = shutil.copy(FEW[0], tmp_path)
    spec = FEW[0].with_suffix(".toml").read_text().replace("c = [16, ", "c = [17, ")
    (tmp_path / "vector_add.toml").write_text(spec)
    page = tmp_path / "tokens.md"
    status, text, _ = invoke("tokens", path, "-o", page)
    assert status == 1
    assert "WRONG: c[0] is 16, expected 17" in text
    assert "WRONG" in page.read_text()
    assert [p.name for p in tmp_path.glob(".*")] == []


def test_a_kernel_that_is_not_lowered_is_named(invoke, tmp_path: Path) -> None:
    shutil.copy(FEW[0], tmp_path)
    spec = FEW[0].with_suffix(".toml").read_text().replace("block = [16", "block = [256")
    (tmp_path / "vector_add.toml").write_text(spec)
    status, text, data = invoke("tokens", tmp_path, "--json")
    assert status == 1, text
    (kernel,) = data["kernels"]
    assert (kernel["tokens"], kernel["ok"]) == (None, None)
    assert "256 threads" in kernel["problem"]
    assert data["token_ratio_geomean"] is None
    _, text, _ = invoke("tokens", tmp_path)
    assert "not counted" in text


def test_no_kernels(invoke, tmp_path: Path) -> None:
    status, text, _ = invoke("tokens", tmp_path)
    assert (status, "no kernel" in text) == (2, True)


def test_kernels_of_which_none_can_be_run(invoke, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("int x = ;")
    status, text, _ = invoke("tokens", tmp_path / "k.cu")
    assert status == 1, text


def test_the_bits_that_had_to_travel_are_a_floor(invoke) -> None:
    status, text, data = invoke("tokens", *FEW, "--json")
    assert status == 0, text
    for kernel in data["kernels"]:
        floor = kernel["floor"]
        parts = floor["register_bits"] + floor["predicate_bits"] + floor["choice_bits"]
        assert floor["bits"] == pytest.approx(parts)
        assert kernel["floor_share"] == pytest.approx(
            max(1.0, parts / floor["bits_per_token"]) / kernel["tokens"]
        )
        assert 0 < kernel["floor_share"] <= kernel["block_floor_share"] <= 1
    logs = [math.log(k["floor_share"]) for k in data["kernels"]]
    assert data["floor_share_geomean"] == pytest.approx(math.exp(sum(logs) / 3))
    assert data["block_floor_share_geomean"] >= data["floor_share_geomean"]
    _, text, _ = invoke("tokens", *FEW)
    assert "bits that had to travel back would fill" in text


def test_what_each_pass_is_worth(invoke) -> None:
    status, text, data = invoke("tokens", *FEW, "--by-pass", "--json")
    assert status == 0, text
    assert len(data["kernels"]) == 3
    passes = {one["name"]: one for one in data["passes"]}
    assert list(passes) == list(SWITCHES)
    dot = KERNELS / "reduce" / "dot.cu"
    module = read_module(dot.with_suffix(".ptx"))
    spec = LaunchOptions().launch_spec(dot, module)
    tokens = [
        len(run_launch(lower_kernel(module, spec, DEFAULT, without=without).launch)[1])
        for without in ((), ("coalesce",))
    ]
    coalesce = passes["coalesce"]
    assert coalesce["ratios"]["reduce/dot"] == tokens[1] / tokens[0] > 1
    assert coalesce["changed"] == sum(ratio != 1 for ratio in coalesce["ratios"].values())
    assert not any(one["wrong"] or one["not_run"] for one in passes.values())
    status, text, _ = invoke("tokens", FEW[0], "--by-pass")
    assert status == 0
    assert "one name for both sides of a copy" in text
    status, text, _ = invoke("tokens", FEW[0], "--by-pass", "-o", "page.md")
    assert (status, "writes no page" in text) == (2, True)
