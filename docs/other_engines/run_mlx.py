"""A merged checkpoint in mlx-lm, compared with a reference of `make_reference.py`.

Run in an environment with `mlx-lm` (on Linux also `mlx[cpu]`):

    python docs/other_engines/run_mlx.py MODEL reference.json

mlx-lm 0.32 does not read `layer_types`: it takes every `full_attention_interval`th layer for
attention. Where one interval says what `layer_types` says, this script gives it that. It also
keeps stored dtypes and computes in the widest, so weights are made bf16 first: a merged
checkpoint's norms are stored in fp32, and the GPU needs bf16's rounding.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from compare import report_kernel, report_text
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model

PREFILL = 256


def interval(types: list[str]) -> int:
    """Every how many layers one is attention.

    Raises:
        SystemExit: the layers do not follow an interval.
    """
    step = types.index("full_attention") + 1
    every = ["linear_attention" if (i + 1) % step else "full_attention" for i in range(len(types))]
    if types != every:
        raise SystemExit("mlx-lm cannot load this: its layers do not follow an interval")
    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument("--choices", type=int, help="take this many of the kernel's tokens")
    options = parser.parse_args()
    reference = json.loads(options.reference.read_text())
    config = json.loads((options.model / "config.json").read_text())
    text = config.get("text_config", config)
    changed = {"full_attention_interval": interval(text["layer_types"])}
    if "text_config" not in config:
        changed = config | changed | {"model_type": "qwen3_5", "text_config": text | changed}
    else:
        changed = {"text_config": text | changed}
    model: Any = load_model(options.model, model_config=changed)[0]
    model.set_dtype(getattr(mx, options.dtype))

    def forward(ids: list[int]) -> np.ndarray:
        cache = make_prompt_cache(model)
        pieces = []
        for first in range(0, len(ids), PREFILL):
            logits = model(mx.array([ids[first : first + PREFILL]]), cache=cache)[0]
            pieces.append(np.array(logits.astype(mx.float32)))
        return np.concatenate(pieces)

    def decode(prompt: list[int], count: int) -> list[int]:
        cache = make_prompt_cache(model)
        for first in range(0, len(prompt), PREFILL):
            logits = model(mx.array([prompt[first : first + PREFILL]]), cache=cache)[0, -1]
            mx.eval(logits)
        written = []
        for _ in range(count):
            written.append(int(logits.argmax().item()))
            logits = model(mx.array([[written[-1]]]), cache=cache)[0, -1]
        return written

    report_text(reference, forward)
    report_kernel(reference, forward, decode, options.choices)


if __name__ == "__main__":
    main()
