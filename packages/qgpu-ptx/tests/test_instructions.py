"""Each instruction and type against an oracle written separately, bit by bit.

The oracles work on unsigned bit patterns; `s` reads one as a signed number through ctypes.
Every combination of corner values is one thread of one launch.
"""

from __future__ import annotations

import ctypes
import itertools
import random
from array import array
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from qgpu_ptx import parse_ptx, run_ptx
from qgpu_ptx.ptx_interpreter import supported_instructions

SIGNED = {8: ctypes.c_int8, 16: ctypes.c_int16, 32: ctypes.c_int32, 64: ctypes.c_int64}


def s(bits: int, width: int) -> int:
    return int(SIGNED[width](bits).value)


def bit(value: int, index: int) -> int:
    return (value // 2**index) % 2


def corner_values(width: int) -> list[int]:
    top = 1 << (width - 1)
    values = [0, 1, 2, 7, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, 31, 32, 33]
    rng = random.Random(width)
    return sorted({v % (2 * top) for v in [*values, *(rng.getrandbits(width) for _ in range(3))]})


@dataclass(frozen=True)
class Case:
    """An instruction as written, the widths of its result and sources, and its oracle."""

    text: str
    result: int
    sources: tuple[int, ...]
    oracle: Callable[..., int]
    immediate: str = ""


def typed(
    op: str, kinds: str, oracle: Callable[[int, str], Callable[..., int]], n: int
) -> list[Case]:
    """Cases of an instruction whose operands all have the instruction's type."""
    cases = []
    for kind in kinds.split():
        width = int(kind[1:])
        cases.append(Case(f"{op}.{kind}", width, (width,) * n, oracle(width, kind[0])))
    return cases


INTS = "u16 u32 u64 s16 s32 s64"


def number(width: int, kind: str) -> Callable[[int], int]:
    return (lambda v: s(v, width)) if kind == "s" else (lambda v: v)


def on_numbers(f: Callable[..., int]) -> Callable[[int, str], Callable[..., int]]:
    """An oracle on numbers as an oracle on bit patterns of a type."""
    return lambda width, kind: lambda *args: f(*[number(width, kind)(a) for a in args])


def truncated(a: int, b: int) -> int:
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a >= 0) == (b >= 0) else -1)


def remainder(a: int, b: int) -> int:
    return -1 if b == 0 else a - b * truncated(a, b)


def high(width: int, kind: str) -> Callable[[int, int], int]:
    n = number(width, kind)
    return lambda a, b: (n(a) * n(b)) // 2**width


def mad_high(width: int, kind: str) -> Callable[[int, int, int], int]:
    return lambda a, b, c: high(width, kind)(a, b) + c


def mad_wide(width: int, kind: str) -> Callable[[int, int, int], int]:
    n = number(width, kind)
    return lambda a, b, c: n(a) * n(b) + c


def clamp32(value: int) -> int:
    return max(-(2**31), min(2**31 - 1, value))


def lop3(table: int) -> Callable[[int, int, int], int]:
    def f(a: int, b: int, c: int) -> int:
        return sum(bit(table, 4 * bit(a, i) + 2 * bit(b, i) + bit(c, i)) << i for i in range(32))

    return f


def shift_right(width: int, kind: str) -> Callable[[int, int], int]:
    def f(a: int, n: int) -> int:
        n = min(n, width)
        fill = bit(a, width - 1) if kind == "s" else 0
        return sum((bit(a, i + n) if i + n < width else fill) << i for i in range(width))

    return f


def bfe(width: int, kind: str) -> Callable[[int, int, int], int]:
    def f(a: int, b: int, c: int) -> int:
        pos, length = b % 256, c % 256
        sign = 0
        if kind == "s" and length:
            sign = bit(a, min(pos + length - 1, width - 1))
        return sum(
            (bit(a, pos + i) if i < length and pos + i < width else sign) << i for i in range(width)
        )

    return f


def bfi(width: int) -> Callable[[int, int, int, int], int]:
    def f(a: int, b: int, c: int, d: int) -> int:
        bits = [bit(b, i) for i in range(width)]
        for i in range(d % 256):
            if c % 256 + i < width:
                bits[c % 256 + i] = bit(a, i)
        return sum(v << i for i, v in enumerate(bits))

    return f


