"""What lowering refuses: the place in the PTX, and what the machine lacks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from qgpu_isa import DEFAULT, NANO, SMALL, MachineConfig, run_launch
from qgpu_isa.program_text import text_to_image
from qgpu_isa.vocabulary import TokenClass
from qgpu_ptx import QgpuPtxError, parse_ptx
from qgpu_ptx.cli import main
from qgpu_ptx.commands.lower_command import STAGES
from qgpu_ptx.diagnostics import LaunchSpecError
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec
from qgpu_ptx.lower import PlacedLaunch, lower_launch
from qgpu_ptx.lowering_errors import LoweringError, MachineLimitError

KernelText = Callable[..., str]
ROOT = Path(__file__).parents[3] / "kernels"


def lower(
    text: str, config: MachineConfig = DEFAULT, threads: int = 1, words: int = 8
) -> PlacedLaunch:
    argument = ArrayArgument("p", "u32", (0,) * words, output=True)
    spec = LaunchSpec("k", (1, 1, 1), (threads, 1, 1), (argument,), {})
    return lower_launch(parse_ptx(text, "k.ptx"), spec, config)


REFUSED = {
    "div.u64 %rd2,%rd1,%rd3;": "64-bit division",
    "bar.arrive 0,64;": "arrive",
    "bar.sync 0,32;": "part of a CTA",
    "mov.u32 %r1,%clock;": "%clock",
    "fns.b32 %r1,%r2,%r3,1;": "not lowered",
    "atom.global.cas.b16 %rs1,[%rd1],%rs2,%rs3;": "16-bit",
    "add.f32 %r1,%r2,%r3;": "not supported",
    "redux.sync.add.u32 %r1,%r2,%r3;": "member mask",
    "match.any.sync.b64 %r1,%rd2,0xffffffff;": "64-bit match",
    "isspacep.local %p1,%rd1;": "told apart",
}


@pytest.mark.parametrize(("body", "message"), REFUSED.items())
def test_refused_with_its_place(kernel_text: KernelText, body: str, message: str) -> None:
    text = kernel_text(f"\n  {body}")
    line = text[: text.index(body)].count("\n") + 1
    with pytest.raises(QgpuPtxError, match=message) as caught:
        lower(text, threads=64 if "bar" in body else 1)
    span = caught.value.span
    assert span is not None
    assert span.line == line
    assert span.column == 3 or "%clock" in body


def test_more_ctas_than_can_be_numbered(kernel_text: KernelText) -> None:
    spec = LaunchSpec("k", (1 << 16, 1, 2), (1, 1, 1), (ArrayArgument("p", "u32", (0,)),), {})
    with pytest.raises(MachineLimitError, match="131072 CTAs"):
        lower_launch(parse_ptx(kernel_text(""), "k.ptx"), spec, DEFAULT)


def test_trap_behind_a_branch(kernel_text: KernelText) -> None:
    body = "ld.global.u32 %r1,[%rd0]; setp.ne.u32 %p1,%r1,{}; @%p1 bra L;\ntrap;\nL:"
    for value, last in ((0, TokenClass.FAULT), (1, TokenClass.END)):
        _, steps = run_launch(lower(kernel_text(body.format(value))).launch())
        assert steps[-1].token.cls is last


def test_recursion_is_refused(kernel_text: KernelText) -> None:
    function = ".func f() { call f, (); ret; }\n"
    with pytest.raises(LoweringError, match="calls itself"):
        lower(kernel_text("call f, ();", function))


def test_too_many_threads(kernel_text: KernelText) -> None:
    with pytest.raises(MachineLimitError, match=r"129 threads.*which holds 128"):
        lower(kernel_text(""), SMALL, threads=129)


def test_too_many_words(kernel_text: KernelText) -> None:
    with pytest.raises(MachineLimitError, match=r"5008 global words.*has 4096"):
        lower(kernel_text(""), words=5000)
    shared = ".shared .align 4 .b8 s[8192];"
    with pytest.raises(MachineLimitError, match=r"2048 shared words.*has 1024"):
        lower(kernel_text("mov.u32 %r1,s; st.shared.u32 [%r1],%r1;", shared))
    local = ".local .align 4 .b8 t[4000]; st.local.u32 [t],7;"
    with pytest.raises(MachineLimitError, match="global words with local memory"):
        lower(kernel_text(local), threads=32)


def test_too_many_blocks(kernel_text: KernelText) -> None:
    body = "ld.global.u32 %r1,[%rd1]; st.global.u32 [%rd1],%r1; bar.sync 0;" * 40
    with pytest.raises(MachineLimitError, match=r"needs \d+ blocks; machine 'nano' holds 32"):
        lower(kernel_text(body), NANO, threads=8)


def test_limits_say_what_to_do(kernel_text: KernelText, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MachineLimitError) as caught:
        lower(kernel_text(""), SMALL, threads=8, words=2000)
    assert "take a machine that has more (default), or use shorter arrays" in str(caught.value)
    monkeypatch.setattr("qgpu_ptx.lower.MAX_SPILL_ROUNDS", 1)
    loads = "".join(f"ld.global.u32 %r{i},[%rd1+{4 * i}];" for i in range(1, 24))
    sums = "".join(f"mad.lo.u32 %r25,%r25,3,%r{i};" for i in range(1, 24))
    with pytest.raises(MachineLimitError) as caught:
        lower(kernel_text(f"mov.u32 %r25,1; {loads} bar.sync 0; {sums} st.global.u32 [%rd1],%r25;"),
              SMALL, threads=8, words=64)  # fmt: skip
    text = str(caught.value)
    assert re.search(r"than the 16 registers and 7 predicates .* hold: \d+ find no place", text)
    assert "take a machine that has more (default), or keep loops rolled" in text


def test_function_pointers_are_refused_as_such(kernel_text: KernelText) -> None:
    function = ".func f() { ret; }\n"
    with pytest.raises(LoweringError, match="the address of function 'f' is taken") as caught:
        lower(kernel_text("mov.u64 %rd2, f; st.global.u64 [%rd1], %rd2;", function))
    assert "call each function by its name" in str(caught.value)


def test_spilling_gives_the_same_answer(kernel_text: KernelText) -> None:
    loads = "".join(f"ld.global.u32 %r{i},[%rd1+{4 * i}];" for i in range(1, 24))
    sums = "".join(f"mad.lo.u32 %r25,%r25,3,%r{i};" for i in range(1, 24))
    text = kernel_text(f"mov.u32 %r25,1; {loads} bar.sync 0; {sums} st.global.u32 [%rd1],%r25;")
    placed = lower(text, SMALL, threads=8, words=64)
    assert placed.kernel.registers <= SMALL.registers
    assert placed.kernel.end > placed.layout.end


def test_arguments_must_fit() -> None:
    module = parse_ptx((ROOT / "elementwise/vector_add.ptx").read_text())
    spec = LaunchSpec("vector_add", (1, 1, 1), (1, 1, 1), (), {})
    with pytest.raises(LaunchSpecError, match="4 parameters"):
        lower_launch(module, spec, DEFAULT)


def call(*args: object) -> str:
    result = CliRunner().invoke(main, ["lower", *map(str, args)])
    assert result.exit_code == 0, result.output
    return result.output


def test_command_prints_a_listing_that_reads_back(tmp_path: Path) -> None:
    kernel = ROOT / "reduce/dot.ptx"
    image = text_to_image(call(kernel))
    assert image.name == "dot"
    call(kernel, "-o", tmp_path / "k.blocks", "--profile", "small")
    assert (tmp_path / "k.blocks").read_text().startswith(".machine small")
    plain = json.loads(call(kernel, "--json"))
    assert plain["blocks"] == len(image.blocks)


@pytest.mark.parametrize("stage", STAGES)
def test_command_dumps_every_stage(stage: str) -> None:
    assert call(ROOT / "reduce/dot.ptx", "--dump", stage).startswith("kernel dot")


def test_command_leaves_out_passes() -> None:
    assert call(ROOT / "reduce/dot.ptx", "--without", "common", "--without", "pointers")
