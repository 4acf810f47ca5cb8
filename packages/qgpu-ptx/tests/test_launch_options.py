"""Launches from the command line, without a launch spec and over one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from qgpu_isa.program_json import json_to_image
from qgpu_isa.program_text import image_to_text, text_to_image
from qgpu_ptx.cli import main
from qgpu_ptx.diagnostics import LaunchArgumentError
from qgpu_ptx.launch_arguments import (
    GivenArgument,
    apply_arguments,
    parse_argument,
    parse_arguments,
    parse_sizes,
)
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec, ScalarArgument

PTX = """\
.version 7.0
.target sm_75
.address_size 64
.entry scale(.param .u64 a, .param .u32 n)
{
.reg .b64 %rd<4>;
.reg .b32 %r<4>;
ld.param.u64 %rd1, [a];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
mul.wide.u32 %rd2, %r2, 4;
add.s64 %rd1, %rd1, %rd2;
ld.global.u32 %r3, [%rd1];
mul.lo.u32 %r3, %r3, %r1;
st.global.u32 [%rd1], %r3;
}
"""
SPEC = """\
kernel = "scale"
grid = [1]
block = [2]
[[args]]
name = "a"
type = "s32*"
values = [1, 2]
output = true
[[args]]
name = "n"
type = "s32"
value = 3
[expected]
a = [3, 6]
"""


def call(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    (tmp_path / "k.ptx").write_text(PTX)
    return tmp_path / "k.ptx"


def test_a_launch_without_a_spec(kernel: Path) -> None:
    options = ("--block", 3, "--arg", "a=1,2,-3", "--arg", "n=5")
    result = call("run", kernel, *options)
    assert (result.exit_code, result.stdout) == (0, "a = [5, 10, -15]\n")
    assert "expected" not in result.stderr
    result = call("lower", kernel, *options)
    assert result.exit_code == 0
    assert text_to_image(result.stdout).name == "scale"


def test_options_replace_what_the_spec_says(kernel: Path) -> None:
    kernel.with_suffix(".toml").write_text(SPEC)
    assert "as expected" in call("run", kernel).stderr
    result = call("run", kernel, "--arg", "n=-1")
    assert (result.exit_code, result.stdout) == (0, "a = [-1, -2]\n")
    result = call("run", kernel, "--block", 1, "--arg", "a=[7]")
    assert (result.exit_code, result.stdout) == (0, "a = [21]\n")


@pytest.mark.parametrize("command", ["run", "lower"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "there is no file {folder}/k.toml"),
        ((), "--block and --arg a=VALUE --arg n=VALUE"),
        (("--block", 1), "no value for a, n: the kernel takes a, n"),
        (("--block", 1, "--arg", "b=3"), "--arg b: the kernel has no such parameter"),
        (("--block", 1, "--arg", "a=3", "--arg", "n=3"), "write a:s64 or u64; for a pointer"),
        (("--block", "x"), "--block x: write one to three positive numbers"),
        (("--block", 1, "--kernel", "other"), "there is no kernel 'other'"),
        (("--block", 1, "--arg", "a=1,2", "--arg", "a=3"), "--arg a is given twice"),
        (("--spec", "none.toml"), "cannot read none.toml: No such file or directory"),
    ],
)
def test_what_is_missing_is_named(
    kernel: Path, command: str, options: tuple[object, ...], message: str
) -> None:
    result = call(command, kernel, *options)
    assert result.exit_code == 2
    assert message.format(folder=kernel.parent) in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["run", "lower"])
def test_the_source_is_read_first(tmp_path: Path, command: str) -> None:
    for name, reason in (("none.cu", "No such file"), ("none.ptx", "No such file"), ("", "Is a d")):
        result = call(command, tmp_path / name)
        assert result.exit_code == 2
        assert f"cannot read {tmp_path / name}: {reason}" in result.stderr
        assert ".toml" not in result.stderr


def test_an_output_that_ends_in_json_is_an_image(kernel: Path, tmp_path: Path) -> None:
    kernel.with_suffix(".toml").write_text(SPEC)
    for name in ("k.json", "k.txt"):
        assert call("lower", kernel, "-o", tmp_path / name).exit_code == 0
    image = json_to_image((tmp_path / "k.json").read_text())
    assert (tmp_path / "k.txt").read_text() == image_to_text(image)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("n=16", GivenArgument("n", None, (16,), False)),
        ("n:u64=0xff", GivenArgument("n", "u64", (255,), False)),
        ("a=[1, -2,3]", GivenArgument("a", None, (1, -2, 3), True)),
        ("a=1,2", GivenArgument("a", None, (1, 2), True)),
        ("a:s16*=7", GivenArgument("a", "s16", (7,), True)),
        ("c:u8*=zeros(3)", GivenArgument("c", "u8", (0, 0, 0), True)),
    ],
)
def test_argument_texts(text: str, given: GivenArgument) -> None:
    assert parse_argument(text) == given


@pytest.mark.parametrize(
    "text",
    ["n", "=3", "n=", "n=x", "n:f32=1", "a:s32=1,2", "a=1,x", "a=none.npy", "a=zeros(9999999999)"],
)
def test_wrong_arguments(text: str) -> None:
    with pytest.raises(LaunchArgumentError, match="--arg"):
        parse_arguments([text])


def test_npy_files(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([[1, 2], [3, 250]], dtype=np.uint8))
    assert parse_argument(f"a={path}") == GivenArgument("a", "u8", (1, 2, 3, 250), True)
    np.save(path, np.array([0.5]))
    with pytest.raises(LaunchArgumentError, match="float64"):
        parse_argument(f"a={path}")


def test_sizes() -> None:
    assert parse_sizes("4x2,3", "--block") == (4, 2, 3)
    for text in ("", "0", "4,,", "1,2,3,4", "-1", "a"):
        with pytest.raises(LaunchArgumentError, match="--block"):
            parse_sizes(text, "--block")


@pytest.mark.parametrize("value", ["1,,2", "1,", "", "[]", "[1,2", "1]", "zeros(-1)"])
def test_lists_with_holes_are_refused(value: str) -> None:
    with pytest.raises(LaunchArgumentError, match="--arg a"):
        parse_argument(f"a:s32*={value}")


def test_grids_beyond_cuda_are_refused() -> None:
    assert parse_sizes("2147483647", "--grid") == (2147483647, 1, 1)
    with pytest.raises(LaunchArgumentError, match="--grid"):
        parse_sizes("2147483648", "--grid")


REPLACED = LaunchSpec(
    kernel="k",
    grid=(1, 1, 1),
    block=(4, 1, 1),
    args=(ArrayArgument("a", "u8", (1, 2), output=True), ScalarArgument("n", "s32", 2)),
    expected={"a": (3, 4)},
)


def test_replacing_drops_what_was_expected() -> None:
    assert apply_arguments(REPLACED, [], None, None) is REPLACED
    spec = apply_arguments(REPLACED, [parse_argument("a=5,6,7")], None, (8, 1, 1))
    assert spec.args[0] == ArrayArgument("a", "u8", (5, 6, 7), output=True)
    assert spec.block == (8, 1, 1)
    assert not spec.expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b=1", "has no such argument"),
        ("n=1,2", "one number"),
        ("a=1", "an array"),
        ("a=256,0", "does not fit u8"),
        ("a:s32*=1,2", "is u8"),
    ],
)
def test_replacements_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(LaunchArgumentError, match=message):
        apply_arguments(REPLACED, [parse_argument(text)], None, None)
