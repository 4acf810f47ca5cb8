"""`qgpu-merge build`."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
from qgpu_isa.machine_config import DEFAULT, FIT, PROFILES

from qgpu_merge.commands.common import FOLDER, bar, say
from qgpu_merge.head_choice import HeadChoice

if TYPE_CHECKING:
    from qgpu_merge.merge_plan import MergePlan
    from qgpu_merge.write_checkpoint import Progress


@click.command()
@click.option("--circuit", type=FOLDER, help="Folder that `qgpu-circuit emit` wrote.")
@click.option("--base", metavar="FOLDER|NAME", help="Qwen3.5 checkpoint: a folder or a hub name.")
@click.option(
    "--profile",
    type=click.Choice([FIT, *PROFILES]),
    help=f"Machine to compile; default: '{FIT}', the largest that the base has room for.",
)
@click.option(
    "--head",
    type=click.Choice([choice.value for choice in HeadChoice]),
    default=HeadChoice.AUTO.value,
    show_default=True,
    help="Head that is the base's embedding: stays so, or gets a matrix of its own.",
)
@click.option("--pad", is_flag=True, help="Let the base grow to the shape that a machine needs.")
@click.option("-o", "--output", type=FOLDER, help="Folder to write; default: the cache.")
@click.option("--force", is_flag=True, help="Replace an existing checkpoint.")
@click.option("--shard-mb", type=click.IntRange(1), help="Largest size of a shard, in MiB.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --dry-run: print one JSON object.")
def command(
    circuit: Path | None,
    base: str | None,
    profile: str | None,
    head: str,
    pad: bool,
    output: Path | None,
    force: bool,
    shard_mb: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Write a merged checkpoint and print its path.

    What is not given is taken from the cache ($QGPU_CACHE or ~/.cache/qgpu) and made there if it
    is missing: the circuit of the profile, a small synthetic base, the merged checkpoint itself.

    The cache keeps what other versions of qgpu made for a day after its last use, an hour where
    the disk lacks room. What killed builds left is removed.

    The base is a folder, or a name on the Hugging Face hub such as Qwen/Qwen3.5-2B, with
    @REVISION if wanted, which is downloaded to the hub's cache.

    Missing parents of the output are made. A checkpoint that is there already is replaced only
    with --force, and anything else is never replaced. A link stays: its folder is written.

    With --dry-run no checkpoint is written and -o is not needed: the groups of tensors, their
    sizes and the notices are printed. What the plan needs, a circuit or a base that is missing,
    is still made or downloaded.
    """
    from qgpu_isa.cache import find_entry, tidy
    from qgpu_isa.new_folder import check_place

    from qgpu_merge.default_inputs import cached_model, ensure_base, ensure_circuit
    from qgpu_merge.write_checkpoint import CHECKPOINT_FOLDER

    if circuit is not None and profile is not None:
        raise click.UsageError("--circuit already says which machine; leave --profile out")
    if as_json and not dry_run:
        raise click.UsageError("--json goes with --dry-run")
    profile = profile or FIT
    if base is None and profile == FIT:
        profile = DEFAULT.name
    cached = output is None
    if output is None and not dry_run:
        if circuit is not None or base is not None:
            raise click.UsageError("-o is needed with --circuit or --base")
        output = cached_model(profile)
        if find_entry(output) and not force:
            click.echo(output)
            return
    if output is not None and not cached:
        check_place(output, CHECKPOINT_FOLDER, force=force)
    base_folder = None if base is None else _check_base(base, output)
    circuit = circuit or ensure_circuit(profile, say, base_folder, may_pad=pad)
    base_folder = base_folder or ensure_base(circuit, say)
    if dry_run:
        _print_plan(circuit, base_folder, pad=pad, head=HeadChoice(head), as_json=as_json)
        return
    assert output is not None
    from qgpu_merge.weights_to_checkpoint import build_checkpoint

    with ExitStack() as stack:

        def start(plan: MergePlan) -> Progress:
            if cached:
                tidy(output, plan.bytes)
            for notice in plan.notices:
                say(f"notice: {notice}")
            say(f"writing {len(plan.tasks)} tensors, {plan.bytes / 2**20:.0f} MiB")
            return bar(stack, plan.bytes, "merging")

        build_checkpoint(
            circuit,
            base_folder,
            output,
            force=force,
            shared=cached,
            may_pad=pad,
            head=HeadChoice(head),
            shard_bytes=None if shard_mb is None else shard_mb << 20,
            start=start,
        )
    click.echo(output)


def _check_base(base: str, output: Path | None) -> Path:
    """The folder of a base that can be read, before anything that takes long."""
    from qgpu_isa.new_folder import check_apart

    from qgpu_merge.errors import already_merged
    from qgpu_merge.read_checkpoint import Checkpoint
    from qgpu_merge.resolve_base import resolve_base

    folder = resolve_base(base, say)
    if output is not None:
        check_apart(output, [folder])
    if Checkpoint(folder).merged:
        raise already_merged(folder)
    return folder


def _print_plan(circuit: Path, base: Path, *, pad: bool, head: HeadChoice, as_json: bool) -> None:
    from qgpu_merge.describe_plan import describe_plan, plan_facts
    from qgpu_merge.read_checkpoint import Checkpoint
    from qgpu_merge.read_circuit import Circuit
    from qgpu_merge.weights_to_checkpoint import plan_from_folders

    plan = plan_from_folders(circuit, Checkpoint(base), may_pad=pad, head=head)
    facts = plan_facts(plan, Circuit(circuit))
    click.echo(json.dumps(facts, indent=2) if as_json else describe_plan(facts))
