"""docs/tokens.md: token classes, the record grammar, and a trace as an example."""

from __future__ import annotations

from qgpu_isa.formats import group_tokens, word_record_tokens
from qgpu_isa.instruction import Slot
from qgpu_isa.interpreter import Launch, launch_tokens, run_launch
from qgpu_isa.interpreter.machine import cta_tokens
from qgpu_isa.machine_config import (
    CHUNKS_PER_RECORD,
    DEFAULT,
    NANO,
    NIBBLE_BITS,
    PROFILES,
    WORD_BITS,
    WORD_MASK,
    MachineConfig,
)
from qgpu_isa.program_text import image_to_text, text_to_image
from qgpu_isa.tables import markdown_table
from qgpu_isa.token_floor import FLOOR_TEXT
from qgpu_isa.trace import step_texts
from qgpu_isa.vocabulary import WORD_NIBBLES, Fault, Token, TokenClass, vocabulary

CLASS_TEXT = {
    TokenClass.RAW: "payload bits of the record that the last lead token began",
    TokenClass.UNIFORM: "live-out: `value` in all lanes",
    TokenClass.LINEAR: "live-out: `value` + lane (`value` is a multiple of the lanes)",
    TokenClass.LINEAR4: "live-out: `value` + 4 * lane (`value` // 4 is a multiple of the lanes)",
    TokenClass.BITS: "live-out: 0 or 1 a lane; also the record of a predicate",
    TokenClass.SAME: "live-out: the row stays what it was",
    TokenClass.WORD: "live-out: leads the word that all lanes have from now on",
    TokenClass.GROUP: "live-out: lowest bits of the words of a group; leads `nibbles` of each",
    TokenClass.ROW: "live-out: lowest bits of all words; leads `pairs` pairs of bits of each",
    TokenClass.EXEC: "runs `block` for the lanes of `pass`; `phase` is that of the CTA barrier",
    TokenClass.MASK: "`lanes` are those of `pass` until its next MASK or INIT",
    TokenClass.STOP: "the pass waits: `status` says what for, `block` at which block",
    TokenClass.PROG: "setup: leads one part of a block's ROM row",
    TokenClass.MEM: "setup: leads the word of memory at the word number `address`",
    TokenClass.CTA: "setup: leads the number of the CTA that starts",
    TokenClass.INIT: "setup: puts lanes of `pass` at block 0: all, if `masked` those of its MASK",
    TokenClass.END: "the CTA has ended",
    TokenClass.FAULT: "the launch has ended early",
}

FAULT_TEXT = {
    Fault.OUT_OF_RANGE: "an active lane accessed an address behind the last word",
    Fault.MISALIGNED: "an active lane accessed an address that is not a multiple of 4",
    Fault.TRAP: "an active lane took a branch with `trap`",
}

EXAMPLE = """
.machine nano
.program double
block 0:                            ; each thread loads its word, doubles it and stores it
  A0   lea2   tid, zero
  MEM  ld
  A2   add    MEM, MEM              -> r1
  branch 1
block 1:
  A0   lea2   tid, #32
  MEM  st     r1
  branch exit
"""


def tokens_markdown(header: str) -> str:
    """The content of docs/tokens.md, with `header` in front."""
    parts = [
        header,
        "# Tokens\n",
        "A token is a class and a payload of fields. Ids are numbered class by class in the order\n"
        "below from 0, payloads in ascending order with the first field lowest; a merged\n"
        "checkpoint adds its offset behind the text vocabulary. The weights see a token as a\n"
        "class code and the fields' bits side by side, the first field lowest.\n",
        "## Classes\n",
        markdown_table(
            ("class", "code", "fields", "meaning"),
            (
                (
                    c.name,
                    int(c),
                    ", ".join(f"`{f.name}`" for f in vocabulary(NANO).fields[c]) or "-",
                    CLASS_TEXT[c],
                )
                for c in TokenClass
            ),
        ),
        "Field widths in bits (number of values where it is not a power of two) and first ids:\n",
        *(_profile_table(config) for config in PROFILES.values()),
        markdown_table(("fault", "cause", "meaning"), _fault_rows()),
        "## Records of live-outs\n",
        "A live-out is the row of one register over the lanes of a pass, with the old value in\n"
        "lanes that did not write. The machine takes the first format of this list that holds the\n"
        "row; inactive lanes count. Formats behind WORD lead with the lowest bit of every word;\n"
        "RAW tokens carry the bits above it, the lowest first. What is not sent is 0, or with\n"
        "`signed` copies of the highest bit that is; a record takes as few tokens as hold all its\n"
        "words, unsigned if that is as short.\n",
        "ROW (where a row has several groups and all of them changed) sends two bits of every\n"
        "lane in a token. GROUP sends group by group (four lanes, on nano two), but only those\n"
        "that changed, four bits of each lane of the group in a token. After four of them the\n"
        "GROUP token comes again, with `part` 1, before the rest. `last` marks the last group.\n",
        markdown_table(
            ("format", "holds", *(f"tokens, {name}" for name in PROFILES)), _format_rows()
        ),
        "## Grammar\n",
        "```\n"
        "launch     = preamble { program } { memory } { cta }\n"
        "preamble   = END END END                  ; fills the taps of the causal convolution\n"
        "program    = PROG RAW...                  ; parts that are zero are not sent\n"
        "memory     = MEM RAW...                   ; words that are zero are not sent\n"
        "cta        = CTA RAW... { [MASK] INIT } EXEC answer\n"
        "answer     = { live-outs go } live-outs last\n"
        "live-outs  = { BITS | UNIFORM | LINEAR | LINEAR4 | SAME | WORD RAW... | row | group... }\n"
        "row        = ROW RAW...                   ; `pairs` of them, which may be none\n"
        "group      = GROUP RAW... [ GROUP RAW... ]  ; `nibbles` of them, which may be none\n"
        "go         = [STOP] [MASK] EXEC           ; MASK: the pass has other lanes so far\n"
        "last       = STOP END | FAULT\n"
        "```\n",
        "The machine writes `answer`; everything else is fed. Live-outs come in the order of the\n"
        f"slots: {', '.join(s.name for s in Slot)}. A launch ends at its first FAULT, which comes\n"
        "without live-outs. Where no CTA runs, PROG and MEM records replace\n"
        "what they name; INIT may also stand before CTA, as it does where CTAs run side by side.\n",
        "## How few tokens there could be\n",
        FLOOR_TEXT,
        "## Example\n",
        _example(),
    ]
    return "\n".join(parts)


