"""The command line: exit codes, messages, files."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from qgpu_ptx.cli import SUBCOMMANDS, main

PTX = (
    ".version 7.0\n.target sm_75\n.address_size 64\n.entry k(.param .u64 p)\n{\n"
    ".reg .b64 %rd<2>;\nld.param.u64 %rd1, [p];\nst.global.u32 [%rd1], 7;\n}\n"
)
SPEC = (
    'kernel = "k"\ngrid = [1]\nblock = [1]\n[[args]]\nname = "out"\ntype = "u32*"\nlength = 1\n'
    "output = true\n[expected]\nout = [7]\n"
)


def call(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    (tmp_path / "k.ptx").write_text(PTX)
    (tmp_path / "k.toml").write_text(SPEC)
    return tmp_path / "k.ptx"


def test_help_lists_every_subcommand() -> None:
    result = call("--help")
    assert result.exit_code == 0
    for name in SUBCOMMANDS:
        assert name in result.output
        assert call(name, "--help").exit_code == 0


def test_the_version_is_the_packages() -> None:
    result = call("--version")
    assert result.exit_code == 0
    assert version("qgpu-ptx") in result.output


def test_run_compares_with_the_expected_results(kernel: Path) -> None:
    result = call("run", kernel)
    assert (result.exit_code, result.stdout) == (0, "out = [7]\n")
    assert "as expected" in result.stderr
    kernel.with_suffix(".toml").write_text(SPEC.replace("[7]", "[8]"))
    result = call("run", kernel)
    assert result.exit_code == 1
    assert "mismatch: out[0] is 7, expected 8" in result.stderr
    result = call("run", kernel, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "outputs": {"out": [7]},
        "mismatches": [{"array": "out", "index": 0, "expected": 8, "found": 7}],
        "steps": 3,
    }


def test_parse_prints_ptx_or_a_tree(kernel: Path) -> None:
    result = call("parse", kernel)
    assert result.exit_code == 0
    assert "st.global.u32 [%rd1], 7;" in result.stdout
    tree = json.loads(call("parse", kernel, "--json").stdout)
    store = tree["declarations"][0]["body"]["statements"][2]
    assert (store["node"], store["line"], store["opcode"]) == ("Instruction", 8, "st")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("parse", "missing.ptx"), "cannot read missing.ptx"),
        (("compile", "missing.cu"), "cannot read missing.cu"),
        (("run", "missing.ptx"), "cannot read missing.ptx"),
        (("compile", "x.cu", "--compiler", "tcc"), "tcc"),
        (("nothing",), "No such command"),
    ],
)
def test_user_errors_are_one_message_and_status_2(args: tuple[str, ...], message: str) -> None:
    result = call(*args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_a_syntax_error_shows_its_place(kernel: Path) -> None:
    kernel.write_text(PTX.replace("7;", "7"))
    result = call("run", kernel)
    assert result.exit_code == 2
    assert f"{kernel}:9:1: error: [P001]" in result.stderr


def test_supported_lists_the_table() -> None:
    result = call("supported", "shf", "popc")
    assert result.stdout.splitlines() == [
        "popc.{b32,b64}  u32 <- T",
        "shf.{l,r}.{clamp,wrap}.b32  T <- T T u32",
    ]
    rows = json.loads(call("supported", "--json").stdout)
    opcodes = {re.split(r"[.{]", row["instruction"])[0] for row in rows}
    assert opcodes >= {"add", "ld", "bar", "shfl"}


def test_an_unknown_opcode_and_an_empty_file_are_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "empty.ptx"
    path.touch()
    for arguments, message in ((("supported", "nope"), "nope"), (("parse", path), "is empty")):
        result = call(*arguments)
        assert result.exit_code == 2
        assert message in result.stderr
