"""Listings: round trip, and errors with their line."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qgpu_isa.canonical import canonical_image
from qgpu_isa.errors import AssemblyError, ProgramError
from qgpu_isa.instruction import INSTRUCTIONS, Slot
from qgpu_isa.interpreter import Launch, run_launch
from qgpu_isa.machine_config import NANO, MachineConfig
from qgpu_isa.program import Block, Branch, CondSource, ProgramImage, SlotCode, Status
from qgpu_isa.program_json import dict_to_image, image_to_dict, image_to_json, json_to_image
from qgpu_isa.program_text import image_to_text, text_to_image
from qgpu_isa.random_programs import random_launch
from qgpu_isa.testing import configs, images

TINY = MachineConfig("my machine", 2, 2, 2, 1, 2, 4, 2)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), config=configs() | st.just(TINY))
def test_a_listing_reads_back(data: st.DataObject, config: MachineConfig) -> None:
    image = data.draw(images(config, max_blocks=2))
    text = image_to_text(image)
    again = text_to_image(text)
    assert again == canonical_image(image)
    assert image_to_text(again) == text
    assert canonical_image(again) == again


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), config=configs() | st.just(TINY))
def test_json_reads_back_exactly(data: st.DataObject, config: MachineConfig) -> None:
    image = data.draw(images(config, max_blocks=2))
    assert json_to_image(image_to_json(image)) == image


def test_canonical_programs_run_alike() -> None:
    for seed in range(60):
        launch = random_launch(NANO, seed)
        image = canonical_image(launch.image)
        again = Launch(image, launch.memory, launch.threads, launch.ctas)
        assert run_launch(again)[1] == run_launch(launch)[1]


def test_the_listing_of_a_program() -> None:
    text = """\
.machine nano
.program scale

block 0:                            ; scale.cu:3
  ; scale.ptx:17
  A0   lea2    tid, #64
  MEM  ld                           -> r1
  A1   setlts  MEM, #-5             -> p0
  X    shl     A0, #0x12345678
  A2   sel     X, A1, !p2           -> r2
  branch flag A1 ? wait warp 1 : 0

block 1:
  A0   add     r1, zero
  MEM  st      ctaid                       @!p1
  branch !p1 ? trap : exit
