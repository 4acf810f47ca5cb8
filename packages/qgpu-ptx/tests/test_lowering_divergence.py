"""Warp operations of lanes that take different ways: random nests of branches and loops.

Every program is valid by construction: it knows which lanes come to each operation.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable

import pytest
from qgpu_isa import DEFAULT, SMALL, MachineConfig, run_launch
from qgpu_ptx import parse_ptx, run_ptx
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec
from qgpu_ptx.lower import lower_launch
from qgpu_ptx.lowering_errors import MachineLimitError
from qgpu_ptx.memory_layout import read_outputs

KernelText = Callable[..., str]
FULL = (1 << 32) - 1
PICKS = [0x55555555, 0x49249249, 0x0F0F0F0F, 0xFF00FF00, 0xFFFFFFF8, 0xCCCCCCCC, 0xFFFF]
"""Sets of lanes that branches tell apart."""


class Writer:
    """Writes PTX; %r1 is the value, %r2 the lane. `lanes` are those that come to a place."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.labels = 0
        self.left = rng.randrange(3, 7)

    def operation(self, lanes: int, mask: str = "") -> str:
        self.left -= 1
        mask = mask or f"{lanes:#x}"
        first = (lanes & -lanes).bit_length() - 1
        return self.rng.choice([
            f"and.b32 %r4,%r1,2; setp.ne.u32 %p1,%r4,0; vote.sync.ballot.b32 %r5,%p1,{mask};"
            "add.u32 %r1,%r1,%r5;",
            f"and.b32 %r4,%r1,7; setp.eq.u32 %p1,%r4,3; vote.sync.any.pred %p2,%p1,{mask};"
            "selp.u32 %r5,5,8,%p2; mad.lo.u32 %r1,%r1,3,%r5;",
            f"shfl.sync.idx.b32 %r5,%r1,{first},31,{mask}; xor.b32 %r1,%r1,%r5;"
            "add.u32 %r1,%r1,%r2;",
            f"and.b32 %r4,%r1,3; match.any.sync.b32 %r5,%r4,{mask}; add.u32 %r1,%r1,%r5;",
        ])  # fmt: skip

    def code(self, lanes: int, depth: int = 3) -> str:
        return "\n".join(
            self.part(lanes, depth) for _ in range(self.rng.randrange(1, 4)) if self.left > 0
        )

    def part(self, lanes: int, depth: int) -> str:
        kind = self.rng.choice(["operation", "if", "if", "loop", "rounds", "break"])
        pick = self.rng.choice(PICKS)
        if kind == "operation" or depth == 0:
            return self.operation(lanes)
        self.labels += 1
        n = self.labels
        if kind == "if":
            yes, no = lanes & pick, lanes & ~pick
            return (
                f"shr.u32 %r4,{pick:#x},%r2; and.b32 %r4,%r4,1; setp.eq.u32 %p1,%r4,0;\n"
                f"@%p1 bra N{n};\n{self.code(yes, depth - 1) if yes else ''}\nbra E{n};\n"
                f"N{n}:\n{self.code(no, depth - 1) if no else ''}\nE{n}: add.u32 %r1,%r1,1;"
            )
        if kind == "loop":
            return (
                f"mov.u32 %c{n},0;\nL{n}:\n{self.code(lanes, depth - 1)}\nadd.u32 %c{n},%c{n},1;"
                f"setp.lt.u32 %p1,%c{n},2;\n@%p1 bra L{n};"
            )
        # Some lanes go round twice. %m holds the lanes that are still there.
        again = lanes & pick
        end = f"shr.u32 %r4,{again:#x},%r2; and.b32 %r4,%r4,1; setp.ge.u32 %p1,%c{n},%r4;"
        start = f"mov.u32 %c{n},0; mov.u32 %m{n},{lanes:#x};\nL{n}:\n"
        step = f"add.u32 %c{n},%c{n},1; mov.u32 %m{n},{again:#x};"
        one, two = (self.operation(again or lanes, f"%m{n}") for _ in range(2))
        if kind == "rounds" or not again:
            return f"{start}{one}\n{end} {step}\n@!%p1 bra L{n};"
        leave = self.operation(lanes & ~again) if lanes & ~again else ""
        return (
            f"{start}{one}\n{end}\n@%p1 bra B{n};\n{step} {two.replace(f'%m{n}', hex(again))}\n"
            f"bra L{n};\nB{n}: setp.gt.u32 %p1,%c{n},0;\n@%p1 bra E{n};\n{leave}\n"
            f"E{n}: add.u32 %r1,%r1,9;"
        )  # fmt: skip


