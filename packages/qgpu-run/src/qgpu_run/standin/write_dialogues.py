"""`python -m qgpu_run.standin.write_dialogues`: dialogues in the stand-in's chat template.

For `qgpu-merge check --text`: on this text the stand-in is a trained model.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import click
from qgpu_isa.files import write_text

from qgpu_run.chat.stand_in import stand_in_base
from qgpu_run.chat.text_model import load_tokenizer
from qgpu_run.standin.dialogues import draw_dialogue


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True)
@click.option("--count", type=click.IntRange(1), default=300, show_default=True)
@click.option("--seed", type=int, default=7, show_default=True, help="Training has 1.")
def main(output: Path, count: int, seed: int) -> None:
    """Write COUNT dialogues in the stand-in's chat template."""
    tokenizer = load_tokenizer(stand_in_base())
    random = Random(seed)
    texts = [
        tokenizer.apply_chat_template(draw_dialogue(random).messages, tokenize=False)
        for _ in range(count)
    ]
    write_text(output, "\n".join(texts))


if __name__ == "__main__":
    main()
