"""The command line."""

import errno
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from qgpu_isa.cli import main
from qgpu_isa.instruction import INSTRUCTIONS

LISTING = """\
.machine nano
.program double

block 0:                            ; double.cu:4
  A0   lea2    tid, zero
  MEM  ld
  A2   add     MEM, MEM             -> r1
  branch 1

block 1:
  A0   lea2    tid, #32
  MEM  st      r1
  branch exit
"""


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    path = tmp_path / "double.qasm"
    path.write_text(LISTING)
    return path


def call(*arguments: object) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def good(*arguments: object) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_list_and_show() -> None:
    assert [i["name"] for i in json.loads(good("list", "--json"))] == [i.name for i in INSTRUCTIONS]
    assert len(good("list").splitlines()) == 1 + len(INSTRUCTIONS)
    assert "Alu result=sum subtract" in good("show", "sub")
    assert json.loads(good("show", "sub", "--json"))["control"]["subtract"] is True


def test_profiles() -> None:
    assert "nano" in good("profiles")
    assert json.loads(good("profiles", "--json"))[0]["shared_base"] == 448


def test_assembling_and_disassembling_give_the_listing_back(listing: Path, tmp_path: Path) -> None:
    image = tmp_path / "double.json"
    assert good("asm", listing, "-o", image) == ""
    assert good("asm", listing) == image.read_text()
    assert good("disasm", image) == LISTING
    good("disasm", image, "-o", tmp_path / "again.qasm")
    assert (tmp_path / "again.qasm").read_text() == LISTING
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "again.qasm",
        "double.json",
        "double.qasm",
    ]


