"""A merge plan for people and programs: what the merged checkpoint will hold, group by group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qgpu_isa.tables import plain_table
from qgpu_isa.vocabulary import vocabulary

from qgpu_merge.merge_plan import MergePlan, TensorTask
from qgpu_merge.qwen35_layout import EMBEDDING, HEAD, VISION, is_residual_norm
from qgpu_merge.read_circuit import Circuit

GROUPS = (
    "text embedding",
    "text head",
    "GPU embedding rows",
    "GPU head rows",
    "GPU layers",
    "base layers",
    "norms",
    "vision",
)
"""Groups of tensors in the order in which they are shown; norms: of the residual stream."""


def plan_facts(plan: MergePlan, circuit: Circuit) -> dict[str, Any]:
    """What a plan will write, without making any tensor.

    Args:
        plan: the plan.
        circuit: the circuit in it.

    Returns:
        `machine`, its sizes; `groups`, name -> `tensors` and `bytes`; `tensors` and `bytes` of
        all, less than the files by their headers and the small files; `dropped` and `notices`. An
        embedding or head counts as one tensor of the text's group and its GPU rows as bytes only.
    """
    counts = {name: {"tensors": 0, "bytes": 0} for name in GROUPS}
    for task in plan.tasks:
        for group, tensors, size in _parts(task, circuit):
            counts[group]["tensors"] += tensors
            counts[group]["bytes"] += size
    text = plan.config.get("text_config", plan.config)
    return {
        "machine": circuit.machine_fields(),
        "layers": text["num_hidden_layers"],
        "circuit_layers": circuit.num_layers,
        "hidden_size": text["hidden_size"],
        "linear_key_heads": text["linear_num_key_heads"],
        "linear_value_heads": text["linear_num_value_heads"],
        "vocab_size": text["vocab_size"],
        "groups": {name: found for name, found in counts.items() if found["bytes"]},
        "tensors": len(plan.tasks),
        "bytes": plan.bytes,
        "dropped": list(plan.dropped),
        "notices": list(plan.notices),
    }


def _parts(task: TensorTask, circuit: Circuit) -> Iterator[tuple[str, int, int]]:
    """Group, count and bytes of the parts of a tensor."""
    if task.name.startswith(VISION):
        yield "vision", 1, task.bytes
        return
    name = task.name.removeprefix("model.").removeprefix("language_model.")
    if name in (EMBEDDING, HEAD):
        what = "head" if name == HEAD else "embedding"
        gpu = task.bytes // task.shape[0] * vocabulary(circuit.machine).size
        yield f"text {what}", 1, task.bytes - gpu
        yield f"GPU {what} rows", 0, gpu
    elif is_residual_norm(name):
        yield "norms", 1, task.bytes
    else:
        layer = int(name.split(".")[1])
        yield "GPU layers" if layer < circuit.num_layers else "base layers", 1, task.bytes


def describe_plan(facts: dict[str, Any]) -> str:
    """The facts as text."""
    machine = facts["machine"]
    rows = [
        (name, found["tensors"] or "", f"{found['bytes'] / 2**20:.1f}")
        for name, found in facts["groups"].items()
    ]
    rows.append(("all", facts["tensors"], f"{facts['bytes'] / 2**20:.1f}"))
    lines = [
        f"machine '{machine['name']}': {machine['lanes']} lanes, {machine['registers']} registers, "
        f"{machine['rom_blocks']} blocks, "
        f"{machine['global_words']}+{machine['shared_words']} words",
        f"{facts['layers']} layers, {facts['circuit_layers']} of them the circuit's; "
        f"{facts['hidden_size']} wide; {facts['linear_key_heads']} key and "
        f"{facts['linear_value_heads']} value heads; {facts['vocab_size']} tokens",
        "",
        plain_table(("tensors", "count", "MiB"), rows),
        *(f"notice: {notice}" for notice in facts["notices"]),
    ]
    return "\n".join(lines).rstrip()
