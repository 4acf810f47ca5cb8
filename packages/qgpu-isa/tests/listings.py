"""Short ways to run listings in tests."""

from qgpu_isa.interpreter import Launch, Machine, StepRecord, run_launch
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.program_text import text_to_image


def run(
    config: MachineConfig,
    text: str,
    memory: dict[int, int] | None = None,
    threads: int | None = None,
    ctas: int = 1,
) -> tuple[Machine, list[StepRecord]]:
    """Runs a listing; all threads unless told."""
    image = text_to_image(text, config=config)
    count = config.threads if threads is None else threads
    return run_launch(Launch(image, memory or {}, count, ctas), max_tokens=100_000)


def executions(steps: list[StepRecord]) -> list[tuple[int, int, int]]:
    """(block, pass, mask) of every EXEC that the machine decoded; the first one is fed."""
    return [(s.block, s.pass_, s.mask) for s in steps if s.token.cls.name == "EXEC"]


def register(machine: Machine, index: int) -> list[int]:
    """A register of all threads, in the order of the threads."""
    return [word for rows in machine.state.registers for word in rows[index]]


def words(machine: Machine, first: int, count: int) -> list[int]:
    """Words of memory."""
    return machine.state.memory[first : first + count]


def last(steps: list[StepRecord]) -> str:
    """The last token."""
    return str(steps[-1].token)
