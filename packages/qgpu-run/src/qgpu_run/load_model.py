"""Loads a merged checkpoint, and builds the default one when it is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from qgpu_isa.checked_json import load_object
from qgpu_isa.file_hashes import FilesError, Progress
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.qgpu_section import read_section
from qgpu_isa.verify_files import verify_once
from qgpu_isa.vocabulary import vocabulary

from qgpu_run.errors import ModelError


@dataclass(frozen=True)
class ModelManifest:
    """The `qgpu` section of a merged checkpoint's config.

    Attributes:
        path: the checkpoint folder.
        config: the machine that the weights compute.
        token_offset: id of the machine's token 0 in the model's vocabulary.
        memory: where the words of memory lie: columns, rows_per_head and, per bank, the
            (layer, head) of each group of rows.
        digest: identity of the circuit.
        circuit_layers: how many layers, from the first, are the GPU's.
        text_gate: the dimension of the residual stream that marks text tokens.
    """

    path: Path
    config: MachineConfig
    token_offset: int
    memory: dict[str, Any]
    digest: str
    circuit_layers: int
    text_gate: int


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to run, and what its manifest says."""

    model: Any
    manifest: ModelManifest

    @property
    def config(self) -> MachineConfig:
        return self.manifest.config

    @property
    def token_offset(self) -> int:
        return self.manifest.token_offset

    @property
    def memory(self) -> dict[str, Any]:
        return self.manifest.memory


def read_manifest(path: Path) -> ModelManifest:
    """The manifest of a checkpoint folder; reads no weights.

    Raises:
        ModelError: the folder is no merged checkpoint of this format.
    """
    missing = f"{path} is not a checkpoint folder: it has no config.json"
    if not path.exists():
        missing = f"there is no {path}"
    config = load_object(path / "config.json", ModelError, missing)
    section = read_section(config, str(path), ModelError)
    machine = section.machine
    manifest = ModelManifest(
        path,
        machine,
        section.token_offset,
        section.memory,
        section.digest,
        section.circuit_layers,
        section.marks["text_gate"],
    )
    wanted = manifest.token_offset + vocabulary(machine).size
    nested = config.get("text_config", config)
    found = nested.get("vocab_size") if isinstance(nested, dict) else None
    if found != wanted:
        raise ModelError(
            f"{path} has {found} tokens, machine '{machine.name}' of this "
            f"version needs {wanted}: it was built by another version; build it again"
        )
    return manifest


def verified_manifest(path: Path) -> ModelManifest:
    """The manifest of a checkpoint folder whose files are those that were written.

    All files are hashed the first time, with progress on a terminal; see `verify_once`.

    Raises:
        ModelError: the folder is no merged checkpoint, or a file is damaged, missing or swapped.
    """
    manifest = read_manifest(path)
    with ExitStack() as stack:

        def start(size: int) -> Progress:
            bar = stack.enter_context(
                click.progressbar(length=size, label="checking", file=sys.stderr)
            )
            return bar.update

        try:
            verify_once(path, start if sys.stderr.isatty() else None)
        except FilesError as error:
            raise ModelError(str(error)) from None
    return manifest


def let_threads_sleep() -> None:
    """Has the threads of torch's matrix products sleep while they wait, instead of spin.

    On a machine whose cores are busy with something else, spinning makes a token 30 times slower;
    on an idle one sleeping costs about 2 %. Works only before torch is imported.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def load_model(path: Path, *, device: str = "cpu", threads: int | None = None) -> LoadedModel:
    """Loads a merged checkpoint in bf16 through transformers.

    Args:
        device: torch device.
        threads: most cores that torch may use from now on; None leaves it as it is.

    Raises:
        ModelError: it is foreign, incomplete or damaged.
    """
    manifest = verified_manifest(path)
    let_threads_sleep()
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    if threads is not None:
        torch.set_num_threads(min(threads, torch.get_num_threads()))
    quiet: Any = logging
    quiet.set_verbosity_error()
    quiet.disable_progress_bar()
    loader: Any = AutoModelForCausalLM
    try:
        model, info = loader.from_pretrained(
            path, dtype=torch.bfloat16, output_loading_info=True, local_files_only=True
        )
    except (SafetensorError, OSError, ValueError, RuntimeError, KeyError) as error:
        raise ModelError(f"{path} cannot be loaded, it is damaged or incomplete: {error}") from None
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info.get(kind):
            names = ", ".join(sorted(map(str, info[kind]))[:3])
            raise ModelError(f"{path} is incomplete: {kind.replace('_', ' ')}: {names}")
    try:
        model = model.to(device).eval()
        if model.device.type == "cuda":
            # What is compiled for a device runs on the current one.
            torch.cuda.set_device(model.device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"cannot use device '{device}': {str(error).splitlines()[0]}") from None
    return LoadedModel(model, manifest)


def load_text_model(path: Path) -> Any:
    """Loads any Qwen3.5 checkpoint in bf16 through transformers.

    Raises:
        ModelError: it cannot be loaded.
    """
    let_threads_sleep()
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    loader: Any = AutoModelForCausalLM
    try:
        return loader.from_pretrained(path, dtype=torch.bfloat16, local_files_only=True).eval()
    except (SafetensorError, OSError, ValueError, RuntimeError, KeyError) as error:
        raise ModelError(f"{path} cannot be loaded: {error}") from None


def ensure_model(profile: str) -> Path:
    """The merged checkpoint of a profile in the cache ($QGPU_CACHE), built now if it is missing.

    Raises:
        ModelError: the build failed; its own message has been shown.
    """
    command = [sys.executable, "-m", "qgpu_merge.cli", "build", "--profile", profile]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise ModelError(f"cannot build the model of machine '{profile}' (`qgpu-merge build`)")
    return Path(lines[-1])
