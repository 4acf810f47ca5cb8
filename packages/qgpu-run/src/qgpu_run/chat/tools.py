"""The two tools that a model has: expressions, and kernels of its own."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import qgpu
from qgpu_isa.errors import QgpuError
from qgpu_ptx.diagnostics import QgpuPtxError

from qgpu_run.chat.cuda_launch import run_cuda
from qgpu_run.chat.questions.problems import ERROR
from qgpu_run.chat.tool_calls import MalformedCall, ToolCall
from qgpu_run.expression import (
    CalculationError,
    Calculator,
    ExpressionError,
    LaunchEvent,
)

NORMAL, ADVANCED = "normal", "advanced"
MODES = (NORMAL, ADVANCED)

CALCULATE, RUN_CUDA = "calculate", "run_cuda"

LARGEST_RESPONSE = 2000
"""Characters of a result that go back to the model."""


def _tool(name: str, text: str, parameters: Mapping[str, str]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": text,
            "parameters": {
                "type": "object",
                "properties": {
                    parameter: {"type": "string", "description": about}
                    for parameter, about in parameters.items()
                },
                "required": list(parameters),
            },
        },
    }


TOOLS: dict[str, list[dict[str, Any]]] = {
    NORMAL: [
        _tool(
            CALCULATE,
            "Evaluates an expression of 32-bit integers, vectors and matrices on the GPU.",
            {
                "expression": "such as 3 * (4 + 5), sum([1, 2, 3]), sort([3, 1, 2]), "
                "[1, 2] @ [3, 4], transpose([[1, 2], [3, 4]]), gcd(12, 18), 2 ** 10"
            },
        )
    ],
    ADVANCED: [
        _tool(
            RUN_CUDA,
            "Compiles a CUDA kernel, runs it on the GPU, and returns the arrays that it wrote.",
            {
                "source": "CUDA C++ with one __global__ kernel",
                "launch": "name<<<grid, block>>>([1, 2, 3], 7, out[3]): a list is an array to "
                "read, out[n] an array of n zeros that is returned",
            },
        )
    ],
}
"""Definitions of the tools by mode, as chat templates take them."""


@dataclass(frozen=True)
class CallRecord:
    """A tool call that was carried out.

    Attributes:
        tool: its name.
        arguments: what the model wrote.
        response: what went back to it.
        failed: whether that is an error.
        exact: whether all launches were as the reference interpreter's; None if not compared, or
            if nothing ran.
        launches: what ran, as plain JSON values.
        seconds: what it took.
    """

    tool: str
    arguments: dict[str, str]
    response: str
    failed: bool
    exact: bool | None
    launches: tuple[dict[str, Any], ...]
    seconds: float

    @property
    def tokens(self) -> int:
        """Tokens that the GPU wrote."""
        return sum(launch["tokens"] for launch in self.launches)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "tool": self.tool,
            **self.arguments,
            "response": self.response,
            "failed": self.failed,
            "exact": self.exact,
            "launches": list(self.launches),
            "seconds": round(self.seconds, 3),
        }


class Tools:
    """Carries out calls on a device.

    Args:
        device: where launches run: a recurrent state of its own, which the conversation's is no
            part of.
        on_launch: called as the launches of an expression start and end.
    """

    def __init__(
        self, device: qgpu.Device, *, on_launch: Callable[[LaunchEvent], None] | None = None
    ) -> None:
        self.device = device
        self._calculator = Calculator(device, on_launch=on_launch)

    def run(self, call: ToolCall | MalformedCall, mode: str) -> CallRecord:
        """Carries out a call; what is wrong with it becomes the response."""
        began = time.perf_counter()
        try:
            if isinstance(call, MalformedCall):
                return _failed("", {"text": call.text}, call.reason, began)
            known = {tool["function"]["name"]: tool["function"] for tool in TOOLS[mode]}
            if call.name not in known:
                reason = f"there is no tool '{call.name}'; there is {', '.join(known)}"
                return _failed(call.name, dict(call.arguments), reason, began)
            wanted = known[call.name]["parameters"]["required"]
            if set(call.arguments) != set(wanted):
                reason = f"{call.name} takes {' and '.join(wanted)}"
                return _failed(call.name, dict(call.arguments), reason, began)
            if call.name == CALCULATE:
                return self._calculate(call, began)
            return self._cuda(call, began)
        except (QgpuError, QgpuPtxError) as error:
            launches = error.launches if isinstance(error, CalculationError) else ()
            records = tuple(launch.to_dict() for launch in launches)
            assert isinstance(call, ToolCall)
            return _failed(call.name, dict(call.arguments), _reason(error), began, records)

    def _calculate(self, call: ToolCall, began: float) -> CallRecord:
        result = self._calculator.evaluate(call.arguments["expression"].strip())
        return CallRecord(
            call.name,
            dict(call.arguments),
            _shortened(result.text),
            False,
            result.exact,
            tuple(launch.to_dict() for launch in result.launches),
            time.perf_counter() - began,
        )

    def _cuda(self, call: ToolCall, began: float) -> CallRecord:
        result = run_cuda(self.device, call.arguments["source"], call.arguments["launch"])
        stats = result.stats
        launch = {
            "kernel": call.arguments["launch"].partition("<")[0].strip(),
            "value": result.arrays,
            "tokens": stats.tokens,
            "setup_tokens": stats.setup_tokens,
            "exact": stats.exact,
        }
        return CallRecord(
            call.name,
            dict(call.arguments),
            _shortened(result.text),
            False,
            stats.exact,
            (launch,),
            time.perf_counter() - began,
        )


def _reason(error: QgpuError | QgpuPtxError) -> str:
    """An error as a model needs it: an expression without the marks of the place in it."""
    if isinstance(error, ExpressionError):
        return error.message
    return error.render() if isinstance(error, QgpuPtxError) else str(error).strip()


def _failed(
    tool: str,
    arguments: dict[str, str],
    reason: str,
    began: float,
    launches: tuple[dict[str, Any], ...] = (),
) -> CallRecord:
    exact = [launch["exact"] for launch in launches]
    same = None if not exact or None in exact else all(exact)
    response = ERROR + _shortened(reason)
    seconds = time.perf_counter() - began
    return CallRecord(tool, arguments, response, True, same, launches, seconds)


def _shortened(text: str) -> str:
    text = re.sub(r"^error: ", "", text)
    if len(text) <= LARGEST_RESPONSE:
        return text
    return f"{text[:LARGEST_RESPONSE]} ... ({len(text)} characters in all)"