def check(text: str, threads: int, config: MachineConfig) -> None:
    words = [(i * 2654435761 >> (i % 7)) & FULL for i in range(threads)]
    module = parse_ptx(text, "k.ptx")
    argument = ArrayArgument("p", "u32", tuple(words), output=True)
    spec = LaunchSpec("k", (1, 1, 1), (threads, 1, 1), (argument,), {})
    wanted = list(run_ptx(module, "k", 1, threads, [array("I", words)])[0])
    try:
        placed = lower_launch(module, spec, config)
    except MachineLimitError:
        return
    machine, _ = run_launch(placed.launch())
    assert read_outputs(machine.state.memory, placed.layout)["p"] == wanted, text


def whole(kernel_text: KernelText, body: str, labels: int) -> str:
    return kernel_text(
        f".reg .b32 %c<{labels + 1}>; .reg .b32 %m<{labels + 1}>;\n"
        f"ld.global.u32 %r1,[%rd1]; and.b32 %r2,%r0,31;\n{body}\nst.global.u32 [%rd1],%r1;"
    )


@pytest.mark.parametrize("seed", range(30))
def test_random_nests(kernel_text: KernelText, seed: int) -> None:
    rng = random.Random(seed)
    threads = rng.choice([9, 12, 16, 20, 24, 31, 32, 64])
    writer = Writer(rng)
    lanes = (1 << min(threads, 32)) - 1
    body = ""
    while writer.left > 0:
        body += writer.code(lanes) + "\n"
    body += writer.operation(lanes)
    for config in (DEFAULT, SMALL):
        check(whole(kernel_text, body, writer.labels), threads, config)


BALLOT = "and.b32 %r4,%r1,2; setp.ne.u32 %p1,%r4,0; {} add.u32 %r1,%r1,%r5;"
VOTE = BALLOT.format("vote.sync.ballot.b32 %r5,%p1,{};")
SOME = "shr.u32 %r4,0x49249,%r2; and.b32 %r4,%r4,1; setp.eq.u32 %p1,%r4,0;\n"
CASES = {
    "after a branch": f"{SOME}@%p1 bra E;\n{VOTE.format(0x49249)}\nE: {VOTE.format(0xFFFFF)}",
    "in both ways": (
        f"{SOME}@%p1 bra N;\n{VOTE.format(0x49249)}\nbra E;\nN: {VOTE.format(0xB6DB6)}\nE:"
    ),
    "in a loop": (
        f"mov.u32 %c1,0;\nL: {VOTE.format(0xFFFFF)} {SOME}@%p1 bra N;\n{VOTE.format(0x49249)}\n"
        "N: add.u32 %c1,%c1,1; setp.lt.u32 %p1,%c1,3;\n@%p1 bra L;"
    ),
    "counted in the CTA": (
        f"{SOME}@%p1 bra E;\n{VOTE.format(0x49249)}\nE: "
        + BALLOT.format("bar.red.popc.u32 %r5,0,%p1;")
    ),
    "reduced": (
        f"{SOME}@%p1 bra E;\n{VOTE.format(0x49249)}\nE: redux.sync.add.u32 %r1,%r1,0xfffff;"
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("config", [DEFAULT, SMALL], ids=lambda config: config.name)
def test_lanes_of_a_pass_that_arrive_apart(
    kernel_text: KernelText, name: str, config: MachineConfig
) -> None:
    check(whole(kernel_text, CASES[name], 1), 20, config)
