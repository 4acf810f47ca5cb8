"""What a user asks for: a launch on the machine, and where its results will lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from qgpu_isa.interpreter import Launch

TYPE_BYTES = {
    "s8": 1, "u8": 1, "s16": 2, "u16": 2, "s32": 4, "u32": 4, "s64": 8, "u64": 8,
}  # fmt: skip


@dataclass(frozen=True)
class OutputArray:
    """An array that is read back after the launch.

    Attributes:
        name: the argument's name.
        type: element type, as in launch specs.
        address: byte address of the first element.
        length: number of elements.
    """

    name: str
    type: str
    address: int
    length: int

    def read(self, memory: Sequence[int]) -> list[int]:
        """The elements, out of the words of memory (little-endian, as CUDA's)."""
        size = TYPE_BYTES[self.type]
        first, last = self.address // 4, -(-(self.address + size * self.length) // 4)
        raw = b"".join(word.to_bytes(4, "little") for word in memory[first:last])
        start = self.address - 4 * first
        signed = self.type.startswith("s")
        return [
            int.from_bytes(raw[i : i + size], "little", signed=signed)
            for i in range(start, start + size * self.length, size)
        ]


@dataclass(frozen=True)
class LaunchRequest:
    """A launch and what belongs to it on the host.

    Attributes:
        launch: program, memory, threads and CTAs.
        outputs: arrays to read back.
        expected: wanted contents of outputs by name; empty if nothing is known.
        kernel: name of the kernel.
        count_baseline: how to find `baseline_tokens`, where that can be done.
    """

    launch: Launch
    outputs: tuple[OutputArray, ...] = ()
    expected: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    kernel: str = "kernel"
    count_baseline: Callable[[], int | None] = field(default=lambda: None, compare=False)

    @cached_property
    def baseline_tokens(self) -> int | None:
        """Tokens under the naive lowering (`qgpu_isa.baseline`), None if they are not known.

        They are counted when first asked for, which takes a run of the PTX.
        """
        return self.count_baseline()

    def read_outputs(self, memory: Sequence[int]) -> dict[str, list[int]]:
        """All outputs by name."""
        return {output.name: output.read(memory) for output in self.outputs}

    def unexpected(self, outputs: Mapping[str, Sequence[int]]) -> list[str]:
        """One line for each expected array that differs from what was read."""
        lines = []
        for name, wanted in self.expected.items():
            found = list(outputs[name])
            for index, (w, f) in enumerate(zip(wanted, found, strict=True)):
                if w != f:
                    lines.append(f"{name}[{index}] is {f}, expected {w}")
                    break
        return lines