def find(width: int, kind: str, amount: bool) -> Callable[[int], int]:
    def f(a: int) -> int:
        wanted = 1 - bit(a, width - 1) if kind == "s" else 1
        for i in range(width - 1, -1, -1):
            if bit(a, i) == wanted:
                return width - 1 - i if amount else i
        return -1

    return f


def funnel(left: bool, clamp: bool) -> Callable[[int, int, int], int]:
    def f(a: int, b: int, c: int) -> int:
        n = min(c, 32) if clamp else c % 32
        bits = [bit(a, i) for i in range(32)] + [bit(b, i) for i in range(32)]
        start = 32 - n if left else n
        return sum(bits[start + i] << i for i in range(32))

    return f


def permute(a: int, b: int, selector: int) -> int:
    source = [a >> 8 * i & 255 for i in range(4)] + [b >> 8 * i & 255 for i in range(4)]
    result = 0
    for i in range(4):
        pick = selector // 16**i % 16
        byte = source[pick % 8]
        if pick >= 8:
            byte = 255 if byte >= 128 else 0
        result += byte * 256**i
    return result


def permute_bytes(table: list[str]) -> Callable[[int, int, int], int]:
    """The tables of the PTX manual: bytes b3 b2 b1 b0 for selectors 0 to 3."""

    def f(a: int, b: int, selector: int) -> int:
        both = a + (b << 32)
        return sum(
            (both >> 8 * int(digit) & 255) << 8 * (3 - place)
            for place, digit in enumerate(table[selector % 4])
        )

    return f


def logic(op: str, f: Callable[[int, int], int]) -> list[Case]:
    return [Case(f"{op}.b{w}", w, (w, w), f) for w in (16, 32, 64)]


