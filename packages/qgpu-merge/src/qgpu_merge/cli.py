"""qgpu-merge: put a compiled machine into a Qwen3.5 checkpoint."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from qgpu_isa.errors import QgpuError, os_error_text
from qgpu_isa.machine_config import PROFILES

if TYPE_CHECKING:
    from qgpu_merge.merge_plan import HeadChoice, MergePlan
    from qgpu_merge.write_checkpoint import Progress

FIT = "fit"

FOLDER = click.Path(path_type=Path)


def _fail(error: QgpuError) -> NoReturn:
    click.echo(f"error: {error}", err=True)
    sys.exit(error.exit_code)


def _reports_errors(command: Callable[..., None]) -> Callable[..., None]:
    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except QgpuError as error:
            _fail(error)
        except OSError as error:
            click.echo(f"error: {os_error_text(error)}", err=True)
            sys.exit(2)

    return run


def _say(text: str) -> None:
    click.echo(text, err=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="qgpu-merge")
def main() -> None:
    """Merge a qgpu circuit with a Qwen3.5 checkpoint."""


@main.command()
@click.option("--circuit", type=FOLDER, help="Folder that `qgpu-circuit emit` wrote.")
@click.option("--base", metavar="FOLDER|NAME", help="Qwen3.5 checkpoint: a folder or a hub name.")
@click.option(
    "--profile",
    type=click.Choice([FIT, *PROFILES]),
    help=f"Machine to compile; default: '{FIT}', the largest that the base has room for.",
)
@click.option(
    "--head",
    type=click.Choice(["auto", "tied", "own"]),
    default="auto",
    show_default=True,
    help="Head that is the base's embedding: stays so, or gets a matrix of its own.",
)
@click.option("--pad", is_flag=True, help="Let the base grow to the shape that a machine needs.")
@click.option("-o", "--output", type=FOLDER, help="Folder to write; default: the cache.")
@click.option("--force", is_flag=True, help="Replace an existing checkpoint.")
@click.option("--shard-mb", type=click.IntRange(1), help="Largest size of a shard, in MiB.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --dry-run: print one JSON object.")
@_reports_errors
def build(
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

    from qgpu_merge.default_inputs import cached_model, ensure_base, ensure_circuit

    if circuit is not None and profile is not None:
        raise click.UsageError("--circuit already says which machine; leave --profile out")
    if as_json and not dry_run:
        raise click.UsageError("--json goes with --dry-run")
    cached = output is None
    if output is None and not dry_run:
        if circuit is not None or base is not None:
            raise click.UsageError("-o is needed with --circuit or --base")
        profile = "default" if profile in (None, FIT) else profile
        output = cached_model(profile)
        if find_entry(output) and not force:
            click.echo(output)
            return
    from qgpu_merge.merge_plan import HeadChoice
    from qgpu_merge.resolve_base import resolve_base
    from qgpu_merge.weights_to_checkpoint import build_checkpoint

    base_folder = None if base is None else resolve_base(base, _say)
    if circuit is None:
        wanted = profile or FIT
        if base_folder is None and wanted == FIT:
            wanted = "default"
        circuit = ensure_circuit(wanted, _say, base_folder)
    base_folder = base_folder or ensure_base(circuit, _say)
    if dry_run:
        _print_plan(circuit, base_folder, pad=pad, head=HeadChoice(head), as_json=as_json)
        return
    assert output is not None
    with ExitStack() as stack:

        def start(plan: MergePlan) -> Progress:
            if cached:
                tidy(output, plan.bytes)
            for notice in plan.notices:
                _say(f"notice: {notice}")
            _say(f"writing {len(plan.tasks)} tensors, {plan.bytes / 2**20:.0f} MiB")
            bar = stack.enter_context(
                click.progressbar(length=plan.bytes, label="merging", file=sys.stderr)
            )
            return bar.update

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


def _print_plan(circuit: Path, base: Path, *, pad: bool, head: HeadChoice, as_json: bool) -> None:
    from qgpu_merge.describe_plan import describe_plan, plan_facts
    from qgpu_merge.read_checkpoint import Checkpoint
    from qgpu_merge.read_circuit import Circuit
    from qgpu_merge.weights_to_checkpoint import plan_from_folders

    plan = plan_from_folders(circuit, Checkpoint(base), may_pad=pad, head=head)
    facts = plan_facts(plan, Circuit(circuit))
    click.echo(json.dumps(facts, indent=2) if as_json else describe_plan(facts))


def _verify(path: Path) -> dict[str, int]:
    """Hashes all files of a folder, with progress; how many there are, and their bytes."""
    from qgpu_isa.verify_files import verify_files

    with ExitStack() as stack:

        def start(size: int) -> Progress:
            bar = stack.enter_context(
                click.progressbar(length=size, label="checking", file=sys.stderr)
            )
            return bar.update

        listed = verify_files(path, start)
    return {"files": len(listed), "bytes": sum(entry.size for entry in listed.values())}


@main.command()
@click.argument("path", type=FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--verify", is_flag=True, help="Read all files and compare their hashes.")
@_reports_errors
def inspect(path: Path, as_json: bool, verify: bool) -> None:
    """Show what a checkpoint folder holds.

    With --verify, a merged checkpoint is read in full: the first damaged, missing or swapped file
    is named. A launch does the same when files changed since the last one.
    """
    from qgpu_merge.inspect_checkpoint import describe, inspect_checkpoint

    verified = _verify(path) if verify else None
    facts = inspect_checkpoint(path)
    if verified is not None:
        facts["verified"] = verified
    click.echo(json.dumps(facts, indent=2) if as_json else describe(facts))


@main.command()
@click.argument("merged", type=FOLDER)
@click.option(
    "-o", "--output", type=FOLDER, required=True, help="Folder to write, with its parents."
)
@click.option("--force", is_flag=True, help="Replace an existing checkpoint.")
@_reports_errors
def extract(merged: Path, output: Path, force: bool) -> None:
    """Write the base model of a merged checkpoint, every tensor as it was."""
    from qgpu_merge.extract_base import extract_base

    with ExitStack() as stack:

        def start(size: int) -> Progress:
            bar = click.progressbar(length=size, label="extracting", file=sys.stderr)
            return stack.enter_context(bar).update

        extract_base(merged, output, force=force, start=start)
    click.echo(output)


@main.command()
@click.option(
    "-o", "--output", type=FOLDER, required=True, help="Folder to write, with its parents."
)
@click.option("--circuit", type=FOLDER, help="Take the sizes that this circuit needs.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--untied", is_flag=True, help="Give the head its own weights.")
@click.option(
    "--like",
    type=click.Choice(["0.8B", "2B", "4B"]),
    help="Published sizes, and weights that are hard on a merge.",
)
@click.option(
    "--layers", type=click.IntRange(4), help="With --like: another number of layers (4, 8, ...)."
)
@click.option("--force", is_flag=True, help="Replace an existing checkpoint.")
@_reports_errors
def synthesize(
    output: Path,
    circuit: Path | None,
    seed: int,
    untied: bool,
    like: str | None,
    layers: int | None,
    force: bool,
) -> None:
    """Write a random Qwen3.5 checkpoint: a small one, or one of a published size."""
    from qgpu_merge.read_circuit import Circuit
    from qgpu_merge.synthetic_base import SyntheticSizes, write_synthetic_base

    if like is not None:
        from qgpu_merge.published_shapes import write_published_base

        if circuit is not None or untied:
            raise click.UsageError("--like says all sizes; leave --circuit and --untied out")
        if layers is not None and layers % 4:
            raise click.UsageError("--layers must be a multiple of 4")
        with ExitStack() as stack:

            def start(size: int) -> Progress:
                bar = click.progressbar(length=size, label="writing", file=sys.stderr)
                return stack.enter_context(bar).update

            write_published_base(output, like, layers=layers, seed=seed, force=force, start=start)
        click.echo(output)
        return
    if layers is not None:
        raise click.UsageError("--layers goes with --like")
    sizes = SyntheticSizes() if circuit is None else SyntheticSizes.for_circuit(Circuit(circuit))
    write_synthetic_base(output, sizes, seed=seed, tied=not untied, force=force)
    click.echo(output)


@main.command()
@click.argument("original")
@click.argument("merged", type=FOLDER)
@click.option(
    "--text", "texts", type=FOLDER, multiple=True, help="Text file instead of the default text."
)
@click.option("--tokens", type=click.IntRange(4), default=20_000, show_default=True)
@click.option(
    "--sequence", type=click.IntRange(2), default=512, show_default=True, help="Longest sequence."
)
@click.option(
    "--layer-tokens",
    type=click.IntRange(1),
    default=512,
    show_default=True,
    help="Text tokens to take through the GPU layers.",
)
@click.option(
    "--continuations",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    help="Greedy continuations to compare; 0 never loads the original whole.",
)
@click.option("--continuation-tokens", type=click.IntRange(1), default=256, show_default=True)
@click.option("--all-layers", is_flag=True, help="Run the GPU layers in every measurement.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or mps.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@_reports_errors
def check(original: str, merged: Path, as_json: bool, **options: Any) -> None:
    """Measure that MERGED treats text as ORIGINAL does.

    ORIGINAL is a folder or a name on the hub, as the --base of a build.

    Exit status: 0 if all limits are met, 1 if one is missed, 2 for wrong input.
    """
    # Read when torch is imported: its threads sleep while they wait, so busy cores do not stall it.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from qgpu_merge.check.open_pair import open_pair
    from qgpu_merge.resolve_base import resolve_base

    pair = open_pair(resolve_base(original, _say), merged)
    from qgpu_merge.check.limits import failures
    from qgpu_merge.check.measure import Options, measure
    from qgpu_merge.check.progress import StageBars
    from qgpu_merge.check.report import describe
    from qgpu_merge.check.result import as_json as result_as_json

    with StageBars() as bars:
        result = measure(pair, Options(**options), bars.stage)
    missed = failures(result)
    click.echo(
        json.dumps(result_as_json(result, missed), indent=2, ensure_ascii=False)
        if as_json
        else describe(result, missed)
    )
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
