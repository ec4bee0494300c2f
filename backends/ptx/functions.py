"""The functions that instructions of PTX compute, on NumPy arrays with an element for each thread.

Approximate instructions (``ex2.approx``) give the nearest number; PTX allows hardware to be a few
units in the last place off.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.dtype_names import dtype_named, is_real
from ...core.errors import UnsupportedError, explain
from .text import PtxInstruction, bits_of

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Computation:
    """An instruction as a function.

    Attributes:
        result: the type of what it computes.
        operands: the types of its operands.
        function: maps arrays of these types to one of the result's.
        group: what kind of work it is, for counters.
    """

    result: str
    operands: tuple[str, ...]
    function: Callable[..., Any]
    group: str


def dtype_of(kind: str) -> np.dtype[Any]:
    """The dtype of a PTX type; bits are unsigned integers."""
    if kind == "pred":
        return np.dtype(bool)
    bits = bits_of(kind)
    if kind == "bf16":
        return dtype_named("bf16")
    if kind[0] == "f" and bits > 8:
        return np.dtype(f"f{bits // 8}")
    return np.dtype(f"{'i' if kind[0] == 's' else 'u'}{bits // 8}")


def is_float(kind: str) -> bool:
    """Whether a type has fractions."""
    return is_real(dtype_of(kind))


def computation(op: PtxInstruction) -> Computation | None:
    """The function of an instruction; None if it is none of these.

    Raises:
        UnsupportedError: if it is one with modifiers that are not known.
    """
    make = _MAKERS.get(op.name)
    if make is None:
        return None
    found = make(op)
    left = set(op.modifiers) - _KNOWN.get(op.name, frozenset()) - _USUAL - {op.kind}
    if left or any(not word for word in op.modifiers):
        raise unsupported(op)
    if "ftz" in op.modifiers and "f32" in op.modifiers:
        found = _flushed(found)
    if "sat" in op.modifiers and is_float(found.result):
        return _then(found, lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)).astype(x.dtype))
    return found


def unsupported(op: PtxInstruction) -> UnsupportedError:
    """The error that the emulator lacks an instruction."""
    return UnsupportedError(explain("PTX", f"cannot emulate {op.opcode}", origin=op.origin))


def flushed(x: Array) -> Array:
    """Zeros, with their signs, for the denormal numbers of an array of floats."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)


def _flushed(found: Computation) -> Computation:
    """A computation that flushes denormal operands and results."""

    def compute(*operands: Array) -> Array:
        taken = (flushed(x) if x.dtype == np.float32 else x for x in operands)
        result = found.function(*taken)
        return flushed(result) if result.dtype == np.float32 else result

    return Computation(found.result, found.operands, compute, found.group)


def _then(found: Computation, last: Callable[[Any], Any]) -> Computation:
    def compute(*operands: Array) -> Any:
        return last(found.function(*operands))

    return Computation(found.result, found.operands, compute, found.group)


# Arithmetic


def fused(a: Array, b: Array, c: Array) -> Array:
    """a * b + c with one rounding (Boldo and Melquiond, 2008).

    The sum of the three parts that exact transformations leave is rounded to odd, which makes the
    second rounding that of the exact sum.
    """
    dtype = a.dtype
    if dtype.itemsize < 8:
        high, low = _exact_sum(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))
        return _odd(high, low).astype(dtype)
    product, error = _exact_product(a, b)
    high, low = _exact_sum(c, error)
    top, rest = _exact_sum(product, high)
    found = top + _odd(*_exact_sum(low, rest))
    # Transformations of infinities, and of what overflows, are no numbers.
    return np.where(np.isfinite(found), found, a * b + c)


def _exact_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b rounded, and its error (Knuth, 1969)."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


def _exact_product(a: Array, b: Array) -> tuple[Array, Array]:
    """a * b rounded, and its error (Dekker, 1971)."""
    a_high, b_high = (x * 134217729.0 - (x * 134217729.0 - x) for x in (a, b))
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _odd(total: Array, error: Array) -> Array:
    """total + error rounded to a number whose last bit is 1 unless the sum is exact."""
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    inexact = even & np.isfinite(total) & (error != 0)
    return np.where(inexact, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)


def _truncated(a: Array, b: Array) -> Array:
    """An integer quotient that is rounded towards zero."""
    quotient = a // b
    if a.dtype.kind == "u":
        return quotient
    return quotient + ((a % b != 0) & ((a < 0) != (b < 0)))


