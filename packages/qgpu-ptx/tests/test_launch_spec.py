"""Launch specifications: what is read, what is refused, how results are compared."""

from __future__ import annotations

import pytest
from qgpu_ptx import LaunchSpec, parse_launch_spec, parse_ptx, run_launch_spec
from qgpu_ptx.diagnostics import LaunchSpecError
from qgpu_ptx.launch_spec import ArrayArgument, ScalarArgument
from qgpu_ptx.run_launch_spec import Mismatch

GOOD = """
kernel = "scale"
grid = [2]
block = [2, 1]
summary = "c[i] = n * a[i]"
[[args]]
name = "a"
type = "s16*"
values = [1, -2, 3, 4]
[[args]]
name = "c"
type = "s32*"
length = 4
output = true
[[args]]
name = "n"
type = "u8"
value = 3
[expected]
c = [3, -6, 9, 12]
"""
PTX = """
.version 7.0
.target sm_75
.address_size 64
.entry scale(.param .u64 a, .param .u64 c, .param .u8 n)
{
    .reg .b32 %r<8>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [c]; ld.param.u8 %r1, [n];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r2, %r2, 2, %r3;
    mad.wide.u32 %rd1, %r2, 2, %rd1; mad.wide.u32 %rd2, %r2, 4, %rd2;
    ld.global.s16 %r4, [%rd1]; mul.lo.s32 %r4, %r4, %r1; st.global.u32 [%rd2], %r4;
}
"""


def test_a_spec_is_read_and_runs() -> None:
    spec = parse_launch_spec(GOOD, "scale.toml")
    assert spec == LaunchSpec(
        kernel="scale",
        grid=(2, 1, 1),
        block=(2, 1, 1),
        args=(
            ArrayArgument("a", "s16", (1, -2, 3, 4)),
            ArrayArgument("c", "s32", (0, 0, 0, 0), output=True),
            ScalarArgument("n", "u8", 3),
        ),
        expected={"c": (3, -6, 9, 12)},
        summary="c[i] = n * a[i]",
    )
    result = run_launch_spec(parse_ptx(PTX), spec)
    assert result.outputs == {"c": [3, -6, 9, 12]}
    assert result.mismatches == ()


def test_mismatches_are_listed() -> None:
    spec = parse_launch_spec(GOOD.replace("9, 12]", "8, 12]"))
    result = run_launch_spec(parse_ptx(PTX), spec)
    assert result.mismatches == (Mismatch("c", 2, expected=8, found=9),)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kernel = "scale"', "", "needs kernel"),
        ('kernel = "scale"', "kernel = ", "not TOML"),
        ("grid = [2]", "", "grid is None, not a list"),
        ("grid = [2]", "grid = [0]", "grid is 0, outside 1"),
        ("grid = [2]", "grid = [1, 1, 1, 1]", "grid has 4 numbers"),
        ("summary", "sumary", "unknown key 'sumary' in the file"),
        ("length = 4", "len = 4", "unknown key 'len' in argument 'c'"),
        ("length = 4", "length = 4\nvalues = [1]", "either values or length"),
        ("length = 4", "", "either values or length"),
        ("length = 4", "length = -1", "length of argument 'c' is -1"),
        ('"s16*"', '"f32*"', "type 'f32\\*'"),
        ("[1, -2,", "[1, 40000,", "values of argument 'a', item 1, is 40000"),
        ("[1, -2,", "[1, 2.5,", "is 2.5, not an integer"),
        ("value = 3", "value = 256", "value of argument 'n' is 256"),
        ("value = 3", "value = true", "not an integer"),
        ("output = true", "output = 1", "output of argument 'c' is 1"),
        ('name = "c"', 'name = "a"', "two arguments are called 'a'"),
        ("c = [3, -6, 9, 12]", "a = [1]", "unknown key 'a' in expected"),
        ("c = [3, -6, 9, 12]", "c = [3]", "expected.c has 1 values, the array has 4"),
    ],
)
def test_bad_specs_name_what_is_wrong(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(LaunchSpecError, match=message):
        parse_launch_spec(GOOD.replace(old, new, 1), "scale.toml")


def test_a_spec_is_checked_against_the_kernel() -> None:
    fewer = parse_launch_spec(GOOD.replace('[[args]]\nname = "n"\ntype = "u8"\nvalue = 3', ""))
    with pytest.raises(LaunchSpecError, match="has 3 parameters, the launch has 2"):
        run_launch_spec(parse_ptx(PTX), fewer)
    wider = parse_launch_spec(GOOD.replace('"u8"', '"u32"'))
    with pytest.raises(LaunchSpecError, match="'n' is u32 \\(4 bytes\\)"):
        run_launch_spec(parse_ptx(PTX), wider)
