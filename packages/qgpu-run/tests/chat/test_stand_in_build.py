from __future__ import annotations

import sys
from pathlib import Path

import pytest
from qgpu_run.chat import stand_in
from qgpu_run.errors import ModelError


def test_what_a_build_writes_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho lost\necho one >&2\necho two >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("QGPU_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "executable", str(program))
    told: list[str] = []
    with pytest.raises(ModelError, match="nano"):
        stand_in.ensure_stand_in("nano", told.append)
    assert told == ["one", "two"]
    assert capfd.readouterr() == ("", "")
    with pytest.raises(ModelError):
        stand_in.ensure_stand_in("nano")
    assert capfd.readouterr() == ("", "one\ntwo\n")
