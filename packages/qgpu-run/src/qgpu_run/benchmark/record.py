"""What a benchmark found: figures by name, how each was found, and on what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Figure:
    """One number of the table.

    Attributes:
        key: its name in JSON.
        what: what it is, in words.
        digits: digits behind the point in tables.
        unit: behind the number.
        scale: what the number is divided by in tables.
    """

    key: str
    what: str
    digits: int = 1
    unit: str = ""
    scale: float = 1.0

    def text(self, value: float | None) -> str:
        """A value of it in a table."""
        if value is None:
            return "-"
        return f"{value / self.scale:,.{self.digits}f}{self.unit and ' ' + self.unit}"


FIGURES = (
    Figure("token_ratio_geomean", "decoded tokens over the naive format's, geometric mean", 3),
    Figure("sparse_over_transformers", "tokens a second, sparse engine over unmodified class"),
    Figure("transformers_tokens_per_second", "decoded, unmodified class", 2, "/s"),
    Figure("sparse_tokens_per_second", "decoded, sparse engine", 0, "/s"),
    Figure("verify_over_decode", "teacher forcing over decoding, unmodified class"),
    Figure("sparse_verify_over_decode", "teacher forcing over decoding, sparse engine"),
    Figure("batch64_over_1", "tokens a second of 64 CTAs side by side over one, sparse"),
    Figure("batch64_tokens_per_second", "64 CTAs", 0, "/s"),
    Figure("batch1_tokens_per_second", "one CTA of the same kernel", 0, "/s"),
    Figure("instructions_per_second", "machine instructions of threads, 64 CTAs", 0, "/s"),
    Figure("batch1_instructions_per_second", "the same, one CTA", 0, "/s"),
    Figure("emit_seconds", "`qgpu-circuit emit`", 1, "s"),
    Figure("emit_peak_bytes", "memory of it at most", 0, "MiB", 2**20),
    Figure("cu_to_image_ms", "50 lines of CUDA to an image, warm", 0, "ms"),
    Figure("load_seconds", "load the sparse engine from the cache", 2, "s"),
    Figure("first_token_seconds", "`launch` from its start to the first token, sparse", 2, "s"),
    Figure("peak_bytes", "memory of that launch at most", 0, "MiB", 2**20),
    Figure("growth_elements", "exponent of seconds by elements of one CTA", 2),
    Figure("growth_ctas", "exponent of seconds by CTAs, one after the other", 2),
    Figure("growth_ctas_side_by_side", "exponent of seconds by CTAs, side by side", 2),
    Figure("growth_program", "exponent of seconds by statements of the kernel", 2),
)
"""All numbers of the table, in its order."""


@dataclass
class BenchRecord:
    """A run of the benchmark.

    Attributes:
        machine: name of the profile.
        quick: few repeats and few kernels.
        repeats: turns of what is compared.
        host: what it ran on.
        figures: the numbers of the table.
        details: by row, how they came about.
        skipped: by row, why it was not measured.
        load_average: before and after.
        seconds: of the whole run.
    """

    machine: str
    quick: bool
    repeats: int
    host: Mapping[str, Any]
    figures: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    load_average: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON values; a number that was not measured is null."""
        return {
            "machine": self.machine,
            "quick": self.quick,
            "repeats": self.repeats,
            **{figure.key: self.figures.get(figure.key) for figure in FIGURES},
            "seconds": round(self.seconds, 1),
            "load_average": self.load_average,
            "host": dict(self.host),
            "skipped": self.skipped,
            "details": self.details,
        }


def host_line(data: Mapping[str, Any]) -> str:
    """The machine of a record in one line."""
    host = data["host"]
    versions = ", ".join(f"{name} {number}" for name, number in host["versions"].items())
    before, after = data["load_average"]
    return (
        f"{host['cpu']}, {host['cores']} cores, {host['memory_bytes'] / 2**30:.0f} GiB, "
        f"{host['system']}; {versions}; load average {before} before and {after} after"
    )


def table_lines(data: Mapping[str, Any]) -> Iterator[str]:
    """The table of a record for a terminal."""
    width = max(len(figure.key) for figure in FIGURES)
    for figure in FIGURES:
        value = data.get(figure.key)
        if value is not None:
            yield f"{figure.key:{width}}  {figure.text(value):>14}  {figure.what}"
    for row, reason in data["skipped"].items():
        yield f"{row}: not measured: {reason}"
    quick = ", quick" if data["quick"] else ""
    yield f"machine '{data['machine']}'{quick}, {data['seconds']:.0f} s; {host_line(data)}"


def markdown_table(data: Mapping[str, Any]) -> str:
    """The table of a record for a page."""
    rows = [
        f"| `{figure.key}` | {figure.what} | {figure.text(data.get(figure.key))} |"
        for figure in FIGURES
    ]
    return "\n".join(["| JSON key | what | value |", "|---|---|---:|", *rows, ""])
