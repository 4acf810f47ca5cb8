"""A device: a model, its recurrent state, and the arrays in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from qgpu_isa.interpreter import Launch
from qgpu_isa.interpreter.machine import MAX_CTAS
from qgpu_ptx.diagnostics import LaunchError
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.lower import LoweredKernel, lower
from qgpu_ptx.memory_layout import WORD_BYTES
from qgpu_run.engines.checked_engine import CheckedEngine
from qgpu_run.engines.engine import Engine
from qgpu_run.errors import RequestError
from qgpu_run.launch import MAX_TOKENS, OnToken
from qgpu_run.launch_request import LaunchRequest, OutputArray
from qgpu_run.open_engine import SERVER_TIMEOUT, EngineChoice
from qgpu_run.progress import Progress
from qgpu_run.session import Session

from qgpu.arguments import bind_arguments, launch_sizes
from qgpu.device_array import DeviceArray
from qgpu.host_data import Array, from_words, to_words
from qgpu.memory_pool import MemoryPool
from qgpu.place_arguments import place_arguments

if TYPE_CHECKING:
    from qgpu.raw_kernel import RawKernel


@dataclass(frozen=True)
class LaunchStats:
    """What a launch took.

    Attributes:
        tokens: tokens that the model wrote.
        setup_tokens: tokens that the host wrote.
        min_margin: smallest distance of a chosen token's logit from the second, in bf16 steps.
        exact: on a device that checks, whether all tokens and all of memory are those of the
            reference interpreter.
        read_back_tokens: tokens that the model wrote to tell the results, on a device whose memory
            cannot be looked at.
    """

    tokens: int
    setup_tokens: int
    min_margin: float
    exact: bool | None = None
    read_back_tokens: int | None = None


class Device:
    """Runs kernels, one after the other in one recurrent state.

    As a context it is the current device: `with qgpu.Device(engine="transformers"): ...`.

    Attributes:
        engine: runs the launches; whoever uses it otherwise calls `reset` afterwards.

    Args:
        profile: machine; default: `default`, or that of `model`.
        engine: sparse, transformers, interpreter or server.
        model: folder of a merged checkpoint; default: the profile's, built if it is missing.
            With a server, the name by which it knows the model.
        sms: CTAs that run at a time, each in a batch row of its own.
        assume_independent: with several SMs, does not look first whether CTAs depend on each other.
        max_tokens: most tokens that a launch may write.
        torch_device: of the transformers engine.
        check: compares every launch with the reference interpreter, as `launch --check` does, but
            goes on after a difference; `LaunchStats.exact` says what came of it.
        wrap_engine: called once with the engine; what it returns is run in its place, so that a
            program can look on or end a launch. A wrapper is one row: sms=1.
        around_launch: gives a context for each launch, which is entered right before it.
        server: address of the server. Each launch begins a stream with all that arrays hold, and
            the model writes out the arrays behind it.
        timeout: seconds to wait for each piece of a server's answer.

    Raises:
        ModelError, RequestError: there is no such model, or it cannot be built.
        ServerError: there is no such server, or its model is no GPU.
    """

    def __init__(
        self,
        profile: str | None = None,
        engine: str = "sparse",
        model: str | Path | None = None,
        *,
        sms: int = 1,
        assume_independent: bool = False,
        max_tokens: int = MAX_TOKENS,
        torch_device: str = "cpu",
        check: bool = False,
        wrap_engine: Callable[[Engine], Engine] | None = None,
        around_launch: Callable[[LaunchRequest], AbstractContextManager[object]] | None = None,
        server: str | None = None,
        timeout: float = SERVER_TIMEOUT,
    ) -> None:
        if wrap_engine is not None and sms > 1:
            raise RequestError("a device with a wrapped engine runs CTAs one by one: sms=1")
        if check and sms > 1:
            raise RequestError("a device that checks runs CTAs one after the other: sms=1")
        folder = None if model is None else Path(model)
        choice = EngineChoice(engine, profile, folder, torch_device, server, timeout)
        self.config = choice.machine()
        self.sms, self.assume_independent, self.max_tokens = sms, assume_independent, max_tokens
        opened = choice.open(self.config, Progress(shown=False))
        self.engine_name = opened.name
        self.engine = opened if wrap_engine is None else wrap_engine(opened)
        self._around_launch = around_launch or (lambda request: nullcontext())
        self.set_check(check)
        self.pool = MemoryPool(self.config)
        self._memory = [0] * self.config.global_words
        self._lowered: dict[tuple[Any, ...], LoweredKernel] = {}

    def set_check(self, check: bool) -> None:
        """Begins or ends comparing launches with the reference interpreter; for one row alone."""
        self._checked = CheckedEngine(self.engine) if check else None
        self._session = Session(self._checked or self.engine)

    @property
    def checks(self) -> bool:
        """Whether launches are compared with the reference interpreter."""
        return self._checked is not None

    def reset(self) -> None:
        """Begins with an empty state, after `engine` was used for something else.

        Device arrays keep what they hold: the next launch sends it.
        """
        self._session.reset()

    def __enter__(self) -> Device:
        _current.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _current.remove(self)

    def read(self, address: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """The array at a byte address that is a multiple of 4."""
        first = address // WORD_BYTES
        count = -(-int(np.prod(shape)) * dtype.itemsize // WORD_BYTES)
        return from_words(self._memory[first : first + count], dtype, shape)

    def write(self, address: int, array: Array) -> None:
        """Puts an array at a byte address that is a multiple of 4; the next launch sends it."""
        words = to_words(array)
        first = address // WORD_BYTES
        self._memory[first : first + len(words)] = words

    def launch(
        self,
        kernel: RawKernel,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
        on_token: OnToken | None = None,
    ) -> LaunchStats:
        """Launches a kernel; see `RawKernel.__call__`.

        `on_token` is called with the CTA and each token that the model writes. After an error
        device arrays hold what they held before the launch.
        """
        shape = LaunchShape(launch_sizes(grid, "grid"), launch_sizes(block, "block"), shared_mem)
        if shape.ctas > MAX_CTAS:
            raise LaunchError(f"a grid of {shape.ctas} CTAs; at most {MAX_CTAS} can be numbered")
        bound = bind_arguments(kernel.entry, kernel.parameters, args)
        for argument in bound:
            if isinstance(argument.value, DeviceArray) and argument.value.device is not self:
                raise LaunchError(f"'{argument.name}' lies on another device")
        with self.pool.borrowed() as borrowed:
            placed = place_arguments(bound, self.pool, borrowed)
            arguments = tuple(p if isinstance(p, int) else p.address for p in placed)
            lowered = self._lower(kernel, shape, arguments)
            arrays = tuple(p for p in placed if not isinstance(p, int))
            memory = {a: w for a, w in enumerate(self._memory) if w}
            for argument, p in zip(bound, placed, strict=True):
                if isinstance(argument.value, np.ndarray) and not isinstance(p, int):
                    memory |= dict(enumerate(to_words(argument.value), p.address // WORD_BYTES))
            memory |= lowered.memory
            launch = Launch(lowered.image, memory, shape.threads, shape.ctas)
            request = LaunchRequest(
                launch, kernel=kernel.name, arrays=arrays, private=lowered.private
            )
            with self._around_launch(request):
                trace, words = self._session.run(
                    request,
                    sms=self.sms,
                    assume_independent=self.assume_independent,
                    max_tokens=self.max_tokens,
                    on_token=on_token,
                    wanted=self._arrays_in_use(arrays),
                )
            exact = None if self._checked is None else self._checked.compare()
            if exact is False:
                # The interpreter cannot follow from here; both begin anew.
                self._session.reset()
            self._memory = words[: self.config.global_words]
            for argument, p in zip(bound, placed, strict=True):
                if isinstance(argument.value, np.ndarray) and not isinstance(p, int):
                    self._copy_back(argument.name, argument.value, p.address)
        return LaunchStats(
            trace.decoded_tokens,
            trace.setup_tokens,
            trace.min_margin,
            exact,
            self._session.read_back_tokens,
        )

    def _arrays_in_use(self, arrays: Sequence[OutputArray]) -> list[range]:
        """Words that a launch may change for good: those of its arrays, and of all others."""
        given = {array.address: array.words for array in arrays}
        return list((self.pool.taken | given).values())

    def _lower(
        self, kernel: RawKernel, shape: LaunchShape, arguments: tuple[int, ...]
    ) -> LoweredKernel:
        end = self.pool.end
        key = (kernel.module, kernel.name, shape, arguments, end)
        if key not in self._lowered:
            self._lowered[key] = lower(
                kernel.module.ast, kernel.name, shape, arguments, self.config, end
            )
        return self._lowered[key]

    def _copy_back(self, name: str, array: Array, address: int) -> None:
        found = self.read(address, array.dtype, array.shape)
        if array.flags.writeable:
            array[...] = found
        elif not np.array_equal(array, found):
            raise LaunchError(f"the kernel wrote to '{name}', which is read-only")


_current: list[Device] = []
_default: list[Device] = []


def current_device() -> Device:
    """The innermost `with` device, else one with the default model, opened when first needed."""
    if _current:
        return _current[-1]
    if not _default:
        _default.append(Device())
    return _default[0]
