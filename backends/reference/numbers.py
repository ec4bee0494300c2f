"""The semantics of operations on numbers: `arith`, `math`, `affine` and their `llvm` versions.

A number is a NumPy scalar or array in the dtype of its type, an `index` a Python integer.
(xDSL's implementations compute floats of every width as Python floats, and lack vectors.)
"""

from __future__ import annotations

import functools
import math as python_math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Operation
from xdsl.utils.type import get_element_type_or_self

from ...core import dtypes
from ...core.bounded_cache import MOST
from ...core.dtype_names import is_real
from ...core.dtypes import is_low_bit
from .affine import evaluator

Compute = Callable[..., Any]
"""Maps the values of an operation's operands to that of its result, if it has one."""
Meaning = Callable[[Any], Compute]
"""Maps an operation to what it computes: its attributes are looked up once for all its runs."""

T = TypeVar("T")


def _by_identity(function: Callable[[Attribute], T]) -> Callable[[Attribute], T]:
    """Keep the results of a function of types by their identity: types are slow to hash."""
    known: dict[int, tuple[Attribute, T]] = {}

    @functools.wraps(function)
    def cached(kind: Attribute) -> T:
        found = known.get(id(kind))
        if found is None:
            if len(known) == MOST:
                known.clear()
            # With the type itself, whose identity no other one can get meanwhile.
            found = known[id(kind)] = kind, function(kind)
        return found[1]

    return cached


@_by_identity
def dtype_of(kind: Attribute) -> np.dtype[Any]:
    """The dtype of a number or of the elements of a vector, at least as wide as its type."""
    element = kind.element_type if isinstance(kind, VectorType) else kind
    if isinstance(element, IndexType):
        return np.dtype(np.int64)
    if isinstance(element, IntegerType) and element.width.data not in (1, 8, 16, 32, 64):
        bits = max(8, 1 << (element.width.data - 1).bit_length())
        return np.dtype(f"i{bits // 8}")
    return dtypes.dtype_of(element)


def typed(result: Any, kind: Attribute) -> Any:
    """A result in the dtype of its type; a scalar index as a Python integer."""
    return _conversion(kind)(result)


@_by_identity
def _conversion(kind: Attribute) -> Callable[[Any], Any]:
    """The function that gives a result the dtype of its type."""
    if isinstance(kind, IndexType):
        return int
    dtype = dtype_of(kind)
    scalar = dtype.type

    def convert(result: Any) -> Any:
        if type(result) is scalar:
            return result
        return np.asarray(result).astype(dtype, copy=False)[()]

    return convert


