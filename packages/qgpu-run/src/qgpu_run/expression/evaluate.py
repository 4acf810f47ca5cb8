"""Evaluates expressions on a device: one launch an operation, all values computed by the model.

The host parses, lays arrays out, starts kernels, and reads results and error words.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from qgpu.device import Device, LaunchStats
from qgpu.device_array import DeviceArray, zeros
from qgpu_ptx.lowering_errors import MachineLimitError

from qgpu_run.errors import RequestError
from qgpu_run.expression.errors import CalculationError, ExpressionError
from qgpu_run.expression.format_value import Value, format_value, to_value
from qgpu_run.expression.graph import Call, Graph, Literal, Node, Operand
from qgpu_run.expression.kernels import kernel
from qgpu_run.expression.places import Places, find_places
from qgpu_run.expression.plan import plan
from qgpu_run.expression.record import (
    LaunchEvent,
    LaunchFinished,
    LaunchRecord,
    LaunchStarted,
)
from qgpu_run.expression.result import Result, shorten
from qgpu_run.launch import OnToken

OnLaunch = Callable[[LaunchEvent], None]

OVERFLOW, ZERO_DIVISOR, NEGATIVE, SHIFT = 1, 2, 3, 4
"""What kernels write into the error word."""


class Calculator:
    """Evaluates expressions, one after the other, on a device.

    Args:
        device: where kernels run; one CTA at a time (`sms=1`).
        on_launch: called when a launch starts and when it has ended.
        on_token: called with the CTA and each token that the model writes.

    Raises:
        RequestError: the device runs CTAs side by side.
    """

    def __init__(
        self,
        device: Device,
        *,
        on_launch: OnLaunch | None = None,
        on_token: OnToken | None = None,
    ) -> None:
        if device.sms != 1:
            raise RequestError("a calculator runs CTAs one after the other: sms=1")
        self.device, self.on_launch, self.on_token = device, on_launch, on_token
        self._error = zeros(1, device=device)

    def evaluate(self, expression: str) -> Result:
        """The value of an expression.

        Raises:
            ExpressionError: it is malformed, types do not fit, or it is too large.
            CalculationError: of these: a kernel found overflow, a divisor of zero and the like.
            ExecutionError: a launch did not end.
        """
        graph = plan(expression)
        return _Evaluation(self, graph, self._error).run()


class _Evaluation:
    """One run over a graph."""

    def __init__(self, calculator: Calculator, graph: Graph, error: DeviceArray) -> None:
        self._calculator, self._graph, self._error = calculator, graph, error
        self._device = calculator.device
        self._places: Places = find_places(graph)
        self._arrays: dict[Node, DeviceArray] = {}
        self._records: list[LaunchRecord] = []
        self._rests: list[tuple[Call, list[int]]] = []
        self._calls = len(graph.calls)

    def run(self) -> Result:
        """Evaluates node by node."""
        node = self._graph.nodes[0]
        try:
            for index, node in enumerate(self._graph.nodes):
                if isinstance(node, Literal):
                    self._array(node).set(np.array(node.values, dtype=np.int32))
                elif isinstance(node, Call):
                    self._launch(node)
                for owner in self._places.done.get(index, ()):
                    self._arrays.pop(owner, None)
            value = self._value(self._graph.root)
        except MachineLimitError as error:
            raise ExpressionError(
                f"machine '{self._device.config.name}' is too small: {error.message}",
                self._graph.source,
                node.span,
            ) from None
        text, notes = self._with_rests(value)
        return Result(self._graph.source, value, text, notes, tuple(self._records))

    def _array(self, node: Node, first: int = 0) -> DeviceArray:
        """The elements of a node from `first` on; its array is made when it is first asked for."""
        place = self._places.of[node]
        array = self._arrays.get(place.owner)
        if array is None:
            shape = (place.owner.type.size,)
            array = DeviceArray(self._device, np.dtype(np.int32), shape)
            self._arrays[place.owner] = array
        return array[place.first + first : place.first + node.type.size]

    def _value(self, node: Node) -> Value:
        return to_value(self._array(node).get().tolist(), node.type)

    def _operand_value(self, operand: Operand) -> Value:
        if operand.first == 0:
            return self._value(operand.node)
        return list(self._array(operand.node, operand.first).get().tolist())

    def _launch(self, call: Call) -> None:
        index = len(self._records)
        text = call.span.text(self._graph.source)
        values = tuple(self._operand_value(operand) for operand in call.operands)
        self._tell(LaunchStarted(index, self._calls, call.kernel, call.operation, text, values))
        most = self._device.config.threads
        block = min(call.threads, most)
        grid = -(-call.threads // block)
        arrays = [self._array(operand.node, operand.first) for operand in call.operands]
        arrays.append(self._array(call))
        rest = None
        if call.has_rest:
            rest = DeviceArray(self._device, np.dtype(np.int32), (call.type.size,))
            rest.set(0)
            arrays.append(rest)
        if call.has_error:
            self._error.set(0)
            arrays.append(self._error)
        started = time.perf_counter()
        stats = self._device.launch(
            kernel(call.kernel),
            grid,
            block,
            (*arrays, *call.numbers),
            on_token=self._calculator.on_token,
        )
        seconds = time.perf_counter() - started
        code = int(self._error.get()[0]) if call.has_error else 0
        problem = explain(code, call, text) if code else None
        record = self._record(call, text, values, (grid, block), stats, seconds, problem)
        self._records.append(record)
        self._tell(LaunchFinished(index, self._calls, record))
        if problem is not None:
            raise CalculationError(problem, self._graph.source, call.span, tuple(self._records))
        if rest is not None and call.operation in ("divide", "mean"):
            self._rests.append((call, rest.get().tolist()))

    def _record(
        self,
        call: Call,
        text: str,
        values: tuple[Value, ...],
        sizes: tuple[int, int],
        stats: LaunchStats,
        seconds: float,
        problem: str | None,
    ) -> LaunchRecord:
        return LaunchRecord(
            kernel=call.kernel,
            operation=call.operation,
            text=text,
            arguments=values,
            value=None if problem else self._value(call),
            grid=sizes[0],
            block=sizes[1],
            tokens=stats.tokens,
            setup_tokens=stats.setup_tokens,
            margin=stats.min_margin,
            exact=stats.exact,
            seconds=seconds,
            error=problem,
        )

    def _tell(self, event: LaunchEvent) -> None:
        if self._calculator.on_launch is not None:
            self._calculator.on_launch(event)

    def _with_rests(self, value: Value) -> tuple[str, tuple[str, ...]]:
        """The text of the value, and notes on divisions that left something over."""
        notes = []
        for call, rest in self._rests:
            if any(rest):
                left = _remainder(call, rest)
                text = shorten(call.span.text(self._graph.source))
                notes.append(left if call is self._graph.root else f"{text} left {left}")
        text = format_value(value)
        return (f"{text} ({'; '.join(notes)})" if notes else text), tuple(notes)


def _remainder(call: Call, rest: Sequence[int]) -> str:
    if call.type.is_scalar:
        return f"remainder {rest[0]}"
    return f"remainders {format_value(to_value(rest, call.type))}"


def explain(code: int, call: Call, text: str) -> str:
    """What an error word says."""
    text = shorten(text)
    if code == OVERFLOW:
        return f"overflow: {text} does not fit 32 bits"
    if code == ZERO_DIVISOR:
        return f"division by zero: {text}"
    if code == SHIFT:
        return f"a shift by other than 0 to 31: {text}"
    if call.operation == "power":
        return f"negative exponent: {text}"
    return f"{call.operation} of a negative number: {text}"
