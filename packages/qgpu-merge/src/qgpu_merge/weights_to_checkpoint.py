"""A circuit folder and a base checkpoint become one checkpoint folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from qgpu_isa.file_hashes import FolderHashes, hash_file
from qgpu_isa.new_folder import check_apart, new_folder

from qgpu_merge.base_files import hub_source
from qgpu_merge.base_record import OWN_FILES, side_files, write_base_record
from qgpu_merge.base_record import TENSORS as RECORD
from qgpu_merge.errors import MergeError
from qgpu_merge.head_choice import HeadChoice
from qgpu_merge.merge_plan import MergePlan, plan_merge
from qgpu_merge.merged_tokenizer import merged_tokenizer
from qgpu_merge.model_card import write_model_card
from qgpu_merge.read_checkpoint import CONFIG, Checkpoint
from qgpu_merge.read_circuit import MANIFEST, TENSORS, Circuit
from qgpu_merge.write_checkpoint import CHECKPOINT_FOLDER, Progress, write_json, write_tensors

PACKAGES = ("qgpu-isa", "qgpu-circuit", "qgpu-merge", "transformers", "torch")


def package_versions() -> dict[str, str]:
    """Versions of the packages that decide what a merged checkpoint holds."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def plan_from_folders(
    circuit_folder: Path,
    base: Checkpoint,
    *,
    may_pad: bool = False,
    head: HeadChoice = HeadChoice.AUTO,
) -> MergePlan:
    """The plan for a circuit folder and a base.

    Raises:
        MergeError: the circuit cannot be read, or they do not fit.
    """
    circuit = Circuit(circuit_folder)
    if (base.folder / RECORD).exists():
        raise MergeError(f"{base.folder} has a {RECORD}, whose name the merge needs: rename it")
    source = hub_source(base.folder)
    name, commit = source or (base.folder.resolve().name, None)
    provenance: dict[str, Any] = {
        "base": name,
        "base_commit": commit,
        "versions": package_versions(),
        "base_vocab_size": base.shape.axes["vocab"],
        "base_tied_embeddings": base.tied,
        "base_rms_norm_eps": base.config["rms_norm_eps"],
    }
    tokenizer = merged_tokenizer(base.folder, circuit.machine, base.shape.axes["vocab"])
    plan = plan_merge(circuit, base, provenance, may_pad=may_pad, head=head)
    return replace(plan, tokenizer=tokenizer)


def input_hashes(circuit_folder: Path, base: Checkpoint) -> dict[str, str]:
    """SHA-256 of the files that decide a merged checkpoint's weights, by name."""
    inputs = [circuit_folder / MANIFEST, circuit_folder / TENSORS, base.folder / CONFIG]
    inputs += sorted({tensor.path for tensor in base.tensors.values()})
    return {path.name: hash_file(path).sha256 for path in inputs}


def build_checkpoint(
    circuit_folder: Path,
    base_folder: Path,
    output: Path,
    *,
    force: bool = False,
    shared: bool = False,
    may_pad: bool = False,
    head: HeadChoice = HeadChoice.AUTO,
    shard_bytes: int | None = None,
    start: Callable[[MergePlan], Progress] | None = None,
) -> MergePlan:
    """Merges and writes; `output` is complete or absent.

    Args:
        circuit_folder: what `qgpu-circuit emit` wrote.
        base_folder: a Qwen3.5 checkpoint.
        output: the folder to write.
        force: whether to replace an existing checkpoint.
        shared: whether one that another process has put there is as good.
        may_pad: whether the base may grow to what the circuit needs.
        head: whether a head that is the base's embedding stays so.
        shard_bytes: largest size of a shard.
        start: called with the plan before the first tensor; returns the progress callback.

    Raises:
        MergeError: wrong inputs.
        OutputError: the output exists, is or has a part of an input, or cannot be written.
    """
    check_apart(output, (circuit_folder, base_folder))
    with (
        new_folder(output, CHECKPOINT_FOLDER, force=force, shared=shared) as folder,
        ThreadPoolExecutor(max_workers=1) as background,
    ):
        base = Checkpoint(base_folder)
        plan = plan_from_folders(circuit_folder, base, may_pad=may_pad, head=head)
        options = {} if shard_bytes is None else {"shard_bytes": shard_bytes}
        inputs = background.submit(input_hashes, circuit_folder, base)
        hashes = FolderHashes(folder)
        progress = start(plan) if start else None
        write_tensors(folder, plan.tasks, progress=progress, hashes=hashes, **options)
        for path in side_files(base):
            if path.name not in OWN_FILES:
                shutil.copyfile(path, folder / path.name)
        for name, data in plan.tokenizer.items():
            write_json(folder / name, data)
        write_base_record(hashes, base, plan.dropped)
        plan.config["qgpu"]["provenance"]["inputs"] = inputs.result()
        write_model_card(folder, base, plan)
        write_json(folder / CONFIG, plan.config)
        hashes.write_manifest()
    return plan
