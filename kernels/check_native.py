"""Run the CUDA files on the CPU and compare with the launch specs' expected results.

    uv run python kernels/check_native.py              # all kernels
    uv run python kernels/check_native.py dot sieve    # some of them

The sources are compiled as C++ with ``native.h`` in place of the GPU. Each kernel runs with its
threads in ascending, descending and several shuffled orders, so that a race shows up; writes
outside the arrays and changes of arrays that are not outputs are found, too. Needs g++.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import click

KERNELS = Path(__file__).resolve().parent
ORDERS = 5
TYPES = {
    "s8": "int8_t",
    "u8": "uint8_t",
    "s16": "int16_t",
    "u16": "uint16_t",
    "s32": "int32_t",
    "u32": "uint32_t",
    "s64": "int64_t",
    "u64": "uint64_t",
}


def translate(source: str) -> str:
    """CUDA C as C++ for ``native.h``."""
    source = re.sub(
        r"extern\s+__shared__\s+(\w+)\s+(\w+)\[\];", r"\1* \2 = (\1*)native::dynamic;", source
    )
    source = source.replace('extern "C" __global__', "__global__")
    undefs = [f"#undef {name}" for name in re.findall(r"#define (\w+)", source)]
    return "\n".join([source, *undefs])


def vector(kind: str, values: list[int]) -> str:
    suffix = "ull" if kind == "u64" else "ll"
    # The smallest 64-bit number has no literal of its own.
    items = [f"{v + 1}{suffix} - 1" if v < 0 else f"{v}{suffix}" for v in values]
    return f"std::vector<{TYPES[kind]}>{{{', '.join(f'{TYPES[kind]}({i})' for i in items)}}}"


def test_function(name: str, source: str, spec: dict[str, Any]) -> str:
    """A namespace with the kernel and a function that launches and checks it."""
    buffers, checks, names = [], [], []
    for arg in spec["args"]:
        kind = arg["type"].rstrip("*")
        start = arg.get("values") or [arg.get("value", 0)] * arg.get("length", 1)
        end = spec["expected"][arg["name"]] if arg.get("output") else start
        buffers.append(f"native::Buffer b_{arg['name']}({vector(kind, start)});")
        checks.append(f'native::compare("{arg["name"]}", b_{arg["name"]}, {vector(kind, end)});')
        names.append(f"b_{arg['name']}")
    grid, block = (", ".join(map(str, (spec[k] + [1, 1])[:3])) for k in ("grid", "block"))
    return f"""
namespace k_{name} {{
{translate(source)}
void test(unsigned order)
{{
    native::kernel_name = "{name}";
    {" ".join(buffers)}
    native::launch({name}, {{{grid}}}, {{{block}}}, order, {", ".join(names)});
    {" ".join(checks)}
}}
}}
"""


@click.command()
@click.argument("names", nargs=-1)
def main(names: tuple[str, ...]) -> None:
    """Run kernels on the CPU and compare with their expected results."""
    parts = ['#include "native.h"']
    tests = []
    for path in sorted(KERNELS.glob("*/*.cu")):
        if names and path.stem not in names:
            continue
        spec = tomllib.loads(path.with_suffix(".toml").read_text(encoding="utf-8"))
        parts.append(test_function(spec["kernel"], path.read_text(encoding="utf-8"), spec))
        # A module's variables keep their values between launches, so each has one launch a run.
        tests.append(f"k_{spec['kernel']}::test(order);")
    parts.append(
        "int main(int, char** argv) { unsigned order = std::atoi(argv[1]); "
        + "\n".join(tests)
        + "}"
    )
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "kernels"
        flags = ["-std=c++17", "-O1", "-w", "-fwrapv", "-fno-strict-aliasing", f"-I{KERNELS}"]
        command = ["g++", *flags, "-x", "c++", "-", "-o", str(program)]
        subprocess.run(command, input="\n".join(parts), text=True, check=True)
        for order in range(ORDERS):
            if subprocess.run([str(program), str(order)], check=False).returncode != 0:
                sys.exit(f"order {order}: failed")
    click.echo(f"{len(tests)} kernels agree with their expected results in {ORDERS} orders")


if __name__ == "__main__":
    main()
