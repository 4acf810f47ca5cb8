"""What a launch came to: as text and as one JSON object."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from qgpu_run.run_rows import Share
from qgpu_run.speculate import Speculation


@dataclass(frozen=True)
class RankShare:
    """What one of several processes did.

    Attributes:
        rank: its number.
        ctas: how many CTAs it ran.
        tokens, setup_tokens: tokens that its model and its host wrote.
        seconds: what they took it.
        min_margin: its smallest logit margin in bf16 steps; None where there are no logits.
    """

    rank: int
    ctas: int
    tokens: int
    setup_tokens: int
    seconds: float
    min_margin: float | None

    @property
    def rate(self) -> float | None:
        """Decoded tokens a second, None if it had nothing to do."""
        return self.tokens / self.seconds if self.seconds else None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "rank": self.rank,
            "ctas": self.ctas,
            "tokens": self.tokens,
            "setup_tokens": self.setup_tokens,
            "seconds": round(self.seconds, 3),
            "tokens_per_second": None if self.rate is None else round(self.rate, 1),
            "min_margin_bf16_steps": self.min_margin,
        }

    def to_text(self) -> str:
        """One line for people."""
        rate = "" if self.rate is None else f", {self.rate:.1f}/s"
        return (
            f"rank {self.rank}: {self.ctas} CTAs, {self.tokens} tokens, "
            f"{self.setup_tokens} setup tokens, {self.seconds:.1f} s{rate}"
        )


def rank_shares(shares: Sequence[Share]) -> list[RankShare]:
    """What each process did, by rank."""
    return [
        RankShare(
            rank,
            len(share.tokens),
            share.decoded_tokens,
            share.setup_tokens,
            share.seconds,
            share.min_margin if math.isfinite(share.min_margin) else None,
        )
        for rank, share in enumerate(shares)
    ]


@dataclass
class Outcome:
    """Everything that `qgpu-run launch` reports.

    Attributes:
        kernel, machine, engine: what ran on what.
        tokens: decoded tokens.
        setup_tokens: tokens that the host wrote.
        seconds: time of the whole launch (of the teacher-forced pass with `--verify` alone).
        sms: CTAs at a time, in each process.
        processes: how many ran the launch.
        ranks: what each of several did, if the launch came to its end; tokens are sums of theirs.
        guard_seconds: part of `seconds` that it took to see that CTAs do not depend on each other.
        outputs: arrays read back, by name.
        expected_ok: whether they are those of the launch spec; None if it names none.
        exact: whether tokens and memory are the interpreter's; None if that was not asked.
        min_margin: smallest logit margin in bf16 steps; None where there are no logits.
        baseline_tokens: tokens under the naive lowering, if known.
        checks: which comparisons were made.
        speculation: what came of drafts, if the host proposed any.
        problems: texts for people: differences, a fault.
        read_back_tokens, read_back_setup_tokens: what the engine and the host wrote to read the
            results back, where they came as tokens; no part of the launch's.
        requests, prompt_tokens: what was asked of a server.
        status: exit status.
    """

    kernel: str
    machine: str
    engine: str
    tokens: int = 0
    setup_tokens: int = 0
    seconds: float = 0.0
    sms: int = 1
    processes: int = 1
    ranks: list[RankShare] | None = None
    guard_seconds: float | None = None
    outputs: dict[str, list[int]] = field(default_factory=dict)
    expected_ok: bool | None = None
    exact: bool | None = None
    min_margin: float | None = None
    baseline_tokens: int | None = None
    checks: list[str] = field(default_factory=list)
    speculation: Speculation | None = None
    problems: list[str] = field(default_factory=list)
    read_back_tokens: int | None = None
    read_back_setup_tokens: int | None = None
    requests: int | None = None
    prompt_tokens: int | None = None
    status: int = 0

    def fail(self, problem: str) -> None:
        """Records a problem that makes the launch a failure."""
        self.problems.append(problem)
        self.status = 1

    def see_margin(self, margin: float) -> None:
        """Takes a margin into the smallest."""
        if math.isfinite(margin):
            self.min_margin = margin if self.min_margin is None else min(margin, self.min_margin)

    def _compared(self) -> str:
        if self.engine == "interpreter":
            return "nothing compared, the engine is the reference interpreter itself"
        if self.exact is None:
            return "not completed"
        return f"{'equal to' if self.exact else 'DIFFERENT FROM'} the reference interpreter"

    def to_dict(self) -> dict[str, Any]:
        """The outcome as plain JSON values."""
        return {
            "kernel": self.kernel,
            "machine": self.machine,
            "engine": self.engine,
            "exact": self.exact,
            "checks": self.checks,
            "expected_ok": self.expected_ok,
            "tokens": self.tokens,
            "setup_tokens": self.setup_tokens,
            "baseline_tokens": self.baseline_tokens,
            "min_margin_bf16_steps": self.min_margin,
            "seconds": round(self.seconds, 3),
            "sms": self.sms,
            "processes": self.processes,
            "ranks": None if self.ranks is None else [share.to_dict() for share in self.ranks],
            "guard_seconds": None if self.guard_seconds is None else round(self.guard_seconds, 3),
            "read_back_tokens": self.read_back_tokens,
            "read_back_setup_tokens": self.read_back_setup_tokens,
            "requests": self.requests,
            "prompt_tokens": self.prompt_tokens,
            "speculation": None if self.speculation is None else self.speculation.to_dict(),
            "outputs": self.outputs,
            "problems": self.problems,
        }

    def to_text(self) -> str:
        """The outcome for people."""
        lines = [f"{name} = {values}" for name, values in self.outputs.items()]
        rate = f", {self.tokens / self.seconds:.1f}/s" if self.seconds else ""
        versus = ""
        if self.baseline_tokens and self.tokens:
            versus = f" ({self.tokens / self.baseline_tokens:.2f} of the naive lowering's "
            versus += f"{self.baseline_tokens})"
        lines.append(
            f"{self.kernel} on machine '{self.machine}', {self.engine}: "
            f"{self.tokens} tokens{versus}, {self.setup_tokens} setup tokens, "
            f"{self.seconds:.1f} s{rate}"
        )
        if self.read_back_tokens is not None:
            lines.append(
                f"results read back as tokens: {self.read_back_tokens} tokens, "
                f"{self.read_back_setup_tokens} setup tokens"
            )
        if self.requests is not None:
            lines.append(f"{self.requests} requests with {self.prompt_tokens} prompt tokens")
        lines += [share.to_text() for share in self.ranks or ()]
        if self.guard_seconds is not None:
            each = f" in each of {self.processes} processes" if self.processes > 1 else ""
            lines.append(
                f"up to {self.sms} CTAs at a time{each}; none needs what another writes, as the "
                f"reference interpreter saw in {self.guard_seconds:.2f} s of these"
            )
        if self.speculation is not None:
            lines += self.speculation.lines()
        if self.checks:
            lines.append(f"{' and '.join(self.checks)}: {self._compared()}")
        if self.min_margin is not None:
            lines.append(f"smallest logit margin: {self.min_margin:.1f} bf16 steps")
        if self.expected_ok is not None:
            lines.append(f"results: {'as expected' if self.expected_ok else 'NOT as expected'}")
        return "\n".join([*lines, *self.problems])
