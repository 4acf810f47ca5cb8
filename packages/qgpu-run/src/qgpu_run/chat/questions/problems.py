"""Questions in words, with the calls and answers that are right for them."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from random import Random
from typing import Any

from qgpu_run.chat.questions.families import FAMILIES, Draw, is_prime, quotient_text
from qgpu_run.chat.questions.numbers import LIMIT, Numbers, held_out

ERROR = "error: "
"""What a tool response begins with when the launch failed."""


@dataclass(frozen=True)
class Problem:
    """A question with a known answer.

    Attributes:
        category: what evaluation reports it under.
        family: the kind of question, a name in `FAMILIES`.
        question: what the user writes.
        expression: an expression that answers it.
        response: what the tool is to return: the value's text, or `error: ` and why not.
        answer: a good answer.
    """

    category: str
    family: str
    question: str
    expression: str
    response: str
    answer: str


@dataclass(frozen=True)
class SmallTalk:
    """Something that needs no calculation, and the answer."""

    topic: str
    question: str
    answer: str


@functools.cache
def phrasings() -> dict[str, dict[str, Any]]:
    """The contents of phrasings.toml: lists of wordings by family."""
    return _toml("phrasings.toml")


@functools.cache
def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))


def draw_problem(random: Random, *, unseen: bool, families: Sequence[str] = ()) -> Problem:
    """One question.

    Args:
        random: decides everything.
        unseen: with wordings and numbers that are kept for evaluation, instead of without any.
        families: names to draw from, instead of all by weight.
    """
    while True:
        if families:
            name = random.choice(families)
        else:
            names = list(FAMILIES)
            name = random.choices(names, [FAMILIES[key].weight for key in names])[0]
        draw = FAMILIES[name].draw(Numbers(random, unseen=unseen))
        question = _question(random, name, draw.slots, unseen=unseen)
        answer = _answer(name, draw)
        if unseen or not mentions_held_out(f"{question} {draw.expression} {draw.result}"):
            response = ERROR + draw.result if draw.failed else draw.result
            category = "errors" if draw.failed else FAMILIES[name].category
            return Problem(category, name, question, draw.expression, response, answer)


def draw_follow_up(random: Random, value: int, *, unseen: bool) -> Problem:
    """A question about the result of the one before.

    Raises:
        ValueError: the result is a number that only the evaluation has, and `unseen` is false.
    """
    if not unseen and mentions_held_out(str(value)):
        raise ValueError(f"{value} is a number of the evaluation")
    words = phrasings()["follow_up"]
    choices = words["unseen_sentences" if unseen else "sentences"]
    while True:
        k = Numbers(random, unseen=unseen).number(2, negative=0, least=2)
        question, _, form = random.choice(choices).partition("|")
        quoted = f"({value})" if value < 0 and "**" in form else str(value)
        expression = form.format(q=quoted, k=k)
        draw = _follow_up_draw(value, k, form, expression)
        text = f"{question} {expression} {draw.result}"
        if unseen or not mentions_held_out(text):
            answer = _answer(_TRUTH_FORMS.get(form, "follow_up"), draw)
            response = ERROR + draw.result if draw.failed else draw.result
            question = question.format(k=k)
            return Problem("follow-ups", "follow_up", question, expression, response, answer)


_TRUTH_FORMS = {"{q} > {k}": "greater", "{q} < {k}": "less", "is_prime({q})": "prime"}


def _follow_up_draw(value: int, k: int, form: str, expression: str) -> Draw:
    slots = {"a": str(value), "b": str(k)}
    truths = {
        "{q} > {k}": value > k,
        "{q} < {k}": value < k,
        "is_prime({q})": is_prime(value),
    }
    if form in truths:
        return Draw(slots, expression, "true" if truths[form] else "false")
    if form == "{q} / {k}":
        return Draw(slots, expression, quotient_text(value, k))
    number = {
        "{q} * {k}": value * k,
        "{q} + {k}": value + k,
        "{q} - {k}": value - k,
        "{q} ** 2": value**2,
        "{q} % {k}": abs(value) % k * (-1 if value < 0 else 1),
        "{q} * 2": value * 2,
        "-{q}": -value,
    }[form]
    if not -LIMIT <= number < LIMIT:
        return Draw(slots, expression, f"overflow: {expression} does not fit 32 bits", failed=True)
    return Draw(slots, expression, str(number))


def draw_small_talk(random: Random, *, unseen: bool) -> SmallTalk:
    """Something that is said beside calculations."""
    topic = random.choice(_toml("small_talk.toml")["topic"])
    question = random.choice(topic["unseen" if unseen else "asks"])
    return SmallTalk(topic["name"], question, topic["answer"])


def mentions_held_out(text: str) -> bool:
    """Whether a number in a text is one that is kept for evaluation."""
    return any(held_out(int(digits)) for digits in re.findall(r"\d{3,}", text.replace(",", "")))


def _question(random: Random, family: str, slots: dict[str, str], *, unseen: bool) -> str:
    words, wrappers = phrasings()[family], phrasings()["wrappers"]
    prefix = "unseen_" if unseen else ""
    phrases, sentences = words[f"{prefix}phrases"], words[f"{prefix}sentences"]
    if random.random() * (len(phrases) + len(sentences)) >= len(phrases):
        text: str = random.choice(sentences)
    else:
        wraps = list(wrappers["phrases"])
        if unseen:
            wraps += wrappers["unseen_phrases"]
        phrase = random.choice(phrases)
        text = random.choice(wraps).replace("{p}", phrase)
        text = text.replace("{P}", phrase[0].upper() + phrase[1:])
    text = text.format(**slots)
    if random.random() < 0.1:
        text = text[0].lower() + text[1:]
    if random.random() < 0.1:
        text = text.rstrip(".?")
    if random.random() < 0.05:
        text = random.choice(["Please: ", "ok, ", "So, ", "And "]) + text
    return text


def _answer(family: str, draw: Draw) -> str:
    if draw.failed:
        return f"The GPU could not do that: {draw.result}."
    a, b = draw.slots.get("x") or draw.slots.get("a", ""), draw.slots.get("b", "")
    truths = {
        "prime": (f"Yes, {a} is prime.", f"No, {a} is not prime."),
        "greater": (f"Yes, {a} is greater than {b}.", f"No, {a} is not greater than {b}."),
        "less": (f"Yes, {a} is less than {b}.", f"No, {a} is not less than {b}."),
        "equal": (f"Yes, {a} equals {b}.", f"No, {a} does not equal {b}."),
    }
    if family in truths:
        return truths[family][draw.result == "false"]
    form: str = phrasings()[family]["answer"]
    return form.format(**draw.slots, r=draw.result)
