"""A child process: CUDA source to a program image after a warm start, without torch.

`python -m qgpu_run.benchmark.compile_once PROFILE REPEATS` prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

LINES = 50
"""Lines of the source that is timed, about."""


def source(name: str, variant: int) -> str:
    """A kernel of about `LINES` lines: loops, branches, shared memory, barriers, calls.

    Variants differ in their constants, so nothing that was compiled before can serve again.
    """
    steps = "\n".join(
        f"""  for (int i = 0; i < {2 + k}; ++i) {{
    v = mix(v, x[tid] + {variant + k});
  }}
  part[threadIdx.x] = v;
  __syncthreads();
  if (threadIdx.x > {k}) {{
    v += part[threadIdx.x - {k + 1}];
  }} else {{
    v ^= {variant};
  }}
  __syncthreads();"""
        for k in range(3)
    )
    return f"""\
__device__ int mix(int a, int b) {{
  a ^= b << 3;
  a += b >> 2;
  return a;
}}

extern "C" __global__ void {name}(const int* x, int* y, int n) {{
  __shared__ int part[16];
  int tid = blockIdx.x * blockDim.x + threadIdx.x;
  if (tid >= n) {{
    return;
  }}
  int v = {variant};
{steps}
  y[tid] = v;
}}
"""


def image_compiler(profile: str) -> Callable[[str, str], int]:
    """What turns a kernel's name and source into an image, and gives its number of blocks."""
    from qgpu_isa.machine_config import profile as profile_config
    from qgpu_ptx.cuda_to_ptx import find_compiler
    from qgpu_ptx.launch_spec import ArrayArgument, LaunchSpec, ScalarArgument
    from qgpu_ptx.lower import lower_launch
    from qgpu_ptx.source_to_ast import parse_ptx

    config = profile_config(profile)
    compiler = find_compiler("nvrtc")
    arguments = (
        ArrayArgument("x", "s32", tuple(range(16))),
        ArrayArgument("y", "s32", (0,) * 16, output=True),
        ScalarArgument("n", "s32", 16),
    )

    def run(name: str, text: str) -> int:
        ptx = compiler.compile(Path("kernel.cu"), text, ())
        module = parse_ptx(ptx.text, "kernel.cu", ptx.compiler)
        spec = LaunchSpec(name, (1, 1, 1), (16, 1, 1), arguments, {})
        return len(lower_launch(module, spec, config).kernel.image.blocks)

    return run


def main(profile: str, repeats: int) -> None:
    """Prints what the first compilation took, and each of the others."""
    started = time.perf_counter()
    compile_image = image_compiler(profile)
    compile_image("first", source("first", 1000))
    first = time.perf_counter() - started
    runs = []
    for index in range(repeats):
        name = f"kernel_{index}"
        text = source(name, index)
        begun = time.perf_counter()
        blocks = compile_image(name, text)
        runs.append(time.perf_counter() - begun)
    facts = {
        "first_seconds": first,
        "runs": runs,
        "blocks": blocks,
        "lines": len(text.splitlines()),
        "torch_imported": "torch" in sys.modules,
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
