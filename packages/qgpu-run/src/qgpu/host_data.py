"""numpy arrays as words of the machine's memory, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from qgpu_ptx.diagnostics import LaunchError
from qgpu_ptx.memory_layout import WORD_BYTES

Array = np.ndarray[Any, Any]


def element_type(dtype: np.dtype[Any], what: str) -> str:
    """The element type, as launch specs name it: s8 to u64.

    Raises:
        LaunchError: the elements are not integers.
    """
    if dtype.kind == "b":
        return "u8"
    if dtype.kind not in "iu":
        raise LaunchError(f"{what} holds {dtype}; the machine computes on integers only")
    return f"{'s' if dtype.kind == 'i' else 'u'}{8 * dtype.itemsize}"


def to_words(array: Array) -> list[int]:
    """The words that an array fills from a word's start on, the last one filled up with 0."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    data = little.tobytes()
    data += bytes(-len(data) % WORD_BYTES)
    words: list[int] = np.frombuffer(data, dtype="<u4").tolist()
    return words


def from_words(words: Sequence[int], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """The array that words hold."""
    data = np.array(words, dtype="<u4").tobytes()
    count = int(np.prod(shape))
    found = np.frombuffer(data, dtype=dtype.newbyteorder("<"), count=count)
    return found.astype(dtype).reshape(shape)
