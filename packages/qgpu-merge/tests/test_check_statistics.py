"""Divergences from blocks of logits, intervals and the sign test."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from qgpu_merge.check.compare_logits import RunningDivergence, RunningMass, RunningSoftmax
from qgpu_merge.check.confidence import mean, ratio, sign_test

CPU = torch.device("cpu")
TOKENS = 5


def running(
    p: torch.Tensor, q: torch.Tensor, cuts: list[int]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """KL, Q's choice and Q's mass behind P's vocabulary, from blocks that end at the cuts."""
    one, other = RunningSoftmax(TOKENS, CPU), RunningSoftmax(TOKENS, CPU)
    divergence, mass = RunningDivergence(one, other), RunningMass(other)
    edges = sorted({0, *cuts, p.shape[1], q.shape[1]})
    for start, stop in pairwise(edges):
        block = q[:, start:stop]
        added = other.add(block, start)
        if stop <= p.shape[1]:
            divergence.add(one.add(p[:, start:stop], start), p[:, start:stop], block)
        mass.add(added, inside=stop > p.shape[1])
    return divergence.value(), other.choice, mass.value()


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**16),
    text=st.integers(1, 40),
    gpu=st.integers(1, 20),
    scale=st.sampled_from([1e-6, 1.0, 60.0, 1e4]),
    cuts=st.lists(st.integers(1, 39), max_size=4),
)
def test_blocks_give_the_direct_result(
    seed: int, text: int, gpu: int, scale: float, cuts: list[int]
) -> None:
    generator = torch.Generator().manual_seed(seed)
    p = scale * torch.randn(TOKENS, text, dtype=torch.float64, generator=generator)
    q = torch.randn(TOKENS, text + gpu, dtype=torch.float64, generator=generator)
    q[:, :text] += p
    cuts = [cut for cut in cuts if cut < text]
    divergence, choice, mass = running(p, q, cuts)
    log_p, log_q = p.log_softmax(-1), q.log_softmax(-1)
    expected = (log_p.exp() * (log_p - log_q[:, :text])).sum(-1)
    assert torch.allclose(divergence, expected, rtol=1e-9, atol=1e-11 * max(1.0, scale))
    assert torch.equal(choice, q.argmax(-1))
    assert torch.allclose(mass, log_q.exp()[:, text:].sum(-1), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0])
def test_a_model_does_not_diverge_from_itself(scale: float) -> None:
    p = scale * torch.randn(TOKENS, 999, generator=torch.Generator().manual_seed(1)).double()
    divergence, _, _ = running(p, p.clone(), [100, 101, 500])
    assert float(divergence.abs().max()) < 1e-12


def test_a_small_divergence_is_not_lost() -> None:
    p = torch.randn(TOKENS, 5000, generator=torch.Generator().manual_seed(1)).double()
    shift = 1e-5 * torch.randn(p.shape, generator=torch.Generator().manual_seed(2)).double()
    divergence, _, _ = running(p, p + shift, [2000])
    probability = p.softmax(-1)
    spread = (probability * shift**2).sum(-1) - (probability * shift).sum(-1) ** 2
    assert torch.allclose(divergence, spread / 2, rtol=1e-3)


def test_ties_go_to_the_lowest_id() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0, 2.0, 3.0]], dtype=torch.float64)
    soft = RunningSoftmax(1, CPU)
    soft.add(logits[:, :1], 0)
    soft.add(logits[:, 1:4], 1)
    soft.add(logits[:, 4:], 4)
    assert soft.choice.tolist() == [1]


def test_not_a_number_stays_visible() -> None:
    p = torch.zeros(TOKENS, 8, dtype=torch.float64)
    q = p.clone()
    q[2, 6] = math.nan
    divergence, _, _ = running(p, q, [4])
    assert divergence.isnan().tolist() == [False, False, True, False, False]


values = st.lists(
    st.lists(st.floats(0.0, 10.0), min_size=1, max_size=8), min_size=2, max_size=12
).map(lambda lists: [torch.tensor(one, dtype=torch.float64) for one in lists])


@settings(deadline=None, max_examples=40)
@given(values, st.floats(0.1, 100.0))
def test_intervals_hold_the_mean_and_scale_with_it(
    sequences: list[torch.Tensor], factor: float
) -> None:
    one = mean(sequences, seed=3)
    assert one.value == pytest.approx(float(torch.cat(sequences).mean()))
    assert one.low is not None
    assert one.high is not None
    assert float(min(s.mean() for s in sequences)) - 1e-9 <= one.low <= one.high
    scaled = mean([s * factor for s in sequences], seed=3)
    assert scaled.interval() == pytest.approx([one.low * factor, one.high * factor])
    assert ratio(sequences, [s + 1 for s in sequences], 3).value < 1.0


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    generator = torch.Generator().manual_seed(0)
    covered = 0
    for trial in range(100):
        # Tokens of a sequence share an offset: treated as independent they would look precise.
        sequences = [
            1.0 + torch.randn(1, generator=generator) + 0.1 * torch.randn(50, generator=generator)
            for _ in range(30)
        ]
        low, high = mean(sequences, trial).interval() or (0.0, 0.0)
        covered += low <= 1.0 <= high
    assert 85 <= covered <= 100


def test_one_sequence_has_no_interval() -> None:
    estimate = mean([torch.ones(4)], seed=0)
    assert estimate.value == 1.0
    assert estimate.interval() is None


@given(st.integers(0, 60), st.integers(0, 60))
def test_sign_test_is_the_binomial_tail(worse: int, better: int) -> None:
    changes = worse + better
    tail = sum(math.comb(changes, k) for k in range(worse, changes + 1)) / 2**changes
    assert sign_test(worse, better) == pytest.approx(tail, rel=1e-9)


def test_sign_test_of_many_changes() -> None:
    assert sign_test(0, 0) == 1.0
    assert sign_test(5000, 5000) == pytest.approx(0.5, abs=0.01)
    assert sign_test(5300, 4700) < 1e-6
