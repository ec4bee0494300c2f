"""The meaning of the loop dialect on NumPy arrays.

Kernels run operation by operation, blocks as NumPy arrays, and every access is checked. What
the dialect leaves open is made visible: lanes beyond `valid`, and a local buffer before it is
filled, hold NaN (for integers an odd large number), so that a schedule that lets one of them
reach a result gives a wrong number. (xDSL's interpreter of `arith` computes in Python's
floats, and has no vectors.)
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...core.errors import CompileError, InputError, UnsupportedError, explain
from ...core.module import is_real, numpy_dtype
from ...core.provenance import origin
from ...dialects.loop.attrs import Combine
from ...dialects.loop.ops import (
    FoldOp,
    ForOp,
    KernelOp,
    LoadOp,
    LocalOp,
    ReduceEntriesOp,
    ReduceOp,
    StoreOp,
    YieldOp,
    block_shape,
    element_type,
)
from ...dialects.loop.packing import pack_array

_COMBINE: dict[Combine, np.ufunc] = {
    Combine.ADD: np.add,
    Combine.MUL: np.multiply,
    Combine.MAX: np.maximum,
    Combine.MAXNUM: np.fmax,
    Combine.MIN: np.minimum,
}


def run_kernel(kernel: KernelOp, arrays: Sequence[np.ndarray | int]) -> None:
    """Run a kernel; its outputs are written in place.

    Args:
        kernel: the kernel, scheduled or not.
        arrays: one array for each buffer and one integer for each size, inputs first. An
            argument that the kernel wants packed is given as it is, and packed here.

    Raises:
        InputError: if an array has another shape or dtype than the argument.
        CompileError: if the kernel reads or writes outside of a buffer.
        UnsupportedError: for an operation that has no meaning here.
    """
    args = kernel.body.block.args
    name = f"@{kernel.sym_name.data}"
    if len(arrays) != len(args):
        raise InputError(
            explain(name, "wrong number of arguments", expected=len(args), got=len(arrays))
        )
    machine = _Machine()
    for number, (arg, given) in enumerate(zip(args, arrays, strict=True)):
        packing = kernel.attrs_of(number).get("loop.packing")
        if isinstance(packing, AffineMapAttr) and isinstance(given, np.ndarray):
            shape = cast(MemRefType, arg.type).get_shape()
            given = pack_array(given, packing.data, shape)
        if isinstance(arg.type, MemRefType):
            _check_argument(f"{name}: argument {number}", arg.type, given)
        machine.values[arg] = given
    with np.errstate(all="ignore"):
        machine.run(kernel.body.block)


def _check_argument(what: str, kind: MemRefType, given: np.ndarray | int) -> None:
    dtype, shape = numpy_dtype(kind.element_type), kind.get_shape()
    if not isinstance(given, np.ndarray) or given.dtype != dtype:
        got = given.dtype if isinstance(given, np.ndarray) else type(given).__name__
        raise InputError(explain(what, "wrong dtype", expected=dtype, got=got))
    pairs = zip(shape, given.shape, strict=False)
    if len(shape) != given.ndim or any(n >= 0 and n != have for n, have in pairs):
        raise InputError(explain(what, "wrong shape", expected=kind, got=given.shape))


class _Machine:
    """The values of a kernel that is being run."""

    def __init__(self) -> None:
        self.values: dict[SSAValue, Any] = {}

    def run(self, block: Block) -> Any:
        """Run a block; gives what is yielded at its end, if anything."""
        for op in block.ops:
            if isinstance(op, YieldOp):
                return self.values[op.value]
            self.step(op)
        return None

    def step(self, op: Operation) -> None:
        """Run one operation."""
        match op:
            case ForOp():
                for i in range(self.bound(op)):
                    self.values[op.variable] = i
                    self.run(op.body.block)
            case ReduceOp():
                self.reduce(op)
            case ReduceEntriesOp():
                self.reduce_entries(op)
            case LoadOp():
                self.load(op)
            case StoreOp():
                self.store(op)
            case FoldOp():
                value, axis = self.values[op.value], op.axis.value.data
                folded = _COMBINE[op.combine.data].reduce(value, axis=axis, keepdims=True)
                self.values[op.result] = folded.astype(value.dtype)
            case LocalOp():
                kind = cast(MemRefType, op.result.type)
                self.values[op.result] = _unknown(kind.get_shape(), kind.element_type)
            case _:
                self.other(op)

    def indices(self, operands: Sequence[SSAValue]) -> list[int]:
        return [int(self.values[operand]) for operand in operands]

    def bound(self, op: ForOp | ReduceOp) -> int:
        return min(op.bound.data.eval(self.indices(op.bounds), []))

    def reduce(self, op: ReduceOp) -> None:
        total = self.values[op.init]
        for k in range(self.bound(op)):
            self.values[op.variable] = k
            self.values[op.accumulator] = total
            total = self.run(op.body.block)
        self.values[op.result] = total

    def reduce_entries(self, op: ReduceEntriesOp) -> None:
        total = self.values[op.init]
        indptr, indices = self.values[op.indptr], self.values[op.indices]
        (row,) = op.row.data.eval(self.indices(op.row_operands), [])
        if not 0 <= row < len(indptr) - 1:
            _outside(op, 0, row, len(indptr) - 1)
        for p in range(int(indptr[row]), int(indptr[row + 1])):
            if not 0 <= p < len(indices):
                _outside(op, 0, p, len(indices))
            self.values[op.position] = p
            self.values[op.column] = int(indices[p])
            self.values[op.accumulator] = total
            total = self.run(op.body.block)
        self.values[op.result] = total

    def places(self, op: LoadOp | StoreOp, shape: tuple[int, ...]) -> tuple[Any, Any]:
        """For each dimension of the buffer the index of each lane, and which lanes are valid.

        Raises:
            CompileError: if a valid lane is outside of the buffer.
        """
        lanes = list(np.ogrid[tuple(slice(0, n) for n in shape)]) if shape else []
        valid = np.ones(shape, dtype=bool)
        for axis, limit in zip(op.limited.get_values(), op.limits, strict=True):
            valid &= lanes[axis] < self.values[limit]
        buffer = self.values[op.buffer]
        index: list[np.ndarray] = []
        # xDSL evaluates maps of numbers; arrays of numbers do as well.
        places = op.map.data.eval(self.indices(op.indices), cast(Any, lanes))
        for dim, place in enumerate(places):
            place = np.broadcast_to(np.asarray(place), shape)
            wrong = valid & ((place < 0) | (place >= buffer.shape[dim]))
            if wrong.any():
                _outside(op, dim, int(place[wrong].flat[0]), buffer.shape[dim])
            index.append(place)
        return index, valid

    def load(self, op: LoadOp) -> None:
        kind, buffer = op.result.type, self.values[op.buffer]
        shape = block_shape(kind)
        index, valid = self.places(op, shape)
        if not isinstance(kind, VectorType):
            self.values[op.result] = buffer[tuple(int(i) for i in index)]
            return
        block = _unknown(shape, element_type(kind))
        block[valid] = buffer[tuple(i[valid] for i in index)]
        self.values[op.result] = block

    def store(self, op: StoreOp) -> None:
        shape = block_shape(op.value.type)
        index, valid = self.places(op, shape)
        value = np.broadcast_to(np.asarray(self.values[op.value]), shape)
        self.values[op.buffer][tuple(i[valid] for i in index)] = value[valid]

    def other(self, op: Operation) -> None:
        """An operation of `arith`, `math`, `affine`, `memref` or `vector`."""
        args = [self.values[operand] for operand in op.operands]
        function = _OPERATIONS.get(op.name)
        if function is None:
            raise UnsupportedError(explain(op.name, "cannot be run in a kernel", origin=origin(op)))
        result = function(op, *args)
        self.values[op.results[0]] = _typed(result, op.results[0].type)


def _outside(op: Operation, dim: int, index: int, size: int) -> None:
    raise CompileError(
        explain(
            op.name,
            f"index of dimension {dim} is outside of the buffer",
            expected=f"0 <= index < {size}",
            got=index,
            origin=origin(op),
        )
    )


def _dtype(kind: Attribute) -> np.dtype[Any]:
    return np.dtype(np.int64) if isinstance(kind, IndexType) else numpy_dtype(kind)


def _unknown(shape: Sequence[int], kind: Attribute) -> np.ndarray:
    """A block of values that nothing may depend on."""
    dtype = _dtype(kind)
    if is_real(dtype):
        return np.full(shape, np.nan, dtype)
    return np.full(shape, True if dtype.kind == "b" else np.iinfo(dtype).max // 3, dtype)


def _typed(result: Any, kind: Attribute) -> Any:
    """A result in the dtype of its type; an index that is a scalar as a Python number."""
    if isinstance(kind, IndexType):
        return int(result)
    return np.asarray(result).astype(_dtype(element_type(kind)), copy=False)[()]


def _constant(op: Operation) -> Any:
    value = op.properties["value"]
    if isinstance(value, IntegerAttr | FloatAttr):
        return value.value.data
    kind = op.results[0].type
    elements = cast(DenseIntOrFPElementsAttr, value)
    return np.array(elements.get_values()).reshape(block_shape(kind))


def _unsigned(array: Any) -> Any:
    array = np.asarray(array)
    return (
        array
        if array.dtype.kind == "b" or is_real(array.dtype)
        else array.view(f"u{array.dtype.itemsize}")
    )


def _truncated_quotient(a: Any, b: Any) -> Any:
    quotient = np.floor_divide(a, b)
    return quotient + ((np.remainder(a, b) != 0) & ((np.less(a, 0)) != (np.less(b, 0))))


_CMPI: tuple[Callable[[Any, Any], Any], ...] = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    lambda a, b: np.less(_unsigned(a), _unsigned(b)),
    lambda a, b: np.less_equal(_unsigned(a), _unsigned(b)),
    lambda a, b: np.greater(_unsigned(a), _unsigned(b)),
    lambda a, b: np.greater_equal(_unsigned(a), _unsigned(b)),
)
_ORDERED: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: np.zeros(np.broadcast(a, b).shape, bool),
    np.equal,
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
    np.not_equal,
    lambda a, b: np.ones(np.broadcast(a, b).shape, bool),
)


def _compare_integers(op: Operation, a: Any, b: Any) -> Any:
    return _CMPI[cast(IntegerAttr, op.properties["predicate"]).value.data](a, b)


def _compare_floats(op: Operation, a: Any, b: Any) -> Any:
    number = cast(IntegerAttr, op.properties["predicate"]).value.data
    unordered = np.isnan(a) | np.isnan(b)
    if number < 8:
        return _ORDERED[number](a, b) & ~unordered
    # From 8 on, in the order of arith's enumeration: the unordered forms, `uno`, `true`.
    if number >= 14:
        return unordered if number == 14 else np.ones(np.shape(unordered), bool)
    return _ORDERED[number - 7](a, b) | unordered


def _fma(op: Operation, a: Any, b: Any, c: Any) -> Any:
    # The product of two f32 is exact in f64, so that only the last rounding is left.
    wide = np.float64 if np.asarray(a).dtype.itemsize < 8 else np.longdouble
    return np.multiply(a, b, dtype=wide) + c


def _apply(op: Operation, *operands: int) -> int:
    map = cast(AffineMapAttr, op.properties["map"]).data
    return min(map.eval(list(operands[: map.num_dims]), list(operands[map.num_dims :])))


def _extract(op: Operation, value: Any) -> Any:
    position = cast("DenseArrayBase[IntegerType]", op.properties["static_position"]).get_values()
    return value[tuple(position)]


def _broadcast(op: Operation, value: Any) -> Any:
    return np.broadcast_to(value, block_shape(op.results[0].type))


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda op, *args: function(*args)


def _each(function: Callable[[float], float]) -> Callable[..., Any]:
    return lambda op, x: np.vectorize(function, otypes=[np.float64])(x)


def _cast(op: Operation, value: Any) -> Any:
    return value


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "affine.apply": _apply,
    "affine.min": _apply,
    "arith.addf": _plain(np.add),
    "arith.addi": _plain(np.add),
    "arith.andi": _plain(np.bitwise_and),
    "arith.ceildivsi": _plain(lambda a, b: -np.floor_divide(np.negative(a), b)),
    "arith.cmpf": _compare_floats,
    "arith.cmpi": _compare_integers,
    "arith.constant": _constant,
    "arith.divf": _plain(np.divide),
    "arith.divsi": _plain(_truncated_quotient),
    "arith.extf": _cast,
    "arith.extsi": _cast,
    "arith.extui": lambda op, x: _unsigned(x),
    "arith.floordivsi": _plain(np.floor_divide),
    "arith.fptosi": _plain(np.trunc),
    "arith.index_cast": _cast,
    "arith.maximumf": _plain(np.maximum),
    "arith.maxnumf": _plain(np.fmax),
    "arith.maxsi": _plain(np.maximum),
    "arith.minimumf": _plain(np.minimum),
    "arith.minnumf": _plain(np.fmin),
    "arith.minsi": _plain(np.minimum),
    "arith.mulf": _plain(np.multiply),
    "arith.muli": _plain(np.multiply),
    "arith.negf": _plain(np.negative),
    "arith.ori": _plain(np.bitwise_or),
    "arith.remsi": _plain(np.fmod),
    "arith.select": _plain(np.where),
    "arith.shli": _plain(np.left_shift),
    "arith.shrsi": _plain(np.right_shift),
    "arith.sitofp": _cast,
    "arith.subf": _plain(np.subtract),
    "arith.subi": _plain(np.subtract),
    "arith.truncf": _cast,
    "arith.trunci": _cast,
    "arith.uitofp": lambda op, x: _unsigned(x),
    "arith.xori": _plain(np.bitwise_xor),
    "math.absf": _plain(np.abs),
    "math.ceil": _plain(np.ceil),
    "math.cos": _plain(np.cos),
    "math.erf": _each(python_math.erf),
    "math.exp": _plain(np.exp),
    "math.floor": _plain(np.floor),
    "math.fma": _fma,
    "math.log": _plain(np.log),
    "math.log1p": _plain(np.log1p),
    "math.expm1": _plain(np.expm1),
    "math.powf": _plain(np.power),
    "math.rsqrt": lambda op, x: np.asarray(1, np.asarray(x).dtype) / np.sqrt(x),
    "math.sin": _plain(np.sin),
    "math.sqrt": _plain(np.sqrt),
    "math.tanh": _plain(np.tanh),
    "memref.dim": lambda op, buffer, dim: buffer.shape[dim],
    "vector.broadcast": _broadcast,
    "vector.extract": _extract,
}
