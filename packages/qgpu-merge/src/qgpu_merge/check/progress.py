"""One line on a terminal that says how far a check is."""

from __future__ import annotations

import sys
from contextlib import ExitStack

import click

from qgpu_merge.check.run_models import Step


class StageBars:
    """A progress bar on stderr for each stage, one after the other."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def __enter__(self) -> StageBars:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def stage(self, name: str, steps: int) -> Step:
        """Ends the bar before and begins one."""
        self._stack.close()
        bar = click.progressbar(length=steps, label=f"{name:<22}", file=sys.stderr)
        entered = self._stack.enter_context(bar)
        return lambda: entered.update(1)
