"""Decoded tokens as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from qgpu_isa.interpreter import Launch, StepRecord, launch_tokens
from qgpu_isa.interpreter.machine import cta_tokens
from qgpu_isa.machine_config import MachineConfig
from qgpu_isa.tables import plain_table
from qgpu_isa.vocabulary import Token, vocabulary

IDS_HEAD = "# machine "
"""Begins the first line of a file of ids, before the machine's name."""


def step_texts(steps: Sequence[StepRecord], config: MachineConfig) -> str:
    """One line a token: what it is and what it belongs to. Masks show lane 0 rightmost."""
    vocab = vocabulary(config)
    return plain_table(
        ("#", "token", "id", "cta", "block", "pass", "mask", "slot"),
        (
            (
                index,
                step.token,
                vocab.encode(step.token),
                step.cta,
                step.block,
                step.pass_,
                f"{step.mask:0{config.lanes}b}",
                "" if step.slot is None else step.slot.name,
            )
            for index, step in enumerate(steps)
        ),
    )


def step_dicts(steps: Sequence[StepRecord], config: MachineConfig) -> list[dict[str, Any]]:
    """The same as plain dicts."""
    return [
        {
            **token_dict(step.token, config),
            "cta": step.cta,
            "block": step.block,
            "pass": step.pass_,
            "mask": step.mask,
            "slot": None if step.slot is None else step.slot.name,
        }
        for step in steps
    ]


def token_dict(token: Token, config: MachineConfig) -> dict[str, Any]:
    """A token as its class name, its fields by name, and its id."""
    vocab = vocabulary(config)
    names = (field.name for field in vocab.fields[token.cls])
    return {
        "class": token.cls.name,
        "fields": dict(zip(names, token.values, strict=True)),
        "id": vocab.encode(token),
    }


def stream(launch: Launch, steps: Sequence[StepRecord]) -> list[Token]:
    """All tokens in the order in which a model sees them: the setup, then CTA by CTA what is fed
    and what is decoded."""
    tokens = launch_tokens(launch)
    for cta, answer in groupby(steps, key=lambda step: step.cta):
        tokens += cta_tokens(launch.config, launch.threads, cta)
        tokens += (step.token for step in answer)
    return tokens


def ids_text(tokens: Sequence[Token], config: MachineConfig) -> str:
    """Ids one a line, below a comment that names the machine they are for."""
    vocab = vocabulary(config)
    lines = [f"{IDS_HEAD}{config.name}", *(str(vocab.encode(token)) for token in tokens)]
    return "\n".join(lines) + "\n"
