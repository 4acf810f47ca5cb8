"""Text goes around the GPU's layers, which add exactly nothing to it.

A forward pass that reads text alone skips them; one with a GPU token in it runs them. Logits are
identical, since the layers are the identity on text (`qgpu-merge check` proves it). What differs is
that text leaves nothing in the skipped layers' caches, where the plain model keeps the last three
tokens' projections: a launch that begins in a text's cache starts as in a fresh one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from qgpu_run.load_model import LoadedModel

Forward = Callable[..., torch.Tensor]


def skip_text_layers(loaded: LoadedModel) -> Callable[[], None]:
    """Makes a loaded model skip its GPU layers on text, in place.

    Returns:
        a function that undoes it.
    """
    layers = loaded.model.model.layers[: loaded.manifest.circuit_layers]
    skipper = _Skipper(loaded.manifest.text_gate)
    for index, layer in enumerate(layers):
        layer.forward = skipper.around(layer.forward, first=index == 0)

    def undo() -> None:
        for layer in layers:
            # The instance's attribute hides the class's method.
            del layer.forward

    return undo


class _Skipper:
    """What the layers of a model share: whether the pass that is going on reads text alone.

    Args:
        text_gate: the dimension that is other than 0 on text tokens, and on nothing else.
    """

    def __init__(self, text_gate: int) -> None:
        self.text_gate = text_gate
        self.text = False

    def around(self, forward: Forward, *, first: bool) -> Forward:
        """A layer's forward that skips the layer on text; the first layer looks."""

        def run(hidden_states: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            if first:
                self.text = bool((hidden_states[..., self.text_gate] != 0).all())
            return hidden_states if self.text else forward(hidden_states, *args, **kwargs)

        return run
