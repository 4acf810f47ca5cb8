"""Decoded tokens of many kernels beside the naive lowering's: a table, and its geometric mean.

The launches run on the reference interpreter of the machine; no weights are needed.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from qgpu_isa.errors import QgpuError
from qgpu_isa.files import write_text
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.token_floor import TokenFloor, run_for_floor
from qgpu_ptx.diagnostics import QgpuPtxError
from qgpu_ptx.launch_options import LaunchOptions

from qgpu_run.kernel_to_launch import kernel_to_request


@dataclass(frozen=True)
class MeasuredKernel:
    """What one kernel's launch takes.

    Attributes:
        kernel: folder and name.
        tokens: decoded tokens; None if the kernel was not lowered or not run to its end.
        baseline_tokens: tokens under the naive lowering; None if the PTX does not run.
        ratio: the one over the other; None if either is missing.
        ok: the outputs are those of the launch spec; None if nothing ran.
        problem: why it was not lowered or run, or which output differs.
        floor: the bits that had to travel back, if it ran.
    """

    kernel: str
    tokens: int | None = None
    baseline_tokens: int | None = None
    ratio: float | None = None
    ok: bool | None = None
    problem: str = ""
    floor: TokenFloor | None = None

    @property
    def floor_share(self) -> float | None:
        """The tokens that these bits would fill, over the tokens that there were."""
        return self.floor.floor_tokens / self.tokens if self.floor and self.tokens else None

    @property
    def block_floor_share(self) -> float | None:
        """The same where every execution of a block takes a token of its own."""
        return self.floor.block_floor_tokens / self.tokens if self.floor and self.tokens else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        data = asdict(self) | {
            "floor_share": self.floor_share,
            "block_floor_share": self.block_floor_share,
        }
        if self.floor is not None:
            data["floor"] |= {"bits": self.floor.bits, "floor_tokens": self.floor.floor_tokens}
        return data


@dataclass(frozen=True)
class TokenReport:
    """All kernels measured on one machine."""

    machine: str
    kernels: tuple[MeasuredKernel, ...]

    @property
    def ratios(self) -> list[float]:
        """The ratios of the kernels that have one."""
        return [kernel.ratio for kernel in self.kernels if kernel.ratio is not None]

    @property
    def geomean(self) -> float | None:
        """The geometric mean of the ratios, None without any."""
        return _geomean(self.ratios)

    @property
    def floor_share_geomean(self) -> float | None:
        """How much of the tokens is what had to travel back, as a geometric mean."""
        return _geomean(kernel.floor_share for kernel in self.kernels)

    @property
    def block_floor_share_geomean(self) -> float | None:
        """The same where every execution of a block takes a token of its own."""
        return _geomean(kernel.block_floor_share for kernel in self.kernels)

    @property
    def all_right(self) -> bool:
        """Whether no kernel that ran gave a wrong result."""
        return not any(kernel.ok is False for kernel in self.kernels)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return {
            "machine": self.machine,
            "kernels": [kernel.to_dict() for kernel in self.kernels],
            "kernels_counted": len(self.ratios),
            "token_ratio_geomean": self.geomean,
            "floor_share_geomean": self.floor_share_geomean,
            "block_floor_share_geomean": self.block_floor_share_geomean,
        }

    def summary(self) -> list[str]:
        """Lines under the table: the mean, and what is not in it."""
        mean = "no ratio" if self.geomean is None else f"geometric mean {self.geomean:.3f}"
        lines = [f"{mean} over {len(self.ratios)} kernels on machine '{self.machine}'"]
        bits, blocks = self.floor_share_geomean, self.block_floor_share_geomean
        if bits is not None and blocks is not None:
            lines.append(
                f"of the tokens, the bits that had to travel back would fill {bits:.3f}, and "
                f"{blocks:.3f} with a token for every block that runs (geometric means)"
            )
        missing = [kernel for kernel in self.kernels if kernel.ratio is None]
        lines += [f"not counted: {kernel.kernel}: {kernel.problem}" for kernel in missing]
        return lines

    def to_markdown(self) -> str:
        """The report as a page."""
        rows = [
            f"| {kernel.kernel} | {_text(kernel.tokens)} | {_text(kernel.baseline_tokens)} | "
            f"{_ratio(kernel.ratio)} | {_bits(kernel)} | {_ratio(kernel.floor_share)} | "
            f"{_ratio(kernel.block_floor_share)} | {_state(kernel)} |"
            for kernel in self.kernels
        ]
        mean, *more = self.summary()
        return "\n".join(
            [
                "# Tokens of the kernels",
                "",
                f"Written by `qgpu-run tokens --profile {self.machine} -o FILE`. Decoded tokens on",
                "the reference interpreter; beside them the tokens of the naive lowering that",
                "`qgpu_isa.baseline` defines and `qgpu_ptx.baseline_program` builds. Then the bits",
                "that had to travel back, what share of the tokens they would fill, and what share",
                "with a token for every block that runs: see [tokens.md](tokens.md).",
                "",
                f"**{mean[0].upper()}{mean[1:]}.**",
                "",
                "| Kernel | Tokens | Naive | Ratio | Bits | Floor | With blocks | Results |",
                "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
                *rows,
                *([""] if more else []),
                *(f"- {line[0].upper()}{line[1:]}." for line in more),
                "",
            ]
        )

    def write(self, path: Path) -> None:
        """Writes the page, beside and renamed."""
        write_text(path, self.to_markdown())


def measure_kernels(
    files: Iterable[Path], config: MachineConfig, max_tokens: int
) -> Iterator[MeasuredKernel]:
    """Measures kernel after kernel; one that cannot be lowered is reported, not raised."""
    for file in files:
        yield _measure(file, config, max_tokens)


def _measure(file: Path, config: MachineConfig, max_tokens: int) -> MeasuredKernel:
    name = f"{file.parent.name}/{file.stem}"
    try:
        request = kernel_to_request(file, LaunchOptions(), config)
        run = run_for_floor(request.launch, max_tokens)
    except (QgpuError, QgpuPtxError) as error:
        return MeasuredKernel(name, problem=str(error).splitlines()[0])
    outputs = request.read_outputs(run.machine.state.memory)
    problems = request.unexpected(outputs)
    if not request.expected:
        problems = ["the launch spec expects nothing"]
    tokens, baseline = len(run.steps), request.baseline_tokens
    if baseline is None:
        problems.append("the PTX interpreter does not run it to its end")
    return MeasuredKernel(
        name,
        tokens,
        baseline,
        None if baseline is None else tokens / baseline,
        not problems,
        "; ".join(problems),
        run.floor,
    )


def table_line(kernel: MeasuredKernel) -> str:
    """One kernel for people."""
    return (
        f"{kernel.kernel:32} {_text(kernel.tokens):>7} {_text(kernel.baseline_tokens):>7} "
        f"{_ratio(kernel.ratio):>7} {_bits(kernel):>8} {_ratio(kernel.floor_share):>7} "
        f"{_ratio(kernel.block_floor_share):>7}  {_state(kernel)}"
    )


TABLE_HEAD = (
    f"{'kernel':32} {'tokens':>7} {'naive':>7} {'ratio':>7} {'bits':>8} {'floor':>7} {'blocks':>7}"
)
"""What stands above the lines: floor and blocks are shares of the tokens."""


def _geomean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.geometric_mean(known) if known else None


def _bits(kernel: MeasuredKernel) -> str:
    return "-" if kernel.floor is None else f"{kernel.floor.bits:.0f}"


def _state(kernel: MeasuredKernel) -> str:
    if kernel.ok is None:
        return f"not run: {kernel.problem}"
    return "ok" if kernel.ok else f"WRONG: {kernel.problem}"


def _text(number: int | None) -> str:
    return "-" if number is None else str(number)


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"
