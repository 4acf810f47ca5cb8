"""What models write around a kernel, taken away; line numbers stay."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^[ \t]*```[\w+-]*[ \t]*$", re.MULTILINE)
_HOST_INCLUDE = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*[<\"](?:c?stdio|iostream|c?stdlib|c?string|vector|c?math|c?assert"
    r"|algorithm|numeric|random|chrono|iomanip|cuda|cuda_runtime(?:_api)?"
    r"|device_launch_parameters)(?:\.h)?[>\"][^\n]*",
    re.MULTILINE,
)
_MAIN = re.compile(r"\b(?:int|void|auto)\s+main\s*\([^)]*\)\s*\{")


def clean_source(source: str) -> str:
    """A kernel without Markdown fences, includes of host headers, and a host's `main`.

    None of them is of use to a kernel, and all of them are habits; everything else is left to the
    compiler to judge.
    """
    source = _HOST_INCLUDE.sub("", _FENCE.sub("", source))
    found = _MAIN.search(source)
    if found is None:
        return source
    end = _closing_brace(source, found.end())
    return source[: found.start()] + "\n" * source.count("\n", found.start(), end) + source[end:]


def _closing_brace(source: str, start: int) -> int:
    """The place behind the brace that closes the one before `start`."""
    depth = 1
    for index in range(start, len(source)):
        depth += {"{": 1, "}": -1}.get(source[index], 0)
        if depth == 0:
            return index + 1
    return len(source)
