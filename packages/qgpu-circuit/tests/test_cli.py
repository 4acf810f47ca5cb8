"""The command line: the cache, and wrong inputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from qgpu_circuit.circuit_weights import MANIFEST, TENSORS
from qgpu_circuit.cli import main
from qgpu_circuit.compile_profile import ensure_circuit
from qgpu_circuit.evaluate import CircuitFileError, read_tensors
from qgpu_isa import NANO, launch_tokens, vocabulary
from qgpu_isa.random_programs import random_launch


def call(*arguments: object, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(main, [str(a) for a in arguments], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result
    return result


def refuses(result: Result, *parts: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    for part in parts:
        assert part in result.stderr


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The first tokens of a nano launch."""
    vocab = vocabulary(NANO)
    ids = [vocab.encode(token) for token in launch_tokens(random_launch(NANO, 1))][:12]
    path = tmp_path / "trace"
    path.write_text("# machine nano\n" + "\n".join(map(str, ids)) + "\n")
    return path


def test_eval_prints_what_weights_and_netlist_answer(nano_folder: Path, trace: Path) -> None:
    done = call("eval", trace, "--circuit", nano_folder, "--json")
    assert done.exit_code == 0, done.output
    ids = trace.read_text().splitlines()[1:]
    steps = json.loads(done.stdout)
    assert len(steps) == len(ids)
    listed = json.dumps(list(map(int, ids)))
    again = call("eval", "-", "--circuit", nano_folder, "--json", stdin=listed)
    assert json.loads(again.stdout) == steps


def test_the_cached_circuit_is_compiled_once(
    tmp_path: Path, trace: Path, nano_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QGPU_CACHE", str(tmp_path / "cache"))
    first = call("eval", trace, "--profile", "nano")
    assert first.exit_code == 0
    (folder,) = (tmp_path / "cache" / "circuits").iterdir()
    assert (folder / TENSORS).read_bytes() == (nano_folder / TENSORS).read_bytes()
    stamp = (folder / TENSORS).stat().st_mtime_ns
    assert call("eval", trace).output == first.stdout
    assert str(folder) in call("emit", "--profile", "nano").stdout
    assert (folder / TENSORS).stat().st_mtime_ns == stamp
    assert ensure_circuit("nano", force=True, quiet=True) == folder
    assert (folder / TENSORS).stat().st_mtime_ns != stamp


def test_emit_replaces_only_circuits(tmp_path: Path) -> None:
    target = tmp_path / "a" / "circuit"
    arguments = ("emit", "--profile", "nano", "--quiet", "-o")
    assert call(*arguments, target).exit_code == 0
    refuses(call(*arguments, target), "exists; use --force")
    assert call(*arguments, target, "--force").exit_code == 0
    refuses(call(*arguments, tmp_path, "--force"), "not a circuit folder")
    (tmp_path / "file").touch()
    refuses(call(*arguments, tmp_path / "file", "--force"), "not a folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "file"]


def test_traces_that_are_none_are_refused(tmp_path: Path, nano_folder: Path) -> None:
    def evaluate(text: str) -> Result:
        return call("eval", "-", "--circuit", nano_folder, stdin=text)

    hint = "`qgpu-isa trace FILE --ids`"
    refuses(evaluate("1 2 x"), "holds 'x'", hint)
    refuses(evaluate('[{"id": 3}]'), "holds {'id': 3}", hint)
    refuses(evaluate("[1, "), "no JSON list", hint)
    refuses(evaluate("# nothing"), "empty", hint)
    refuses(evaluate("99999"), "token id 99999 is not below", "'nano'")
    refuses(evaluate("# machine small\n1"), "for machine 'small', not for 'nano'")
    refuses(call("eval", tmp_path / "none"), "cannot read", "No such file")


def test_wrong_circuits_are_refused(nano_folder: Path, tmp_path: Path, trace: Path) -> None:
    with pytest.raises(CircuitFileError):
        read_tensors(tmp_path)
    refuses(call("eval", trace, "--circuit", tmp_path / "none"), "no readable circuit")
    refuses(call("eval", trace, "--profile", "small"), "for machine 'nano', not for 'small'")
    refuses(call("eval", trace, "--profile", "nano", "--circuit", nano_folder), "--circuit already")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / MANIFEST).write_bytes((nano_folder / MANIFEST).read_bytes())
    (broken / TENSORS).write_bytes((nano_folder / TENSORS).read_bytes()[:5000])
    refuses(call("eval", trace, "--circuit", broken), "no readable circuit")


def test_names_without_a_match_are_refused(nano_folder: Path, trace: Path) -> None:
    arguments = ("eval", trace, "--circuit", nano_folder, "--net")
    refuses(call(*arguments, "live_out/rwo"), "no net", "did you mean 'live_out/row'?")
    refuses(call(*arguments, "emit", "--net", "nosuch"), "no net has 'nosuch'", "live_out")
    refuses(call("graph", "--profile", "nano", "--match", "next_blok"), "did you mean 'next_block'")
    refuses(call("graph", "--profile", "nano", "--match", "nosuch"), "no op has 'nosuch'")


def test_help_imports_no_arrays() -> None:
    code = "import sys; from qgpu_circuit.cli import main; main(['eval', '-h'], "
    code += "standalone_mode=False); sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    assert "version 0" in call("--version").output


def test_emit_refuses_a_base_that_is_too_small(tmp_path: Path) -> None:
    from transformers import Qwen3_5TextConfig

    config = Qwen3_5TextConfig(
        hidden_size=64,
        intermediate_size=96,
        linear_num_key_heads=1,
        linear_num_value_heads=1,
        num_hidden_layers=4,
    )
    config.save_pretrained(tmp_path)
    base = tmp_path / "config.json"
    arguments = ["emit", "--base", str(base), "--no-pad", "-o", str(tmp_path / "out")]
    for name, part in (("nano", "--pad"), ("small", "take a smaller --profile")):
        result = CliRunner().invoke(main, [*arguments, "--profile", name])
        assert result.exit_code == 2
        assert f"machine '{name}' needs layers" in result.output
        assert part in result.output
        assert ("smaller" in result.output) is (name != "nano")
    result = CliRunner().invoke(main, [*arguments, "--profile", "fit"])
    assert result.exit_code == 2
    assert "no machine fits a base 64 wide" in result.output
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import safetensors

    def full(*_: object) -> None:
        raise safetensors.SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(safetensors, "serialize_file", full)
    result = CliRunner().invoke(main, ["emit", "--profile", "nano", "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "No space left on device" in result.output
    assert list(tmp_path.iterdir()) == []
