"""Random programs in PTX: machine blocks give what the PTX interpreter gives."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qgpu_isa import DEFAULT, NANO, SMALL, MachineConfig, run_launch
from qgpu_ptx import parse_ptx, run_ptx
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec
from qgpu_ptx.lower import lower_launch
from qgpu_ptx.lowering_errors import MachineLimitError
from qgpu_ptx.memory_layout import read_outputs
from qgpu_ptx.passes import SWITCHES

HEADER = ".version 7.0\n.target sm_75\n.address_size 64\n"
REGISTERS = 5
THREADS = 12

registers = st.integers(1, REGISTERS).map(lambda n: f"%r{n}")
wide = st.integers(1, 3).map(lambda n: f"%rd{n}")
predicates = st.integers(1, 3).map(lambda n: f"%p{n}")
numbers = st.one_of(st.integers(-4, 40), st.sampled_from([2**31 - 1, -(2**31), 255, 4096]))
sources = st.one_of(registers, registers, registers, numbers.map(str), st.just("%tid.x"))
wide_sources = st.one_of(wide, wide, numbers.map(str))

two = st.one_of(
    st.sampled_from(["add.s32", "sub.s32", "mul.lo.s32", "mul.hi.u32", "min.s32", "max.u32"]),
    st.sampled_from(["and.b32", "or.b32", "xor.b32", "shl.b32", "shr.u32", "shr.s32"]),
)
wide_two = st.sampled_from(["add.s64", "sub.s64", "and.b64", "xor.b64", "mul.lo.s64", "max.s64"])
compares = st.sampled_from(["eq.s32", "lt.s32", "ge.u32", "gt.s32", "ne.b32"])

plain = st.one_of(
    st.builds("{} {}, {}, {};".format, two, registers, sources, sources),
    st.builds("{} {}, {}, {};".format, two, registers, sources, sources),
    st.builds("mad.lo.s32 {}, {}, {}, {};".format, registers, sources, sources, sources),
    st.builds("setp.{} {}, {}, {};".format, compares, predicates, registers, sources),
    st.builds("{} {}, {}, {};".format, st.sampled_from(["and.pred", "or.pred", "xor.pred"]),
              predicates, predicates, predicates),
    st.builds("selp.b32 {}, {}, {}, {};".format, registers, sources, sources, predicates),
    st.builds("mov.u32 {}, {};".format, registers, sources),
    st.builds("@{} mov.u32 {}, {};".format, predicates, registers, sources),
    st.builds("@!{} add.s32 {}, {}, {};".format, predicates, registers, sources, sources),
    st.builds("{} {}, {}, {};".format, wide_two, wide, wide_sources, wide_sources),
    st.builds("cvt.u32.u64 {}, {};".format, registers, wide),
    st.builds("cvt.s64.s32 {}, {};".format, wide, registers),
    st.builds("shr.s64 {}, {}, {};".format, wide, wide, registers),
    st.builds("st.shared.u32 [%r8], {};".format, registers),
    st.builds("ld.shared.u32 {}, [%r8];".format, registers),
    st.builds("st.shared.u8 [%r8+{}], {};".format, st.integers(0, 3), registers),
    st.builds("ld.shared.s8 {}, [%r8+{}];".format, registers, st.integers(0, 3)),
    st.builds("popc.b32 {}, {};".format, registers, registers),
)  # fmt: skip

code = st.recursive(
    st.lists(plain, min_size=1, max_size=6),
    lambda inner: st.lists(
        st.one_of(
            st.tuples(st.just("if"), predicates, inner, inner),
            st.tuples(st.just("loop"), st.integers(1, 3), inner),
            inner,
        ),
        min_size=1,
        max_size=3,
    ),
    max_leaves=5,
)  # fmt: skip


class Writer:
    """Turns nested code into PTX with labels; each loop has a counter of its own."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def write(self, node: object) -> None:
        if isinstance(node, str):
            self.lines.append(node)
        elif isinstance(node, list):
            for part in node:
                self.write(part)
        elif isinstance(node, tuple) and node[0] == "if":
            n = self._next()
            self.lines.append(f"@{node[1]} bra A{n};")
            self.write(node[2])
            self.lines.append(f"bra.uni B{n};\nA{n}:")
            self.write(node[3])
            self.lines.append(f"B{n}:")
        elif isinstance(node, tuple):
            n = self._next()
            # Threads leave the loop after different numbers of rounds.
            self.lines.append(f"mov.u32 %c{n},0;\nL{n}:")
            self.write(node[2])
            self.lines.append(
                f"add.u32 %c{n},%c{n},1; and.b32 %d,%tid.x,1; add.u32 %d,%d,{node[1]};\n"
                f"setp.lt.u32 %q,%c{n},%d;\n@%q bra L{n};"
            )

    def _next(self) -> int:
        self.count += 1
        return self.count


