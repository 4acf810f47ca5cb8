"""Engines: what executes the tokens of a launch."""

from qgpu_run.engines.engine import Engine, Prediction, RowEngine

__all__ = ["Engine", "Prediction", "RowEngine"]
