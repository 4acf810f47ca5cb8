"""A record as a picture. Needs matplotlib (`qgpu-run[plot]`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qgpu_run.errors import RequestError

OURS, TOKENS = "naive format\nover ours, tokens", "token_ratio_geomean"
RATIOS = {
    OURS: TOKENS,
    "sparse engine\nover unmodified class": "sparse_over_transformers",
    "teacher forcing\nover decoding": "verify_over_decode",
    "64 CTAs over 1": "batch64_over_1",
}
RATES = {
    "unmodified class": "transformers_tokens_per_second",
    "sparse engine": "sparse_tokens_per_second",
    "sparse, 64 CTAs": "batch64_tokens_per_second",
}
SWEEPS = {
    "growth_elements": "elements of one CTA",
    "growth_ctas": "CTAs, one after the other",
    "growth_ctas_side_by_side": "CTAs, side by side",
    "growth_program": "statements of the kernel",
}
SUFFIXES = (".svg", ".png", ".pdf")


def plot(data: Mapping[str, Any], path: Path) -> None:
    """Draws a record into a file; its suffix says which kind.

    Raises:
        RequestError: matplotlib is missing, or it cannot write such a file.
    """
    if path.suffix not in SUFFIXES:
        raise RequestError(f"{path}: a plot is one of {', '.join(SUFFIXES)}")
    try:
        import matplotlib
    except ImportError:
        raise RequestError("a plot needs matplotlib: install `qgpu-run[plot]`") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    # The same picture for the same record, letters as letters.
    style: dict[Any, Any] = {"svg.hashsalt": "qgpu", "svg.fonttype": "none", "font.size": 9}
    with matplotlib.rc_context(style):
        figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(12, 3.6))
        ratios = {name: data.get(key) for name, key in RATIOS.items()}
        if data.get(TOKENS):
            ratios[OURS] = 1 / data[TOKENS]
        _bars(left, ratios, "Ratios, measured side by side")
        rates = {name: data.get(key) for name, key in RATES.items()}
        _bars(middle, rates, "Decoded tokens a second")
        _lines(right, data["details"].get("growth", {}))
        figure.suptitle(f"Machine '{data['machine']}', {data['host']['cores']} cores")
        figure.tight_layout()
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, metadata=metadata, dpi=150)
        pyplot.close(figure)


def _bars(axes: Any, values: Mapping[str, float | None], title: str) -> None:
    known = {name: value for name, value in values.items() if value}
    axes.set_title(title)
    if not known:
        axes.set_axis_off()
        return
    bars = axes.barh(list(known), list(known.values()), color="#3b6ea5")
    axes.bar_label(bars, [f"{value:,.1f}" for value in known.values()], padding=3)
    axes.set_xscale("log")
    axes.set_xlim(left=min(1.0, *known.values()) / 2, right=12 * max(known.values()))
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)


def _lines(axes: Any, sweeps: Mapping[str, Any]) -> None:
    axes.set_title("Sparse engine: seconds by size")
    if not sweeps:
        axes.set_axis_off()
        return
    for key, name in SWEEPS.items():
        if key in sweeps:
            axes.loglog(sweeps[key]["sizes"], sweeps[key]["seconds"], marker=".", label=name)
    axes.set_ylim(top=30 * max(max(sweep["seconds"]) for sweep in sweeps.values()))
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