def _extremum(least: bool, with_nan: bool) -> Callable[[Array, Array], Array]:
    """The smaller or larger of two floats; a NaN loses unless `with_nan`, and -0.0 < 0.0."""
    choose: Any = (np.minimum if least else np.maximum) if with_nan else None
    choose = choose or (np.fmin if least else np.fmax)

    def compute(a: Array, b: Array) -> Array:
        first = np.signbit(a) == least
        return np.where(a == b, np.where(first, a, b), choose(a, b))

    return compute


_INTEGER: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _truncated,
    "rem": lambda a, b: a - _truncated(a, b) * b,
    "min": np.minimum,
    "max": np.maximum,
    "abs": np.abs,
    "neg": np.negative,
    "mad": lambda a, b, c: a * b + c,
}
_FLOAT: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "abs": np.abs,
    "neg": np.negative,
    "fma": fused,
    "mad": fused,
}
_COUNTS = {"abs": 1, "neg": 1, "fma": 3, "mad": 3}
_OF_DOUBLES: dict[str, Callable[..., Any]] = {
    "rcp": lambda x: 1 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}


def _arithmetic(op: PtxInstruction) -> Computation:
    kind, count = op.kind, _COUNTS.get(op.name, 2)
    if is_float(kind):
        function = _FLOAT.get(op.name)
        if op.name in ("min", "max"):
            function = _extremum(op.name == "min", "NaN" in op.modifiers)
        if function is None or {"rz", "rm", "rp"} & set(op.modifiers):
            raise unsupported(op)
        group = "fma" if count == 3 else "float"
        return Computation(kind, (kind,) * count, function, group)
    if op.name == "fma" or "sat" in op.modifiers:
        raise unsupported(op)
    return _integer(op, kind, count)


def _integer(op: PtxInstruction, kind: str, count: int) -> Computation:
    function = _INTEGER[op.name]
    if "wide" in op.modifiers or "hi" in op.modifiers:
        if bits_of(kind) == 64:
            if "wide" in op.modifiers or op.name != "mul":
                raise unsupported(op)
            return Computation(kind, (kind, kind), _high_half, "integer")
        wide = f"{kind[0]}{2 * bits_of(kind)}"
        if "wide" in op.modifiers:
            kinds = (kind, kind, wide)[:count]
            return Computation(wide, kinds, _widened(function, dtype_of(wide)), "integer")
        return Computation(kind, (kind,) * count, _high(op.name, kind, wide), "integer")
    return Computation(kind, (kind,) * count, function, "integer")


def _widened(function: Callable[..., Any], dtype: np.dtype[Any]) -> Callable[..., Any]:
    return lambda *operands: function(*(x.astype(dtype) for x in operands))


def _high(name: str, kind: str, wide: str) -> Callable[..., Any]:
    """The upper half of a product of two numbers, with a third one added to it for "mad"."""
    dtype, bits = dtype_of(wide), bits_of(kind)

    def compute(a: Array, b: Array, *added: Array) -> Array:
        half = ((a.astype(dtype) * b.astype(dtype)) >> bits).astype(a.dtype)
        return half + added[0] if name == "mad" else half

    return compute


