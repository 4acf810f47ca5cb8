"""Every kernel of the kernels folder, lowered for two machines, gives what its TOML expects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from qgpu_isa import PROFILES, run_launch
from qgpu_ptx import load_launch_spec, parse_ptx
from qgpu_ptx.cuda_to_ptx import COMPILERS, cuda_to_ptx
from qgpu_ptx.ir_verify import verify_ir
from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec
from qgpu_ptx.lower import lower_launch
from qgpu_ptx.memory_layout import read_outputs

ROOT = Path(__file__).parents[3] / "kernels"
KERNELS = sorted(ROOT.glob("*/*.ptx"))
INPUTS = Path(__file__).parent / "inputs"


@pytest.mark.parametrize("profile", ["default", "small"])
@pytest.mark.parametrize("path", KERNELS, ids=[p.stem for p in KERNELS])
def test_kernel(path: Path, profile: str) -> None:
    module = parse_ptx(path.read_text(), path.name)
    spec = load_launch_spec(path.with_suffix(".toml"))
    placed = lower_launch(module, spec, PROFILES[profile], watch=lambda _, ir: verify_ir(ir))
    machine, _ = run_launch(placed.launch())
    found = read_outputs(machine.state.memory, placed.layout)
    for name, values in spec.expected.items():
        assert found[name] == list(values), name


def test_there_are_kernels() -> None:
    assert len(KERNELS) >= 60


EXPECTED = json.loads((INPUTS / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_input(name: str) -> None:
    """PTX that is known to break readers and emulators."""
    case = EXPECTED[name]
    module = parse_ptx((INPUTS / name).read_text(), name)
    argument = ArrayArgument("p", "u32", tuple(case["words"]), output=True)
    block = (case.get("block", 1), 1, 1)
    spec = LaunchSpec(module.entries[0].name, (1, 1, 1), block, (argument,), {})
    placed = lower_launch(module, spec, PROFILES["default"])
    machine, _ = run_launch(placed.launch())
    assert read_outputs(machine.state.memory, placed.layout)["p"] == case["expected"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiler", "options"),
    [*((c.name, ()) for c in COMPILERS), ("nvrtc", ("-G",)), ("clang", ("-O0",))],
)
def test_kernels_from_every_compiler(compiler: str, options: tuple[str, ...]) -> None:
    if next(c for c in COMPILERS if c.name == compiler).version() is None:
        pytest.skip(f"{compiler} is not installed")
    for path in KERNELS:
        spec = load_launch_spec(path.with_suffix(".toml"))
        source = cuda_to_ptx(path.with_suffix(".cu"), compiler=compiler, options=options)
        placed = lower_launch(parse_ptx(source.text, path.name), spec, PROFILES["default"])
        machine, _ = run_launch(placed.launch())
        found = read_outputs(machine.state.memory, placed.layout)
        for name, values in spec.expected.items():
            assert found[name] == list(values), path.stem
