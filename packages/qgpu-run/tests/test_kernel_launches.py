"""CUDA and PTX files through the command line, on the interpreter engine."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import qgpu_ptx

KERNELS = Path(__file__).resolve().parents[3] / "kernels"
ALL = sorted(KERNELS.glob("*/*.ptx"))
FEW = [
    KERNELS / f"{name}.ptx"
    for name in ("elementwise/vector_add", "reduce/dot", "control/triangle_loop")
]


def launch(invoke, path: Path, *options: object) -> tuple[int, str, dict]:
    return invoke("launch", path, "--engine", "interpreter", "--json", *options)


@pytest.mark.parametrize("path", FEW, ids=lambda path: path.stem)
@pytest.mark.parametrize("profile", ["small", "default"])
def test_shipped_kernels_give_what_their_spec_expects(invoke, path: Path, profile: str) -> None:
    status, text, data = launch(invoke, path, "--profile", profile, "--check")
    assert status == 0, text
    assert data["expected_ok"] is True
    assert data["exact"] is True
    assert data["kernel"] == path.stem
    assert data["machine"] == profile


@pytest.mark.slow
@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_all_kernels_give_what_their_spec_expects(invoke, path: Path) -> None:
    status, text, data = launch(invoke, path)
    assert status == 0, text
    assert data["expected_ok"] is True


def test_arguments_replace_the_specs(invoke) -> None:
    status, text, data = launch(
        invoke, FEW[0], "--profile", "nano", "--block", 4, "--arg", "n=3",
        "--arg", "a=1,2,3,4", "--arg", "b=10,20,30,40", "--arg", "c=zeros(4)",
    )  # fmt: skip
    assert status == 0, text
    assert data["outputs"] == {"c": [11, 22, 33, 0]}
    assert data["expected_ok"] is None


def test_a_kernel_without_a_spec(invoke, tmp_path: Path) -> None:
    path = shutil.copy(FEW[0], tmp_path / "k.ptx")
    arguments = ("--arg", "x=5,6", "--arg", "y=7,8", "--arg", "z:s32*=zeros(2)", "--arg", "n=2")
    status, text, data = launch(invoke, path, "--profile", "nano", "--block", 2, *arguments)
    assert status == 0, text
    assert data["outputs"]["z"] == [12, 14]


def test_the_shipped_ptx_is_used_without_a_compiler(
    invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert qgpu_ptx.cuda_to_ptx
    for suffix in (".cu", ".ptx", ".toml"):
        shutil.copy(FEW[0].with_suffix(suffix), tmp_path)
    monkeypatch.setattr(sys.modules["qgpu_ptx.cuda_to_ptx"], "COMPILERS", ())
    status, text, data = launch(invoke, tmp_path / "vector_add.cu")
    assert status == 0, text
    assert data["expected_ok"] is True
    (tmp_path / "vector_add.ptx").unlink()
    status, text, _ = launch(invoke, tmp_path / "vector_add.cu")
    assert status == 2
    assert "no CUDA compiler" in text


def test_an_unexpected_result_exits_with_1(invoke, tmp_path: Path) -> None:
    path = shutil.copy(FEW[0], tmp_path)
    spec = FEW[0].with_suffix(".toml").read_text().replace("c = [16, ", "c = [17, ")
    (tmp_path / "vector_add.toml").write_text(spec)
    status, _, data = launch(invoke, path)
    assert status == 1
    assert data["expected_ok"] is False
    assert data["problems"] == ["c[0] is 16, expected 17"]


def test_a_fault_names_the_cuda_line(invoke, tmp_path: Path) -> None:
    path = shutil.copy(FEW[0], tmp_path)
    shutil.copy(FEW[0].with_suffix(".toml"), tmp_path)
    status, _, data = launch(invoke, path, "--profile", "nano", "--block", 8, "--grid", 64,
                             "--arg", "n=500")  # fmt: skip
    assert status == 1
    assert "out of range" in data["problems"][0]
    assert "vector_add.cu" in data["problems"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kernel", "nothing"], "nothing"),
        (["--arg", "q=1"], "no such argument"),
        (["--block", "4096"], "4096 threads"),
        (["--arg", "a=zeros(5000)"], "global words"),
        (["--spec", "missing.toml"], "missing.toml"),
    ],
)
def test_wrong_requests_exit_with_2(invoke, options: list[str], message: str) -> None:
    status, text, _ = launch(invoke, FEW[0], *options)
    assert (status, message in text) == (2, True), text
    assert "Traceback" not in text
