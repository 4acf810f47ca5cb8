"""The command `qgpu-isa`."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from qgpu_isa.docgen import (
    PROFILE_HEAD,
    control_row,
    instruction_rows,
    profile_rows,
    stale_documents,
    write_documents,
)
from qgpu_isa.errors import QgpuError, os_error_text
from qgpu_isa.files import InputError, read_image_for, read_memory, write_text
from qgpu_isa.instruction import INSTRUCTIONS, Instruction
from qgpu_isa.interpreter import Launch, Machine, StepRecord, launch_tokens, run_launch
from qgpu_isa.interpreter.machine import MAX_CTAS, cta_tokens
from qgpu_isa.machine_config import PROFILES
from qgpu_isa.program_json import image_to_json
from qgpu_isa.program_text import image_to_text
from qgpu_isa.suggestions import did_you_mean
from qgpu_isa.tables import plain_table
from qgpu_isa.trace import ids_text, step_dicts, step_texts, stream, token_dict
from qgpu_isa.vocabulary import Fault, Token, TokenClass, vocabulary
from qgpu_isa.words import signed


class _Failure(click.ClickException):
    """What the user asked for was done, and the answer is that something is wrong."""

    exit_code = 1

    def show(self, file: Any = None) -> None:
        # Messages with a place in a file say "error:" themselves.
        prefix = "" if ": error: " in self.message else "error: "
        click.echo(f"{prefix}{self.message}", err=True)


class _Mistake(_Failure):
    """The user's input cannot be used."""

    exit_code = 2


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """Turns errors about the user's input into messages."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        try:
            function(*args, **kwargs)
        except QgpuError as error:
            failure = _Mistake if error.exit_code == _Mistake.exit_code else _Failure
            raise failure(str(error)) from None
        except OSError as error:
            raise _Mistake(os_error_text(error)) from None

    return wrapper


def _path(name: str) -> Callable[..., Any]:
    return click.argument(name, type=click.Path(path_type=Path), metavar="FILE")


def _json_flag(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def _output(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "-o", "--output", type=click.Path(path_type=Path), help="File to write (default: print)."
    )(function)


def _machine_option(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--machine", help="Machine of the file; needed for a listing without a .machine line."
    )(function)


def _launch_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for decorate in (
        click.option(
            "--memory",
            multiple=True,
            metavar="A=W,..|FILE",
            help="Words from byte address A on, or a JSON file of such lists; may be repeated.",
        ),
        click.option("--ctas", default=1, type=click.IntRange(1, MAX_CTAS), show_default=True),
        click.option("--threads", type=click.IntRange(1), help="Threads a CTA (default: all)."),
        _machine_option,
        _path("image"),
    ):
        function = decorate(function)
    return function


def _launch(
    image: Path, machine: str | None, threads: int | None, ctas: int, memory: tuple[str, ...]
) -> Launch:
    program = read_image_for(image, machine)
    config = program.config
    count = config.threads if threads is None else threads
    if count > config.threads:
        raise InputError(
            f"--threads {count}: machine '{config.name}' holds {config.threads} threads a CTA"
        )
    return Launch(program, read_memory(config, memory), count, ctas)


def _max_tokens(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--max-tokens", default=1_000_000, type=click.IntRange(1), show_default=True
    )(function)


def _print_json(data: Any) -> None:
    click.echo(json.dumps(data, indent=1))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="qgpu-isa")
def main() -> None:
    """The qgpu machine: its instructions, programs, tokens and reference interpreter."""


@main.command("list")
@_json_flag
@_command
def list_(as_json: bool) -> None:
    """Lists all instructions."""
    if as_json:
        _print_json([_instruction_dict(i) for i in INSTRUCTIONS])
        return
    rows = [(row[0].strip("`"), *row[1:4]) for row in instruction_rows(INSTRUCTIONS)]
    click.echo(plain_table(("mnemonic", "opcode", "slots", "result"), rows), nl=False)


@main.command()
@click.argument("name")
@_json_flag
@_command
def show(name: str, as_json: bool) -> None:
    """Shows one instruction."""
    if name not in INSTRUCTIONS:
        hint = did_you_mean(name, (i.name for i in INSTRUCTIONS))
        raise InputError(f"there is no instruction '{name}'{hint or '; see qgpu-isa list'}")
    facts = _instruction_dict(INSTRUCTIONS[name])
    if as_json:
        _print_json(facts)
        return
    slots = " ".join(facts["slots"])
    click.echo(f"{name}: {facts['doc']}\nopcode  {facts['opcode']}\nslots   {slots}")
    click.echo(f"unit    {facts['unit']}")


def _instruction_dict(instruction: Instruction) -> dict[str, Any]:
    return {
        "name": instruction.name,
        "opcode": instruction.opcode,
        "slots": [slot.name for slot in instruction.slots],
        "doc": " ".join(instruction.doc.split()),
        "unit": control_row(instruction.unit),
        "control": asdict(instruction.unit),
    }


@main.command()
@_path("listing")
@_output
@_machine_option
@_command
def asm(listing: Path, output: Path | None, machine: str | None) -> None:
    """Assembles the listing in FILE into a JSON image."""
    _emit(image_to_json(read_image_for(listing, machine)), output)


@main.command()
@_path("image")
@_output
@_machine_option
@_command
def disasm(image: Path, output: Path | None, machine: str | None) -> None:
    """Prints FILE, a program image (JSON) or a listing, as a listing."""
    _emit(image_to_text(read_image_for(image, machine)), output)


def _emit(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)


@main.command()
@_launch_options
@_max_tokens
@click.option("--registers", is_flag=True, help="Print the registers that are not 0 as well.")
@_json_flag
@_command
def run(max_tokens: int, registers: bool, as_json: bool, **launch: Any) -> None:
    """Runs FILE, a program image (JSON) or a listing; prints the memory that changed.

    Ends with code 1 if the launch faults.
    """
    request = _launch(**launch)
    machine, steps = run_launch(request, max_tokens)
    changes = _memory_changes(request, machine)
    values = _registers(machine) if registers else []
    last = steps[-1].token
    fault = Fault(last.values[0]).name if last.cls is TokenClass.FAULT else None
    if as_json:
        result: dict[str, Any] = {"tokens": len(steps), "fault": fault, "memory": changes}
        if registers:
            result["registers"] = values
        _print_json(result)
    else:
        rows = [(f"{c['address']:#x}", c["before"], c["after"]) for c in changes]
        if rows:
            click.echo(plain_table(("address", "before", "after"), rows), nl=False)
        else:
            click.echo("no word of memory changed")
        if registers:
            head = ("pass", "register", "lanes")
            listed = [(v["pass"], f"r{v['register']}", *[v["lanes"]]) for v in values]
            click.echo("\n" + plain_table(head, listed), nl=False)
        click.echo(f"\n{len(steps)} tokens")
    if fault is not None:
        raise _Failure(_fault_message(request, steps[-1], fault))


def _memory_changes(launch: Launch, machine: Machine) -> list[dict[str, int]]:
    before = (
        (number, launch.memory.get(number, 0)) for number in range(launch.config.memory_words)
    )
    return [
        {
            "address": 4 * number,
            "before": signed(word),
            "after": signed(machine.state.memory[number]),
        }
        for number, word in before
        if machine.state.memory[number] != word
    ]


def _registers(machine: Machine) -> list[dict[str, Any]]:
    return [
        {"pass": g, "register": index, "lanes": [signed(word) for word in row]}
        for g, rows in enumerate(machine.state.registers)
        for index, row in enumerate(rows)
        if any(row)
    ]


def _fault_message(launch: Launch, step: StepRecord, fault: str) -> str:
    source = launch.image.blocks[step.block].source
    place = f" ({source[0]})" if source else ""
    return f"fault {fault} in CTA {step.cta}, pass {step.pass_}, block {step.block}{place}"


@main.command()
@_launch_options
@_max_tokens
@_json_flag
@click.option("--ids", is_flag=True, help="Print ids alone, with the tokens fed before each CTA.")
@_command
def trace(max_tokens: int, as_json: bool, ids: bool, **launch: Any) -> None:
    """Prints every token that the machine decodes on FILE, a program image (JSON) or a listing.

    With --ids the whole stream is printed, one id a line, for `qgpu-circuit eval`.
    """
    if as_json and ids:
        raise click.UsageError("give --json or --ids, not both")
    request = _launch(**launch)
    _, steps = run_launch(request, max_tokens)
    if ids:
        click.echo(ids_text(stream(request, steps), request.config), nl=False)
    elif as_json:
        _print_json(step_dicts(steps, request.config))
    else:
        click.echo(step_texts(steps, request.config), nl=False)


@main.command()
@_launch_options
@_json_flag
@_command
def tokens(as_json: bool, **launch: Any) -> None:
    """Prints the tokens that are fed before each CTA's answer.

    FILE is a program image (JSON) or a listing.
    """
    request = _launch(**launch)
    config = request.config
    stream: list[Token] = launch_tokens(request)
    ctas = [cta_tokens(config, request.threads, cta) for cta in range(request.ctas)]
    if as_json:
        _print_json(
            {
                "launch": [token_dict(token, config) for token in stream],
                "ctas": [[token_dict(token, config) for token in cta] for cta in ctas],
            }
        )
        return
    vocab = vocabulary(config)
    for part in (stream, *ctas):
        click.echo(plain_table(("id", "token"), ((vocab.encode(t), t) for t in part)))


@main.command()
@click.option(
    "--folder", default="docs", type=click.Path(path_type=Path, file_okay=False), show_default=True
)
@click.option("--check", is_flag=True, help="Write nothing; end with code 1 if any is stale.")
@_command
def docs(folder: Path, check: bool) -> None:
    """Writes the generated documents isa.md and tokens.md."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; go to the repository or give --folder")
    stale = stale_documents(folder) if check else write_documents(folder)
    for path in stale:
        state = "is stale" if path.exists() else "is missing"
        click.echo(f"{path} {state}" if check else f"wrote {path}")
    if check and stale:
        raise _Failure("generated documents are not up to date; run: qgpu-isa docs")


@main.command()
@_json_flag
@_command
def profiles(as_json: bool) -> None:
    """Lists the machine profiles."""
    if as_json:
        rows = profile_rows(PROFILES.values())
        _print_json(
            [
                dict(zip((h.replace(" ", "_") for h in PROFILE_HEAD), row, strict=True))
                for row in rows
            ]
        )
    else:
        click.echo(plain_table(PROFILE_HEAD, profile_rows(PROFILES.values())), nl=False)
