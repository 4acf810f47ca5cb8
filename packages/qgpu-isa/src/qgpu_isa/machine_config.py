"""The machine's parameters and the named profiles built from them."""

from __future__ import annotations

from dataclasses import dataclass

from qgpu_isa.errors import ConfigError

WORD_BITS = 32
WORD_MASK = (1 << WORD_BITS) - 1
WARP_THREADS = 32
"""Threads of a CUDA warp, whatever the lanes of the machine (PTX ISA, section 3.1)."""

CHUNKS_PER_RECORD = 4
"""Continuation tokens one record may hold: the taps of Qwen3.5's causal convolution."""

GROUP_LANES = 4
"""Lanes of a group at most: their words fill the columns of one DeltaNet head."""

NIBBLE_BITS = 4

SLOT_BITS = 64
"""Width of one slot's encoding in the program ROM."""


def bits_for(count: int) -> int:
    """Address bits needed to tell `count` things apart (at least 1)."""
    return max(1, (count - 1).bit_length())


@dataclass(frozen=True)
class MachineConfig:
    """Sizes of one machine.

    A *pass* is `lanes` consecutive threads of a CTA that execute a block in one token; a CUDA
    warp is `WARP_THREADS // lanes` passes. All counts but `predicates` are powers of two.

    Raises:
        ConfigError: a size is not a power of two or exceeds its encoding field.
    """

    name: str
    lanes: int
    passes: int
    registers: int
    predicates: int
    rom_blocks: int
    global_words: int
    shared_words: int

    def __post_init__(self) -> None:
        powers = {
            "lanes": (self.lanes, 2, 8),
            "passes": (self.passes, 1, 32),
            "registers": (self.registers, 2, 32),
            "rom_blocks": (self.rom_blocks, 2, 128),
        }
        for field, (value, low, high) in powers.items():
            if value & (value - 1) or not low <= value <= high:
                raise ConfigError(
                    f"machine '{self.name}': {field} is {value}; "
                    f"it must be a power of two from {low} to {high}"
                )
        if not 1 <= self.predicates <= 7:
            raise ConfigError(f"machine '{self.name}': predicates must be 1 to 7")
        for field, words in (("global_words", self.global_words), ("shared", self.shared_words)):
            if words <= 0 or words % self.lanes:
                raise ConfigError(
                    f"machine '{self.name}': {field} is {words}; "
                    f"it must be a positive multiple of the lanes ({self.lanes})"
                )

    @property
    def threads(self) -> int:
        """Threads of one CTA that fit."""
        return self.lanes * self.passes

    @property
    def memory_words(self) -> int:
        """Words of the unified address space: global first, shared behind it."""
        return self.global_words + self.shared_words

    @property
    def shared_base(self) -> int:
        """Byte address of the first shared word."""
        return 4 * self.global_words

    @property
    def lane_bits(self) -> int:
        return bits_for(self.lanes)

    @property
    def pass_bits(self) -> int:
        return bits_for(self.passes)

    @property
    def block_bits(self) -> int:
        return bits_for(self.rom_blocks)

    @property
    def register_bits(self) -> int:
        return bits_for(self.registers)

    @property
    def address_bits(self) -> int:
        """Bits of a word address."""
        return bits_for(self.memory_words)

    @property
    def passes_per_warp(self) -> int:
        return max(1, min(self.passes, WARP_THREADS // self.lanes))

    @property
    def group_lanes(self) -> int:
        """Lanes of a group: a register row is stored, and sent back, group by group."""
        return min(self.lanes, GROUP_LANES)

    @property
    def groups(self) -> int:
        """Groups of a row."""
        return self.lanes // self.group_lanes

    @property
    def payload_bits(self) -> int:
        """Bits of a RAW token: a nibble of every lane of a group."""
        return NIBBLE_BITS * self.group_lanes

    @property
    def row_bits(self) -> int:
        """Bits of every lane's word that a RAW token of a ROW record carries."""
        return self.payload_bits // self.lanes

    @property
    def chunk_bits(self) -> int:
        """Bits that the continuation tokens of one full record carry."""
        return CHUNKS_PER_RECORD * self.payload_bits

    @property
    def chunks_per_slot(self) -> int:
        """PROG records that one slot of the ROM takes."""
        return max(1, SLOT_BITS // self.chunk_bits)

    @property
    def full_mask(self) -> int:
        return (1 << self.lanes) - 1


NANO = MachineConfig(
    name="nano",
    lanes=2,
    passes=4,
    registers=8,
    predicates=3,
    rom_blocks=32,
    global_words=112,
    shared_words=16,
)
SMALL = MachineConfig(
    name="small",
    lanes=4,
    passes=32,
    registers=16,
    predicates=7,
    rom_blocks=64,
    global_words=1024,
    shared_words=512,
)
DEFAULT = MachineConfig(
    name="default",
    lanes=8,
    passes=16,
    registers=32,
    predicates=7,
    rom_blocks=128,
    global_words=4096,
    shared_words=1024,
)

FIT = "fit"
"""Instead of a profile's name: the largest machine that a base has room for."""

PROFILES: dict[str, MachineConfig] = {config.name: config for config in (NANO, SMALL, DEFAULT)}


def profile(name: str) -> MachineConfig:
    """The named profile.

    Raises:
        ConfigError: there is no such profile; the message lists those there are.
    """
    try:
        return PROFILES[name]
    except KeyError:
        known = ", ".join(PROFILES)
        raise ConfigError(f"no machine profile '{name}'; there are: {known}") from None
