from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from qgpu_run.standin.batches import CONTEXT_WEIGHT, batches, token_weights
from qgpu_run.standin.dialogues import Dialogue, draw_dialogue
from qgpu_run.standin.tokenizer import VOCABULARY, train_tokenizer
from qgpu_run.standin.write_dialogues import main as write_dialogues


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_tokenizer(1)


def dialogues(count: int) -> list[Dialogue]:
    random = Random(5)
    return [draw_dialogue(random) for _ in range(count)]


def test_text_comes_back(tokenizer: Any) -> None:
    assert len(tokenizer) == VOCABULARY
    for dialogue in dialogues(60):
        text = tokenizer.apply_chat_template(dialogue.messages, tokenize=False)
        assert tokenizer.decode(tokenizer(text).input_ids) == text
    odd = "Ünïcode 🙂\t\r\n tabs  and <tags> …"
    assert tokenizer.decode(tokenizer(odd).input_ids) == odd


def test_a_digit_is_a_token(tokenizer: Any) -> None:
    for text in ("12345", "[12, 7]", "1,000 + 2", "x=12"):
        pieces = [tokenizer.decode([i]) for i in tokenizer(text).input_ids]
        assert sum(any(c.isdigit() for c in piece) for piece in pieces) == sum(
            c.isdigit() for c in text
        )


def test_what_the_model_writes_is_what_counts(tokenizer: Any) -> None:
    for dialogue in dialogues(60):
        exchange = dialogue.messages[dialogue.context :]
        text = tokenizer.apply_chat_template(dialogue.messages, tokenize=False)
        ids = tokenizer(text).input_ids
        weights = token_weights(tokenizer, ids)
        written = tokenizer.decode(
            [token for token, weight in zip(ids, weights, strict=True) if weight > CONTEXT_WEIGHT]
        )
        wanted = ""
        for index, message in enumerate(exchange):
            if message["role"] == "assistant":
                before = dialogue.messages[: dialogue.context] + exchange[:index]
                prompt = tokenizer.apply_chat_template(
                    before, tokenize=False, add_generation_prompt=True
                )
                both = tokenizer.apply_chat_template([*before, message], tokenize=False)
                assert both.startswith(prompt)
                wanted += both[len(prompt) :].rstrip("\n")
        assert written == wanted


def test_a_prompt_goes_on_as_it_was_read(tokenizer: Any) -> None:
    """With the tool's response behind it, the prompt begins with what the model read and wrote."""
    (dialogue, *_) = [d for d in dialogues(60) if len(d.messages) - d.context == 4]
    question, call, response, _ = dialogue.messages[dialogue.context :]
    before = dialogue.messages[: dialogue.context]
    first = tokenizer.apply_chat_template([*before, question, call], tokenize=False)
    second = tokenizer.apply_chat_template(
        [*before, question, call, response], tokenize=False, add_generation_prompt=True
    )
    assert second.startswith(first)


def test_batches_are_the_same_for_the_same_seed(tokenizer: Any) -> None:
    made = list(islice(batches(tokenizer, 3, 2048), 3))
    again = list(islice(batches(tokenizer, 3, 2048), 3))
    for (_, a), (_, b) in zip(made, again, strict=True):
        assert np.array_equal(a.ids, b.ids)
        assert a.ids.shape == a.weights.shape
        assert a.ids.size <= 2048


def test_dialogues_are_written_as_text(tmp_path: Path) -> None:
    target = tmp_path / "dialogues.txt"
    done = CliRunner().invoke(write_dialogues, ["-o", str(target), "--count", "3", "--seed", "2"])
    assert done.exit_code == 0, done.output
    text = target.read_text(encoding="utf-8")
    assert text.startswith("<|im_start|>")
    assert text.count("<|im_start|>user") >= 3


def test_training_goes_on_where_it_was_stopped(tokenizer: Any, tmp_path: Path) -> None:
    import torch
    from qgpu_run.standin.train import new_run, train

    def trained(path: Path | None) -> dict[str, torch.Tensor]:
        run = new_run(1)
        if path is None:
            train(run, batches(tokenizer, 1, 256), 4, lambda *_: None)
        else:
            train(run, batches(tokenizer, 1, 256), 2, lambda *_: None)
            run.save(path)
            run = new_run(2)
            run.load(path)
            rest = islice(batches(tokenizer, 1, 256, run.pool), run.taken, None)
            train(run, rest, 4, lambda *_: None)
        return dict(run.model.state_dict())

    whole, parts = trained(None), trained(tmp_path / "state.pt")
    for name, tensor in whole.items():
        assert torch.equal(tensor, parts[name]), name