def kernel(program: object) -> str:
    writer = Writer()
    writer.write(program)
    start = "".join(f"ld.global.u32 %r{i},[%rd8+{4 * (i - 1)}];" for i in range(1, REGISTERS + 1))
    start += "".join(f"mul.wide.s32 %rd{i},%r{i},%r{i + 1};" for i in (1, 2, 3))
    start += "".join(f"setp.gt.s32 %p{i},%r{i},10;" for i in (1, 2, 3))
    end = "".join(f"st.global.u32 [%rd8+{4 * (i - 1)}],%r{i};" for i in range(1, REGISTERS + 1))
    end += "".join(
        f"shr.u64 %rd9,%rd{i},32; xor.b64 %rd9,%rd9,%rd{i}; cvt.u32.u64 %r9,%rd9;"
        f"selp.b32 %r10,7,0,%p{i}; xor.b32 %r9,%r9,%r10; st.global.u32 [%rd8+{16 + 4 * i}],%r9;"
        for i in (1, 2, 3)
    )
    return (
        f"{HEADER}.visible .entry k(.param .u64 p)\n{{\n.shared .align 4 .b8 s[64];\n"
        ".reg .b32 %r<12>; .reg .b64 %rd<12>; .reg .pred %p<4>; .reg .pred %q; .reg .b32 %d;"
        f".reg .b32 %c<{writer.count + 1}>;\n"
        "ld.param.u64 %rd7,[p]; mov.u32 %r7,%tid.x; mul.wide.u32 %rd8,%r7,32;"
        "add.s64 %rd8,%rd7,%rd8; mov.u32 %r8,s; shl.b32 %r9,%r7,2; add.s32 %r8,%r8,%r9;"
        f"st.shared.u32 [%r8],%r7;\n{start}\n" + "\n".join(writer.lines) + f"\n{end}\nret;\n}}\n"
    )


def compare(
    text: str, words: list[int], config: MachineConfig, threads: int, without: tuple[str, ...] = ()
) -> None:
    module = parse_ptx(text, "k.ptx")
    argument = ArrayArgument("p", "u32", tuple(words), output=True)
    spec = LaunchSpec("k", (1, 1, 1), (threads, 1, 1), (argument,), {})
    wanted = list(run_ptx(module, "k", 1, threads, [array("I", words)])[0])
    try:
        placed = lower_launch(module, spec, config, without=without)
    except MachineLimitError:
        return
    machine, _ = run_launch(placed.launch())
    assert read_outputs(machine.state.memory, placed.layout)["p"] == wanted, text


data = st.integers(0, 2**32 - 1).flatmap(
    lambda seed: st.just([(seed * (i + 1) * 2654435761 >> (i % 9)) % 2**32 for i in range(96)])
)
quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@quick
@given(code, data)
def test_random_program(program: object, words: list[int]) -> None:
    compare(kernel(program), words, DEFAULT, THREADS)


@quick
@given(code, data)
def test_random_program_with_few_registers(program: object, words: list[int]) -> None:
    compare(kernel(program), words, SMALL, THREADS)


@settings(quick, max_examples=25)
@given(st.lists(plain, min_size=1, max_size=5), data)
def test_random_program_on_the_smallest_machine(program: object, words: list[int]) -> None:
    compare(kernel(program), [w % 64 for w in words[:16]], NANO, 2)


@settings(quick, max_examples=8)
@pytest.mark.parametrize("step", [*SWITCHES])
@given(code, data)
def test_passes_can_be_left_out(step: str, program: object, words: list[int]) -> None:
    compare(kernel(program), words, DEFAULT, THREADS, without=(step,))
