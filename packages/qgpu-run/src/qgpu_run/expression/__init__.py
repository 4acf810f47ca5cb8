"""Arithmetic for a chat model: an expression becomes launches of ready-made kernels.

    from qgpu import Device
    from qgpu_run.expression import Calculator

    Calculator(Device()).evaluate("sum([12, 7, 30])").text  # "49"

docs/expressions.md is about the language.
"""

from qgpu_run.expression.errors import CalculationError, ExpressionError
from qgpu_run.expression.evaluate import Calculator
from qgpu_run.expression.record import LaunchEvent, LaunchFinished, LaunchRecord, LaunchStarted
from qgpu_run.expression.result import Result

__all__ = [
    "CalculationError",
    "Calculator",
    "ExpressionError",
    "LaunchEvent",
    "LaunchFinished",
    "LaunchRecord",
    "LaunchStarted",
    "Result",
]
