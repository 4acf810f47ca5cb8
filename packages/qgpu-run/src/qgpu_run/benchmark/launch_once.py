"""A child process: one launch on the sparse engine, from nothing but the files in the cache.

`python -m qgpu_run.benchmark.launch_once MODEL KERNEL` prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main(model: Path, kernel: Path) -> None:
    """Prints when the first token was there, and what loading took."""
    from qgpu_ptx.launch_options import LaunchOptions

    from qgpu_run.engines.sparse.engine import load_sparse_engine
    from qgpu_run.kernel_to_launch import kernel_to_request
    from qgpu_run.launch import run_on_engine

    began = time.perf_counter()
    engine = load_sparse_engine(model)
    # The preamble's END: the engine can read from now on.
    engine.score([0], 0)
    loaded = time.perf_counter()
    request = kernel_to_request(kernel, LaunchOptions(), engine.config)
    first: list[float] = []

    def see(cta: int, token: int) -> None:
        if not first:
            first.append(time.time())

    trace = run_on_engine(request.launch, engine, on_token=see)
    outputs = request.read_outputs(engine.read_memory())
    facts = {
        "first_token_at": first[0],
        "load_seconds": loaded - began,
        "tokens": trace.decoded_tokens,
        "right": not request.unexpected(outputs),
        "torch_imported": "torch" in sys.modules,
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
