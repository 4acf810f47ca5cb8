"""From the options of the command line to a conversation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from qgpu_run.chat.conversation import Conversation
from qgpu_run.chat.text_model import TextModel
from qgpu_run.chat.tools import Tools
from qgpu_run.engines.engine import Engine
from qgpu_run.launch_request import LaunchRequest
from qgpu_run.open_engine import SERVER, SERVER_TIMEOUT


def open_conversation(
    model: Path | None,
    *,
    profile: str | None = None,
    engine: str = "sparse",
    mode: str = "normal",
    check: bool = True,
    device: str = "cpu",
    wrap_engine: Callable[[Engine], Engine] | None = None,
    around_launch: Callable[[LaunchRequest], AbstractContextManager[object]] | None = None,
    say: Callable[[str], None] | None = None,
    server: str | None = None,
    timeout: float = SERVER_TIMEOUT,
) -> Conversation:
    """Loads a model for text, and a device for its launches.

    Args:
        model: a merged checkpoint; None for the stand-in.
        profile: the machine of the stand-in.
        engine: what runs launches.
        mode: `normal` or `advanced`.
        check: whether launches are compared with the reference interpreter.
        device: torch device of the text.
        wrap_engine, around_launch: as `qgpu.Device` takes them.
        say: gets the lines that building the stand-in writes; None: they go to standard error.
        server: address of a server that writes the text and runs the launches; `model` is then
            where the host finds tokenizer and settings, None where the server itself does.
        timeout: seconds to wait for each piece of its answers.

    Raises:
        ModelError: the model cannot be loaded, built, or talked with.
        ServerError: there is no such server.
    """
    from qgpu.device import Device

    from qgpu_run.chat.stand_in import DEFAULT_PROFILE, ensure_stand_in

    if server is not None:
        from qgpu_run.server.served_text import ServedText

        served = ServedText(server, model, profile, timeout)
        launches = Device(profile, SERVER, check=check, server=server, timeout=timeout)
        return Conversation(served, Tools(launches), mode)
    folder = ensure_stand_in(profile or DEFAULT_PROFILE, say) if model is None else model
    text = TextModel(folder, device=device)
    launches = Device(
        profile,
        engine,
        folder,
        check=check,
        torch_device=device,
        wrap_engine=wrap_engine,
        around_launch=around_launch,
    )
    return Conversation(text, Tools(launches), mode)
