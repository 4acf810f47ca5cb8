"""From the options of the command line to a machine and an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click
from qgpu_isa.machine_config import PROFILES, MachineConfig
from qgpu_isa.machine_config import profile as profile_config

if TYPE_CHECKING:
    from qgpu_run.engines.engine import Engine
    from qgpu_run.progress import Progress
    from qgpu_run.server.client import ServerClient

DEFAULT_PROFILE = "default"

MODEL_ENGINES = ("transformers", "sparse")
"""Engines that run the weights of a checkpoint."""

ENGINES = (*MODEL_ENGINES, "interpreter")

SERVER = "server"
"""The engine that is a server's model; few commands offer it."""

SERVER_TIMEOUT = 600.0
"""Seconds without a piece of a server's answer, of which reading a long prompt is the longest."""


class MachineChoice(Protocol):
    """Which machine a kernel is to be lowered for."""

    @property
    def is_explicit(self) -> bool:
        """Whether it must be this one; a program image names its own."""

    def machine(self) -> MachineConfig:
        """The machine."""


@dataclass(frozen=True)
class OpenedMachine:
    """The machine of an engine that is open already."""

    config: MachineConfig
    is_explicit: bool = True

    def machine(self) -> MachineConfig:
        """The machine."""
        return self.config


@dataclass(frozen=True)
class EngineChoice:
    """What the user said about machine and engine.

    Attributes:
        engine: one of `ENGINES`, or `SERVER`.
        profile: a profile's name, None if not given.
        model: folder of a merged checkpoint, None for the one of the profile; of a server, the name
            under which it knows the model.
        device: torch device of the transformers engine.
        server: address of the server.
        timeout: seconds to wait for each piece of its answers.
        threads: cores that the engine may use; None for all.
    """

    engine: str
    profile: str | None = None
    model: Path | None = None
    device: str = "cpu"
    server: str | None = None
    timeout: float = SERVER_TIMEOUT
    threads: int | None = None

    def machine(self) -> MachineConfig:
        """The machine to lower for: the checkpoint's or the server's, else the profile's.

        Raises:
            RequestError: checkpoint and profile are different machines.
            ModelError: the folder is no merged checkpoint.
            ServerError: no server answers, or its model is no GPU.
        """
        if self.engine == SERVER:
            return self._connect()[1]
        if self.model is not None and self.engine in MODEL_ENGINES:
            from qgpu_run.errors import RequestError
            from qgpu_run.load_model import read_manifest

            config = read_manifest(self.model).config
            if self.profile is not None and profile_config(self.profile) != config:
                raise RequestError(
                    f"{self.model} computes machine '{config.name}', not '{self.profile}'"
                )
            return config
        return profile_config(self.profile or DEFAULT_PROFILE)

    @property
    def is_explicit(self) -> bool:
        """Whether the user named a machine at all; a program image names its own."""
        if self.engine == SERVER:
            return True
        return self.profile is not None or (self.model is not None and self.engine in MODEL_ENGINES)

    def prepare(self, config: MachineConfig) -> None:
        """Builds the checkpoint if it is missing, and reads it through once, as `open` would.

        Raises:
            RequestError: no checkpoint can be built for this machine.
            ModelError: the checkpoint cannot be built, or is damaged.
        """
        if self.engine in MODEL_ENGINES:
            from qgpu_run.load_model import verified_manifest

            verified_manifest(self._checkpoint(config))

    def open(self, config: MachineConfig, progress: Progress, *, quiet: bool = False) -> Engine:
        """The engine, with its checkpoint loaded, and built before if it is missing.

        Args:
            quiet: does not say which checkpoint it loads.

        Raises:
            RequestError: no checkpoint can be built for this machine.
            ModelError: the checkpoint cannot be built or loaded.
        """
        if self.engine == "interpreter":
            from qgpu_run.engines.interpreter_engine import InterpreterEngine

            return InterpreterEngine(config)
        if self.engine == SERVER:
            from qgpu_run.engines.server_engine import ServerEngine

            return ServerEngine(self._connect()[0], config)
        path = self._checkpoint(config)
        if not quiet:
            click.echo(f"loading {path}", err=True)
        if self.engine == "sparse":
            from qgpu_run.engines.sparse.engine import load_sparse_engine

            return load_sparse_engine(path, progress=progress.read, threads=self.threads)
        from qgpu_run.load_model import load_model

        loaded = load_model(path, device=self.device, threads=self.threads)
        from qgpu_run.engines.transformers_engine import TransformersEngine

        return TransformersEngine(loaded, progress=progress.read)

    def _connect(self) -> tuple[ServerClient, MachineConfig]:
        from qgpu_run.errors import RequestError
        from qgpu_run.server.find_machine import connect

        if self.server is None:
            raise RequestError("name the server: --server http://localhost:8000")
        model = None if self.model is None else str(self.model)
        return connect(self.server, model, self.profile, self.timeout)

    def _checkpoint(self, config: MachineConfig) -> Path:
        if self.model is not None:
            return self.model
        from qgpu_run.errors import RequestError
        from qgpu_run.load_model import ensure_model

        name = self.profile or config.name
        if PROFILES.get(name) != config:
            raise RequestError(f"machine '{config.name}' is no profile: give --model")
        return ensure_model(name)


Decorator = Callable[[Any], Any]


def profile_option(default: str = DEFAULT_PROFILE) -> Decorator:
    """`--profile` with its default left open, so that a checkpoint or image can decide."""
    return click.option(
        "--profile", type=click.Choice(list(PROFILES)), help=f"Machine; default: {default}."
    )


def model_option() -> Decorator:
    """`--model`."""
    return click.option(
        "--model", type=click.Path(path_type=Path), help="Merged checkpoint folder."
    )


def engine_option(engines: tuple[str, ...] = ENGINES) -> Decorator:
    """`--engine`."""
    return click.option(
        "--engine",
        type=click.Choice(engines),
        default=engines[0],
        show_default=True,
        help="transformers: the unmodified class; sparse: its arithmetic without the zeros.",
    )


def server_option() -> Decorator:
    """`--server`."""
    return click.option(
        "--server", metavar="URL", help="Server of a model with named tokens (docs/server.md)."
    )


def timeout_option() -> Decorator:
    """`--timeout`."""
    return click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        default=SERVER_TIMEOUT,
        show_default=True,
        help="Seconds to wait for each piece of a server's answer.",
    )


def device_option() -> Decorator:
    """`--device`."""
    return click.option("--device", default="cpu", show_default=True, help="Device of the model.")


def max_tokens_option() -> Decorator:
    """`--max-tokens`."""
    from qgpu_run.launch import MAX_TOKENS

    return click.option(
        "--max-tokens", type=click.IntRange(1), default=MAX_TOKENS, show_default=True
    )


def processes_option() -> Decorator:
    """`--processes`."""
    return click.option(
        "--processes",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        help="Processes that share the CTAs, each with the model.",
    )


def json_option() -> Decorator:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
