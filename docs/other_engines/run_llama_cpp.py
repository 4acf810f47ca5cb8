"""A GGUF file of a merged checkpoint in llama.cpp, compared with a reference.

Run in an environment with `llama-cpp-python`:

    python docs/other_engines/run_llama_cpp.py MODEL.gguf reference.json

docs/other_engines.md says how the GGUF file is made.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from compare import report_kernel, report_text
from llama_cpp import Llama

BATCH = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    reference = json.loads(options.reference.read_text())
    model = Llama(
        str(options.model),
        n_ctx=len(reference["kernel"]["ids"]) + 1,
        n_batch=BATCH,
        n_threads=options.threads,
        n_threads_batch=options.threads,
        logits_all=True,
        verbose=False,
    )

    def forward(ids: list[int]) -> np.ndarray:
        model.reset()
        model.eval(ids)
        return model.scores[: len(ids)].copy()

    def decode(prompt: list[int], count: int) -> list[int]:
        model.reset()
        model.eval(prompt)
        written = []
        for _ in range(count):
            written.append(int(model.scores[model.n_tokens - 1].argmax()))
            model.eval(written[-1:])
        return written

    report_text(reference, forward)
    report_kernel(reference, forward, decode)


if __name__ == "__main__":
    main()