def test_run_prints_the_memory_that_changed(listing: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.json"
    words.write_text('{"0x0": [5, 7], "8": -1}')
    output = good("run", listing, "--threads", 4, "--memory", words, "--memory", "12=300,1")
    assert output.splitlines() == [
        "address  before  after",
        "0x20     0       10",
        "0x24     0       14",
        "0x28     0       -2",
        "0x2c     0       600",
        "",
        "12 tokens",
    ]
    result = json.loads(
        good("run", listing, "--threads", 2, "--memory", "0=5", "--registers", "--json")
    )
    assert result == {
        "tokens": 5,
        "fault": None,
        "memory": [{"address": 32, "before": 0, "after": 10}],
        "registers": [{"pass": 0, "register": 1, "lanes": [10, 0]}],
    }
    assert "r1        [10, 0]" in good("run", listing, "--memory", "0=5", "--registers")


def test_a_fault_ends_with_code_1_and_names_the_source(tmp_path: Path) -> None:
    path = tmp_path / "bad.qasm"
    path.write_text("block 0: ; bad.cu:9\nA0 sub zero, #4\nMEM ld\nbranch exit\n")
    result = call("run", path, "--machine", "nano")
    assert result.exit_code == 1
    assert result.stderr == "error: fault OUT_OF_RANGE in CTA 0, pass 0, block 0 (bad.cu:9)\n"
    result = call("run", path, "--machine", "nano", "--json")
    assert json.loads(result.stdout)["fault"] == "OUT_OF_RANGE"


def test_trace_and_tokens(listing: Path) -> None:
    lines = good("trace", listing, "--threads", 1, "--memory", "0=40").splitlines()
    assert lines[0].split() == ["#", "token", "id", "cta", "block", "pass", "mask", "slot"]
    assert lines[1].startswith("0  GROUP(0, 2, 0, 0, 0, 1, 4)")
    assert lines[1].split()[-5:] == ["0", "0", "0", "01", "A2"]
    assert lines[-1].split()[1] == "END()"
    steps = json.loads(good("trace", listing, "--threads", 1, "--memory", "0=40", "--json"))
    assert len(steps) == len(lines) - 1
    fields = {"bits": 0, "nibbles": 2, "signed": 0, "part": 0, "group": 0, "last": 1, "slot": 4}
    assert steps[0]["fields"] == fields
    stream = json.loads(good("tokens", listing, "--threads", 1, "--ctas", 2, "--json"))
    assert [t["class"] for t in stream["launch"]][:4] == ["END", "END", "END", "PROG"]
    assert [t["class"] for t in stream["ctas"][1]][:3] == ["CTA", "RAW", "RAW"]
    assert stream["ctas"][1][1]["fields"] == {"bits": 1}
    assert "EXEC(0, 0, 0)" in good("tokens", listing)


def test_trace_ids_are_the_whole_stream(listing: Path) -> None:
    options = (listing, "--threads", 2, "--ctas", 2, "--memory", "0=40")
    head, *ids = good("trace", *options, "--ids").splitlines()
    assert head == "# machine nano"
    fed = json.loads(good("tokens", *options, "--json"))
    steps = json.loads(good("trace", *options, "--json"))
    wanted = fed["launch"]
    for cta, start in enumerate(fed["ctas"]):
        wanted += start + [step for step in steps if step["cta"] == cta]
    assert [int(line) for line in ids] == [token["id"] for token in wanted]
    assert call("trace", *options, "--ids", "--json").exit_code == 2


def test_run_says_that_nothing_changed(tmp_path: Path) -> None:
    path = tmp_path / "idle.qasm"
    path.write_text(".machine nano\nblock 0:\nbranch exit\n")
    assert good("run", path).splitlines()[0] == "no word of memory changed"


def test_files_are_named_in_help() -> None:
    for name in ("run", "trace", "tokens", "disasm"):
        text = " ".join(good(name, "--help").split())
        assert "FILE" in text
        assert "a program image (JSON) or a listing" in text


def test_docs(tmp_path: Path) -> None:
    result = call("docs", "--check", "--folder", tmp_path)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == f"{tmp_path / 'isa.md'} is missing"
    message = "error: generated documents are not up to date; run: qgpu-isa docs\n"
    assert result.stderr == message
    assert "wrote" in good("docs", "--folder", tmp_path)
    assert good("docs", "--check", "--folder", tmp_path) == ""


MISTAKES = [
    (["show", "ad"], "error: there is no instruction 'ad'; did you mean 'a"),
    (["show", "zzz"], "error: there is no instruction 'zzz'; see qgpu-isa list"),
    (["asm", "missing.qasm"], "error: cannot read missing.qasm: No such file or directory"),
    (["asm", "."], "error: cannot read .: Is a directory"),
    (["asm", "{bad}"], "{bad}:3: error: unknown instruction 'ad'"),
    (["asm", "{bytes}"], "error: cannot read {bytes}: not UTF-8 text"),
    (["disasm", "{json}"], "{json}: error: not a program image"),
    (["asm", "{ok}", "-o", "no/such/folder/x"], "error: cannot write no/such/folder/x: No such"),
    (["run", "{ok}", "--machine", "huge"], "error: no machine profile 'huge'; there are: nano"),
    (["run", "{ok}", "--machine", "default"], "error: {ok} is for machine 'nano', not for 'def"),
    (["run", "{image}", "--machine", "small"], "error: {image} is for machine 'nano', not for"),
    (["docs", "--check", "--folder", "none"], "error: there is no folder none; go to the"),
    (["run", "{ok}", "--threads", "9"], "error: --threads 9: machine 'nano' holds 8 threads"),
    (["run", "{ok}", "--memory", "x=1"], "error: memory 'x=1': 'x' is not a number"),
    (["run", "{ok}", "--memory", "2=1"], "error: memory '2=1': address 2 is not a multiple of 4"),
    (["run", "{ok}", "--memory", "0=4294967296"], "error: memory '0=4294967296': 4294967296 does"),
    (["run", "{ok}", "--memory", "508=1,2"], "error: memory '508=1,2': address 0x200 is behind"),
    (["run", "{ok}", "--memory", "none.json"], "error: cannot read none.json"),
    (["run", "{ok}", "--memory", "{bad}"], "{bad}:1: error: Expecting value"),
    (["run", "{ok}", "--memory", "{list}"], "error: {list}: expected an object such as"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_end_with_code_2_and_one_message(
    arguments: list[str], message: str, listing: Path, tmp_path: Path
) -> None:
    names = {key: str(tmp_path / key) for key in ("bad", "bytes", "json", "list")}
    (tmp_path / "bad").write_text(".machine nano\nblock 0:\nA0 ad r1, r2\nbranch exit\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "json").write_text("{}")
    (tmp_path / "list").write_text("[1]")
    names["ok"] = str(listing)
    names["image"] = str(tmp_path / "image")
    (tmp_path / "image").write_text(good("asm", listing))

    def fill(text: str) -> str:
        for key, name in names.items():
            text = text.replace("{" + key + "}", name)
        return text

    result = call(*map(fill, arguments))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(fill(message))
    assert len(result.stderr.splitlines()) == 1


def test_an_endless_kernel_ends_with_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "endless.qasm"
    path.write_text(".machine nano\nblock 0:\nbranch 0\n")
    result = call("run", path, "--max-tokens", 10)
    assert result.exit_code == 1
    assert "more than 10 tokens; raise --max-tokens" in result.stderr


def test_output_to_a_pipe_or_a_link_does_not_replace_it(listing: Path, tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target"
    os.mkfifo(pipe)
    link.symlink_to(target)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    for path in (pipe, link):
        result = call("asm", listing, "-o", path)
        assert result.exit_code == 0, result.output
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert os.read(end, 1 << 16) == target.read_bytes()
    os.close(end)


def test_output_that_cannot_be_written_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **options: object) -> None:
        if not options.get("err"):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("click.echo", full)
    result = call("list")
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
