"""Small inputs that are known to break readers and emulators of PTX."""

import json
from array import array
from pathlib import Path

import pytest
from qgpu_ptx import parse_ptx, run_ptx

INPUTS = Path(__file__).parent / "inputs"
CASES = json.loads((INPUTS / "expected.json").read_text())


def test_every_input_has_an_expected_result() -> None:
    assert {path.name for path in INPUTS.glob("*.ptx")} == set(CASES)


@pytest.mark.parametrize("name", sorted(CASES))
def test_input_gives_the_expected_words(name: str) -> None:
    case = CASES[name]
    module = parse_ptx((INPUTS / name).read_text(), name)
    assert parse_ptx(str(module)) == module
    outcome = run_ptx(module, None, 1, case.get("block", 1), [array("I", case["words"])])
    assert list(outcome["p"]) == case["expected"], case["why"]


@pytest.mark.parametrize("version", ["1.0", "8.4", "9.9", "12"])
def test_any_version_is_accepted(version: str) -> None:
    text = (INPUTS / "ptx_version.ptx").read_text().replace("7.0", version)
    assert parse_ptx(text).version == version