CASES = [
    *typed("add", INTS, on_numbers(lambda a, b: a + b), 2),
    *typed("sub", INTS, on_numbers(lambda a, b: a - b), 2),
    *typed("mul.lo", INTS, on_numbers(lambda a, b: a * b), 2),
    *typed("mul.hi", INTS, high, 2),
    *typed("mad.lo", INTS, on_numbers(lambda a, b, c: a * b + c), 3),
    *typed("mad.hi", INTS, mad_high, 3),
    *typed("sad", INTS, on_numbers(lambda a, b, c: c + abs(a - b)), 3),
    *typed("div", INTS, on_numbers(truncated), 2),
    *typed("rem", INTS, on_numbers(remainder), 2),
    *typed("min", INTS, on_numbers(lambda a, b: a if a < b else b), 2),
    *typed("max", INTS, on_numbers(lambda a, b: a if a > b else b), 2),
    *typed("abs", "s16 s32 s64", on_numbers(lambda a: a if a >= 0 else -a), 1),
    *typed("neg", "s16 s32 s64", on_numbers(lambda a: -a), 1),
    *typed("add.sat", "s32", on_numbers(lambda a, b: clamp32(a + b)), 2),
    *typed("sub.sat", "s32", on_numbers(lambda a, b: clamp32(a - b)), 2),
    *[
        Case(f"mul.wide.{k}{w}", 2 * w, (w, w), on_numbers(lambda a, b: a * b)(w, k))
        for w in (16, 32)
        for k in "us"
    ],
    *[
        Case(
            f"mad.wide.{k}{w}",
            2 * w,
            (w, w, 2 * w),
            mad_wide(w, k),
        )
        for w in (16, 32)
        for k in "us"
    ],
    Case("mul24.lo.u32", 32, (32, 32), lambda a, b: a % 2**24 * (b % 2**24)),
    Case("mul24.hi.u32", 32, (32, 32), lambda a, b: a % 2**24 * (b % 2**24) // 2**16),
    *logic("and", lambda a, b: a & b),
    *logic("or", lambda a, b: a | b),
    *logic("xor", lambda a, b: a ^ b),
    *[Case(f"not.b{w}", w, (w,), lambda a, w=w: 2**w - 1 - a) for w in (16, 32, 64)],
    *[Case(f"cnot.b{w}", w, (w,), lambda a: 0 if a else 1) for w in (16, 32, 64)],
    *[Case("lop3.b32", 32, (32,) * 3, lop3(t), f", {t}") for t in (0x80, 0x96, 0xE8, 0x1B, 0xFF)],
    *[Case(f"shl.b{w}", w, (w, 32), lambda a, n, w=w: a * 2 ** min(n, w)) for w in (16, 32, 64)],
    *[Case(f"shr.{k}{w}", w, (w, 32), shift_right(w, k)) for w in (16, 32, 64) for k in "usb"],
    *[
        Case(f"shf.{d}.{m}.b32", 32, (32,) * 3, funnel(d == "l", m == "clamp"))
        for d in "lr"
        for m in ("clamp", "wrap")
    ],
    *[Case(f"popc.b{w}", 32, (w,), lambda a: bin(a).count("1")) for w in (32, 64)],
    *[
        Case(f"clz.b{w}", 32, (w,), lambda a, w=w: len(f"{a:0{w}b}".split("1")[0]))
        for w in (32, 64)
    ],
    *[
        Case(f"brev.b{w}", w, (w,), lambda a, w=w: sum(bit(a, i) << w - 1 - i for i in range(w)))
        for w in (32, 64)
    ],
    *[
        Case(f"bfind{'.shiftamt' * a}.{k}{w}", 32, (w,), find(w, k, bool(a)))
        for a in (0, 1)
        for k in "us"
        for w in (32, 64)
    ],
    *[Case(f"bfe.{k}{w}", w, (w, 32, 32), bfe(w, k)) for k in "us" for w in (32, 64)],
    *[Case(f"bfi.b{w}", w, (w, w, 32, 32), bfi(w)) for w in (32, 64)],
    Case(
        "bmsk.clamp.b32",
        32,
        (32, 32),
        lambda a, b: sum(1 << i for i in range(32) if a <= i < a + b),
    ),
    Case(
        "bmsk.wrap.b32",
        32,
        (32, 32),
        lambda a, b: sum(1 << i for i in range(32) if a % 32 <= i < a % 32 + b % 32),
    ),
    Case("prmt.b32", 32, (32,) * 3, permute),
    *[
        Case(f"prmt.b32.{mode}", 32, (32,) * 3, permute_bytes(table.split()))
        for mode, table in {
            "f4e": "3210 4321 5432 6543",
            "b4e": "5670 6701 7012 0123",
            "rc8": "0000 1111 2222 3333",
            "ecl": "3210 3211 3222 3333",
            "ecr": "0000 1110 2210 3210",
            "rc16": "1010 3232 1010 3232",
        }.items()
    ],
    *[
        Case(f"slct.{k}{w}.s32", w, (w, w, 32), lambda a, b, c: a if c < 2**31 else b)
        for w in (16, 32, 64)
        for k in "usb"
    ],
    Case(
        "dp4a.u32.s32",
        32,
        (32,) * 3,
        lambda a, b, c: c + sum((a >> i & 255) * s(b >> i, 8) for i in (0, 8, 16, 24)),
    ),
    Case(
        "dp2a.hi.s32.u32",
        32,
        (32,) * 3,
        lambda a, b, c: c + s(a, 16) * (b >> 16 & 255) + s(a >> 16, 16) * (b >> 24),
    ),
]
REGISTER = {16: "%rs", 32: "%r", 64: "%rd"}


def run_case(
    text: str, result: int, sources: tuple[int, ...], rows: list[tuple[int, ...]]
) -> list[int]:
    """Runs `text` (with operands named D, A, B, C, E) for each row, one thread each."""
    loads = "".join(
        f"ld.global.b{w} {REGISTER[w]}{i + 4}, [%rd1+{8 * i}];\n" for i, w in enumerate(sources)
    )
    operands = [f"{REGISTER[w]}{i + 4}" for i, w in enumerate(sources)]
    # %rd20 and the others are out of the way of addresses and sources.
    destination = f"{REGISTER[result]}{20 if result == 64 else 1}"
    statement = text.replace("D", destination).replace("SOURCES", ", ".join(operands))
    program = (
        ".version 7.0\n.target sm_75\n.address_size 64\n.entry k(.param .u64 p, .param .u64 q)\n{\n"
        ".reg .b16 %rs<16>; .reg .b32 %r<16>; .reg .b64 %rd<32>; .reg .pred %p<8>;\n"
        "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r2, %tid.x;\n"
        "mad.wide.u32 %rd1, %r2, 32, %rd1; mad.wide.u32 %rd2, %r2, 8, %rd2;\n"
        f"{loads}{statement}\nst.global.b{result} [%rd2], {destination};\nret;\n}}\n"
    )
    inputs = array("Q", [v for row in rows for v in (*row, *(0,) * (4 - len(row)))])
    outputs = array("Q", [0] * len(rows))
    outcome = run_ptx(parse_ptx(program), "k", 1, len(rows), [inputs, outputs])
    return list(outcome[1])


def rows_of(sources: tuple[int, ...]) -> list[tuple[int, ...]]:
    rows = list(itertools.product(*[corner_values(w) for w in sources]))
    if len(rows) > 200:
        rows = random.Random(len(rows)).sample(rows, 200)
    return rows


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text + case.immediate)
def test_instruction_equals_its_oracle(case: Case) -> None:
    rows = rows_of(case.sources)
    found = run_case(f"{case.text} D, SOURCES{case.immediate};", case.result, case.sources, rows)
    mask = (1 << case.result) - 1
    assert found == [case.oracle(*row) & mask for row in rows]