def _profile_table(config: MachineConfig) -> str:
    vocab = vocabulary(config)
    rows = []
    for cls in TokenClass:
        widths = []
        for field in vocab.fields[cls]:
            exact = field.count == 1 << field.width
            widths.append(f"{field.name} {field.width}" + ("" if exact else f" ({field.count})"))
        ids = vocab.range_of(cls)
        rows.append((cls.name, ", ".join(widths) or "-", len(ids), ids.start))
    return markdown_table((f"{config.name}: class", "fields", "tokens", "first id"), rows)


def _fault_rows() -> list[tuple[object, ...]]:
    return [(fault.name, int(fault), FAULT_TEXT[fault]) for fault in Fault]


def _format_rows() -> list[tuple[object, ...]]:
    one = [1] * len(PROFILES)
    words = [word_record_tokens(config) for config in PROFILES.values()]
    rows: list[tuple[object, ...]] = [
        ("BITS", "every word is 0 or 1", *one),
        ("UNIFORM", "all words equal and below 2^s (s: bits of `value`)", *one),
        ("LINEAR", "lanes * `value` + lane", *one),
        ("LINEAR4", "4 * (lanes * `value` + lane)", *one),
        ("SAME", "the old row", *one),
        ("WORD", "all words equal", *words),
    ]
    for pairs in range(CHUNKS_PER_RECORD + 1):
        held = _held(1 + DEFAULT.row_bits * pairs)
        counts = [1 + pairs if config.groups > 1 else "-" for config in PROFILES.values()]
        rows.append((f"ROW, {pairs} pairs", held, *counts))
    for nibbles in range(WORD_NIBBLES + 1):
        held = _held(1 + NIBBLE_BITS * nibbles)
        counts = [group_tokens(nibbles)] * len(PROFILES)
        rows.append((f"GROUP, {nibbles} nibbles, each group", held, *counts))
    return rows


def _held(bits: int) -> str:
    if bits >= WORD_BITS:
        return "everything"
    return f"words below 2^{bits}, or all from -2^{bits - 1} to 2^{bits - 1} - 1"


def _example() -> str:
    image = text_to_image(EXAMPLE)
    launch = Launch(image, {0: 5, 1: 7, 2: 300, 3: WORD_MASK}, threads=3)
    setup = [*launch_tokens(launch), *cta_tokens(launch.config, launch.threads, 0)]
    machine, steps = run_launch(launch)
    words = ", ".join(str(w) for w in machine.state.memory[8:11])
    return (
        "This program on the nano machine, with 3 threads and memory 5, 7, 300, -1 at address 0:\n"
        f"\n```\n{image_to_text(image)}```\n\n"
        f"is set up by {len(setup)} tokens:\n\n```\n{_lines(setup)}```\n\n"
        f"The machine answers with {len(steps)} tokens:\n\n"
        f"```\n{step_texts(steps, launch.config)}```\n\n"
        f"Behind it, memory at address 32 holds {words}.\n"
    )


def _lines(tokens: list[Token]) -> str:
    """Tokens as text, one record a line."""
    text = ""
    for token in tokens:
        follows = token.cls is TokenClass.RAW
        text += (" " if follows else "\n") + str(token)
    return text.strip() + "\n"
