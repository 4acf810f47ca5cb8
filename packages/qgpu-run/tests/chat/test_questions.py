from __future__ import annotations

from random import Random

import pytest
import qgpu
from qgpu_run.chat.questions.families import FAMILIES
from qgpu_run.chat.questions.kernels import draw_kernel_problem
from qgpu_run.chat.questions.problems import (
    ERROR,
    draw_follow_up,
    draw_problem,
    mentions_held_out,
    phrasings,
)
from qgpu_run.expression import Calculator, ExpressionError


@pytest.fixture(scope="module")
def calculator() -> Calculator:
    return Calculator(qgpu.Device(profile="small", engine="interpreter"))


def value(calculator: Calculator, expression: str) -> str:
    try:
        return calculator.evaluate(expression).text
    except ExpressionError as error:
        return ERROR + error.message


@pytest.mark.parametrize("family", FAMILIES)
def test_known_results_are_the_calculators(family: str, calculator: Calculator) -> None:
    random = Random(family)
    for index in range(3):
        problem = draw_problem(random, unseen=index == 0, families=[family])
        assert value(calculator, problem.expression) == problem.response, problem


def test_known_results_of_follow_ups(calculator: Calculator) -> None:
    random = Random(7)
    values = [random.randint(-999, 99999) for _ in range(40)]
    for number in values:
        unseen = mentions_held_out(str(number))
        problem = draw_follow_up(random, number, unseen=unseen)
        assert value(calculator, problem.expression) == problem.response, problem


def test_no_follow_up_for_training_of_a_number_of_the_evaluation() -> None:
    number = next(n for n in range(1000, 2000) if mentions_held_out(str(n)))
    with pytest.raises(ValueError, match=f"{number} is a number of the evaluation"):
        draw_follow_up(Random(1), number, unseen=False)


def test_training_has_neither_numbers_nor_wordings_of_the_evaluation() -> None:
    random = Random(1)
    for _ in range(1500):
        problem = draw_problem(random, unseen=False)
        assert not mentions_held_out(f"{problem.question} {problem.expression} {problem.response}")
    for name, words in phrasings().items():
        for kind in ("phrases", "sentences"):
            seen = {" ".join(text.lower().split()).rstrip(".?!") for text in words.get(kind, [])}
            kept = {text.lower().rstrip(".?!") for text in words.get(f"unseen_{kind}", [])}
            assert not seen & kept, name


def test_evaluation_has_numbers_that_training_has_not() -> None:
    random = Random(2)
    questions = [draw_problem(random, unseen=True).question for _ in range(300)]
    assert sum(map(mentions_held_out, questions)) > 40


@pytest.mark.parametrize("unseen", [False, True])
def test_results_of_kernels(unseen: bool) -> None:
    from qgpu_run.chat.cuda_launch import run_cuda

    device = qgpu.Device(profile="small", engine="interpreter")
    random = Random(3)
    families = set()
    for _ in range(24):
        task = draw_kernel_problem(random, unseen=unseen)
        families.add(task.family)
        assert run_cuda(device, task.source, task.launch).text == task.response, task
    assert len(families) >= 6
