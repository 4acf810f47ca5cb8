"""Special registers (PTX ISA, chapter "Special Registers")."""

from __future__ import annotations

from collections.abc import Callable

from qgpu_ptx.ptx_interpreter.machine import WARP_SIZE, Lane

_AXES = {"x": 0, "y": 1, "z": 2}
_ALL = (1 << WARP_SIZE) - 1


def _axis(read: Callable[[Lane], tuple[int, int, int]], axis: int) -> Callable[[Lane], int]:
    return lambda lane: read(lane)[axis]


def _table() -> dict[str, Callable[[Lane], int]]:
    triples: dict[str, Callable[[Lane], tuple[int, int, int]]] = {
        "%tid": lambda lane: lane.thread,
        "%ntid": lambda lane: lane.cta.launch.block,
        "%ctaid": lambda lane: lane.cta.index,
        "%nctaid": lambda lane: lane.cta.launch.grid,
    }
    table = {
        f"{name}.{letter}": _axis(read, axis)
        for name, read in triples.items()
        for letter, axis in _AXES.items()
    }
    table |= {
        "WARP_SZ": lambda lane: WARP_SIZE,
        "%laneid": lambda lane: lane.index,
        "%warpid": lambda lane: lane.warp.index,
        "%nwarpid": lambda lane: len(lane.cta.warps),
        # One multiprocessor runs everything, and one launch is one grid.
        "%smid": lambda lane: 0,
        "%nsmid": lambda lane: 1,
        "%gridid": lambda lane: 0,
        "%lanemask_eq": lambda lane: 1 << lane.index,
        "%lanemask_le": lambda lane: (2 << lane.index) - 1,
        "%lanemask_lt": lambda lane: (1 << lane.index) - 1,
        "%lanemask_ge": lambda lane: _ALL & ~((1 << lane.index) - 1),
        "%lanemask_gt": lambda lane: _ALL & ~((2 << lane.index) - 1),
        # Clocks count the launch's warp instructions: they grow, and are the same every time.
        "%clock": lambda lane: lane.cta.launch.steps,
        "%clock_hi": lambda lane: lane.cta.launch.steps >> 32,
        "%clock64": lambda lane: lane.cta.launch.steps,
        "%globaltimer": lambda lane: lane.cta.launch.steps,
        "%globaltimer_lo": lambda lane: lane.cta.launch.steps,
        "%globaltimer_hi": lambda lane: lane.cta.launch.steps >> 32,
        "%total_smem_size": lambda lane: len(lane.cta.shared),
        "%dynamic_smem_size": lambda lane: lane.cta.launch.dynamic_shared_bytes,
    }
    return table


SPECIAL_REGISTERS = _table()


def special_register(name: str) -> Callable[[Lane], int] | None:
    """How a special register is read, None when there is none of that name."""
    return SPECIAL_REGISTERS.get(name)