def _high_half(a: Array, b: Array) -> Array:
    """The upper 64 bits of a product of 64-bit integers, by their halves."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    x, y = a.view(np.uint64), b.view(np.uint64)
    low = (x & mask) * (y & mask)
    one = (x >> half) * (y & mask) + (low >> half)
    two = (x & mask) * (y >> half) + (one & mask)
    high = (x >> half) * (y >> half) + (one >> half) + (two >> half)
    if a.dtype.kind == "i":
        # A negative number is 2^64 less than its bits.
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return high.view(a.dtype)


def _of_doubles(op: PtxInstruction) -> Computation:
    """A function whose value in f64 is rounded once more; f64 has its own."""
    if {"rz", "rm", "rp"} & set(op.modifiers):
        raise unsupported(op)
    function, dtype = _OF_DOUBLES[op.name], dtype_of(op.kind)
    if not is_float(op.kind):
        raise unsupported(op)

    def compute(x: Array) -> Array:
        return function(x.astype(np.float64)).astype(dtype)

    return Computation(op.kind, (op.kind,), compute, "special")


def _copysign(op: PtxInstruction) -> Computation:
    # PTX copies the sign of the first operand to the second.
    return Computation(op.kind, (op.kind, op.kind), lambda a, b: np.copysign(b, a), "float")


# Bits


def _logic(op: PtxInstruction) -> Computation:
    functions: dict[str, Any] = {
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
        "not": np.logical_not if op.kind == "pred" else np.bitwise_not,
        "cnot": lambda x: (x == 0).astype(x.dtype),
    }
    count = 1 if op.name in ("not", "cnot") else 2
    return Computation(op.kind, (op.kind,) * count, functions[op.name], "integer")


def _shift(op: PtxInstruction) -> Computation:
    bits, left = bits_of(op.kind), op.name == "shl"

    def compute(x: Array, by: Array) -> Array:
        amount = np.minimum(by, bits - 1).astype(x.dtype)
        shifted = np.left_shift(x, amount) if left else np.right_shift(x, amount)
        # Shifts by more clear all bits, or leave copies of the sign.
        return shifted if x.dtype.kind == "i" else np.where(by < bits, shifted, 0).astype(x.dtype)

    return Computation(op.kind, (op.kind, "u32"), compute, "integer")


def _funnel(op: PtxInstruction) -> Computation:
    """A part of two registers together: ``shf``."""
    left, wrapped = "l" in op.modifiers, "wrap" in op.modifiers

    def compute(low: Array, high: Array, by: Array) -> Array:
        both = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
        amount = (by & 31 if wrapped else np.minimum(by, 32)).astype(np.uint64)
        amount = np.uint64(32) - amount if left else amount
        return (both >> amount).astype(np.uint32)

    return Computation("b32", ("b32", "b32", "u32"), compute, "integer")


def _field(x: Array, at: Array, length: Array) -> Array:
    """Some bits of each number, zero- or sign-extended: ``bfe``."""
    bits = 8 * x.dtype.itemsize
    at, length = np.minimum(at & 255, bits), np.minimum(length & 255, bits)
    count = np.minimum(length, bits - at)
    up, wide = (bits - at - count) % bits, x.view(f"u{x.dtype.itemsize}")
    moved = (wide << up.astype(wide.dtype)).view(x.dtype)
    found = moved >> ((bits - count) % bits).astype(x.dtype)
    if x.dtype.kind == "i":
        # Beyond the number, fields have its sign.
        found = np.where((count == 0) & (length > 0), x >> x.dtype.type(bits - 1), found)
        return np.where(length == 0, 0, found).astype(x.dtype)
    return np.where(count == 0, 0, found).astype(x.dtype)


def _inserted(x: Array, y: Array, at: Array, length: Array) -> Array:
    """y with some of its bits replaced by the first ones of x: ``bfi``."""
    bits, one = 8 * x.dtype.itemsize, x.dtype.type(1)
    at, length = np.minimum(at & 255, bits), np.minimum(length & 255, bits)
    ones = np.where(
        length >= bits, ~x.dtype.type(0), (one << (length % bits).astype(x.dtype)) - one
    )
    mask = np.where(at >= bits, 0, ones << (at % bits).astype(x.dtype)).astype(x.dtype)
    return (y & ~mask) | ((x << (at % bits).astype(x.dtype)) & mask)


def _bits_each(x: Array) -> Array:
    """The bits of each number along a last axis, the most significant one first."""
    raw = np.ascontiguousarray(x).view(np.uint8).reshape(x.size, -1)[:, ::-1]
    return np.unpackbits(raw, axis=1)


def _leading_zeros(x: Array) -> Array:
    bits = _bits_each(x)
    return np.where(bits.any(1), bits.argmax(1), bits.shape[1]).astype(np.uint32)


def _reversed(x: Array) -> Array:
    return np.packbits(_bits_each(x), axis=1, bitorder="little").view(x.dtype).ravel()


def _highest(op: PtxInstruction) -> Computation:
    """The position of the most significant bit, that of the sign left out: ``bfind``."""
    bits = bits_of(op.kind)

    def compute(x: Array) -> Array:
        x = np.where(x < 0, ~x, x) if x.dtype.kind == "i" else x
        zeros = _leading_zeros(x)
        found = zeros if "shiftamt" in op.modifiers else np.uint32(bits - 1) - zeros
        return np.where(zeros == bits, np.uint32(0xFFFFFFFF), found)

    return Computation("u32", (op.kind,), compute, "integer")


def _of_bits(op: PtxInstruction) -> Computation:
    functions: dict[str, tuple[str, tuple[str, ...], Any]] = {
        "bfe": (op.kind, (op.kind, "u32", "u32"), _field),
        "bfi": (op.kind, (op.kind, op.kind, "u32", "u32"), _inserted),
        "popc": ("u32", (op.kind,), lambda x: np.bitwise_count(x).astype(np.uint32)),
        "clz": ("u32", (op.kind,), _leading_zeros),
        "brev": (op.kind, (op.kind,), _reversed),
    }
    return Computation(*functions[op.name], "integer")


def _by_table(a: Array, b: Array, c: Array, table: Array) -> Array:
    """Each bit looked up in a table of 8 by the bits of three numbers: ``lop3``."""
    found = np.zeros_like(a)
    for case in range(8):
        chosen = [x if case >> n & 1 else ~x for x, n in ((a, 2), (b, 1), (c, 0))]
        found |= np.where(table >> case & 1, chosen[0] & chosen[1] & chosen[2], 0).astype(a.dtype)
    return found


def _permuted(a: Array, b: Array, selector: Array) -> Array:
    """Four bytes out of eight: ``prmt``."""
    both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    found = np.zeros_like(a)
    for n in range(4):
        choice = selector >> (4 * n) & 15
        byte = (both >> (8 * (choice & 7)).astype(np.uint64)).astype(np.uint32) & 255
        signs = np.where(byte > 127, 255, 0)
        found |= (np.where(choice > 7, signs, byte) << (8 * n)).astype(np.uint32)
    return found


# Choices and conversions

_ORDERS: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_COMBINATIONS = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _comparison(op: PtxInstruction) -> Computation:
    """A comparison of two numbers: ``setp``, ``set``."""
    order, kind = op.modifiers[0], op.kind
    compare = _of_order(op, order)
    combine = next((_COMBINATIONS[m] for m in op.modifiers[1:] if m in _COMBINATIONS), None)
    operands = (kind, kind) if combine is None else (kind, kind, "pred")

    def compute(a: Array, b: Array, *with_: Array) -> Array:
        found = compare(a, b)
        return found if combine is None else combine(found, with_[0])

    return Computation("pred", operands, compute, "float" if is_float(kind) else "integer")


def _of_order(op: PtxInstruction, order: str) -> Callable[[Array, Array], Array]:
    """A comparison by name: unordered ones of floats, with a final "u", hold for NaN."""
    if order in ("num", "nan"):
        return lambda a, b: (np.isnan(a) | np.isnan(b)) == (order == "nan")
    unordered = order not in _ORDERS and order[-1:] == "u"
    compare = _ORDERS.get(order[:-1] if unordered else order)
    if compare is None:
        raise unsupported(op)
    if not is_float(op.kind):
        return compare
    # NumPy's `!=` holds for NaN; that of PTX does not.
    return lambda a, b: np.where(np.isnan(a) | np.isnan(b), unordered, compare(a, b))


def _selection(op: PtxInstruction) -> Computation:
    kinds = (op.kind, op.kind, "pred")
    return Computation(op.kind, kinds, lambda a, b, chosen: np.where(chosen, a, b), "move")


def _sign_selection(op: PtxInstruction) -> Computation:
    kind = op.modifiers[0]
    kinds = (kind, kind, op.kind)
    return Computation(kind, kinds, lambda a, b, c: np.where(c >= 0, a, b), "move")


_ROUND: dict[str, Callable[..., Any]] = {
    "rzi": np.trunc,
    "rni": np.rint,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def _conversion(op: PtxInstruction) -> Computation:
    into, kind = op.modifiers[-2:]
    if into in _PACKED and set(op.modifiers[:-2]) == {"rn"}:
        return _packing(kind, dtype_of(_PACKED[into]))
    target = dtype_of(into)
    rounding = [m for m in op.modifiers[:-2] if m in ("rn", "rz", "rm", "rp", *_ROUND)]
    if any(name in ("rz", "rm", "rp") for name in rounding):
        raise unsupported(op)
    to_integral = _ROUND.get(rounding[0]) if rounding else None

    def compute(x: Array) -> Array:
        if is_float(kind):
            x = x if to_integral is None else to_integral(x)
            return x.astype(target) if is_float(into) else saturated(x, target)
        if "sat" in op.modifiers and not is_float(into):
            limits = np.iinfo(target)
            return np.clip(x.astype(object), limits.min, limits.max).astype(target)
        return x.astype(target)

    return Computation(into, (kind,), compute, "conversion")


def _packing(kind: str, dtype: np.dtype[Any]) -> Computation:
    """Two numbers as those of 16 bits in a register, the first one in its upper half."""

    def compute(high: Array, low: Array) -> Array:
        upper, lower = (x.astype(dtype).view(np.uint16).astype(np.uint32) for x in (high, low))
        return upper << np.uint32(16) | lower

    return Computation("b32", (kind, kind), compute, "conversion")


def _tested(op: PtxInstruction) -> Computation:
    """Whether a number is of a class: ``testp``."""
    function = _TESTS.get(op.modifiers[0])
    if function is None:
        raise unsupported(op)
    return Computation("pred", (op.kind,), function, "float")


def saturated(x: Array, dtype: np.dtype[Any]) -> Array:
    """Integral floats as integers, the nearest ones for those that are too large, 0 for NaN."""
    limits = np.iinfo(dtype)
    wide = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    above, below = wide >= float(limits.max), wide <= float(limits.min)
    inside = np.where(above | below, 0.0, wide).astype(dtype)
    return np.where(above, limits.max, np.where(below, limits.min, inside)).astype(dtype)


_PACKED = {"f16x2": "f16", "bf16x2": "bf16"}
_TESTS: dict[str, Callable[..., Any]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda x: ~np.isnan(x),
    "notanumber": np.isnan,
}
_USUAL = frozenset({"rn", "ftz", "sat", "approx", "full", "lo"})
"""Modifiers of many instructions: the rounding that is computed, and less exact forms."""
_KNOWN: dict[str, frozenset[str]] = {
    "cvt": frozenset(_ROUND)
    | {f"{k}{n}" for k in "fsu" for n in (8, 16, 32, 64)}
    | {"bf16", *_PACKED},
    "testp": frozenset(_TESTS),
    "setp": frozenset({*_ORDERS, *(f"{o}u" for o in _ORDERS), "num", "nan", *_COMBINATIONS}),
    "slct": frozenset({f"{k}{n}" for k in "bfsu" for n in (16, 32, 64)}),
    "mul": frozenset({"wide", "hi"}),
    "mad": frozenset({"wide", "hi"}),
    "min": frozenset({"NaN"}),
    "max": frozenset({"NaN"}),
    "shf": frozenset({"l", "r", "wrap", "clamp"}),
    "bfind": frozenset({"shiftamt"}),
}

_MAKERS: dict[str, Callable[[PtxInstruction], Computation]] = {
    **dict.fromkeys((*_INTEGER, *_FLOAT), _arithmetic),
    **dict.fromkeys(_OF_DOUBLES, _of_doubles),
    **dict.fromkeys(("and", "or", "xor", "not", "cnot"), _logic),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("bfe", "bfi", "popc", "clz", "brev"), _of_bits),
    "copysign": _copysign,
    "shf": _funnel,
    "bfind": _highest,
    "lop3": lambda op: Computation("b32", ("b32", "b32", "b32", "u32"), _by_table, "integer"),
    "prmt": lambda op: Computation("b32", ("b32", "b32", "u32"), _permuted, "integer"),
    "setp": _comparison,
    "selp": _selection,
    "slct": _sign_selection,
    "cvt": _conversion,
    "testp": _tested,
}

REDUCTIONS: dict[str, Callable[[PtxInstruction], Callable[[Any, Any], Any]]] = {
    "add": lambda op: np.add,
    "min": lambda op: _extremum(True, False) if is_float(op.kind) else np.minimum,
    "max": lambda op: _extremum(False, False) if is_float(op.kind) else np.maximum,
    "and": lambda op: np.bitwise_and,
    "or": lambda op: np.bitwise_or,
    "xor": lambda op: np.bitwise_xor,
    "exch": lambda op: lambda old, new: new,
    "inc": lambda op: lambda old, top: np.where(old >= top, 0, old + 1).astype(old.dtype),
    "dec": lambda op: lambda old, top: np.where((old == 0) | (old > top), top, old - 1),
}
"""What atomic operations make of the number in memory and their operand, by name."""
