"""`qgpu-run calc`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from qgpu_run.errors import RequestError
from qgpu_run.open_engine import (
    device_option,
    engine_option,
    json_option,
    max_tokens_option,
    model_option,
    profile_option,
)


# An expression may begin with a minus sign.
@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("expression", required=False)
@click.option("--list", "as_list", is_flag=True, help="Print the table of operations.")
@profile_option()
@model_option()
@engine_option(("sparse", "transformers", "interpreter"))
@device_option()
@click.option("--check", is_flag=True, help="Compare every token with the interpreter's.")
@max_tokens_option()
@json_option()
def command(
    expression: str | None,
    as_list: bool,
    profile: str | None,
    model: Path | None,
    engine: str,
    device: str,
    check: bool,
    max_tokens: int,
    as_json: bool,
) -> int:
    """Evaluate EXPRESSION, as in "sum([12, 7, 30]) * 2": one kernel launch an operation.

    The model computes all values; numbers are integers of 32 bits. docs/expressions.md is about
    the language.

    Exits with 0 if all is well, 1 if a kernel found an overflow, a division by zero or the like,
    or if --check found a difference, and 2 on an expression that is wrong.
    """
    if as_list:
        from qgpu_run.expression.operations import operations_table

        click.echo(operations_table(), nl=False)
        return 0
    if expression is None:
        raise RequestError("calc takes an expression; --list prints what there is")
    from qgpu.device import Device

    from qgpu_run.expression import Calculator
    from qgpu_run.expression.plan import plan

    # What is wrong with it is told before a model is loaded.
    plan(expression)
    opened = Device(profile, engine, model, max_tokens=max_tokens, torch_device=device, check=check)
    result = Calculator(opened).evaluate(expression)
    if as_json:
        click.echo(json.dumps(result.to_dict()))
    else:
        click.echo(result.text)
        for line in result.summary(opened.config.name, opened.engine_name):
            click.echo(line)
    return int(result.exact is False)
