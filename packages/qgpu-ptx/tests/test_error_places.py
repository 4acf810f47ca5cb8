"""Errors in PTX that was compiled a moment ago are placed in the CUDA source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from qgpu_isa import PROFILES
from qgpu_ptx import parse_ptx
from qgpu_ptx.cli import main
from qgpu_ptx.cuda_to_ptx import COMPILERS
from qgpu_ptx.diagnostics import QgpuPtxError
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec
from qgpu_ptx.lower import lower_launch

PTX = """\
.version 7.0
.target sm_75
.address_size 64
.entry k(.param .u64 p)
{
.reg .b64 %rd<3>;
.reg .f32 %f<3>;
.reg .b32 %r<3>;
ld.param.u64 %rd1, [p];
.loc 1 3 5
ld.global.u32 %r1, [%rd1];
add.u32 %r1, %r1, 1;
.loc 1 4 0
BODY
}
.file 1 "FILE"
"""


def ptx(body: str, file: str = "k.cu") -> str:
    return PTX.replace("BODY", body).replace("FILE", file)


def lowered_error(text: str, filename: str) -> str:
    spec = LaunchSpec("k", (1, 1, 1), (1, 1, 1), (ArrayArgument("p", "u32", (0,)),), {})
    with pytest.raises(QgpuPtxError) as caught:
        lower_launch(parse_ptx(text, filename, "nvrtc"), spec, PROFILES["default"])
    return caught.value.render()


def test_compiled_ptx_is_placed_in_the_cuda_source_and_its_line_is_shown() -> None:
    text = lowered_error(ptx("ld.global.f32 %f1, [%rd1];"), "k.cu")
    assert text.startswith("k.cu:4: error: [P003] 'ld.global.f32' is not supported\n")
    assert "  PTX line 14:\n    ld.global.f32 %f1, [%rd1];\n    ^^^" in text
    assert "CUDA source" not in text


def test_compiled_ptx_without_loc_is_named_as_such() -> None:
    text = lowered_error(re.sub(r"\.loc.*\n", "", ptx("ld.global.f32 %f1, [%rd1];")), "k.cu")
    assert text.startswith("k.cu (nvrtc PTX):12:1: error: [P003]")


def test_a_ptx_file_of_the_users_is_named_first() -> None:
    text = lowered_error(ptx("ld.global.f32 %f1, [%rd1];"), "mine.ptx")
    assert text.startswith("mine.ptx:14:1: error: [P003]")
    assert "CUDA source: k.cu:4" in text


def test_what_is_said_of_a_kernel_is_at_its_first_line() -> None:
    spec = LaunchSpec("k", (1, 1, 1), (1, 1, 1), (), {})
    with pytest.raises(QgpuPtxError) as caught:
        lower_launch(parse_ptx(ptx("ret;"), "k.cu"), spec, PROFILES["default"])
    assert caught.value.render().startswith("k.cu:3:5: error: [P030]")


def test_sources_of_blocks_are_cuda_places() -> None:
    def sources(text: str, filename: str) -> set[str]:
        spec = LaunchSpec("k", (1, 1, 1), (1, 1, 1), (ArrayArgument("p", "u32", (0,)),), {})
        image = lower_launch(parse_ptx(text, filename), spec, PROFILES["default"]).kernel.image
        return {source for block in image.blocks for source in block.source}

    text = ptx("st.global.u32 [%rd1], %r1;")
    known = {"k.cu:3:5 (PTX lines 11, 12)", "k.cu:4 (PTX line 14)"}
    assert sources(text, "k.ptx") == sources(text, "k.cu") == known
    unknown = sources(re.sub(r"\.loc.*\n", "", text), "k.cu")
    assert unknown == {f"k.cu (compiled PTX):{line}" for line in (10, 11, 12)}


def test_files_below_the_current_folder_are_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = lowered_error(ptx("ld.global.f32 %f1, [%rd1];", f"{tmp_path}/sub/k.cu"), "sub/k.cu")
    assert text.startswith("sub/k.cu:4: error:")


@pytest.mark.skipif(COMPILERS[0].version() is None, reason="NVRTC is not installed")
def test_the_command_leads_with_the_cuda_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.cu").write_text(
        'extern "C" __global__ void f(float* a)\n{\n    a[0] = a[0] * 3.0f;\n}\n'
    )
    Path("f.toml").write_text(
        'kernel = "f"\ngrid = [1]\nblock = [1]\n[[args]]\nname = "a"\ntype = "s32*"\nlength = 1\n'
    )
    for command in ("lower", "run"):
        result = CliRunner().invoke(main, [command, "f.cu"])
        assert result.exit_code == 2
        assert re.match(r"f\.cu:3:\d+: error: \[P003\]", result.stderr)
        assert re.search(r"PTX line \d+:\n\s+ld\.global\.f32", result.stderr)
