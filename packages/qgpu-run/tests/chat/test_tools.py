from __future__ import annotations

import pytest
import qgpu
from qgpu_run.chat.clean_source import clean_source
from qgpu_run.chat.cuda_launch import LaunchTextError, Output, parse_launch
from qgpu_run.chat.tool_calls import MalformedCall, ToolCall
from qgpu_run.chat.tools import LARGEST_RESPONSE, Tools

KERNEL = """__global__ void f(const int* x, int* out) {
  int i = threadIdx.x;
  out[i] = x[i] + 1;
}"""
LAUNCH = "f<<<1, 3>>>([1, 2, 3], out[3])"


@pytest.fixture(scope="module")
def tools() -> Tools:
    return Tools(qgpu.Device(profile="small", engine="interpreter", check=True, max_tokens=2000))


def run(tools: Tools, source: str, launch: str = LAUNCH) -> str:
    record = tools.run(ToolCall("run_cuda", {"source": source, "launch": launch}), "advanced")
    assert record.failed == record.response.startswith("error: ")
    assert "Traceback" not in record.response
    return record.response


def test_an_expression(tools: Tools) -> None:
    record = tools.run(ToolCall("calculate", {"expression": " sum([1, 2]) * 3\n"}), "normal")
    assert (record.response, record.failed, record.exact) == ("9", False, True)
    assert len(record.launches) == 2
    assert record.tokens > 0
    assert record.to_dict()["expression"] == " sum([1, 2]) * 3\n"


@pytest.mark.parametrize(
    ("expression", "response"),
    [
        ("99999 * 99999", "error: overflow: 99999 * 99999 does not fit 32 bits"),
        ("1 / 0", "error: division by zero: 1 / 0"),
        ("sum([1, 2]", "error: "),
        ("[1, 2] + [1, 2, 3]", "error: "),
        ("nonsense(3)", "error: "),
        ("", "error: "),
        ("(" * 5000, "error: "),
    ],
)
def test_expressions_without_a_value(tools: Tools, expression: str, response: str) -> None:
    record = tools.run(ToolCall("calculate", {"expression": expression}), "normal")
    assert record.failed
    assert record.response.startswith(response)
    assert "\n" not in record.response
    after = tools.run(ToolCall("calculate", {"expression": "1 + 1"}), "normal")
    assert after.response == "2"


def test_calls_that_no_tool_takes(tools: Tools) -> None:
    assert "calculate" in tools.run(ToolCall("python", {}), "normal").response
    assert "run_cuda" in tools.run(ToolCall("calculate", {}), "advanced").response
    assert "expression" in tools.run(ToolCall("calculate", {"x": "1"}), "normal").response
    assert tools.run(MalformedCall("1 + 1", "no function"), "normal").failed


@pytest.mark.parametrize(
    "source",
    [
        KERNEL,
        f"```cuda\n{KERNEL}\n```",
        f"#include <cuda_runtime.h>\n#include <iostream>\n{KERNEL}",
        f'extern "C" {KERNEL}',
        f"{KERNEL}\n\nint main() {{\n  int* d;\n  if (1) {{ cudaMalloc(&d, 4); }}\n}}\n",
    ],
)
def test_what_stands_around_a_kernel_does_not_matter(tools: Tools, source: str) -> None:
    assert run(tools, source) == "out = [2, 3, 4]"


@pytest.mark.parametrize(
    ("source", "launch", "words"),
    [
        (KERNEL.replace("+ 1;", "+ 1"), LAUNCH, 'expected a ";"'),
        (KERNEL.replace("x[i]", "y[i]"), LAUNCH, "undefined"),
        (KERNEL.replace("const int*", "const float*"), LAUNCH, "f32"),
        (KERNEL.replace("int i", 'printf("i"); int i'), LAUNCH, "printf"),
        (KERNEL, LAUNCH.replace("f<", "g<"), "expected: f"),
        (KERNEL, "f<<<1, 3>>>([1, 2, 3])", "2 arguments"),
        (KERNEL, "f<<<1, 3>>>(7, out[3])", "number"),
        (KERNEL, LAUNCH.replace("3>", "2000>"), "fewer threads"),
        (KERNEL, LAUNCH.replace("3>", "0>"), "positive"),
        (KERNEL, LAUNCH.replace("out[3]", "out[4000]"), "shorter arrays"),
        (KERNEL, LAUNCH.replace("out[3]", "out[99999]"), "1 to 4096 words"),
        (KERNEL, LAUNCH.replace("[1", "[99999999999"), "32 bits"),
        (KERNEL, "f([1, 2, 3], out[3])", "column 2"),
        (KERNEL, "", "write it as"),
        (KERNEL.replace("__global__", ""), LAUNCH, "__global__"),
        ("", LAUNCH, "__global__"),
        ("__global__ void f(int* x) { while (x[0] == 0) x[1]++; }", "f<<<1, 1>>>(x[2])", "loop"),
        ("__global__ void f(int* x) { __trap(); }", "f<<<1, 1>>>(x[2])", "trap"),
    ],
)
def test_kernels_that_do_not_run(tools: Tools, source: str, launch: str, words: str) -> None:
    response = run(tools, source, launch)
    assert response.startswith("error: ")
    assert words in response
    assert len(response) < LARGEST_RESPONSE + 100
    assert run(tools, KERNEL) == "out = [2, 3, 4]"


def test_launch_lines() -> None:
    parsed = parse_launch("f<<<dim3(2, 1), (4, 4), 64>>>([], -7, out[2], data = [1, 4294967295]);")
    assert (parsed.kernel, parsed.grid, parsed.block, parsed.shared) == ("f", (2, 1), (4, 4), 64)
    assert parsed.arguments == ([], -7, Output("out", [0, 0]), Output("data", [1, 4294967295]))
    assert parse_launch("f<<<1, 1>>>()").arguments == ()
    with pytest.raises(LaunchTextError):
        parse_launch("f<<<1, 1>>>(x)")


def test_lines_keep_their_numbers() -> None:
    text = "#include <cstdio>\nint main() {\n}\n__device__ int f() { return 1; }\n"
    assert clean_source(text).splitlines()[3] == "__device__ int f() { return 1; }"
