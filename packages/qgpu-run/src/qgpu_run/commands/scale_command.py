"""`qgpu-run scale`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import click

from qgpu_run.bench_grid import SOURCE, GridReport, bench_grid
from qgpu_run.engines.engine import Engine, RowEngine
from qgpu_run.errors import RequestError
from qgpu_run.open_engine import (
    EngineChoice,
    engine_option,
    json_option,
    model_option,
    processes_option,
    profile_option,
)
from qgpu_run.process_group import ProcessGroup
from qgpu_run.progress import Progress
from qgpu_run.ranks import ALONE, Ranks


@click.command()
@click.option(
    "--ctas",
    type=click.IntRange(1),
    multiple=True,
    default=(1, 4, 16, 64),
    show_default=True,
    help="Numbers of CTAs, the first compared with the others; repeat it.",
)
@processes_option()
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True)
@profile_option()
@model_option()
@engine_option()
@json_option()
def command(
    ctas: tuple[int, ...],
    processes: int,
    repeats: int,
    profile: str | None,
    model: Path | None,
    engine: str,
    as_json: bool,
) -> int:
    """Measure the throughput of an element-wise kernel by the number of its CTAs.

    All CTAs of a launch run side by side, as with `launch --sms`; with --processes, in as many of
    them. Counted are decoded tokens; the median of --repeats runs is shown, taken in turns, and
    results must be right.
    """
    choice = EngineChoice(engine, profile, model)
    bench = GridBench(choice, ctas, repeats)
    if processes > 1:
        from qgpu_run.local_ranks import run_in_processes

        report = run_in_processes(bench.on_ranks, processes)
    else:
        report = bench.run(choice.open(choice.machine(), Progress()), ALONE)
    click.echo(json.dumps(report.to_dict()) if as_json else "\n".join(report.lines()))
    return 0


@dataclass(frozen=True)
class GridBench:
    """The measurement, as each process makes it."""

    choice: EngineChoice
    ctas: tuple[int, ...]
    repeats: int

    def on_ranks(self, group: ProcessGroup) -> GridReport:
        """Measures as one of several processes.

        Raises:
            QgpuError: as `run`, or the engine cannot be opened.
        """
        from qgpu_run.on_ranks import open_on_ranks

        shown = Progress(shown=group.rank == 0)
        return self.run(open_on_ranks(self.choice, self.choice.machine(), group, shown), group)

    def run(self, engine: Engine, ranks: Ranks) -> GridReport:
        """Measures.

        Raises:
            RequestError: the engine has no rows.
            ModelError: a result is wrong.
        """
        from qgpu.raw_kernel import RawModule

        if not isinstance(engine, RowEngine):
            raise RequestError(f"engine {engine.name} runs CTAs one after the other")
        return bench_grid(RawModule(SOURCE).ast, engine, self.ctas, self.repeats, ranks)
