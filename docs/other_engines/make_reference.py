"""What transformers and the interpreter say about a merged checkpoint, for other engines to match.

Run in the project's environment:

    uv run python docs/other_engines/make_reference.py MODEL KERNEL -o reference.json

MODEL is a merged checkpoint, KERNEL a .cu file with a launch spec beside it. The file holds a text
of random token ids with the logits that follow its tokens, and the kernel's whole token stream with
the tokens that the model has to choose. The logits are the 8 largest, in fp32 and in bf16.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

TEXT_TOKENS = 48
LARGEST = 8


def text_logits(model: Path, ids: list[int]) -> dict[str, Any]:
    """The largest logits after each text token: ids, and values in fp32 and bf16."""
    import torch
    from transformers import AutoModelForCausalLM

    result: dict[str, Any] = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        loaded: Any = AutoModelForCausalLM
        with torch.inference_mode():
            logits = loaded.from_pretrained(model, dtype=dtype)(torch.tensor([ids])).logits[0]
        if name == "fp32":
            top = logits.topk(LARGEST)
            result["ids_of_largest"] = top.indices.tolist()
        chosen = logits.float().gather(1, torch.tensor(result["ids_of_largest"]))
        spread = logits.float().log_softmax(-1)
        result[name] = chosen.tolist()
        result[f"{name}_logprobs"] = spread.gather(
            1, torch.tensor(result["ids_of_largest"])
        ).tolist()
        result[f"{name}_argmax"] = logits.argmax(-1).tolist()
    return result


def kernel_stream(model: Path, kernel: Path) -> dict[str, Any]:
    """The kernel's tokens, positions after which the model chooses, and what it has to choose."""
    from qgpu_ptx.launch_options import LaunchOptions
    from qgpu_run.kernel_to_launch import kernel_to_request
    from qgpu_run.load_model import read_manifest
    from qgpu_run.verify import teacher_stream

    manifest = read_manifest(model)
    launch = kernel_to_request(kernel, LaunchOptions(), manifest.config).launch
    stream = teacher_stream(launch)
    ids = [manifest.token_offset + t for t in stream.tokens]
    expected = [*ids[1:], -1]
    last = stream.records[-1].token
    from qgpu_isa.vocabulary import vocabulary

    expected[-1] = manifest.token_offset + vocabulary(manifest.config).encode(last)
    return {
        "ids": ids,
        "positions": stream.positions,
        "expected": [expected[p] for p in stream.positions],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("kernel", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    config = json.loads((options.model / "config.json").read_text())
    offset = config["qgpu"]["token_offset"]
    ids = [(7919 * i * i + 104729 * i + 11) % min(offset, 248_000) for i in range(TEXT_TOKENS)]
    data = {
        "model": str(options.model),
        "text": {"ids": ids, **text_logits(options.model, ids)},
        "kernel": kernel_stream(options.model, options.kernel),
    }
    partial = options.output.with_name(f"{options.output.name}.partial")
    partial.write_text(json.dumps(data))
    partial.replace(options.output)


if __name__ == "__main__":
    main()
