"""Writes the tables of docs/measurements.md out of the records in docs/measurements/.

    uv run python docs/scripts/measurement_tables.py [--count]

A table stands between `<!-- table NAME -->` and `<!-- end of table -->`. With --count, tokens are
counted anew first: measurements/tokens.json, measurements/passes.json and tokens_measured.md, which
take some minutes. The other records are written by `qgpu-run verify -o`, `fuzz` and `bench -o`.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from qgpu_isa.files import write_text
from qgpu_isa.machine_config import profile
from qgpu_isa.tables import markdown_table
from qgpu_run.benchmark.record import host_line
from qgpu_run.benchmark.record import markdown_table as figures_table
from qgpu_run.launch import MAX_TOKENS
from qgpu_run.measure_passes import PassReport, measure_passes
from qgpu_run.measure_tokens import TokenReport, measure_kernels
from qgpu_run.verify_many import find_kernels

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "measurements.md"
RECORDS = ROOT / "docs" / "measurements"
COUNTED = ("default", "small")
"""Machines whose tokens are counted; the kernels do not fit nano."""

TABLE = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def record(name: str) -> Any:
    """A record as it was written."""
    return json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))


def verify_table() -> str:
    """Kernels that were verified by teacher forcing, by engine."""
    rows = []
    for engine, name in (("transformers", "default-verify"), ("sparse", "default-verify-sparse")):
        kernels = [kernel for kernel in record(name) if kernel["ran"]]
        right = [kernel for kernel in kernels if kernel["exact"] and kernel["expected_ok"]]
        rows.append(
            (
                engine,
                len(kernels),
                len(right),
                f"{sum(kernel['tokens'] for kernel in kernels):,}",
                f"{sum(kernel['setup_tokens'] for kernel in kernels):,}",
                f"{min(kernel['min_margin'] for kernel in kernels):.0f}",
                f"[{name}.json](measurements/{name}.json)",
            )
        )
    heads = ("engine", "kernels", "exact", "decoded tokens", "setup tokens", "smallest margin")
    return markdown_table((*heads, "record"), rows)


def tokens_table() -> str:
    """Tokens of all kernels by machine, then by kind of kernel."""
    data = record("tokens")
    totals = [
        (
            name,
            machine["kernels_counted"],
            f"{machine['token_ratio_geomean']:.3f}",
            f"{machine['floor_share_geomean']:.3f}",
            f"{machine['block_floor_share_geomean']:.3f}",
        )
        for name, machine in data.items()
    ]
    machines = markdown_table(
        ("machine", "kernels", "tokens over naive", "floor over tokens", "with blocks"), totals
    )
    default = data["default"]
    kinds = markdown_table(
        ("kind, on `default`", "kernels", "tokens over naive", "least", "most"),
        (
            (kind, row["kernels"], *(f"{row[key]:.2f}" for key in ("geomean", "least", "most")))
            for kind, row in sorted(default["kinds"].items(), key=lambda item: item[1]["geomean"])
        ),
    )
    return f"{machines}\n{kinds}"


def passes_table() -> str:
    """What each pass of the lowering is worth."""
    data = record("passes")
    return markdown_table(
        ("without", "tokens", "kernels changed", "most", "in"),
        (
            (
                f"`{row['name']}`",
                f"{row['geomean']:.3f}",
                row["changed"],
                f"{row['most']:.2f}",
                row["kernel"],
            )
            for row in data["passes"]
            if row["changed"]
        ),
    )


def bench_table() -> str:
    """The figures of the benchmark, and what they were measured on."""
    data = record("bench")
    return f"{figures_table(data)}\nMedians of {data['repeats']} turns, on: {host_line(data)}.\n"


TABLES: dict[str, Callable[[], str]] = {
    "verify": verify_table,
    "tokens": tokens_table,
    "passes": passes_table,
    "bench": bench_table,
}


def page(text: str) -> str:
    """The page with all its tables as the records have them.

    Raises:
        KeyError: a table has a name that is not known.
    """
    return TABLE.sub(lambda m: f"{m[1]}\n{TABLES[m[2]]().strip()}\n\n{m[3]}", text)


def count() -> None:
    """Counts the tokens of all kernels anew."""
    files = find_kernels([ROOT / "kernels"])
    counted = {}
    for name in COUNTED:
        report = TokenReport(name, tuple(measure_kernels(files, profile(name), MAX_TOKENS)))
        assert report.all_right
        if name == "default":
            report.write(ROOT / "docs" / "tokens_measured.md")
        facts = report.to_dict()
        del facts["kernels"], facts["machine"]
        counted[name] = facts | {"kinds": kinds(report)}
    write("tokens", counted)
    write("passes", summary(measure_passes(files, profile("default"), MAX_TOKENS)))


def kinds(report: TokenReport) -> dict[str, Any]:
    """The ratios by folder."""
    found: dict[str, list[float]] = defaultdict(list)
    for kernel in report.kernels:
        if kernel.ratio is not None:
            found[kernel.kernel.partition("/")[0]].append(kernel.ratio)
    return {
        kind: {
            "kernels": len(ratios),
            "geomean": statistics.geometric_mean(ratios),
            "least": min(ratios),
            "most": max(ratios),
        }
        for kind, ratios in found.items()
    }


def summary(report: PassReport) -> dict[str, Any]:
    """The passes, those that are worth most first, each with the kernel that needs it most."""
    assert report.all_right
    rows = []
    for one in sorted(report.passes, key=lambda one: -(one.geomean or 0)):
        kernel = max(one.ratios, key=one.ratios.__getitem__)
        rows.append(
            {
                "name": one.name,
                "geomean": one.geomean,
                "changed": one.changed,
                "most": one.ratios[kernel],
                "kernel": kernel,
                "not_run": one.not_run,
            }
        )
    return {"machine": report.machine, "kernels": len(report.kernels), "passes": rows}


def write(name: str, data: Any) -> None:
    """Writes a record."""
    write_text(RECORDS / f"{name}.json", json.dumps(data, indent=1) + "\n")


def main(arguments: Iterable[str]) -> None:
    """Brings the page up to date."""
    if "--count" in arguments:
        count()
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main(sys.argv[1:])
