"""The range of unsigned values that registers can have, from the launch's shape on."""

from __future__ import annotations

from qgpu_ptx.flow_graph import single_assignments
from qgpu_ptx.ir import WORD, Function, Imm, Op, Reg, Special, Value
from qgpu_ptx.launch_shape import LaunchShape
from qgpu_ptx.simplify_op import COMPARES

Range = tuple[int, int]
ANY: Range = (0, WORD)


class ValueRanges:
    """Least and greatest value of every register that is set once; others can be anything."""

    def __init__(self, function: Function, shape: LaunchShape) -> None:
        self.single = single_assignments(function)
        self._shape = shape
        self._known: dict[Reg, Range] = {}
        # Two rounds, since blocks need not stand in the order in which they run.
        for _ in range(2):
            for op in function.ops():
                if isinstance(op.dst, Reg) and op.dst in self.single:
                    self._known[op.dst] = self._result(op)

    def of(self, value: Value) -> Range:
        """The range of an operand."""
        match value:
            case Imm(value=number):
                return number, number
            case Special.TID:
                return 0, self._shape.threads - 1
            case Special.CTAID:
                return 0, self._shape.ctas - 1
            case Reg():
                return self._known.get(value, ANY)
        return ANY

    def definition(self, value: Value) -> Op | None:
        """The operation that a register is a name for."""
        return self.single.get(value) if isinstance(value, Reg) else None

    def _result(self, op: Op) -> Range:
        if op.name in COMPARES or op.name == "setp":
            return 0, 1
        if op.is_memory or op.name == "ballot":
            return ANY
        (a, b), (c, d) = self.of(op.a), self.of(op.b)
        match op.name:
            case "mov":
                return a, b
            case "add" if b + d <= WORD:
                return a + c, b + d
            case "add" if a + c > WORD:
                return a + c - WORD - 1, b + d - WORD - 1
            case "sub" if a >= d:
                return a - d, b - c
            case "mullo" if b * d <= WORD:
                return a * c, b * d
            case "mulhiu":
                return a * c >> 32, b * d >> 32
            case "shl" if isinstance(op.b, Imm) and op.b.value < 32 and b << op.b.value <= WORD:
                return a << op.b.value, b << op.b.value
            case "shr" if isinstance(op.b, Imm):
                return a >> op.b.value, b >> op.b.value
            case "shr":
                return 0, b
            case "and":
                return 0, min(b, d)
            case "or" | "xor":
                return (max(a, c) if op.name == "or" else 0), (1 << (b | d).bit_length()) - 1
            case "popc" | "clz" | "ctz":
                return 0, 32
            case "extb":
                return 0, 0xFF
            case "exth":
                return 0, 0xFFFF
            case "sel":
                return min(a, c), max(b, d)
            case "minu":
                return min(a, c), min(b, d)
            case "maxu":
                return max(a, c), max(b, d)
            case "mins" | "maxs" if max(b, d) <= WORD >> 1:
                chosen = min if op.name == "mins" else max
                return chosen(a, c), chosen(b, d)
        return ANY


def compare_ranges(name: str, x: Range, y: Range) -> bool | None:
    """What a comparison of values of these ranges always gives, None if it may be either."""
    half = 1 << 31
    match name:
        case "setltu" | "setgeu":
            less = True if x[1] < y[0] else False if x[0] >= y[1] else None
            return less if name == "setltu" or less is None else not less
        case "setlts" | "setges":
            if any(low < half <= high for low, high in (x, y)):
                return None
            flipped = [(low ^ half, high ^ half) for low, high in (x, y)]
            return compare_ranges(name[:-1] + "u", flipped[0], flipped[1])
        case "seteq" | "setne" if x[1] < y[0] or y[1] < x[0]:
            return name == "setne"
    return None
