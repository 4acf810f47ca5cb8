"""CUDA C and PTX to qgpu machine blocks.

`cuda_to_ptx` compiles a .cu file, `parse_ptx` gives its syntax tree, `run_ptx` runs it on a
reference interpreter, `load_launch_spec` and `run_launch_spec` do so from a TOML file.
`lower_launch` places the arrays of a launch and lowers its kernel to a program for the machine;
`read_outputs` finds the results in the machine's memory.
"""

from qgpu_ptx.cuda_to_ptx import cuda_to_ptx, find_compiler
from qgpu_ptx.diagnostics import CudaLocation, QgpuPtxError, SourceText, Span
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.launch_spec import LaunchSpec, load_launch_spec, parse_launch_spec
from qgpu_ptx.lower import LoweredKernel, PlacedLaunch, lower_launch
from qgpu_ptx.memory_layout import place_arguments, read_outputs
from qgpu_ptx.ptx_interpreter import run_ptx
from qgpu_ptx.run_launch_spec import SpecResult, run_launch_spec
from qgpu_ptx.source_to_ast import parse_ptx

__all__ = [
    "CudaLocation",
    "LaunchShape",
    "LaunchSpec",
    "LoweredKernel",
    "PlacedLaunch",
    "QgpuPtxError",
    "SourceText",
    "Span",
    "SpecResult",
    "cuda_to_ptx",
    "find_compiler",
    "load_launch_spec",
    "lower_launch",
    "parse_launch_spec",
    "parse_ptx",
    "place_arguments",
    "read_outputs",
    "run_launch_spec",
    "run_ptx",
]
