"""What a user asks for: a launch on the machine, and where its results will lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from qgpu_isa.interpreter import Launch

TYPE_BYTES = {
    "s8": 1, "u8": 1, "s16": 2, "u16": 2, "s32": 4, "u32": 4, "s64": 8, "u64": 8,
}  # fmt: skip


@dataclass(frozen=True)
class OutputArray:
    """An array of a launch: where it lies, to read it back.

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

    def elements_of_word(self, address: int) -> str:
        """The elements that lie in a word, as in `c[3]` or `c[4..7]`; empty if none does."""
        size = TYPE_BYTES[self.type]
        first = max(0, (4 * address - self.address) // size)
        last = min(self.length - 1, (4 * address + 3 - self.address) // size)
        if last < first:
            return ""
        return f"{self.name}[{first}]" if first == last else f"{self.name}[{first}..{last}]"

    @property
    def words(self) -> range:
        """Addresses of the words in which it lies."""
        end = self.address + TYPE_BYTES[self.type] * self.length
        return range(self.address // 4, -(-end // 4))

    def read(self, memory: Sequence[int]) -> list[int]:
        """The elements, out of the words of memory (little-endian, as CUDA's)."""
        size = TYPE_BYTES[self.type]
        words = self.words
        raw = b"".join(word.to_bytes(4, "little") for word in memory[words.start : words.stop])
        start = self.address - 4 * words.start
        signed = self.type.startswith("s")
        return [
            int.from_bytes(raw[i : i + size], "little", signed=signed)
            for i in range(start, start + size * self.length, size)
        ]


def _not_known() -> None:
    return None


@dataclass(frozen=True)
class LaunchRequest:
    """A launch and what belongs to it on the host.

    Attributes:
        launch: program, memory, threads and CTAs.
        outputs: arrays to read back.
        expected: wanted contents of outputs by name; empty if nothing is known.
        kernel: name of the kernel.
        arrays: all arrays, outputs or not.
        private: words that every CTA uses for itself alone.
        count_baseline: how to find `baseline_tokens`, where that can be done.
    """

    launch: Launch
    outputs: tuple[OutputArray, ...] = ()
    expected: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    kernel: str = "kernel"
    arrays: tuple[OutputArray, ...] = ()
    private: range = range(0)
    count_baseline: Callable[[], int | None] = field(default=_not_known, compare=False)

    @cached_property
    def baseline_tokens(self) -> int | None:
        """Tokens under the naive lowering (`qgpu_isa.baseline`), None if they are not known.

        They are counted when first asked for, which takes a run of the PTX.
        """
        return self.count_baseline()

    def for_others(self) -> LaunchRequest:
        """The request as other processes can have it: it does not know `baseline_tokens`."""
        return replace(self, count_baseline=_not_known)

    def read_outputs(self, memory: Sequence[int]) -> dict[str, list[int]]:
        """All outputs by name."""
        return {output.name: output.read(memory) for output in self.outputs}

    def place_of(self, address: int) -> str:
        """The elements of arrays that lie in a word, empty if none does."""
        return ", ".join(filter(None, (a.elements_of_word(address) for a in self.arrays)))

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