WIDTHS = (8, 16, 32, 64)
CONVERSIONS = [
    (f"{to}{w}", f"{from_}{v}", sat)
    for to in "us"
    for w in WIDTHS
    for from_ in "us"
    for v in WIDTHS
    for sat in ("", ".sat")
]


@pytest.mark.parametrize(("to", "source", "sat"), CONVERSIONS)
def test_cvt_equals_ctypes(to: str, source: str, sat: str) -> None:
    width, source_width = int(to[1:]), int(source[1:])
    registers = max(16, width), max(16, source_width)
    rows = [(v,) for v in corner_values(registers[1])]
    found = run_case(f"cvt{sat}.{to}.{source} D, SOURCES;", registers[0], registers[1:], rows)
    wanted = []
    for (value,) in rows:
        value %= 1 << source_width
        if source[0] == "s":
            value = s(value, source_width)
        if sat:
            low = -(1 << width - 1) if to[0] == "s" else 0
            value = max(low, min(low + (1 << width) - 1, value))
        value %= 1 << width
        wanted.append((s(value, width) if to[0] == "s" else value) % (1 << registers[0]))
    assert found == wanted


COMPARISONS = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: b > a,
    "le": lambda a, b: not a > b, "gt": lambda a, b: a > b, "ge": lambda a, b: not b > a,
    "lo": lambda a, b: b > a, "ls": lambda a, b: not a > b, "hi": lambda a, b: a > b,
    "hs": lambda a, b: not b > a,
}  # fmt: skip
SETP = [
    (f"{cmp}", f"{kind}{width}")
    for cmp in COMPARISONS
    for kind in "usb"
    for width in (16, 32, 64)
    if not (kind == "s" and cmp in ("lo", "ls", "hi", "hs"))
    and not (kind == "b" and cmp not in ("eq", "ne"))
]


@pytest.mark.parametrize(("cmp", "type_"), SETP)
def test_setp_and_set_equal_comparison_of_numbers(cmp: str, type_: str) -> None:
    width = int(type_[1:])
    rows = rows_of((width, width))
    text = (
        f"setp.{cmp}.{type_} %p1|%p2, SOURCES;\nselp.b32 D, 1, 0, %p1; @%p2 or.b32 D, D, 2;\n"
        f"set.{cmp}.u32.{type_} %r3, SOURCES; and.b32 %r3, %r3, 4; or.b32 D, D, %r3;"
    )
    n = number(width, type_[0])
    wanted = [5 if COMPARISONS[cmp](n(a), n(b)) else 2 for a, b in rows]
    assert run_case(text, 32, (width, width), rows) == wanted


