"""The running state: lanes with call frames, warps that step them, barriers of a CTA.

Scheduling is deterministic. Within a warp, the lanes at the deepest call level and then at the
smallest program counter run together, which reconverges divergent lanes. A lane that has waited
while others polled memory STARVATION_LIMIT times gets a turn, so that a lane that spins on a lock
does not keep the lock's owner from running. Warps take turns of QUANTUM instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from qgpu_ptx import ptx_ast as ast
from qgpu_ptx.diagnostics import (
    DeadlockError,
    ExecutionError,
    StepLimitError,
    ThreadName,
    UninitialisedRegisterError,
)
from qgpu_ptx.ptx_interpreter.instruction_table import Executor, Observer
from qgpu_ptx.ptx_interpreter.memory import DeviceMemory

WARP_SIZE = 32
QUANTUM = 64
# A spinning lane must poll through an atomic or a volatile load; loops that do neither are left
# to run together, however long they are.
STARVATION_LIMIT = 16

Dim3 = tuple[int, int, int]
Writer = Callable[["Lane", int], None]


class LaneState(Enum):
    """Whether a lane can run, and if not, what it waits for."""

    RUNNING = "running"
    AT_BARRIER = "at a barrier"
    AT_WARP_OPERATION = "at a warp operation"
    EXITED = "exited"


@dataclass(slots=True)
class DecodedInstruction:
    """An instruction ready to run.

    `guard` is (register index, value it must have); `polls` marks what a lane may spin on.
    """

    node: ast.Instruction
    execute: Executor
    control: bool
    guard: tuple[int, int] | None
    polls: bool = False


@dataclass(slots=True)
class Code:
    """A decoded function: instructions, and sizes of what a frame holds."""

    index: int
    name: str
    instructions: list[DecodedInstruction] = field(default_factory=list)
    registers: int = 0
    local_bytes: int = 0
    param_bytes: int = 0


@dataclass(slots=True)
class Frame:
    """One call of a function by one lane."""

    code: Code
    registers: list[int | None]
    param: bytearray
    local_base: int
    return_pc: int = 0
    on_return: Callable[[Lane, Frame], None] | None = None


@dataclass(slots=True)
class WarpWait:
    """What a lane at a `.sync` warp operation waits for."""

    key: object
    mask: int
    action: Callable[[Warp, list[Lane]], None]


class Lane:
    """A thread. `registers` is its top frame's register list (None: never written)."""

    __slots__ = (
        "carry", "cta", "frame", "frames", "index", "last_run", "linear", "local", "pc",
        "registers", "state", "thread", "wait", "warp",
    )  # fmt: skip

    def __init__(self, cta: Cta, warp: Warp, linear: int, thread: Dim3, frame: Frame) -> None:
        self.cta = cta
        self.warp = warp
        self.linear = linear
        self.index = linear % WARP_SIZE
        self.thread = thread
        self.frames = [frame]
        self.frame = frame
        self.registers = frame.registers
        self.local = bytearray(frame.code.local_bytes)
        self.pc = 0
        self.state = LaneState.RUNNING
        self.carry = 0
        self.wait: WarpWait | None = None
        self.last_run = 0

    @property
    def name(self) -> ThreadName:
        """The thread's name for messages."""
        return ThreadName(self.cta.kernel, self.cta.index, self.thread)

    def unwritten(self, register: str) -> int:
        """The value of a register that was never written: 0, unless the launch refuses it."""
        if self.cta.launch.refuse_unwritten_registers:
            raise UninitialisedRegisterError(
                f"register {register} is read before it is written", thread=self.name
            )
        return 0

    def push(self, frame: Frame) -> None:
        """Enters a function; local memory of the new frame follows the caller's."""
        self.frames.append(frame)
        self.frame, self.registers, self.pc = frame, frame.registers, 0
        self.local.extend(bytes(frame.local_base + frame.code.local_bytes - len(self.local)))

    def pop(self) -> Frame:
        """Leaves a function; its local memory is gone."""
        left = self.frames.pop()
        del self.local[left.local_base :]
        self.frame = self.frames[-1]
        self.registers, self.pc = self.frame.registers, left.return_pc
        return left


@dataclass
class Launch:
    """What all CTAs of a launch share: sizes, limits, and the count of warp instructions."""

    grid: Dim3
    block: Dim3
    max_steps: int
    dynamic_shared_bytes: int = 0
    refuse_unwritten_registers: bool = False
    steps: int = 0
    observe: Observer | None = None


