"""Dialogues that the stand-in learns from: a question, a call, the result, an answer."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from qgpu_run.chat.questions.kernels import draw_kernel_problem
from qgpu_run.chat.questions.problems import (
    Problem,
    draw_follow_up,
    draw_problem,
    draw_small_talk,
)

Message = dict[str, Any]

ADVANCED_PROMPT = "Write CUDA."
"""The system message that asks the stand-in for kernels; without one it writes expressions."""

SMALL_TALK_SHARE = 0.05
KERNEL_SHARE = 0.10
FOLLOW_UP_SHARE = 0.14


@dataclass(frozen=True)
class Dialogue:
    """Messages, as a chat template takes them.

    Attributes:
        messages: all of them.
        context: how many of them come before the exchange that is to be learnt.
    """

    messages: list[Message]
    context: int


def draw_dialogue(random: Random) -> Dialogue:
    """A dialogue with no wording and no number that is kept for evaluation."""
    kind = random.random()
    if kind < SMALL_TALK_SHARE:
        talk = draw_small_talk(random, unseen=False)
        before = _before(random) if random.random() < 0.3 else []
        messages = [*before, user(talk.question), {"role": "assistant", "content": talk.answer}]
        return Dialogue(messages, len(before))
    if kind < SMALL_TALK_SHARE + KERNEL_SHARE:
        task = draw_kernel_problem(random, unseen=False)
        arguments = {"source": task.source, "launch": task.launch}
        system = [{"role": "system", "content": ADVANCED_PROMPT}]
        exchange = called(task.question, "run_cuda", arguments, task.response, task.answer)
        return Dialogue(system + exchange, 1)
    if kind < SMALL_TALK_SHARE + KERNEL_SHARE + FOLLOW_UP_SHARE:
        while not (first := draw_problem(random, unseen=False)).response.lstrip("-").isdigit():
            pass
        second = draw_follow_up(random, int(first.response), unseen=False)
        before = calculated(first)
        return Dialogue(before + calculated(second), len(before))
    before = _before(random) if random.random() < 0.12 else []
    return Dialogue(before + calculated(draw_problem(random, unseen=False)), len(before))


def user(text: str) -> Message:
    """What the user says."""
    return {"role": "user", "content": text}


def calculated(problem: Problem) -> list[Message]:
    """The messages of a question that is answered by an expression."""
    arguments = {"expression": problem.expression}
    return called(problem.question, "calculate", arguments, problem.response, problem.answer)


def called(
    question: str, tool: str, arguments: dict[str, str], response: str, answer: str
) -> list[Message]:
    """The messages of a question, a tool call, its response and the answer."""
    call = {"type": "function", "function": {"name": tool, "arguments": arguments}}
    return [
        user(question),
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": response},
        {"role": "assistant", "content": answer},
    ]


def _before(random: Random) -> list[Message]:
    """Earlier exchanges that the next question has nothing to do with."""
    messages = []
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        if random.random() < 0.4:
            talk = draw_small_talk(random, unseen=False)
            messages += [user(talk.question), {"role": "assistant", "content": talk.answer}]
        else:
            messages += calculated(draw_problem(random, unseen=False))
    return messages
