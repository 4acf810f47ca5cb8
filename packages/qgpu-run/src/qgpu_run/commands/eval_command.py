"""`qgpu-run eval`."""

from __future__ import annotations

import json
import sys
from itertools import chain
from pathlib import Path

import click

from qgpu_run.open_engine import (
    device_option,
    engine_option,
    json_option,
    model_option,
    profile_option,
)


@click.command()
@click.option("--samples", type=click.IntRange(1), default=100, show_default=True)
@click.option(
    "--mode",
    type=click.Choice(["normal", "advanced", "both"]),
    default="normal",
    show_default=True,
    help="Expressions, kernels that the model writes, or so many samples of each.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@profile_option("the model's, small for the stand-in")
@model_option()
@engine_option(("sparse", "transformers", "interpreter"))
@device_option()
@click.option("--show-wrong", is_flag=True, help="Print what was not right.")
@json_option()
def command(
    samples: int,
    mode: str,
    seed: int,
    profile: str | None,
    model: Path | None,
    engine: str,
    device: str,
    show_wrong: bool,
    as_json: bool,
) -> int:
    """Ask generated questions with known answers, and count what is right.

    All launches are compared with the interpreter. The stand-in has seen neither the wordings nor
    the numbers of three digits and more. Exits with 1 if a launch was not exact.
    """
    from qgpu_run.chat.evaluate import (
        EVALUATED_MODES,
        Outcome,
        Score,
        by_category,
        draw_tasks,
        run_evaluation,
    )
    from qgpu_run.chat.open_conversation import open_conversation

    conversation = open_conversation(model, profile=profile, engine=engine, device=device)
    modes = EVALUATED_MODES[mode]
    tasks = chain.from_iterable(draw_tasks(samples, seed, one) for one in modes)
    bar = click.progressbar(length=samples * len(modes), label="asking", file=sys.stderr)
    with bar:

        def after(outcome: Outcome) -> None:
            bar.update(1)
            if show_wrong and not (outcome.right and outcome.call_right) and not as_json:
                calls = "; ".join(" ".join(call.arguments.values()) for call in outcome.calls)
                click.echo(f"\n{outcome.task.messages[-1]}\n  called {calls or 'nothing'}")
                click.echo(f"  said {outcome.answer!r}, expected {outcome.task.response}")

        outcomes = run_evaluation(conversation, tasks, after)
    total, parts = Score.of(outcomes), by_category(outcomes)
    if as_json:
        wrong = [o.to_dict() for o in outcomes if not (o.right and o.call_right)]
        categories = {name: score.to_dict() for name, score in parts.items()}
        facts = {"model": str(conversation.model.folder), "mode": mode, "seed": seed}
        click.echo(json.dumps(facts | total.to_dict() | {"categories": categories, "wrong": wrong}))
    else:
        click.echo(
            f"{'':22}{'samples':>8}{'right':>8}{'calls':>8}{'kernels':>9}{'launches exact':>16}"
        )
        for name, score in [*parts.items(), ("all", total)]:
            row = score.to_dict()
            click.echo(
                f"{name:22}{score.samples:8}{row['accuracy']:8.1%}{row['calls_right']:8.1%}"
                f"{row['kernels_right']:9.1%}{row['launches_exact']:16.1%}"
            )
    return int(total.exact != total.ran)
