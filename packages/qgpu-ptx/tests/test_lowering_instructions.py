"""Every instruction and type, on corner values: machine blocks against the PTX interpreter.

Each thread of one launch takes one combination of operands from three arrays.
"""

from __future__ import annotations

import itertools
import random
from array import array
from collections.abc import Iterator

import pytest
from qgpu_isa import DEFAULT, run_launch
from qgpu_ptx import parse_ptx, run_ptx
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec
from qgpu_ptx.lower import lower_launch
from qgpu_ptx.memory_layout import read_outputs

THREADS = 64
INTS = "u16 u32 u64 s16 s32 s64"
BITS = "b16 b32 b64"
COMPARES = ("eq", "ne", "lt", "le", "gt", "ge")

FORMS = {
    **{f"{op}.T": INTS for op in ("add", "sub", "mul.lo", "mul.hi", "min", "max")},
    **{f"{op}.T #3": INTS for op in ("mad.lo", "mad.hi", "sad")},
    "mul.wide.T": "u16 s16 u32 s32",
    "mad.wide.T #3": "u16 s16 u32 s32",
    "add.sat.T": "s32", "sub.sat.T": "s32", "mad.hi.sat.T #3": "s32",
    **{f"{op}.T": "u32 s32" for op in ("mul24.lo", "mul24.hi")},
    **{f"{op}.T #3": "u32 s32" for op in ("mad24.lo", "mad24.hi")},
    **{f"{op}.T": "u16 s16 u32 s32" for op in ("div", "rem")},
    **{f"{op}.T #1": "s16 s32 s64" for op in ("abs", "neg")},
    **{f"{op}.T": BITS for op in ("and", "or", "xor")},
    **{f"{op}.T #1": BITS for op in ("not", "cnot")},
    "shl.T #s": BITS, "shr.T #s": f"{BITS} {INTS}",
    **{f"lop3.T #3 {table:#x}": "b32" for table in (0x96, 0xE8, 0xCA, 0x1B, 0x80, 0x2D)},
    **{f"shf.{d}.{m}.T #ss": "b32" for d in "lr" for m in ("clamp", "wrap")},
    **{f"{op}.T #1": "b32 b64" for op in ("popc", "clz", "brev")},
    "bfind.T #1": "u32 u64 s32 s64", "bfind.shiftamt.T #1": "u32 u64 s32 s64",
    "bfe.T #sS": "u32 u64 s32 s64", "bfi.T #3 %r5": "b32 b64",
    "bmsk.clamp.T #s": "b32", "bmsk.wrap.T #s": "b32",
    **{f"szext.{m}.T #s": "u32 s32" for m in ("clamp", "wrap")},
    "prmt.T #3": "b32",
    "dp4a.T.u32 #3": "u32 s32", "dp4a.T.s32 #3": "u32 s32", "dp2a.hi.T.s32 #3": "u32 s32",
    **{f"setp.{c}.T": INTS for c in COMPARES},
    **{f"setp.{c}.and.T #p": "s32 u32" for c in ("lt", "eq", "ge")},
    **{f"setp.{c}.xor.T #p": "s32 u32" for c in ("lt", "eq", "ge")},
    **{f"setp.{c}.or.T #p": "s32 u64" for c in ("lt", "eq", "ge")},
    "set.lt.u32.T": "s32 u16", "selp.T #p": f"{BITS} {INTS}", "slct.T.s32 #3": "b32 u64",
}  # fmt: skip
WIDTHS = {"16": "rs", "32": "r", "64": "rd"}


def corners(bits: int, rng: random.Random) -> list[int]:
    top = 1 << (bits - 1)
    few = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, top - 1, top, top + 1, 2 * top - 1, 2 * top - 2]
    return [v % (2 * top) for v in (*few, *(rng.getrandbits(bits) for _ in range(5)))]


