from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import qgpu
from qgpu_run.chat.conversation import Conversation
from qgpu_run.chat.evaluate import Score, by_category, draw_tasks, evaluate, tells
from qgpu_run.chat.tools import Tools

from .test_conversation import Script, call


@pytest.mark.parametrize(
    ("answer", "response", "right"),
    [
        ("The sum is 54.", "54", True),
        ("The sum is 54", "54", True),
        ("The sum is 540.", "54", False),
        ("The sum is 154.", "54", False),
        ("The sum is -54.", "54", False),
        ("54 plus 1", "54", True),
        ("It is 1,234,567.", "1234567", True),
        ("It is [1, 2, 3].", "[1, 2, 3]", True),
        ("It is [1, 2, 4].", "[1, 2, 3]", False),
        ("It is [100,200].", "[100, 200]", True),
        ("That gives 3 (remainder 2).", "3 (remainder 2)", True),
        ("About 3.", "3 (remainder 2)", True),
        ("Yes, 7 is prime.", "true", True),
        ("No, 7 is not prime.", "true", False),
        ("That is false.", "false", True),
        ("It does not fit 32 bits.", "error: overflow: 9 ** 99 does not fit 32 bits", True),
        ("It is 5.", "error: overflow: 9 ** 99 does not fit 32 bits", False),
        ("One cannot divide by zero.", "error: division by zero: 1 / 0", True),
        ("[[1, 2], [3, 4]]", "[[1, 2], [3, 4]]", True),
        ("The kernel wrote [7].", "out = [7]", True),
        ("", "54", False),
    ],
)
def test_whether_an_answer_tells_the_result(answer: str, response: str, right: bool) -> None:
    assert tells(answer, response) is right


class Known(Script):
    """A model that answers rightly, or with another expression."""

    def __init__(self, tasks: list[Any], *, wrong: bool = False) -> None:
        super().__init__()
        self.tasks, self.wrong = {task.messages[-1]: task for task in tasks}, wrong

    def write(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], limit: int
    ) -> Iterator[int]:
        last = messages[-1]
        if last["role"] == "tool":
            self.turns = [last["content"]]
        elif last["content"] in self.tasks:
            task = self.tasks[last["content"]]
            self.turns = [call("1 + 1" if self.wrong else task.expression)]
        else:
            self.turns = ["?"]
        return super().write(messages, tools, limit)


def test_right_and_wrong_are_told_apart() -> None:
    tasks = list(draw_tasks(25, 1, "normal"))
    tools = Tools(qgpu.Device(profile="small", engine="interpreter", check=True))
    right = [evaluate(Conversation(Known(tasks), tools), task) for task in tasks]
    score = Score.of(right)
    assert score.samples == 25
    # A boolean and an error are told in words that a bare result may lack.
    assert score.to_dict()["accuracy"] == 1.0
    assert score.to_dict()["calls_right"] == 1.0
    assert score.to_dict()["kernels_right"] == 1.0
    assert score.to_dict()["launches_exact"] == 1.0
    assert score.launches >= 25
    assert sum(part.samples for part in by_category(right).values()) == 25
    wrong = [evaluate(Conversation(Known(tasks, wrong=True), tools), task) for task in tasks]
    assert Score.of(wrong).calls_right <= 1
    assert Score.of(wrong).right <= 2


def test_tasks_are_the_same_for_the_same_seed() -> None:
    assert list(draw_tasks(5, 3, "normal")) == list(draw_tasks(5, 3, "normal"))
    assert list(draw_tasks(5, 3, "normal")) != list(draw_tasks(5, 4, "normal"))
    longer = list(draw_tasks(8, 3, "advanced"))
    assert longer[:5] == list(draw_tasks(5, 3, "advanced"))
