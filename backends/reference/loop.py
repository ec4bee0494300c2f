"""The semantics of the loop dialect on NumPy arrays.

Every access is checked. Undefined behaviour is made visible in the results: lanes beyond `valid`,
and a local buffer before it is filled, hold NaN (for integers a large odd number), and loops whose
iterations may run in any order run backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr, MemRefType
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_terminator,
    register_impls,
)
from xdsl.ir import Operation

from ...core.errors import CompileError, InputError, explain
from ...core.ir.provenance import origin
from ...core.ir.typed import memref_type
from ...dialects.loop.arguments import PACKING
from ...dialects.loop.combiners import UFUNC
from ...dialects.loop.ops import (
    FoldOp,
    ForOp,
    InstructionOp,
    KernelOp,
    LoadOp,
    LocalOp,
    OwnedOp,
    PartitionPointOp,
    PrefetchOp,
    StoreOp,
    YieldOp,
)
from ...dialects.loop.packing import pack_array
from .decoded import DecodedAccess, Loop
from .instructions import computed
from .lockstep import Lockstep
from .numbers import dtype_of, shape_with, unknown


def kernel_arguments(kernel: KernelOp, arrays: Sequence[np.ndarray | int]) -> list[Any]:
    """The arguments for a run of a kernel.

    Args:
        kernel: the kernel, scheduled or not.
        arrays: one array for each buffer and one integer for each size, inputs first. The array of
            a packed argument is given unpacked, and packed here.

    Raises:
        InputError: if an array has another shape or dtype than the argument.
    """
    args = kernel.body.block.args
    name = f"@{kernel.sym_name.data}"
    if len(arrays) != len(args):
        raise InputError(
            explain(name, "wrong number of arguments", expected=len(args), got=len(arrays))
        )
    values: list[Any] = []
    for number, (arg, given) in enumerate(zip(args, arrays, strict=True)):
        packing = kernel.attrs_of(number).get(PACKING)
        if isinstance(packing, AffineMapAttr) and isinstance(given, np.ndarray):
            shape = memref_type(arg).get_shape()
            given = np.ascontiguousarray(pack_array(given, packing.data, shape))
        if isinstance(arg.type, MemRefType):
            what, dtype = f"{name}: argument {number}", dtype_of(arg.type.element_type)
            if not isinstance(given, np.ndarray) or given.dtype != dtype:
                got = given.dtype if isinstance(given, np.ndarray) else type(given).__name__
                raise InputError(explain(what, "wrong dtype", expected=dtype, got=got))
            shape = arg.type.get_shape()
            pairs = zip(shape, given.shape, strict=False)
            if len(shape) != given.ndim or any(n >= 0 and n != have for n, have in pairs):
                raise InputError(explain(what, "wrong shape", expected=arg.type, got=given.shape))
        values.append(given)
    return values


def outside(op: Operation, dim: int, index: int, size: int) -> CompileError:
    """The error of an access out of bounds."""
    return CompileError(
        explain(
            op.name,
            f"index of dimension {dim} is outside of the buffer",
            expected=f"0 <= index < {size}",
            got=index,
            origin=origin(op),
        )
    )


@register_impls
class LoopFunctions(InterpreterFunctions):
    """Implementations of the loop dialect for xDSL's interpreter."""

    def __init__(self, lockstep: Lockstep) -> None:
        self._accesses: dict[Operation, DecodedAccess] = {}
        self._loops: dict[Operation, Loop] = {}
        self._lockstep = lockstep

    @impl_terminator(YieldOp)
    def run_yield(
        self, interpreter: Interpreter, op: YieldOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        """End a body with the values that it carries."""
        return ReturnedValues(args), ()

    @impl(ForOp)
    def run_for(self, interpreter: Interpreter, op: ForOp, args: PythonValues) -> PythonValues:
        """Run the iterations, in reverse if any order is allowed."""
        loop = self._loops.get(op)
        if loop is None:
            loop = self._loops[op] = Loop.of(op)
        if not loop.in_order and not loop.inits and self._lockstep.run(interpreter, op):
            return ()
        carried: PythonValues = tuple(interpreter.get_values(loop.inits))
        iterations = _iterations(loop, interpreter)
        for iteration in iterations if loop.in_order else reversed(iterations):
            carried = interpreter.run_ssacfg_region(loop.body, (*iteration, *carried), op.name)
        return carried

    @impl(PartitionPointOp)
    def run_partition_point(
        self, interpreter: Interpreter, op: PartitionPointOp, args: PythonValues
    ) -> PythonValues:
        """Search the rows linearly."""
        indptr, rows, part, parts = args
        if not 0 <= rows < len(indptr):
            raise outside(op, 0, rows, len(indptr))
        weight = op.weight.value.data
        costs = [int(indptr[row]) + weight * row for row in range(rows + 1)]
        found = (row for row in range(rows) if costs[row] * parts >= part * costs[rows])
        return (next(found, rows),)

    @impl(OwnedOp)
    def run_owned(self, interpreter: Interpreter, op: OwnedOp, args: PythonValues) -> PythonValues:
        """Whether a place is in a part."""
        place, part, size = args
        return (int(0 <= place - part * size < size),)

    @impl(LoadOp)
    def run_load(self, interpreter: Interpreter, op: LoadOp, args: PythonValues) -> PythonValues:
        """Read an element or a block."""
        access = self._accesses.get(op)
        if access is None:
            access = self._accesses[op] = DecodedAccess.of(op, op.result.type)
        buffer, *rest = args
        if access.scalar:
            return (buffer[_place(access, buffer, rest)],)
        index, valid = _places(access, buffer, rest)
        block = unknown(access.shape, access.element_type)
        block[valid] = buffer[index]
        return (block,)

    @impl(StoreOp)
    def run_store(self, interpreter: Interpreter, op: StoreOp, args: PythonValues) -> PythonValues:
        """Write an element or a block."""
        access = self._accesses.get(op)
        if access is None:
            access = self._accesses[op] = DecodedAccess.of(op, op.value.type, op.accumulates)
        value, buffer, *rest = args
        if access.scalar:
            where = _place(access, buffer, rest)
        else:
            where, valid = _places(access, buffer, rest)
            value = np.broadcast_to(value, access.shape)[valid]
        if access.accumulates is not None:
            UFUNC[access.accumulates].at(buffer, where, value)
        else:
            buffer[where] = value
        return ()

    @impl(PrefetchOp)
    def run_prefetch(
        self, interpreter: Interpreter, op: PrefetchOp, args: PythonValues
    ) -> PythonValues:
        """Do nothing: a prefetch is a hint."""
        return ()

    @impl(FoldOp)
    def run_fold(self, interpreter: Interpreter, op: FoldOp, args: PythonValues) -> PythonValues:
        """Combine the lanes along an axis."""
        (value,) = args
        fold = UFUNC[op.combine.data].reduce
        return (fold(value, axis=op.axis.value.data, keepdims=True).astype(value.dtype),)

    @impl(InstructionOp)
    def run_instruction(
        self, interpreter: Interpreter, op: InstructionOp, args: PythonValues
    ) -> PythonValues:
        """Compute the body in each lane."""
        return (np.broadcast_to(computed(op.row, args), op.result.type.get_shape()),)

    @impl(LocalOp)
    def run_local(self, interpreter: Interpreter, op: LocalOp, args: PythonValues) -> PythonValues:
        """Allocate an uninitialised buffer."""
        kind = memref_type(op.result)
        sizes = (max(0, size) for size in args)
        return (unknown(shape_with(kind, sizes), kind.element_type),)


def _iterations(loop: Loop, interpreter: Interpreter) -> list[tuple[int, ...]]:
    """The variables of each iteration."""
    op, bounds = loop.op, loop.bound([int(n) for n in interpreter.get_values(loop.bounds)])
    if loop.matrix is None:
        return [(number,) for number in range(min(bounds))]
    indptr, indices = interpreter.get_values(loop.matrix)
    (row,) = bounds
    if not 0 <= row < len(indptr) - 1:
        raise outside(op, 0, row, len(indptr) - 1)
    places = range(int(indptr[row]), int(indptr[row + 1]))
    for place in (p for p in places if not 0 <= p < len(indices)):
        raise outside(op, 0, place, len(indices))
    return [(place, int(indices[place])) for place in places]


def _place(access: DecodedAccess, buffer: np.ndarray, indices: Sequence[Any]) -> tuple[int, ...]:
    """The index of a scalar access.

    Raises:
        CompileError: if it is out of bounds.
    """
    place = access.place([int(index) for index in indices])
    for dim, (index, size) in enumerate(zip(place, buffer.shape, strict=True)):
        if not 0 <= index < size:
            raise outside(access.op, dim, index, size)
    return place


def _places(
    access: DecodedAccess, buffer: np.ndarray, rest: Sequence[Any]
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """The indices of the valid lanes in each dimension of a buffer, and the mask of valid lanes.

    Raises:
        CompileError: if a valid lane is out of bounds.
    """
    valid = np.ones(access.shape, dtype=bool)
    for axis, limit in zip(access.limited, rest[access.dims :], strict=True):
        valid &= access.lanes[axis] < int(limit)
    numbers = [int(index) for index in rest[: access.dims]]
    index: list[np.ndarray] = []
    places = access.place([*numbers, *access.lanes])
    for dim, place in enumerate(places):
        inside = np.broadcast_to(np.asarray(place), access.shape)[valid]
        wrong = (inside < 0) | (inside >= buffer.shape[dim])
        if wrong.any():
            raise outside(access.op, dim, int(inside[wrong][0]), buffer.shape[dim])
        index.append(inside)
    return tuple(index), valid
