"""Arguments and sizes from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec, ScalarArgument
from qgpu_run.errors import RequestError
from qgpu_run.launch_arguments import (
    GivenArgument,
    apply_arguments,
    make_arguments,
    parse_argument,
    parse_sizes,
)
from qgpu_run.launch_request import OutputArray

SPEC = LaunchSpec(
    kernel="k",
    grid=(1, 1, 1),
    block=(4, 1, 1),
    args=(ArrayArgument("a", "u8", (1, 2), output=True), ScalarArgument("n", "s32", 2)),
    expected={"a": (3, 4)},
)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("n=16", GivenArgument("n", None, (16,), False)),
        ("n:u64=0xff", GivenArgument("n", "u64", (255,), False)),
        ("a=[1, -2,3]", GivenArgument("a", None, (1, -2, 3), True)),
        ("a=1,2", GivenArgument("a", None, (1, 2), True)),
        ("a=[7]", GivenArgument("a", None, (7,), True)),
        ("a:s16*=7", GivenArgument("a", "s16", (7,), True)),
        ("c:u8*=zeros(3)", GivenArgument("c", "u8", (0, 0, 0), True)),
    ],
)
def test_argument_texts(text: str, given: GivenArgument) -> None:
    assert parse_argument(text) == given


def test_npy_files(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.array([[1, 2], [3, 250]], dtype=np.uint8))
    assert parse_argument(f"a={path}") == GivenArgument("a", "u8", (1, 2, 3, 250), True)
    np.save(path, np.array([0.5]))
    with pytest.raises(RequestError, match="float64"):
        parse_argument(f"a={path}")
    path.write_bytes(b"\x93NUMPY")
    with pytest.raises(RequestError, match="cannot read"):
        parse_argument(f"a={path}")


@pytest.mark.parametrize(
    "text",
    ["n", "=3", "n=", "n=x", "n:f32=1", "a:s32=1,2", "a=1,x", "a=none.npy", "a=zeros(9999999999)"],
)
def test_wrong_arguments(text: str) -> None:
    with pytest.raises(RequestError, match="--arg"):
        parse_argument(text)


def test_sizes() -> None:
    assert parse_sizes("16", "--block") == (16, 1, 1)
    assert parse_sizes("4x2,3", "--block") == (4, 2, 3)
    for text in ("", "0", "4,,", "1,2,3,4", "-1", "a"):
        with pytest.raises(RequestError, match="--block"):
            parse_sizes(text, "--block")


def test_replacing_drops_what_was_expected() -> None:
    assert apply_arguments(SPEC, [], None, None) is SPEC
    spec = apply_arguments(SPEC, [parse_argument("a=5,6,7")], None, (8, 1, 1))
    assert spec.args[0] == ArrayArgument("a", "u8", (5, 6, 7), output=True)
    assert spec.block == (8, 1, 1)
    assert not spec.expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b=1", "no argument 'b'"),
        ("n=1,2", "one number"),
        ("a=1", "an array"),
        ("a=256,0", "does not fit u8"),
        ("a:s32*=1,2", "is u8"),
    ],
)
def test_replacements_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        apply_arguments(SPEC, [parse_argument(text)], None, None)


def test_arguments_without_a_spec() -> None:
    made = make_arguments([parse_argument("a:u8*=1,2"), parse_argument("n=-3")])
    assert made == (ArrayArgument("a", "u8", (1, 2), output=True), ScalarArgument("n", "s32", -3))
    with pytest.raises(RequestError, match="does not fit u8"):
        make_arguments([parse_argument("a:u8*=1,-2")])


def test_arrays_are_read_as_cuda_wrote_them() -> None:
    memory = [0, 0x8001_02FF, 0xFFFF_FFFE, 0xFFFF_FFFF]
    assert OutputArray("x", "u8", 4, 4).read(memory) == [255, 2, 1, 128]
    assert OutputArray("x", "s8", 5, 3).read(memory) == [2, 1, -128]
    assert OutputArray("x", "s16", 6, 2).read(memory) == [-32767, -2]
    assert OutputArray("x", "s64", 8, 1).read(memory) == [-2]
    assert OutputArray("x", "u32", 8, 1).read(memory) == [0xFFFF_FFFE]
    assert OutputArray("x", "u32", 8, 0).read(memory) == []


@pytest.mark.parametrize("value", ["1,,2", "1,", "", "[]", "[1,2", "1]", "zeros(-1)"])
def test_lists_with_holes_are_refused(value: str) -> None:
    with pytest.raises(RequestError, match="--arg a"):
        parse_argument(f"a:s32*={value}")


def test_grids_beyond_cuda_are_refused() -> None:
    assert parse_sizes("2147483647", "--grid") == (2147483647, 1, 1)
    with pytest.raises(RequestError, match="--grid"):
        parse_sizes("2147483648", "--grid")
