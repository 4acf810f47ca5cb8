"""Questions that are answered with a kernel of CUDA C, for advanced mode."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from random import Random
from typing import Any

from qgpu_run.chat.questions.numbers import Numbers, Vector, vector_value
from qgpu_run.chat.questions.problems import mentions_held_out


@dataclass(frozen=True)
class KernelProblem:
    """A task for a kernel, with a known result.

    Attributes:
        family: the kind of kernel.
        question: what the user writes.
        source: a kernel in CUDA C that does it.
        launch: how to launch it: `name<<<grid, block>>>(arguments)`, where a list is an array
            that holds these words and `out[n]` is one of n words, zero at first, to be read back.
        response: what the tool is to return.
        answer: a good answer.
    """

    family: str
    question: str
    source: str
    launch: str
    response: str
    answer: str


@dataclass(frozen=True)
class _Task:
    slots: dict[str, str]
    body: list[str]
    parameters: list[str]
    arguments: list[str]
    threads: int
    out: Vector


_TWO: dict[str, Callable[[int, int, int, int], int]] = {
    "x + y": lambda x, y, a, b: x + y,
    "x - y": lambda x, y, a, b: x - y,
    "x * y": lambda x, y, a, b: x * y,
    "{a} * x + y": lambda x, y, a, b: a * x + y,
    "{a} * x + {b} * y": lambda x, y, a, b: a * x + b * y,
    "{a} * x - y": lambda x, y, a, b: a * x - y,
    "x * y + {b}": lambda x, y, a, b: x * y + b,
    "x * x + y * y": lambda x, y, a, b: x * x + y * y,
}
_ONE: dict[str, Callable[[int, int, int], int]] = {
    "{a} * x": lambda x, a, b: a * x,
    "x + {b}": lambda x, a, b: x + b,
    "x - {b}": lambda x, a, b: x - b,
    "x * x": lambda x, a, b: x * x,
    "{a} * x + {b}": lambda x, a, b: a * x + b,
    "{a} * x - {b}": lambda x, a, b: a * x - b,
    "x * x + {b}": lambda x, a, b: x * x + b,
    "x * x * x": lambda x, a, b: x * x * x,
}


def draw_kernel_problem(random: Random, *, unseen: bool) -> KernelProblem:
    """One task; see `draw_problem` for the arguments."""
    numbers = Numbers(random, unseen=unseen)
    while True:
        family = random.choice(list(_TASKS))
        task = _TASKS[family](numbers)
        words = _words()[family]
        question = random.choice(words["unseen_sentences" if unseen else "sentences"])
        question = question.format(**task.slots)
        name = family
        source = "\n".join(
            [
                f"__global__ void {name}({', '.join(task.parameters)}) {{",
                "  int i = threadIdx.x;",
                *(f"  {line}" for line in task.body),
                "}",
            ]
        )
        launch = f"{name}<<<1, {task.threads}>>>({', '.join(task.arguments)})"
        result = vector_value(task.out)
        if unseen or not mentions_held_out(f"{question} {result}"):
            answer = words["answer"].format(r=result)
            return KernelProblem(family, question, source, launch, f"out = {result}", answer)


@functools.cache
def _words() -> dict[str, dict[str, Any]]:
    text = resources.files(__package__).joinpath("kernels.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _map_two(n: Numbers) -> _Task:
    length = n.random.randint(2, 6)
    v, w = n.vector(length, 2), n.vector(length, 2)
    form, function = n.random.choice(list(_TWO.items()))
    a, b = n.random.randint(2, 20), n.random.randint(2, 20)
    formula = form.format(a=a, b=b)
    return _Task(
        {"f": formula, "v": vector_value(v), "w": vector_value(w)},
        [f"out[i] = {formula.replace('x', 'x[i]').replace('y', 'y[i]')};"],
        ["const int* x", "const int* y", "int* out"],
        [vector_value(v), vector_value(w), f"out[{length}]"],
        length,
        [function(x, y, a, b) for x, y in zip(v, w, strict=True)],
    )


def _map_one(n: Numbers) -> _Task:
    length = n.random.randint(2, 7)
    v = n.vector(length, 2)
    form, function = n.random.choice(list(_ONE.items()))
    a, b = n.random.randint(2, 20), n.random.randint(2, 20)
    formula = form.format(a=a, b=b)
    return _Task(
        {"f": formula, "v": vector_value(v)},
        [f"out[i] = {formula.replace('x', 'x[i]')};"],
        ["const int* x", "int* out"],
        [vector_value(v), f"out[{length}]"],
        length,
        [function(x, a, b) for x in v],
    )


def _map_index(n: Numbers) -> _Task:
    length = n.random.randint(3, 10)
    form, function = n.random.choice(list(_ONE.items()))
    a, b = n.random.randint(2, 20), n.random.randint(2, 20)
    formula = form.format(a=a, b=b).replace("x", "i")
    return _Task(
        {"f": formula, "k": str(length), "last": str(length - 1)},
        [f"out[i] = {formula};"],
        ["int* out"],
        [f"out[{length}]"],
        length,
        [function(i, a, b) for i in range(length)],
    )


def _one_array(n: Numbers) -> tuple[Vector, dict[str, str]]:
    v = n.vector(n.random.randint(2, 8), 3)
    return v, {"v": vector_value(v)}


def _sum(n: Numbers) -> _Task:
    v, slots = _one_array(n)
    parameters = ["const int* x", "int* out"]
    arguments = [vector_value(v), "out[1]"]
    return _Task(slots, ["atomicAdd(out, x[i]);"], parameters, arguments, len(v), [sum(v)])


def _dot(n: Numbers) -> _Task:
    length = n.random.randint(2, 6)
    v, w = n.vector(length, 2), n.vector(length, 2)
    return _Task(
        {"v": vector_value(v), "w": vector_value(w)},
        ["atomicAdd(out, x[i] * y[i]);"],
        ["const int* x", "const int* y", "int* out"],
        [vector_value(v), vector_value(w), "out[1]"],
        length,
        [sum(x * y for x, y in zip(v, w, strict=True))],
    )


def _reverse(n: Numbers) -> _Task:
    v, slots = _one_array(n)
    return _Task(
        slots,
        [f"out[i] = x[{len(v) - 1} - i];"],
        ["const int* x", "int* out"],
        [vector_value(v), f"out[{len(v)}]"],
        len(v),
        v[::-1],
    )


def _maximum(n: Numbers) -> _Task:
    v, slots = _one_array(n)
    body = [
        "int best = x[0];",
        f"for (int j = 1; j < {len(v)}; j++) best = max(best, x[j]);",
        "out[i] = best;",
    ]
    parameters = ["const int* x", "int* out"]
    return _Task(slots, body, parameters, [vector_value(v), "out[1]"], 1, [max(v)])


def _count_above(n: Numbers) -> _Task:
    v, slots = _one_array(n)
    slots["k"] = str(k := n.number(2, negative=0))
    return _Task(
        slots,
        [f"if (x[i] > {k}) atomicAdd(out, 1);"],
        ["const int* x", "int* out"],
        [vector_value(v), "out[1]"],
        len(v),
        [sum(x > k for x in v)],
    )


_TASKS: dict[str, Callable[[Numbers], _Task]] = {
    "map_two": _map_two,
    "map_one": _map_one,
    "map_index": _map_index,
    "sum": _sum,
    "dot": _dot,
    "reverse": _reverse,
    "maximum": _maximum,
    "count_above": _count_above,
}
