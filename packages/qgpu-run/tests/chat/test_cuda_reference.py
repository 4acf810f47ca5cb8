"""Every example of the CUDA reference compiles, runs, and gives what it says."""

from __future__ import annotations

import re

import pytest
import qgpu
from qgpu_run.chat.cuda_launch import run_cuda
from qgpu_run.chat.prompts import cuda_reference, system_prompt
from qgpu_run.chat.text_model import ChatSettings

EXAMPLE = re.compile(
    r"```cuda\n(?P<source>.*?)```\n\n`(?P<launch>[^`]*<<<[^`]*)` returns "
    r"(?P<results>[^\n]*(?:\n`[^\n]*)?)",
    re.DOTALL,
)
EXAMPLES = list(EXAMPLE.finditer(cuda_reference()))


@pytest.fixture(scope="module")
def device() -> qgpu.Device:
    return qgpu.Device(profile="default", engine="interpreter")


def test_all_examples_are_found() -> None:
    assert len(EXAMPLES) == cuda_reference().count("```cuda") >= 6


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["launch"].split("<")[0])
def test_an_example(example: re.Match[str], device: qgpu.Device) -> None:
    result = run_cuda(device, example["source"], example["launch"])
    assert result.text.splitlines() == re.findall(r"`([^`]*)`", example["results"])


def test_it_fits_a_small_prompt() -> None:
    """About four bytes a token: 1500 tokens, system message included."""
    assert len(system_prompt(ChatSettings(), "advanced").encode()) < 6000


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["launch"].split("<")[0])
def test_an_example_through_the_weights(example: re.Match[str]) -> None:
    device = qgpu.Device(profile="default", check=True)
    result = run_cuda(device, example["source"], example["launch"])
    assert result.text.splitlines() == re.findall(r"`([^`]*)`", example["results"])
    assert result.stats.exact
