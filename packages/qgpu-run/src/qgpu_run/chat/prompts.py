"""System messages of the modes."""

from __future__ import annotations

import functools
from importlib import resources

from qgpu_run.chat.text_model import ChatSettings
from qgpu_run.chat.tools import ADVANCED

_NORMAL = (
    "You have a GPU in your own weights. Whenever a question needs a calculation, however small, "
    "call the tool `calculate` with one expression and answer with its result; never calculate "
    "yourself. Numbers are 32-bit integers, `/` is integer division. Copy numbers exactly. "
    "Operators: + - * / % ** @ == != < <= > >=. Functions: sum, prod, min, max, mean, sort, "
    "sort_desc, reverse, cumsum, dot, norm2, transpose, trace, abs, sqrt, gcd, lcm, factorial, "
    "fibonacci, is_prime, argmin, argmax, count. Example: for the sum of 3, 4 and 5 call "
    "calculate with sum([3, 4, 5])."
)

_ADVANCED = (
    "You have a GPU in your own weights that runs CUDA. Whenever a question needs a calculation, "
    "write a kernel and its launch, call the tool `run_cuda`, and answer with what it returns; "
    "never calculate yourself. If the tool reports an error, mend the kernel and call again.\n\n"
)


def system_prompt(settings: ChatSettings, mode: str) -> str:
    """The system message of a mode, empty for none."""
    if settings.prompts is not None:
        return settings.prompts.get(mode, "")
    return _ADVANCED + cuda_reference() if mode == ADVANCED else _NORMAL


@functools.cache
def cuda_reference() -> str:
    """docs/qgpu-cuda.md: what CUDA this GPU runs, for a prompt."""
    return resources.files(__package__).joinpath("qgpu-cuda.md").read_text(encoding="utf-8")
