"""The command line on the interpreter engine: results, exit statuses, messages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def test_an_image_runs(invoke, image_files: Path) -> None:
    common = ("--engine", "interpreter", "--block", 5, "--grid", 2, "--arg", "16=0,-10,20,30,40")
    for name in ("scale.qasm", "scale.json"):
        status, _, data = invoke("launch", image_files / name, *common, "--check", "--json")
        assert status == 0
        assert data["outputs"] == {"16": [200, 190, 220, 230, 240]}
        assert data["exact"] is True
        assert data["engine"] == "interpreter"
        assert data["expected_ok"] is None
        assert data["baseline_tokens"] is None
        assert data["tokens"] > 10
    status, text, _ = invoke("launch", image_files / name, *common)
    assert status == 0
    assert "16 = [200, 190, 220, 230, 240]" in text


def test_check_verify_and_plain_agree(invoke, image_files: Path) -> None:
    command = ("launch", image_files / "scale.qasm", "--engine", "interpreter", "--json")
    command = (*command, "--block", 3, "--arg", "16=1,2,3")
    results = [invoke(*command, *flags) for flags in ([], ["--check"], ["--verify"])]
    results.append(invoke(*command, "--check", "--verify"))
    for key in ("outputs", "tokens", "setup_tokens"):
        assert len({json.dumps(data[key]) for _, _, data in results}) == 1
    assert [data["exact"] for _, _, data in results] == [None, True, True, True]
    assert results[3][2]["checks"] == ["check", "verify"]


def test_a_lying_engine_fails_the_check(
    invoke, image_files: Path, lying, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qgpu_run.open_engine import EngineChoice

    monkeypatch.setattr(EngineChoice, "open", lambda *_: lying(at=2, token=0))
    for flag in ("--check", "--verify"):
        status, _, data = invoke("launch", image_files / "scale.qasm", flag, "--json")
        assert status == 1
        assert data["exact"] is False
        assert "token 2 differs" in data["problems"][0]


def test_faults_and_limits_exit_with_1(invoke, image_files: Path) -> None:
    run = ("launch", "--engine", "interpreter", "--max-tokens", 100)
    for flags in ([], ["--check"], ["--verify"]):
        status, text, _ = invoke(*run, image_files / "wild.qasm", *flags)
        assert status == 1
        assert "out of range" in text
        assert "wild.cu:7" in text
        status, text, _ = invoke(*run, image_files / "forever.qasm", *flags)
        assert status == 1
        assert "--max-tokens" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.cu"], "no file"),
        (["scale.qasm", "--profile", "small"], "machine 'nano'"),
        (["scale.qasm", "--block", "9"], "holds 8"),
        (["scale.qasm", "--block", "x"], "--block"),
        (["scale.qasm", "--grid", "70000"], "CTAs"),
        (["scale.qasm", "--arg", "a=1"], "WORDADDRESS"),
        (["scale.qasm", "--arg", "127=1,2"], "128 words"),
        (["scale.qasm", "--arg", "1=99999999999"], "32-bit"),
        (["scale.qasm", "--arg", "1=1", "--arg", "1=2"], "twice"),
        (["scale.qasm", "--spec", "x.toml"], "--spec"),
        (["broken.json"], "broken.json"),
        (["broken.qasm"], "broken.qasm:1"),
        (["broken.ptx", "--block", "4"], "broken.ptx"),
        (["empty.ptx"], "no kernel name"),
        (["bytes.ptx", "--block", "4"], "cannot read"),
        (["scale.qasm", "--engine", "magic"], "magic"),
        (["scale.qasm", "--max-tokens", "0"], "max-tokens"),
    ],
)
def test_wrong_input_exits_with_2(
    invoke,
    image_files: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(image_files)
    for name in ("broken.json", "broken.qasm", "broken.ptx"):
        Path(name).write_text("this is nothing {")
    Path("empty.ptx").write_text(".version 7.0\n.target sm_75\n.address_size 64\n")
    Path("bytes.ptx").write_bytes(b"\xff\xfe\x00")
    engine = [] if "--engine" in arguments else ["--engine", "interpreter"]
    status, text, _ = invoke("launch", *arguments, *engine)
    assert (status, message in text) == (2, True), text
    assert "Traceback" not in text


def test_help_needs_no_torch() -> None:
    code = (
        "import sys; from qgpu_run.cli import main\n"
        "try: main(['launch', '--help'])\n"
        "except SystemExit: pass\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--verify" in done.stdout
