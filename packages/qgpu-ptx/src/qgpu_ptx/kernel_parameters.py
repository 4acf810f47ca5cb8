"""Names and types of a kernel's parameters, read from its source.

PTX as compilers write it numbers parameters and does not say what a pointer points to, so a launch
without a spec looks at the declaration itself. What this reading does not understand (macros,
templates, typedefs) is left open, never guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from qgpu_ptx.ptx_ast import Function

_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_GLOBAL = re.compile(
    r"\b__global__\b[^;{}()]*?"
    r"(?:__launch_bounds__\s*\([^)]*\)[^;{}()]*?)?"
    r"(\w+)\s*\("
)
_QUALIFIERS = re.compile(
    r"\b(?:const|volatile|__restrict__|__restrict|restrict|__grid_constant__)\b"
)
_DECLARATION = re.compile(
    r"(?P<type>[\w\s]*?)\s*(?P<pointer>\*?)\s*(?P<name>\w+)\s*(?P<array>\[\s*\d*\s*\])?"
)
_NUMBERED = re.compile(r".*param_\d+")

ELEMENT_TYPES = {
    "char": "s8", "signed char": "s8", "unsigned char": "u8",
    "short": "s16", "unsigned short": "u16", "int": "s32", "signed": "s32", "unsigned": "u32",
    "unsigned int": "u32", "long long": "s64", "unsigned long long": "u64",
    "int8_t": "s8", "uint8_t": "u8", "int16_t": "s16", "uint16_t": "u16",
    "int32_t": "s32", "uint32_t": "u32", "int64_t": "s64", "uint64_t": "u64",
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """A kernel's parameter.

    Attributes:
        name: as declared.
        type: element type as in launch specs, None if it is not one of theirs.
        is_pointer: whether it takes an array; None if that is not known.
    """

    name: str
    type: str | None
    is_pointer: bool | None


def kernel_parameters(entry: Function, cuda: str | None) -> tuple[Parameter, ...] | None:
    """The parameters of a kernel, None if neither source names them plainly.

    Args:
        entry: the kernel.
        cuda: the CUDA source it was compiled from, if it was.
    """
    if cuda is None:
        names = [parameter.name for parameter in entry.parameters]
        if any(_NUMBERED.fullmatch(name) for name in names):
            return None
        return tuple(Parameter(name, None, None) for name in names)
    found = _cuda_parameters(cuda, entry.name)
    return found if found is not None and len(found) == len(entry.parameters) else None


def _cuda_parameters(source: str, kernel: str) -> tuple[Parameter, ...] | None:
    text = _COMMENTS.sub(" ", source)
    lists = {m[1]: _between_parentheses(text, m.end()) for m in _GLOBAL.finditer(text)}
    chosen = [
        inner
        for name, inner in lists.items()
        # The Itanium C++ ABI's mangling of a function outside of namespaces.
        if kernel == name or kernel.startswith(f"_Z{len(name)}{name}")
    ]
    if len(chosen) != 1 or chosen[0] is None:
        return None
    declared = [d.strip() for d in chosen[0].split(",")] if chosen[0].strip() else []
    parameters = [_declared(text) for text in declared]
    return None if None in parameters else tuple(p for p in parameters if p is not None)


def _between_parentheses(text: str, start: int) -> str | None:
    end = text.find(")", start)
    inner = text[start:end]
    return None if end < 0 or "(" in inner or "<" in inner else inner


def _declared(text: str) -> Parameter | None:
    match = _DECLARATION.fullmatch(" ".join(_QUALIFIERS.sub(" ", text).split()))
    if match is None or not match["type"]:
        return None
    is_pointer = bool(match["pointer"] or match["array"])
    return Parameter(match["name"], ELEMENT_TYPES.get(match["type"].strip()), is_pointer)
