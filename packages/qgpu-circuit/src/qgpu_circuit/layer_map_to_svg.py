"""A layer map as a picture: parts down, layers across."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from qgpu_circuit.layer_map import PARTS, LayerMap

CELL, ROW = 25, 24
LEFT, RIGHT = 118, 14
CHART = 92
"""Height of the columns that show how full each layer is."""
TOP = 58
GAP = 26
MIXER_WIDTH = 8
"""A cell's left strip is the layer's mixer (heads), the rest behind it its MLP (neurons)."""

STYLE = """
svg { --paper: #ffffff; --ink: #1f2328; --faint: #656d76; --line: #d8dee4; --cell: #f4f6f8;
  --neuron: #0b7a75; --clear: #9ccfcb; --head: #c2570c; }
@media (prefers-color-scheme: dark) { svg { --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1;
  --line: #30363d; --cell: #161b22; --neuron: #39c5bb; --clear: #1f6f6b; --head: #f0883e; } }
text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
text { fill: var(--ink); }
.title { font-size: 15px; font-weight: 600; }
.small { font-size: 11px; fill: var(--faint); }
.layer { text-anchor: middle; }
.side { text-anchor: end; }
.paper { fill: var(--paper); } .cell { fill: var(--cell); } .line { stroke: var(--line); }
.neuron { fill: var(--neuron); } .clear { fill: var(--clear); } .head { fill: var(--head); }
"""


def layer_map_to_svg(shown: LayerMap) -> str:
    """The picture as an SVG document; the same map gives the same text."""
    width = LEFT + CELL * shown.layers + RIGHT
    height = TOP + CHART + GAP + ROW * (len(PARTS)) + 58
    title = f"Machine {shown.profile}: what stands in its {shown.layers} layers"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="t d">',
        f'<title id="t">{escape(title)}</title>',
        f'<desc id="d">{escape(" ".join(_sentences(shown)))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}" rx="6"/>',
        _text(14, 24, title, "title"),
        *_columns(shown, TOP),
        *_grid(shown, TOP + CHART + GAP),
        *_legend(shown, height - 20),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _sentences(shown: LayerMap) -> Iterator[str]:
    for name, part in shown.parts.items():
        if part.layers:
            yield f"{name}: layers {part.layers[0]} to {part.layers[-1]}."


def _columns(shown: LayerMap, top: int) -> Iterator[str]:
    """How much of each layer's budget is in use: heads, and neurons with those that clear."""
    bottom = top + CHART
    yield _text(LEFT - 8, top + 5, "100 %", "small side")
    yield _text(LEFT - 8, bottom, "in use", "side")
    right = LEFT + CELL * shown.layers
    for y in (top, top + CHART / 2, bottom):
        yield f'<path class="line" d="M{LEFT} {y:g}H{right}"/>'
    for layer in range(shown.layers):
        x = LEFT + CELL * layer
        heads = CHART * shown.heads(layer) / shown.head_budget
        computing = CHART * shown.neurons(layer) / shown.neuron_budget
        clearing = CHART * shown.clearing[layer] / shown.neuron_budget
        yield "<g>"
        yield (
            f"<title>layer {layer}: {shown.heads(layer)} heads, {shown.neurons(layer)} neurons "
            f"that compute, {shown.clearing[layer]} that clear</title>"
        )
        yield _rect(x + 1, bottom - heads, MIXER_WIDTH, heads, "head")
        at, wide = x + 2 + MIXER_WIDTH, CELL - MIXER_WIDTH - 3
        yield _rect(at, bottom - computing, wide, computing, "neuron")
        yield _rect(at, bottom - computing - clearing, wide, clearing, "clear")
        yield "</g>"
        yield _text(x + CELL / 2, bottom + 16, str(layer), "small layer")
    yield _text(LEFT - 8, bottom + 16, "layer", "small side")


def _grid(shown: LayerMap, top: int) -> Iterator[str]:
    """A row a part; the stronger the colour, the more of it stands in that layer."""
    for row, (name, part) in enumerate(shown.parts.items()):
        y = top + ROW * row
        yield _text(LEFT - 8, y + 16, name, "side")
        yield _rect(LEFT, y + 1, CELL * shown.layers, ROW - 2, "cell")
        for layer in part.layers:
            x = LEFT + CELL * layer
            heads, neurons = part.heads.get(layer, 0), part.neurons.get(layer, 0)
            yield "<g>"
            yield f"<title>{name}, layer {layer}: {heads} heads, {neurons} neurons</title>"
            if heads:
                strength = _strength(heads, shown.head_budget)
                yield _rect(x + 1, y + 1, MIXER_WIDTH, ROW - 2, "head", strength)
            if neurons:
                at, wide = x + 2 + MIXER_WIDTH, CELL - MIXER_WIDTH - 3
                strength = _strength(neurons, shown.neuron_budget)
                yield _rect(at, y + 1, wide, ROW - 2, "neuron", strength)
            yield "</g>"


def _strength(count: int, budget: int) -> float:
    """Opacity of a count: from 0.3 for one to 1 for all there are, by its logarithm."""
    return 0.3 + 0.7 * math.log(count) / math.log(budget)


def _legend(shown: LayerMap, y: int) -> Iterator[str]:
    entries = (
        ("head", f"DeltaNet heads (of {shown.head_budget})"),
        ("neuron", f"neurons that compute (of {shown.neuron_budget})"),
        ("clear", "neurons that clear"),
    )
    for i, (kind, meaning) in enumerate(entries):
        x = LEFT + 240 * i
        yield _rect(x, y - 10, 12, 12, kind)
        yield _text(x + 18, y, meaning, "small")


def _rect(
    x: float, y: float, width: float, height: float, kind: str, strength: float | None = None
) -> str:
    opacity = "" if strength is None else f' opacity="{strength:.2f}"'
    return (
        f'<rect class="{kind}" x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" '
        f'height="{height:.4g}"{opacity}/>'
    )


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'