def operands(form: str, type_name: str) -> Iterator[str]:
    """Source operands: #1 to #3 of the type, s a shift amount, S another, p a predicate."""
    letter = WIDTHS[type_name[1:]]
    name, _, rest = form.partition(" ")
    kind = rest.split()[0] if rest.startswith("#") else "#2"
    extra = rest.split()[1:]
    yield f"%{letter}1"
    match kind:
        case "#1":
            pass
        case "#2":
            yield f"%{letter}2"
        case "#3":
            yield f"%{letter}2"
            yield f"%{letter if 'wide' not in name else WIDTHS[str(2 * int(type_name[1:]))]}3"
        case "#s":
            yield "%r4"
        case "#ss":
            yield "%r2"
            yield "%r4"
        case "#sS":
            yield "%r4"
            yield "%r5"
        case "#p":
            yield f"%{letter}2"
            yield "%p2"
    yield from extra


def statement(form: str, type_name: str) -> tuple[str, str]:
    """The instruction, and the statements that store its result as 64 bits in %rd9."""
    name = form.split()[0].replace("T", type_name)
    sources = list(operands(form, type_name))
    bits = int(type_name[1:])
    if name.startswith("slct"):
        sources[2] = "%r3"
    if name.startswith("bfi."):
        sources[2:] = ["%r4", "%r5"]
    if name.startswith("setp"):
        return f"{name} %p5|%p6, {', '.join(sources)};", (
            "selp.u64 %rd9,1,0,%p5; selp.u64 %rd8,2,0,%p6; or.b64 %rd9,%rd9,%rd8;"
        )
    if "wide" in name:
        bits *= 2
    if name.startswith(("popc", "clz", "bfind", "set.")):
        bits = 32
    letter = WIDTHS[str(bits)]
    store = "mov.u64 %rd9,%rd7;" if bits == 64 else f"cvt.u64.u{bits} %rd9,%{letter}7;"
    return f"{name} %{letter}7, {', '.join(sources)};", store


