"""The `qgpu` section that a merged checkpoint's config.json has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from qgpu_isa.checked_json import Fields
from qgpu_isa.errors import ConfigError, QgpuError
from qgpu_isa.machine_config import MachineConfig

QGPU_FORMAT = 2

MARKS = ("text_gate", "text_head", "gpu_head")


@dataclass(frozen=True)
class QgpuSection:
    """What a merge says about itself.

    Attributes:
        machine: what the weights compute.
        token_offset: id of the machine's token 0 in the model's vocabulary.
        memory: where the words of memory lie: columns, rows_per_head and, per bank, the
            (layer, head) of each group of rows.
        digest: identity of the circuit.
        circuit_layers: how many layers, from the first, are the GPU's.
        base_hidden: width of the base.
        marks: dimensions that tell text from GPU tokens, by name.
        residual_scale: what the residual stream of text is multiplied by, a power of two.
        provenance: what it was made from.
    """

    machine: MachineConfig
    token_offset: int
    memory: dict[str, Any]
    digest: str
    circuit_layers: int
    base_hidden: int
    marks: dict[str, int]
    residual_scale: int
    provenance: dict[str, Any]


def read_section(config: Mapping[str, Any], where: str, error: type[QgpuError]) -> QgpuSection:
    """The section in a config.json.

    Args:
        config: what config.json holds.
        where: the folder, for messages.
        error: what is raised.

    Raises:
        QgpuError: `error`; there is none, or it is damaged or of another format.
    """
    if not isinstance(config.get("qgpu"), dict):
        raise error(
            f"{where} is not a merged checkpoint: its config has no qgpu section; "
            "make one with `qgpu-merge build`"
        )
    section = Fields(config["qgpu"], f"{where}: the qgpu section of config.json", error)
    if section.data.get("format") != QGPU_FORMAT:
        raise error(
            f"{where} has qgpu format {section.data.get('format')!r}; "
            f"this version reads format {QGPU_FORMAT}"
        )
    marks = section.inner("marks")
    scale = section.integer("residual_scale", most=1 << 20)
    if scale & (scale - 1):
        section.fail("residual_scale", "a power of two")
    layers = section.integer("circuit_layers")
    machine = read_machine(section.inner("machine"))
    return QgpuSection(
        machine=machine,
        token_offset=section.integer("token_offset"),
        memory=read_memory_places(section.inner("memory"), machine, layers),
        digest=section.text("digest"),
        circuit_layers=layers,
        base_hidden=section.integer("base_hidden"),
        marks={name: marks.integer(name, least=0) for name in MARKS},
        residual_scale=scale,
        provenance=_read_provenance(section) if "provenance" in section else {},
    )


def read_machine(section: Fields) -> MachineConfig:
    """A machine's configuration out of JSON.

    Raises:
        QgpuError: the section's error; a field is missing, wrong, or not one of a machine.
    """
    sizes = [field.name for field in fields(MachineConfig) if field.name != "name"]
    foreign = sorted(section.data.keys() - {"name", *sizes})
    if foreign:
        raise section.error(f"{section.where}: a machine has no {foreign[0]}")
    try:
        return MachineConfig(
            name=section.text("name"), **{name: section.integer(name) for name in sizes}
        )
    except ConfigError as reason:
        raise section.error(f"{section.where}: {reason}") from None


def read_memory_places(section: Fields, machine: MachineConfig, layers: int) -> dict[str, Any]:
    """Where the words of a machine's memory lie, in its first layers.

    Raises:
        QgpuError: the section's error.
    """
    section.integer("columns")
    rows, banks = section.integer("rows_per_head"), section.array("banks")
    for bank in banks:
        if not isinstance(bank, list) or not all(_is_place(group, layers) for group in bank):
            section.fail("banks", f"lists of [layer, head], with layers below {layers}")
    if len(banks) != machine.lanes:
        raise section.error(f"{section.where}: {len(banks)} memory banks for {machine.lanes} lanes")
    if any(len(groups) * rows * machine.lanes < machine.memory_words for groups in banks):
        raise section.error(f"{section.where}: the memory banks hold too few words")
    places = [tuple(group) for groups in banks for group in groups]
    if len(set(places)) < len(places):
        raise section.error(f"{section.where}: two groups of memory are in one head")
    return dict(section.data)


def _read_provenance(section: Fields) -> dict[str, Any]:
    """What a merge was made from; for people, so most of it may be missing."""
    found = section.inner("provenance")
    for name in ("versions", "inputs"):
        if name in found:
            values = found.inner(name)
            for key in values.data:
                values.text(key)
    for name in ("notices", "dropped"):
        if name in found and not all(isinstance(line, str) for line in found.array(name)):
            found.fail(name, "a list of strings")
    return dict(found.data)


def _is_place(group: object, layers: int) -> bool:
    return (
        isinstance(group, list)
        and len(group) == 2
        and all(type(number) is int for number in group)
        and 0 <= group[0] < layers
        and 0 <= group[1] < 1 << 20
    )