"""
    image = text_to_image(text)
    assert image_to_text(image) == text
    assert image.blocks[0].source == ("scale.cu:3", "scale.ptx:17")
    assert image.blocks[1].branch == Branch(
        CondSource.PRED, 1, True, 0, Status.RUN, 0, Status.EXIT, trap=True
    )


def test_names_of_blocks_and_free_layout() -> None:
    image = text_to_image(
        """
        ; a comment that goes nowhere
        .machine nano
        block start:   A = comment? ; kept
        """.replace("A = comment? ", "")
        + """
          A2 add r1,#0x10->r1@p0 ; not kept
          branch loop
        block loop:
          branch flag A2 ? start : exit
        """
    )
    assert image.blocks[0].branch.taken == 1
    assert image.blocks[1].branch.taken == 0
    assert image.blocks[0].source == ("kept",)
    assert image.blocks[0].slots[Slot.A2].imm == 16


def test_every_instruction_assembles() -> None:
    for instruction in INSTRUCTIONS:
        for slot in instruction.slots:
            slots = {Slot.A0: SlotCode("add")} if slot is Slot.MEM else {}
            block = Block({**slots, slot: SlotCode(instruction.name)})
            image = ProgramImage(NANO, (block,))
            assert text_to_image(image_to_text(image)) == image


HEAD = ".machine nano\nblock 0:\n"
ERRORS = [
    ("", 1, "the listing has no blocks"),
    (".machine nanno", 1, "no machine profile 'nanno'; there are: nano, small, default; did you"),
    (".machine m lanes=2", 1, "machine 'm' lacks global_words, passes"),
    (".machine m lane=2", 1, "no size 'lane'; did you mean 'lanes'?"),
    (
        ".machine m lanes=3 passes=1 registers=2 predicates=1 rom_blocks=2 global_words=3 "
        "shared_words=3",
        1,
        "lanes is 3; it must be a power of two",
    ),
    ("block 0:", 1, "expected a '.machine' line"),
    (".machine nano\nbranch exit", 2, "'branch' stands before the first block"),
    (".machine nano\nblock 1:", 2, "block '1' is out of order; expected block 0"),
    (".machine nano\nblock a:\nbranch exit\nblock a:\nbranch exit", 4, "'a' is defined twice"),
    (HEAD + "A0 ad r1, r2", 3, "unknown instruction 'ad'; slot A0 takes add, sub"),
    (HEAD + "A0 mullo r1, r2", 3, "slot A0: 'mullo' can only stand in X"),
    (HEAD + "A3 add r1, r2", 3, "'A3' begins no statement"),
    (HEAD + "brnch exit", 3, "did you mean 'branch'?"),
    (HEAD + "A0 add r1", 3, "expected ',', the line ends"),
    (HEAD + "A0 add r1 r2", 3, "expected ',', found 'r2'"),
    (HEAD + "A0 add r8, r2", 3, "register r8 does not exist"),
    (HEAD + "A0 add r1, tld", 3, "found 'tld'; did you mean 'tid'?"),
    (HEAD + "A0 add r1, MEM", 3, "slot A0 cannot read MEM's result; it can read no other"),
    (HEAD + "A2 add r1, A0", 3, "slot A2 cannot read A0's result; it can read A1, MEM, X"),
    (HEAD + "A0 add #1, #2", 3, "a slot has one immediate"),
    (HEAD + "A0 add r1, #4294967296", 3, "immediate 4294967296 does not fit 32 bits"),
    (HEAD + "A0 add r1, #x", 3, "expected a number behind '#', found 'x'"),
    (HEAD + "A0 add r1, r2 -> 3", 3, "expected a destination"),
    (HEAD + "A0 add r1, r2 -> p0", 3, "'add' cannot write a predicate"),
    (HEAD + "A1 seteq r1, r2 -> p3", 3, "destination 3 does not exist"),
    (HEAD + "A0 add r1, r2 -> r3 @p3", 3, "predicate p3 does not exist"),
    (HEAD + "A0 add r1, r2 -> r3 @r1", 3, "expected a predicate such as p0"),
    (HEAD + "A1 sel r1, r2, p0 -> r3 @p1", 3, "'sel' selects by its predicate"),
    (HEAD + "A0 add r1, r2 junk", 3, "expected the end of the line, found 'junk'"),
    (HEAD + "A0 add r1, r2\nA0 add r1, r2", 4, "two instructions in slot A0"),
    (HEAD + "MEM ld -> r1\nbranch exit", 2, "MEM needs an address"),
    (HEAD + "A0 add r1, r2", 2, "block 0 has no branch"),
    (HEAD + "branch 1", 3, "there is no block '1'; the listing has blocks 0 to 0"),
    (HEAD + "branch p3 ? 0 : 0", 3, "predicate p3 does not exist; machine 'nano' has p0 to p2"),
    (HEAD + "branch p0 ? 0", 3, "expected ':', the line ends"),
    (HEAD + "branch flag A0 ? 0 : 0", 3, "expected A1 or A2"),
    (HEAD + "branch p0 ? wait block 0 : 0", 3, "expected warp or cta"),
    (HEAD + "branch p0 ? 0 : trap", 3, "only lanes that take the branch can trap"),
    (".machine nano\nblock p1:", 2, "expected the block's number or name, found 'p1'"),
    (HEAD + "branch !7 ? 0 : 0", 3, "expected a condition"),
    (HEAD + "branch exit\nA0 add r1, r2", 4, "'A0' after the branch of block 0"),
    (HEAD + "branch exit\n.machine small", 4, "'.machine' must stand before the first block"),
]


@pytest.mark.parametrize(("text", "line", "message"), ERRORS)
def test_errors_name_the_line_and_what_is_expected(text: str, line: int, message: str) -> None:
    with pytest.raises(AssemblyError) as caught:
        text_to_image(text, "k.qasm")
    assert str(caught.value).startswith(f"k.qasm:{line}: error: ")
    assert message in str(caught.value)
    assert caught.value.line == line


def test_a_program_with_too_many_blocks_is_refused() -> None:
    text = ".machine nano\n" + "".join(f"block {i}:\nbranch exit\n" for i in range(33))
    with pytest.raises(ProgramError, match="33 blocks; machine 'nano' holds 32"):
        text_to_image(text)


def _set(path: str, value: object) -> str:
    data: dict = image_to_dict(text_to_image(HEAD + "A0 add r1, r2 -> r3\nbranch exit"))
    entry: object = data
    *folders, last = path.split("/")
    for key in folders:
        entry = entry[int(key) if key.isdigit() else key]  # type: ignore[index]
    entry[int(last) if last.isdigit() else last] = value  # type: ignore[index]
    with pytest.raises(ProgramError) as caught:
        dict_to_image(data)
    return str(caught.value)


def test_json_errors_name_the_entry() -> None:
    assert "expected an object with format" in _set("format", "other")
    assert "machine" in _set("machine/lanes", "two")
    assert "machine" in _set("machine/width", 2)
    assert _set("name", 3) == "image.name is 3; expected str"
    assert _set("blocks/0", 3) == "blocks[0] lacks 'slots'"
    slot = "blocks/0/slots/A0"
    assert "unknown instruction 'ad'" in _set(f"{slot}/op", "ad")
    assert _set(f"{slot}/imm", True) == "blocks[0].slots.A0.imm is True; expected int"
    assert _set(f"{slot}/a", ["REG"]) == "blocks[0].slots.A0.a has 1 items; expected 2"
    assert "'REGS' is not one of ZERO, REG" in _set(f"{slot}/a/0", "REGS")
    assert "[] is not one of" in _set(f"{slot}/a/0", []).replace("'", "")
    assert "'A9' is not one of A0" in _set("blocks/0/slots/A9", {})
    assert "branch to block 9" in _set("blocks/0/branch/taken", ["RUN", 9])
    with pytest.raises(ProgramError, match=r"x\.json:2: error: "):
        json_to_image("{\n,}", "x.json")
    with pytest.raises(ProgramError, match=r"x\.json: error: not a program image"):
        json_to_image("[]", "x.json")
