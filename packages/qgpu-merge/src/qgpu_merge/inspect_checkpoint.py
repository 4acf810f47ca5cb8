"""Facts about a checkpoint folder, merged or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qgpu_merge.read_checkpoint import Checkpoint


def inspect_checkpoint(folder: Path) -> dict[str, Any]:
    """What the folder holds; `qgpu` is null for a checkpoint without a circuit.

    Raises:
        CheckpointError: it is not a complete Qwen3.5 checkpoint.
    """
    checkpoint = Checkpoint(folder)
    axes = checkpoint.shape.axes
    section = checkpoint.raw_config.get("qgpu")
    if section is not None:
        checkpoint.section()
    types = checkpoint.shape.layer_types
    return {
        "path": str(folder),
        "model_type": checkpoint.raw_config["model_type"],
        "layers": len(types),
        "full_attention_layers": types.count("full_attention"),
        "hidden_size": axes["hidden"],
        "intermediate_size": axes["intermediate"],
        "linear_key_heads": axes["key_heads"],
        "linear_value_heads": axes["value_heads"],
        "vocab_size": axes["vocab"],
        "tied": checkpoint.tied,
        "vision": bool(checkpoint.vision),
        "dtypes": checkpoint.dtypes(),
        "bytes": checkpoint.bytes(),
        "qgpu": section,
    }


def describe(facts: dict[str, Any]) -> str:
    """The facts as text."""
    lines = [
        f"{facts['path']}: {facts['model_type']}",
        f"  layers        {facts['layers']} ({facts['full_attention_layers']} full attention)",
        f"  hidden        {facts['hidden_size']}",
        f"  intermediate  {facts['intermediate_size']}",
        f"  linear heads  {facts['linear_key_heads']} of keys, "
        f"{facts['linear_value_heads']} of values",
        f"  vocabulary    {facts['vocab_size']}",
        f"  size          {facts['bytes'] / 2**20:.1f} MiB",
    ]
    if "verified" in facts:
        checked = facts["verified"]
        lines.append(f"  files         {checked['files']} as written, {checked['bytes']} bytes")
    section = facts["qgpu"]
    if section is None:
        lines.append("  circuit       none")
        return "\n".join(lines)
    machine = section["machine"]
    lines += [
        f"  circuit       machine '{machine['name']}', {section['circuit_layers']} layers, "
        f"digest {section['digest'][:12]}",
        f"  machine       {machine['lanes']} lanes, {machine['passes']} passes, "
        f"{machine['registers']} registers, {machine['rom_blocks']} blocks, "
        f"{machine['global_words']}+{machine['shared_words']} words",
        f"  base          {section['base_hidden']} wide, "
        f"{facts['layers'] - section['circuit_layers']} layers",
        f"  GPU tokens    from {section['token_offset']}",
        f"  marks of text dimensions {', '.join(map(str, section['marks'].values()))}",
        *_provenance(section.get("provenance") or {}),
    ]
    return "\n".join(lines)


def _provenance(provenance: dict[str, Any]) -> list[str]:
    lines = []
    if "base" in provenance:
        commit = provenance.get("base_commit")
        lines.append(f"  merged with   {provenance['base']}{f' at {commit}' if commit else ''}")
    if "versions" in provenance:
        versions = (f"{name} {number}" for name, number in provenance["versions"].items())
        lines.append(f"  made with     {', '.join(versions)}")
    if provenance.get("dropped"):
        lines.append(f"  left out      {len(provenance['dropped'])} tensors of the base")
    lines += [f"  notice        {notice}" for notice in provenance.get("notices", ())]
    for name, digest in provenance.get("inputs", {}).items():
        lines.append(f"  made from     {name}, SHA-256 {digest[:16]}")
    return lines