def kernel(body: str, store: str) -> str:
    loads = "".join(
        f"ld.global.u64 %rd{i},[%rd1{i}]; cvt.u32.u64 %r{i},%rd{i}; cvt.u16.u64 %rs{i},%rd{i};\n"
        for i in (1, 2, 3)
    )
    addresses = "".join(
        f"ld.param.u64 %rd1{i},[p{i}]; add.s64 %rd1{i},%rd1{i},%rd6;\n" for i in (1, 2, 3, 4)
    )
    return (
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k("
        ".param .u64 p1,.param .u64 p2,.param .u64 p3,.param .u64 p4)\n{\n"
        ".reg .b16 %rs<20>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<10>;\n"
        f"mov.u32 %r6,%tid.x; mul.wide.u32 %rd6,%r6,8;\n{addresses}{loads}"
        "and.b32 %r4,%r3,127; shr.u32 %r5,%r3,8; and.b32 %r5,%r5,127;\n"
        f"setp.lt.s32 %p2,%r3,40;\n{body}\n{store}\nst.global.u64 [%rd14],%rd9;\nret;\n}}\n"
    )


def check(text: str, columns: list[list[int]], config=DEFAULT) -> None:  # type: ignore[no-untyped-def]
    """Runs a kernel of arrays p1 p2 p3 p4 on both interpreters."""
    module = parse_ptx(text, "k.ptx")
    threads = len(columns[0])
    args = [ArrayArgument(f"p{i + 1}", "u64", tuple(c)) for i, c in enumerate(columns)]
    args.append(ArrayArgument("p4", "u64", (0,) * threads, output=True))
    spec = LaunchSpec("k", (1, 1, 1), (threads, 1, 1), tuple(args), {})
    wanted = run_ptx(module, "k", 1, threads, [array("Q", a.values) for a in args])[3]
    placed = lower_launch(module, spec, config)
    machine, _ = run_launch(placed.launch())
    found = read_outputs(machine.state.memory, placed.layout)["p4"]
    for i, (w, f) in enumerate(zip(wanted, found, strict=True)):
        assert w == f, f"thread {i}: {[hex(c[i]) for c in columns]} gives {f:#x}, wanted {w:#x}"


CASES = [(form, t) for form, types in FORMS.items() for t in types.split()]


@pytest.mark.parametrize(("form", "type_name"), CASES, ids=[f"{f}-{t}" for f, t in CASES])
def test_instruction(form: str, type_name: str) -> None:
    bits = int(type_name[1:])
    rng = random.Random(form + type_name)
    values = corners(bits, rng)
    pairs = list(itertools.product(values, values))
    rng.shuffle(pairs)
    pairs = pairs[:THREADS]
    third = [rng.choice([*corners(32, rng), rng.getrandbits(64)]) for _ in pairs]
    text = kernel(*statement(form, type_name))
    check(text, [[a for a, _ in pairs], [b for _, b in pairs], third])


ALL_TYPES = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
CONVERTS = [
    f"cvt.{sat}{to}.{source}" for to in ALL_TYPES for source in ALL_TYPES for sat in ("", "sat.")
]


@pytest.mark.parametrize("name", CONVERTS)
def test_conversion(name: str) -> None:
    rng = random.Random(name)
    _, *words = name.split(".")
    to, source = words[-2:]
    letters = {"8": "rd", "16": "rs", "32": "r", "64": "rd"}
    target = letters[to[1:]]
    body = f"{name} %{target}7, %{letters[source[1:]]}1;"
    bits = {"rs": 16, "r": 32, "rd": 64}[target]
    store = "mov.u64 %rd9,%rd7;" if bits == 64 else f"cvt.u64.u{bits} %rd9,%{target}7;"
    values = [*corners(64, rng), *corners(int(source[1:]), rng)]
    check(kernel(body, store), [values, values, values])


KNOWN = ["div.u32", "rem.u32", "div.s32", "rem.s32", "mul.lo.u32", "mul.hi.s32", "mul.hi.u32"]


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("constant", [0, 1, 2, 3, 7, 10, 641, 1 << 31, 0x7FFFFFFF, 0xFFFFFFFF])
def test_constant_operand(name: str, constant: int) -> None:
    rng = random.Random(constant)
    values = corners(32, rng)
    text = kernel(f"{name} %r7,%r1,{constant};", "cvt.u64.u32 %rd9,%r7;")
    check(text, [values, values, values])


@pytest.mark.parametrize("type_name", ["u32", "s32"])
@pytest.mark.parametrize("seed", range(12))
def test_quotient_and_remainder_of_all_sizes(type_name: str, seed: int) -> None:
    """Both of one division; operands around powers of two, and of any number of bits."""
    rng = random.Random(seed)

    def operand() -> int:
        bits = rng.randint(0, 32)
        near = (1 << bits) + rng.randint(-2, 2)
        return rng.choice([rng.getrandbits(bits), near, 2**32 - 1 - rng.getrandbits(3)]) % 2**32

    body = f"div.{type_name} %r7,%r1,%r2; rem.{type_name} %r8,%r1,%r2;"
    columns = [[operand() for _ in range(THREADS)] for _ in range(3)]
    check(kernel(body, "mov.b64 %rd9,{%r7,%r8};"), columns)


CHAINS = [
    "add.cc.u32 %r7,%r1,%r2; addc.cc.u32 %r8,%r2,%r3; addc.u32 %r9,%r1,%r3;",
    "sub.cc.u32 %r7,%r1,%r2; subc.cc.u32 %r8,%r2,%r3; subc.u32 %r9,%r1,%r3;",
    "mad.lo.cc.u32 %r7,%r1,%r2,%r3; madc.hi.cc.u32 %r8,%r1,%r2,%r3; addc.u32 %r9,%r1,0;",
    "add.cc.s64 %rd7,%rd1,%rd2; addc.u32 %r8,%r1,%r2; mov.b64 {%r7,%r9},%rd7;",
    "subc.cc.u32 %r7,%r1,%r2; subc.u32 %r8,%r1,%r2; mov.u32 %r9,0;",
]


@pytest.mark.parametrize("body", CHAINS)
def test_carry_chain(body: str) -> None:
    rng = random.Random(body)
    columns = [rng.choices([*corners(64, rng)], k=THREADS) for _ in range(3)]
    store = (
        "mov.b64 %rd9,{%r7,%r8}; cvt.u64.u32 %rd8,%r9; mul.lo.u64 %rd8,%rd8,0x10001;"
        "xor.b64 %rd9,%rd9,%rd8;"
    )
    check(kernel(body, store), columns)