class Warp:
    """Up to 32 lanes that run in lock step where their program counters agree."""

    def __init__(self, cta: Cta, index: int) -> None:
        self.cta = cta
        self.index = index
        self.lanes: list[Lane] = []
        self._polls = 0

    @property
    def runnable(self) -> bool:
        """True when some lane can run."""
        return any(lane.state is LaneState.RUNNING for lane in self.lanes)

    def run(self, quantum: int) -> None:
        """Runs about `quantum` instructions, or until no lane can run."""
        while quantum > 0:
            running = [lane for lane in self.lanes if lane.state is LaneState.RUNNING]
            if not running:
                return
            quantum -= self._run_group(*self._select(running))

    def _select(self, running: list[Lane]) -> tuple[list[Lane], int]:
        """The lanes to run, and the program counter at which others wait to join them."""
        now = self._polls
        oldest = min(running, key=lambda lane: lane.last_run)
        leader = oldest if now - oldest.last_run > STARVATION_LIMIT else min(running, key=_priority)
        key = _priority(leader)
        group, meet = [], 1 << 62
        for lane in running:
            other = _priority(lane)
            if other == key:
                lane.last_run = now
                group.append(lane)
            elif other[:2] == key[:2] and key[2] < other[2] < meet:
                meet = other[2]
        return group, meet

    def _run_group(self, group: list[Lane], meet: int) -> int:
        """Runs a group up to a control instruction or `meet`; returns the instructions run."""
        launch = self.cta.launch
        instructions = group[0].frame.code.instructions
        pc = group[0].pc
        count = 0
        while True:
            decoded = instructions[pc]
            count += 1
            launch.steps += 1
            active = group
            pc += 1
            try:
                if decoded.guard is not None:
                    register, wanted = decoded.guard
                    active = [lane for lane in group if _predicate(lane, register) == wanted]
                if launch.observe is not None:
                    launch.observe(group[0].frame.code, pc - 1, group, active)
                if launch.steps > launch.max_steps:
                    raise StepLimitError(
                        f"more than {launch.max_steps} warp instructions were executed",
                        thread=group[0].name,
                        hint="the kernel may not end; raise max_steps if it does",
                    )
                if decoded.control:
                    for lane in group:
                        lane.pc = pc
                self._polls += decoded.polls
                if active:
                    decoded.execute(self, active)
            except ExecutionError as error:
                _add_place(error, decoded.node, group[0])
                raise
            if decoded.control:
                return count
            if pc == meet or count >= QUANTUM:
                for lane in group:
                    lane.pc = pc
                return count

    def release(self) -> None:
        """Runs every `.sync` operation whose lanes have all arrived or exited."""
        waiting = [lane for lane in self.lanes if lane.state is LaneState.AT_WARP_OPERATION]
        for first in waiting:
            wait = first.wait
            if wait is None:
                continue
            members = [
                lane
                for lane in waiting
                if lane.wait and (lane.wait.key, lane.wait.mask) == (wait.key, wait.mask)
            ]
            missing = [
                lane
                for lane in self.lanes
                if wait.mask >> lane.index & 1
                and lane.state is not LaneState.EXITED
                and lane not in members
            ]
            if not missing:
                for lane in members:
                    lane.state, lane.wait = LaneState.RUNNING, None
                wait.action(self, members)


def _priority(lane: Lane) -> tuple[int, int, int]:
    return (-len(lane.frames), lane.frame.code.index, lane.pc)


def _predicate(lane: Lane, register: int) -> int:
    value = lane.registers[register]
    return lane.unwritten("of the guard") if value is None else value


def _add_place(error: ExecutionError, node: ast.Instruction, lane: Lane) -> None:
    error.span = error.span or node.span
    error.instruction = error.instruction or str(node)
    error.thread = error.thread or lane.name


@dataclass
class Barrier:
    """One of a CTA's barriers: who waits, with which predicate, and how the result is written."""

    waiting: list[tuple[Lane, int, Callable[[Lane, list[int]], None] | None]] = field(
        default_factory=list
    )
    arrivals: int = 0
    count: int | None = None


class Cta:
    """A thread block: its warps, shared memory and barriers."""

    def __init__(
        self, launch: Launch, kernel: str, index: Dim3, memory: DeviceMemory, shared: bytearray
    ) -> None:
        self.launch = launch
        self.kernel = kernel
        self.index = index
        self.memory = memory
        self.shared = shared
        self.warps: list[Warp] = []
        self.barriers: dict[int, Barrier] = {}

    @property
    def lanes(self) -> list[Lane]:
        """All threads in linear order."""
        return [lane for warp in self.warps for lane in warp.lanes]

    def run(self) -> None:
        """Runs to the end. Raises DeadlockError when every live lane waits."""
        while any(lane.state is not LaneState.EXITED for lane in self.lanes):
            runnable = [warp for warp in self.warps if warp.runnable]
            if not runnable:
                self._deadlock()
            for warp in runnable:
                warp.run(QUANTUM)

    def _deadlock(self) -> None:
        stuck = [lane for lane in self.lanes if lane.state is not LaneState.EXITED]
        first = stuck[0]
        # A waiting lane's program counter already points behind the instruction it waits at.
        node = first.frame.code.instructions[first.pc - 1].node
        places: dict[tuple[str, str], int] = {}
        for lane in stuck:
            at = lane.frame.code.instructions[lane.pc - 1].node
            line = f"line {at.span.line}" if at.span else "an unknown line"
            key = (lane.state.value, f"'{at}' ({line})")
            places[key] = places.get(key, 0) + 1
        what = "; ".join(f"{n} {state} {where}" for (state, where), n in places.items())
        error = DeadlockError(f"deadlock: no thread of the CTA can run: {what}")
        _add_place(error, node, first)
        raise error

    def check_barriers(self) -> None:
        """Releases each barrier that has all its threads; exited threads count as arrived."""
        live = sum(lane.state is not LaneState.EXITED for lane in self.lanes)
        for number, barrier in list(self.barriers.items()):
            wanted = live if barrier.count is None else barrier.count
            if len(barrier.waiting) + barrier.arrivals < wanted:
                continue
            del self.barriers[number]
            predicates = [predicate for _, predicate, _ in barrier.waiting]
            for lane, _, finish in barrier.waiting:
                lane.state = LaneState.RUNNING
                if finish is not None:
                    finish(lane, predicates)

    def exit(self, lanes: list[Lane]) -> None:
        """Ends threads, which may complete barriers and warp operations that others wait at."""
        for lane in lanes:
            lane.state = LaneState.EXITED
        lanes[0].warp.release()
        self.check_barriers()
