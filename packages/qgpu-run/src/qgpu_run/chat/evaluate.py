"""Evaluation: generated questions with known answers, put to a model one by one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from qgpu_run.chat.conversation import Answered, Conversation
from qgpu_run.chat.questions.kernels import draw_kernel_problem
from qgpu_run.chat.questions.problems import ERROR, draw_follow_up, draw_problem
from qgpu_run.chat.tools import ADVANCED, NORMAL, CallRecord
from qgpu_run.expression import ExpressionError
from qgpu_run.expression.plan import plan

FOLLOW_UP_SHARE = 0.08


@dataclass(frozen=True)
class Task:
    """What a model is asked.

    Attributes:
        category: what it is reported under.
        mode: normal or advanced.
        messages: what the user says, the last being the question.
        expression: an expression that answers it; None in advanced mode.
        response: what the tool is to return.
    """

    category: str
    mode: str
    messages: tuple[str, ...]
    expression: str | None
    response: str


@dataclass(frozen=True)
class Outcome:
    """What came of a task.

    Attributes:
        task: what was asked.
        answer: what the model said.
        calls: what it called for it.
        right: whether the answer tells the known result.
        call_right: whether the last call gave it.
        kernels_right: whether the launches were those of the known expression; None if it has none.
        exact: whether all launches were as the interpreter's; None if nothing ran.
    """

    task: Task
    answer: str
    calls: tuple[CallRecord, ...]
    right: bool
    call_right: bool
    kernels_right: bool | None
    exact: bool | None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "category": self.task.category,
            "question": self.task.messages[-1],
            "expected": self.task.response,
            "expression": self.task.expression,
            "answer": self.answer,
            "calls": [call.arguments | {"response": call.response} for call in self.calls],
            "right": self.right,
            "call_right": self.call_right,
            "kernels_right": self.kernels_right,
            "exact": self.exact,
        }


def draw_tasks(samples: int, seed: int, mode: str) -> Iterator[Task]:
    """Tasks with wordings and numbers that the stand-in was not trained on."""
    for index in range(samples):
        random = Random(f"evaluation/{seed}/{mode}/{index}")
        if mode == ADVANCED:
            kernel = draw_kernel_problem(random, unseen=True)
            name = f"kernel: {kernel.family}"
            yield Task(name, mode, (kernel.question,), None, kernel.response)
        elif random.random() < FOLLOW_UP_SHARE:
            while not (first := draw_problem(random, unseen=True)).response.lstrip("-").isdigit():
                pass
            second = draw_follow_up(random, int(first.response), unseen=True)
            asked = (first.question, second.question)
            yield Task("follow-ups", mode, asked, second.expression, second.response)
        else:
            one = draw_problem(random, unseen=True)
            yield Task(one.category, mode, (one.question,), one.expression, one.response)


def evaluate(conversation: Conversation, task: Task) -> Outcome:
    """Puts a task to a model, in a conversation of its own."""
    conversation.clear()
    conversation.mode = task.mode
    answer: Answered | None = None
    earlier: list[CallRecord] = []
    for message in task.messages:
        earlier += answer.calls if answer is not None else ()
        answer = next(e for e in conversation.reply(message) if isinstance(e, Answered))
    assert answer is not None
    ran = [call.exact for call in (*earlier, *answer.calls) if call.launches]
    last = answer.calls[-1] if answer.calls else None
    return Outcome(
        task,
        answer.text,
        answer.calls,
        right=tells(answer.text, task.response),
        call_right=last is not None and _same(last.response, task.response),
        kernels_right=_kernels_right(task, last),
        exact=all(ran) if ran else None,
    )


def tells(answer: str, response: str) -> bool:
    """Whether an answer tells what the tool is to return.

    Truth values are told by yes or no, errors by what is wrong, numbers digit by digit, with or
    without commas between thousands; a remainder need not be told.
    """
    said = answer.lower()
    if response.startswith(ERROR):
        wrong = ("zero",) if "zero" in response else ("overflow", "32", "too large", "fit")
        return any(word in said for word in wrong)
    if response in ("true", "false"):
        words = {"true": ("yes", "true"), "false": ("no", "false")}
        first = re.search(r"\b(yes|no|true|false)\b", said)
        return first is not None and first[1] in words[response]
    value = response.partition(" (")[0].rpartition("= ")[2]
    wanted = _numbers(value)
    if "[" not in value:
        answer = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", answer)
    found = _numbers(answer)
    return any(found[i : i + len(wanted)] == wanted for i in range(len(found)))


def _numbers(text: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"(?<![\w.])-?\d+", text.replace("−", "-"))]


def _same(response: str, wanted: str) -> bool:
    if wanted.startswith(ERROR):
        return response.startswith(ERROR) and tells(response, wanted)
    return response == wanted


def _kernels_right(task: Task, call: CallRecord | None) -> bool | None:
    if task.expression is None:
        return None
    try:
        wanted = Counter(node.kernel for node in plan(task.expression).calls)
    except ExpressionError:
        return None
    if call is None:
        return False
    ran = Counter(launch["kernel"] for launch in call.launches)
    # A launch that found an error is the last.
    return ran <= wanted and bool(ran) if call.failed else ran == wanted


@dataclass(frozen=True)
class Score:
    """Counts over outcomes.

    Attributes:
        samples: how many.
        right, calls_right, kernels_right: how many of them were.
        launches: launches that ran.
        exact: outcomes in which something ran, and all of it as the interpreter's.
        ran: outcomes in which something ran.
    """

    samples: int
    right: int
    calls_right: int
    kernels_right: int
    launches: int
    exact: int
    ran: int

    @classmethod
    def of(cls, outcomes: list[Outcome]) -> Score:
        """Counts outcomes."""
        return cls(
            len(outcomes),
            sum(outcome.right for outcome in outcomes),
            sum(outcome.call_right for outcome in outcomes),
            sum(outcome.kernels_right is not False for outcome in outcomes),
            sum(len(call.launches) for outcome in outcomes for call in outcome.calls),
            sum(outcome.exact is True for outcome in outcomes),
            sum(outcome.exact is not None for outcome in outcomes),
        )

    def to_dict(self) -> dict[str, Any]:
        """Shares of the samples; 1 for launches if none ran."""
        count = max(1, self.samples)
        return {
            "samples": self.samples,
            "accuracy": self.right / count,
            "calls_right": self.calls_right / count,
            "kernels_right": self.kernels_right / count,
            "launches": self.launches,
            "launches_exact": self.exact / self.ran if self.ran else 1.0,
        }


def by_category(outcomes: list[Outcome]) -> dict[str, Score]:
    """Scores of the categories, in order of their names."""
    names = sorted({outcome.task.category for outcome in outcomes})
    return {
        name: Score.of([outcome for outcome in outcomes if outcome.task.category == name])
        for name in names
    }


def run_evaluation(
    conversation: Conversation, tasks: Iterator[Task], after: Callable[[Outcome], None]
) -> list[Outcome]:
    """Puts all tasks to a model; `after` is called after each."""
    outcomes = []
    for task in tasks:
        outcomes.append(evaluate(conversation, task))
        after(outcomes[-1])
    return outcomes


EVALUATED_MODES = {NORMAL: (NORMAL,), ADVANCED: (ADVANCED,), "both": (NORMAL, ADVANCED)}
