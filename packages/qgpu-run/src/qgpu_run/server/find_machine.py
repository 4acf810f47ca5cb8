"""Which machine a server's model is, as its tokenizer tells."""

from __future__ import annotations

from functools import lru_cache

from qgpu_isa.machine_config import PROFILES, MachineConfig
from qgpu_isa.token_names import token_name
from qgpu_isa.vocabulary import vocabulary

from qgpu_run.errors import RequestError, ServerError
from qgpu_run.server.client import ServerClient


def find_machine(client: ServerClient) -> MachineConfig:
    """The machine whose last tokens are each one token to the server.

    Raises:
        ServerError: there is none: the model is no GPU, or its tokenizer does not name all tokens.
    """
    for config in PROFILES.values():
        vocab = vocabulary(config)
        last = [vocab.decode(vocab.range_of(cls)[-1]) for cls in vocab.classes]
        if client.count("".join(map(token_name, last))) == len(last):
            return config
    raise ServerError(
        f"{client.url}: the tokenizer of '{client.model}' does not name the tokens of a GPU; "
        "serve the folder that `qgpu-merge name-tokens` writes"
    )


@lru_cache
def connect(
    url: str, model: str | None, profile: str | None, timeout: float
) -> tuple[ServerClient, MachineConfig]:
    """A server, and the machine of its model.

    Raises:
        ServerError: there is no such server, model or machine.
        RequestError: it is another machine than the profile.
    """
    client = ServerClient(url, model, timeout=timeout)
    config = find_machine(client)
    if profile is not None and PROFILES[profile] != config:
        raise RequestError(f"the server's model is machine '{config.name}', not '{profile}'")
    return client, config
