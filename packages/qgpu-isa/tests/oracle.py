"""What each instruction computes, said again with numpy and ctypes, apart from the package.

Each entry maps two words and the selecting flag, as Python integers, to the result.
"""

import ctypes
from collections.abc import Callable

import numpy as np

U, S, W = np.uint32, np.int32, np.uint64


def u(word: int) -> np.uint32:
    return U(word)


def s(word: int) -> np.int32:
    return U(word).view(S)


def w(word: int) -> np.uint64:
    return W(word)


def c(value: int) -> int:
    """C's conversion to `unsigned`."""
    return ctypes.c_uint32(value).value


def c_signed(word: int) -> int:
    """C's conversion of `unsigned` to `int`."""
    return ctypes.c_int32(word).value


def top(a: np.integer, b: np.integer, kind: type) -> int:
    """Upper word of the product in 64-bit arithmetic of numpy."""
    return c(int((kind(a) * kind(b)) >> kind(32)))


def part(word: int, kind: type, index: int) -> int:
    """An element of a word's bytes or halves, converted to a word as C does."""
    return c(int(np.array([word], "<u4").view(kind)[index]))


def cleared(word: int, index: int) -> int:
    """The word with one of its bytes set to 0."""
    parts = np.array([word], "<u4").view(np.uint8)
    parts[index] = 0
    return int(parts.view("<u4")[0])


ORACLE: dict[str, Callable[[int, int, bool], int]] = {
    "add": lambda a, b, f: c(a + b),
    "sub": lambda a, b, f: c(a - b),
    "lea1": lambda a, b, f: c(2 * a + b),
    "lea2": lambda a, b, f: c(4 * a + b),
    "lea3": lambda a, b, f: c(8 * a + b),
    "mins": lambda a, b, f: c(int(np.minimum(s(a), s(b)))),
    "maxs": lambda a, b, f: c(int(np.maximum(s(a), s(b)))),
    "minu": lambda a, b, f: int(np.minimum(u(a), u(b))),
    "maxu": lambda a, b, f: int(np.maximum(u(a), u(b))),
    "and": lambda a, b, f: int(np.bitwise_and(u(a), u(b))),
    "or": lambda a, b, f: int(np.bitwise_or(u(a), u(b))),
    "xor": lambda a, b, f: int(np.bitwise_xor(u(a), u(b))),
    "sel": lambda a, b, f: int(np.where(f, u(a), u(b))),
    "selfwd": lambda a, b, f: int(np.where(f, u(a), u(b))),
    "seteq": lambda a, b, f: int(np.equal(u(a), u(b))),
    "setne": lambda a, b, f: int(np.not_equal(u(a), u(b))),
    "setlts": lambda a, b, f: int(np.less(s(a), s(b))),
    "setges": lambda a, b, f: int(np.greater_equal(s(a), s(b))),
    "setltu": lambda a, b, f: int(np.less(u(a), u(b))),
    "setgeu": lambda a, b, f: int(np.greater_equal(u(a), u(b))),
    "setp": lambda a, b, f: int(np.where(f, 1, 0)),
    "mullo": lambda a, b, f: c(c_signed(a) * c_signed(b)),
    "mulhiu": lambda a, b, f: top(u(a), u(b), W),
    "mulhis": lambda a, b, f: top(s(a), s(b), np.int64),
    "shl": lambda a, b, f: c(int(w(a) << w(min(b, 32)))),
    "shr": lambda a, b, f: int(w(a) >> w(min(b, 32))),
    "sar": lambda a, b, f: c(int(np.right_shift(np.int64(s(a)), np.int64(min(b, 40))))),
    "ld": lambda a, b, f: a,
    "st": lambda a, b, f: b,
    "ldx": lambda a, b, f: a,
    "ldb": lambda a, b, f: a,
    "ldh": lambda a, b, f: a,
    "ldxb": lambda a, b, f: a,
    "ldxh": lambda a, b, f: a,
    "stb": lambda a, b, f: b,
    "sth": lambda a, b, f: b,
    "shlb": lambda a, b, f: c(a * 256 ** (b % 4)),
    "clrb": lambda a, b, f: cleared(a, b % 4),
    "ballot": lambda a, b, f: int(np.where(f, 1, 0)),
    "popc": lambda a, b, f: int(np.unpackbits(u(a).reshape(1).view(np.uint8)).sum()),
    "clz": lambda a, b, f: next((i for i in range(32) if a & 1 << 31 - i), 32),
    "ctz": lambda a, b, f: next((i for i in range(32) if a & 1 << i), 32),
    "brev": lambda a, b, f: sum(1 << 31 - i for i in range(32) if a & 1 << i),
    "extb": lambda a, b, f: part(a, np.uint8, b % 4),
    "extbs": lambda a, b, f: part(a, np.int8, b % 4),
    "exth": lambda a, b, f: part(a, np.uint16, b % 4 // 2),
    "exths": lambda a, b, f: part(a, np.int16, b % 4 // 2),
}
