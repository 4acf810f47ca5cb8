"""`qgpu-run ask`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from qgpu_run.errors import RequestError
from qgpu_run.open_engine import (
    device_option,
    engine_option,
    json_option,
    model_option,
    profile_option,
    server_option,
    timeout_option,
)


@click.command()
@click.argument("model_and_question", metavar="[MODEL] QUESTION", nargs=-1, required=True)
@model_option()
@profile_option("the model's, small for the stand-in")
@engine_option(("sparse", "transformers", "interpreter"))
@device_option()
@server_option()
@timeout_option()
@click.option("--mode", type=click.Choice(["normal", "advanced"]), default="normal")
@click.option("--check/--no-check", default=True, help="Compare launches with the interpreter.")
@json_option()
def command(
    model_and_question: tuple[str, ...],
    model: Path | None,
    profile: str | None,
    engine: str,
    device: str,
    server: str | None,
    timeout: float,
    mode: str,
    check: bool,
    as_json: bool,
) -> int:
    """Ask the model in the folder MODEL, or --model, one QUESTION; without one, the stand-in.

    The model calls its GPU where it wants to; what it called goes to standard error. A QUESTION of
    `-` is read from standard input.

    With --server, a server's model writes the text and runs the launches; MODEL is where this
    command finds its tokenizer, if the server is not on the same machine.

    Exits with 1 if a launch was not as the interpreter's, or if there is no answer.
    """
    if len(model_and_question) > 2:
        raise RequestError("ask takes a model and a question: put the question in quotes")
    question = model_and_question[-1]
    if len(model_and_question) == 2:
        if model is not None:
            raise RequestError("the model is named twice: in front of the question and by --model")
        model = Path(model_and_question[0])
    if question == "-":
        question = sys.stdin.read()
    if not question.strip():
        raise RequestError("the question is empty")
    from qgpu_run.chat.app.describe import EXACT
    from qgpu_run.chat.conversation import Answered, Called
    from qgpu_run.chat.open_conversation import open_conversation

    conversation = open_conversation(
        model,
        profile=profile,
        engine=engine,
        mode=mode,
        check=check,
        device=device,
        server=server,
        timeout=timeout,
    )
    answer = None
    for event in conversation.reply(question.strip()):
        if isinstance(event, Called) and not as_json:
            record = event.record
            for value in record.arguments.values():
                click.echo(f"> {value}", err=True)
            exact = EXACT[record.exact]
            tokens = f"{len(record.launches)} launches, {record.tokens} GPU tokens, {exact}"
            click.echo(f"= {record.response}  ({tokens})", err=True)
        elif isinstance(event, Answered):
            answer = event
    assert answer is not None
    click.echo(json.dumps(answer.to_dict()) if as_json else answer.text)
    if answer.stopped:
        click.echo(f"stopped: {answer.stopped}", err=True)
    return int(not answer.text or any(call.exact is False for call in answer.calls))