@pytest.mark.parametrize("combine", ["and", "or", "xor"])
def test_setp_combines_both_destinations_with_the_predicate(combine: str) -> None:
    rows = [(a, c) for a in (0, 1) for c in (0, 1)]
    text = (
        "setp.ne.u32 %p3, %r5, 0;\n"
        f"setp.eq.{combine}.u32 %p1|%p2, %r4, 1, %p3;\n"
        f"setp.eq.{combine}.u32 %p4, %r4, 1, !%p3;\n"
        "selp.u32 D, 1, 0, %p1; @%p2 add.u32 D, D, 2; @%p4 add.u32 D, D, 4;"
    )
    f = {"and": lambda a, b: a and b, "or": lambda a, b: a or b, "xor": lambda a, b: a != b}[
        combine
    ]
    wanted = [
        int(bool(f(a == 1, c == 1)))
        + 2 * int(bool(f(a != 1, c == 1)))
        + 4 * int(bool(f(a == 1, c != 1)))
        for a, c in rows
    ]
    assert run_case(text, 32, (32, 32), rows) == wanted


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("op", ["add", "sub", "mad"])
def test_carry_chains_equal_long_arithmetic(op: str, width: int) -> None:
    """Two limbs: (a, b) is one double-width number, with the high limb in b."""
    rows = rows_of((width, width, width))
    t = f"u{width}"
    r = REGISTER[width]
    low, hi = f"{r}12", f"{r}13"
    if op == "mad":
        # a * b + (c << 0) over two limbs, then the carry out of the high limb.
        text = f"mad.lo.cc.{t} {low}, {r}4, {r}5, {r}6; madc.hi.{t} {hi}, {r}4, {r}5, {r}6;\n"
    else:
        text = f"{op}.cc.{t} {low}, {r}4, {r}5; {op}c.{t} {hi}, {r}5, {r}6;\n"
    text_low, text_high = f"{text} mov.{t} D, {low};", f"{text} mov.{t} D, {hi};"
    full = 1 << 2 * width

    def oracle(a: int, b: int, c: int) -> int:
        if op == "mad":
            return (a * b + c + (c << width)) % full
        first, second = a + (b << width), b + (c << width)
        return (first + second if op == "add" else first - second) % full

    sources = (width,) * 3
    wanted = [oracle(*row) for row in rows]
    assert run_case(text_low, width, sources, rows) == [w % (1 << width) for w in wanted]
    assert run_case(text_high, width, sources, rows) == [w >> width for w in wanted]


def test_fns_finds_the_nth_one() -> None:
    rows = [(m, b, o) for m in (0, 0b10110, 0xFFFFFFFF) for b in (0, 2, 31) for o in (0, 1, 3, -2)]
    found = run_case("fns.b32 D, SOURCES;", 32, (32,) * 3, [(m, b, o % 2**32) for m, b, o in rows])
    wanted = []
    for mask, base, offset in rows:
        order = range(base, 32) if offset > 0 else range(base, -1, -1)
        ones = [i for i in order if bit(mask, i)]
        if offset == 0:
            ones, offset = [i for i in (base,) if bit(mask, i)], 1
        index = abs(offset) - 1
        wanted.append(ones[index] if index < len(ones) else 0xFFFFFFFF)
    assert found == wanted


def test_every_opcode_has_a_section_and_a_summary() -> None:
    for opcode, specs in supported_instructions().items():
        for spec in specs:
            assert spec.reference, opcode
            assert spec.summary.endswith("."), opcode
            assert not spec.match(("nonsense",)), opcode


def test_no_two_shapes_of_an_opcode_take_the_same_modifiers() -> None:
    for specs in supported_instructions().values():
        for spec in specs:
            choices = [("", *s.choices) if s.optional else s.choices for s in spec.slots]
            # ld has millions of spellings; the first 2000 vary the slots that tell shapes apart.
            spellings = itertools.islice(itertools.product(*choices), 2000)
            for words in spellings:
                modifiers = [word for word in words if word]
                assert [s for s in specs if s.match(modifiers) is not None] == [spec], modifiers
