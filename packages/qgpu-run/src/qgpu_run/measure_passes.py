"""What each pass of the lowering is worth: tokens without it over tokens with all of them.

All launches run on the reference interpreter and must give what their launch specs expect.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from qgpu_isa.errors import QgpuError
from qgpu_isa.interpreter import run_launch
from qgpu_isa.machine_config import MachineConfig
from qgpu_ptx.diagnostics import QgpuPtxError
from qgpu_ptx.kernel_source import read_module
from qgpu_ptx.launch_options import LaunchOptions
from qgpu_ptx.launch_spec import LaunchSpec
from qgpu_ptx.passes import SWITCHES
from qgpu_ptx.ptx_ast import Module

from qgpu_run.lowering import lower_kernel


@dataclass
class MeasuredPass:
    """A pass that was left out.

    Attributes:
        name, what: of `SWITCHES`.
        ratios: tokens without it over tokens with it, by kernel.
        not_run: kernels that do not fit the machine, or do not end, without it.
        wrong: kernels that gave something else without it.
    """

    name: str
    what: str
    ratios: dict[str, float] = field(default_factory=dict)
    not_run: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def geomean(self) -> float | None:
        """Of the ratios."""
        return statistics.geometric_mean(self.ratios.values()) if self.ratios else None

    @property
    def changed(self) -> int:
        """Kernels whose number of tokens it changes."""
        return sum(ratio != 1 for ratio in self.ratios.values())

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"geomean": self.geomean, "changed": self.changed}


@dataclass
class PassReport:
    """All passes on one machine, over the kernels that run on it."""

    machine: str
    kernels: list[str]
    passes: list[MeasuredPass]

    @property
    def all_right(self) -> bool:
        """Whether results were right throughout."""
        return not any(one.wrong for one in self.passes)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return {
            "machine": self.machine,
            "kernels": self.kernels,
            "passes": [one.to_dict() for one in self.passes],
        }

    def lines(self) -> Iterator[str]:
        """A table, the passes that are worth most first."""
        yield f"{'without':17}{'tokens':>8}{'changed':>9}{'at most':>9}{'not run':>9}  {'':24}"
        for one in sorted(self.passes, key=lambda one: -(one.geomean or 0)):
            most = max(one.ratios, key=one.ratios.__getitem__, default="")
            worst = f"{one.ratios[most]:9.2f}" if most else f"{'-':>9}"
            mean = f"{one.geomean:8.3f}" if one.geomean else f"{'-':>8}"
            wrong = f"  WRONG: {', '.join(one.wrong)}" if one.wrong else ""
            named = most if one.changed else ""
            yield (
                f"{one.name:17}{mean}{one.changed:9}{worst}{len(one.not_run):9}  {named:26}"
                f"{one.what}{wrong}"
            )
        yield (
            f"geometric means over {len(self.kernels)} kernels on machine '{self.machine}', with "
            "all passes = 1"
        )


def measure_passes(
    files: Iterable[Path],
    config: MachineConfig,
    max_tokens: int,
    names: Sequence[str] = tuple(SWITCHES),
) -> PassReport:
    """Leaves out each pass in turn, for each kernel that runs with all of them.

    Kernels that do not run with all passes are not counted.
    """
    report = PassReport(config.name, [], [MeasuredPass(name, SWITCHES[name]) for name in names])
    for file in files:
        kernel = f"{file.parent.name}/{file.stem}"
        try:
            module = read_module(file)
            spec = LaunchOptions().launch_spec(file, module)
            tokens, right = _run(module, spec, config, (), max_tokens)
        except (QgpuError, QgpuPtxError):
            continue
        report.kernels.append(kernel)
        for one in report.passes:
            try:
                without, right = _run(module, spec, config, (one.name,), max_tokens)
            except (QgpuError, QgpuPtxError):
                one.not_run.append(kernel)
                continue
            one.ratios[kernel] = without / tokens
            if not right:
                one.wrong.append(kernel)
    return report


def _run(
    module: Module,
    spec: LaunchSpec,
    config: MachineConfig,
    without: Sequence[str],
    max_tokens: int,
) -> tuple[int, bool]:
    request = lower_kernel(module, spec, config, without=without)
    machine, steps = run_launch(request.launch, max_tokens)
    return len(steps), not request.unexpected(request.read_outputs(machine.state.memory))