def unknown(shape: Sequence[int], kind: Attribute) -> np.ndarray:
    """Undefined values: NaN, or a large odd number."""
    if is_low_bit(kind):
        return np.full(shape, 1, np.int8).view(dtypes.dtype_of(kind))
    dtype = dtype_of(kind)
    if is_real(dtype):
        return np.full(shape, np.nan, dtype)
    return np.full(shape, True if dtype.kind == "b" else np.iinfo(dtype).max // 3, dtype)


def shape_with(kind: Attribute, sizes: Iterator[Any]) -> tuple[int, ...]:
    """The shape of a buffer, with `sizes` for its dynamic dimensions."""
    declared = cast(MemRefType, kind).get_shape()
    return tuple(int(next(sizes)) if n == DYNAMIC_INDEX else n for n in declared)


@_by_identity
def shape_of(kind: Attribute) -> tuple[int, ...]:
    """The shape of a vector; empty for a number."""
    return kind.get_shape() if isinstance(kind, VectorType) else ()


def plain(function: Callable[..., Any]) -> Meaning:
    """The meaning of an operation that is a function of its operands."""
    return lambda op: function


def of_operation(function: Callable[..., Any]) -> Meaning:
    """The meaning of an operation that is a function of itself and its operands."""
    return lambda op: functools.partial(function, op)


def _signs_dropped(function: Callable[..., Any]) -> Meaning:
    """The meaning of an operation on unsigned integers."""
    return lambda op: lambda *args: function(*map(unsigned, args))


def _same(value: Any) -> Any:
    """An operand of which only the type changes."""
    return value


def _truncated(op: Operation, value: Any) -> Any:
    """The low bits of an integer: of i1 the last one, which is no conversion of NumPy."""
    return np.bitwise_and(value, 1) if get_element_type_or_self(op.results[0].type) == i1 else value


def unsigned(array: Any) -> Any:
    """Integers reinterpreted as unsigned."""
    array = np.asarray(array)
    if array.dtype.kind == "b" or is_real(array.dtype):
        return array
    return array.view(f"u{array.dtype.itemsize}")


def constant(op: Operation) -> Compute:
    """The value of a constant, one for all runs: no operation writes to its operands."""
    value, kind = op.properties["value"], op.results[0].type
    if isinstance(value, IntegerAttr | FloatAttr):
        number = typed(value.value.data, kind)
        return lambda: number
    elements = cast(DenseIntOrFPElementsAttr, value).get_values()
    return fixed(typed(np.array(elements).reshape(shape_of(kind)), kind))


def fixed(value: Any) -> Compute:
    """What yields the same value in each run; an array cannot be written to."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return lambda: value


def _truncated_quotient(a: Any, b: Any) -> Any:
    quotient = np.floor_divide(a, b)
    return quotient + ((np.remainder(a, b) != 0) & ((np.less(a, 0)) != (np.less(b, 0))))


def _rounded_up_quotient(a: Any, b: Any) -> Any:
    # ceil(a / b) == floor(a / b) + (a mod b != 0), which needs no -a: the smallest integer has none
    return np.floor_divide(a, b) + (np.remainder(a, b) != 0)


def _nothing_ordered(a: Any, b: Any) -> Any:
    return np.zeros(np.broadcast(a, b).shape, bool)


def _all_ordered(a: Any, b: Any) -> Any:
    return np.ones(np.broadcast(a, b).shape, bool)


_INTEGER_ORDER = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
_FLOAT_ORDER: tuple[Callable[[Any, Any], Any], ...] = (
    *(_nothing_ordered, np.equal, np.greater, np.greater_equal),
    *(np.less, np.less_equal, np.not_equal, _all_ordered),
)


def _predicate(op: Operation) -> int:
    return cast("IntegerAttr[IntegerType]", op.properties["predicate"]).value.data


def compare_integers(op: Operation) -> Compute:
    """A comparison; the predicates from 6 on are unsigned."""
    number = _predicate(op)
    if number < 6:
        return _INTEGER_ORDER[number]
    order = _INTEGER_ORDER[number - 4]
    return lambda a, b: order(unsigned(a), unsigned(b))


def compare_floats(op: Operation) -> Compute:
    """A comparison; the predicates from 8 on are unordered: they hold for NaN."""
    number = _predicate(op)

    def compare(a: Any, b: Any) -> Any:
        nan = np.isnan(a) | np.isnan(b)
        if number < 8:
            return _FLOAT_ORDER[number](a, b) & ~nan
        # `uno` and `true` come last, the others in the order of the ordered predicates.
        if number >= 14:
            return nan if number == 14 else _all_ordered(a, b)
        return _FLOAT_ORDER[number - 7](a, b) | nan

    return compare


def fused(a: Any, b: Any, c: Any) -> Any:
    """A product and a sum with one rounding: the product of two f32 is exact in f64."""
    wide = np.float64 if np.asarray(a).dtype.itemsize < 8 else np.longdouble
    return np.multiply(a, b, dtype=wide) + c


def _apply(op: Operation) -> Compute:
    evaluate = evaluator(cast(AffineMapAttr, op.properties["map"]).data)
    return lambda *operands: min(evaluate(operands))


def reinterpret(op: Operation, value: Any) -> Any:
    """The same bits in another type, lane by lane or all lanes as one number."""
    array, kind = np.asarray(value), op.results[0].type
    if array.dtype.kind == "b":
        array = np.packbits(array, bitorder="little")
        array = np.pad(array, (0, dtype_of(kind).itemsize - array.size))
    elif isinstance(kind, VectorType) and dtype_of(kind).kind == "b":
        return np.unpackbits(array.view(np.uint8), count=kind.element_count(), bitorder="little")
    return np.atleast_1d(array).view(dtype_of(kind)).reshape(shape_of(kind))


_BINARY: dict[str, Meaning] = {
    "addf": plain(np.add),
    "addi": plain(np.add),
    "andi": plain(np.bitwise_and),
    "divf": plain(np.divide),
    "divsi": plain(_truncated_quotient),
    "divui": _signs_dropped(np.floor_divide),
    "maximumf": plain(np.maximum),
    "maxnumf": plain(np.fmax),
    "maxsi": plain(np.maximum),
    "maxui": _signs_dropped(np.maximum),
    "minimumf": plain(np.minimum),
    "minnumf": plain(np.fmin),
    "minsi": plain(np.minimum),
    "minui": _signs_dropped(np.minimum),
    "mulf": plain(np.multiply),
    "muli": plain(np.multiply),
    "ori": plain(np.bitwise_or),
    "remf": plain(np.fmod),
    "remsi": plain(np.fmod),
    "remui": _signs_dropped(np.remainder),
    "shli": plain(np.left_shift),
    "shrsi": plain(np.right_shift),
    "shrui": _signs_dropped(np.right_shift),
    "subf": plain(np.subtract),
    "subi": plain(np.subtract),
    "xori": plain(np.bitwise_xor),
}

_FUNCTIONS: dict[str, Meaning] = {
    "acos": plain(np.arccos),
    "asin": plain(np.arcsin),
    "atan": plain(np.arctan),
    "atan2": plain(np.arctan2),
    "ceil": plain(np.ceil),
    "copysign": plain(np.copysign),
    "cos": plain(np.cos),
    "cosh": plain(np.cosh),
    "exp": plain(np.exp),
    "exp2": plain(np.exp2),
    "floor": plain(np.floor),
    "fma": plain(fused),
    "log": plain(np.log),
    "log10": plain(np.log10),
    "log2": plain(np.log2),
    "powf": plain(np.power),
    "round": plain(lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)),
    "roundeven": plain(np.rint),
    "sin": plain(np.sin),
    "sinh": plain(np.sinh),
    "sqrt": plain(np.sqrt),
    "tan": plain(np.tan),
    "tanh": plain(np.tanh),
    "trunc": plain(np.trunc),
}

LIBM: dict[str, Callable[..., Any]] = {
    "acosh": np.arccosh,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "erf": np.vectorize(python_math.erf, otypes=[np.float64]),
    "expm1": np.expm1,
    "log1p": np.log1p,
}
"""The functions of the C library that compiled code may call."""

MEANINGS: dict[str, Meaning] = {
    **{f"arith.{name}": meaning for name, meaning in _BINARY.items()},
    **{f"math.{name}": meaning for name, meaning in _FUNCTIONS.items()},
    **{f"math.{name}": plain(function) for name, function in LIBM.items()},
    "affine.apply": _apply,
    "affine.min": _apply,
    "arith.bitcast": of_operation(reinterpret),
    "arith.ceildivsi": plain(_rounded_up_quotient),
    "arith.ceildivui": _signs_dropped(_rounded_up_quotient),
    "arith.cmpf": compare_floats,
    "arith.cmpi": compare_integers,
    "arith.constant": constant,
    "arith.extf": plain(_same),
    "arith.extsi": plain(_same),
    "arith.extui": plain(unsigned),
    "arith.floordivsi": plain(np.floor_divide),
    "arith.fptosi": plain(np.trunc),
    "arith.fptoui": plain(np.trunc),
    "arith.index_cast": plain(_same),
    "arith.index_castui": plain(unsigned),
    "arith.negf": plain(np.negative),
    "arith.select": plain(np.where),
    "arith.sitofp": plain(_same),
    "arith.truncf": plain(_same),
    "arith.trunci": of_operation(_truncated),
    "arith.uitofp": plain(unsigned),
    "math.absf": plain(np.abs),
    "math.absi": plain(np.abs),
    "math.rsqrt": plain(lambda x: np.asarray(1, np.asarray(x).dtype) / np.sqrt(x)),
}
"""What the operations of the standard dialects compute, by name."""

# LLVM's names of operations that `arith` names differently.
_INSTRUCTIONS = {
    "add": "addi",
    "sub": "subi",
    "mul": "muli",
    "sdiv": "divsi",
    "udiv": "divui",
    "srem": "remsi",
    "urem": "remui",
    "and": "andi",
    "or": "ori",
    "xor": "xori",
    "shl": "shli",
    "ashr": "shrsi",
    "lshr": "shrui",
    "fadd": "addf",
    "fsub": "subf",
    "fmul": "mulf",
    "fdiv": "divf",
    "frem": "remf",
    "intr.smax": "maxsi",
    "intr.smin": "minsi",
    "intr.umax": "maxui",
    "intr.umin": "minui",
    "intr.maximum": "maximumf",
    "intr.minimum": "minimumf",
    "intr.maxnum": "maxnumf",
    "intr.minnum": "minnumf",
    "sext": "extsi",
    "zext": "extui",
    "trunc": "trunci",
    "fpext": "extf",
    "fptrunc": "truncf",
    "sitofp": "sitofp",
    "uitofp": "uitofp",
    "fptosi": "fptosi",
    "fptoui": "fptoui",
    "fneg": "negf",
    "icmp": "cmpi",
    "fcmp": "cmpf",
    "select": "select",
    "mlir.constant": "constant",
    "bitcast": "bitcast",
}

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add.reduce,
    "mul": np.multiply.reduce,
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
    "smax": np.maximum.reduce,
    "smin": np.minimum.reduce,
    "fmax": np.fmax.reduce,
    "fmin": np.fmin.reduce,
    "fmaximum": np.maximum.reduce,
    "fminimum": np.minimum.reduce,
    "umax": lambda x: np.maximum.reduce(unsigned(x)),
    "umin": lambda x: np.minimum.reduce(unsigned(x)),
}

COMBINE = {
    "add": "add",
    "mul": "mul",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "maxsi": "smax",
    "minsi": "smin",
    "maxui": "umax",
    "minui": "umin",
    "maxnumf": "fmax",
    "minnumf": "fmin",
    "maximumf": "fmaximum",
    "minimumf": "fminimum",
}
"""The LLVM names of the reductions of `vector`."""

_LLVM: dict[str, Meaning] = {
    **{f"llvm.{name}": MEANINGS[f"arith.{same}"] for name, same in _INSTRUCTIONS.items()},
    **{f"llvm.intr.{name}": _FUNCTIONS[name] for name in _FUNCTIONS.keys() - {"powf"}},
    **{f"llvm.intr.vector.reduce.{name}": plain(fold) for name, fold in REDUCTIONS.items()},
    "llvm.intr.fabs": plain(np.abs),
    "llvm.intr.pow": plain(np.power),
    "llvm.intr.vector.reduce.fadd": plain(lambda start, x: start + np.add.reduce(x)),
    "llvm.intr.vector.reduce.fmul": plain(lambda start, x: start * np.multiply.reduce(x)),
}


def is_number(op: Operation) -> bool:
    """Whether an operation computes a number, or a vector, of others."""
    return op.name in MEANINGS or op.name in _LLVM


def computation(op: Operation) -> Compute:
    """What an operation on numbers computes, in the dtype of its type."""
    meaning = MEANINGS.get(op.name) or _LLVM[op.name]
    compute = meaning(op)
    if meaning is constant:
        return compute
    convert = _conversion(op.results[0].type)
    return lambda *args: convert(compute(*args))
