"""The arena of a program over time: which buffers it holds between which calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import BlockArgument, Operation, SSAValue

from ..core.algebra.dims import Dim
from ..core.boundary.specs import ValueSpec
from ..core.dtypes import byte_size
from ..core.ir.public_function import specs_of
from ..core.ir.typed import memref_type
from ..dialects.rt import ops as rt
from .document import ArenaSlot, ArenaTimeline
from .marking import Marks

_ARITHMETIC: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.DivUIOp: lambda a, b: a // b if b else 0,
    arith.DivSIOp: lambda a, b: a // b if b else 0,
    arith.MaxSIOp: max,
    arith.MinSIOp: min,
}

_CALLS = (rt.CallOp, rt.CallPackedOp, rt.ParallelTilesOp, memref.CopyOp)


def memory_of(main: func.FuncOp, marks: Marks, sizes: Mapping[str, int]) -> ArenaTimeline | None:
    """The arena of a function at stage `buffers`.

    Args:
        main: the function.
        marks: the numbers of nodes.
        sizes: the symbolic sizes of a call; without them a symbolic arena is unknown.

    Returns:
        None if the function has no arena, or sizes are unknown or computed by the program.
    """
    calls = [op for op in main.body.block.walk() if isinstance(op, _CALLS)]
    steps: dict[Operation, int] = {op: number for number, op in enumerate(calls)}
    known = _SizeValues(main, sizes)
    slots: list[ArenaSlot] = []
    for view in main.body.block.walk():
        if not isinstance(view, memref.ViewOp) or not isinstance(view.source.owner, rt.ArenaOp):
            continue
        offset, size = known.value(view.byte_shift), known.bytes(view)
        if offset is None or size is None:
            return None
        used = [steps[op] for op in _users(view.result, steps)]
        if used:
            name = view.result.name_hint or "buffer"
            nodes = marks.of(view).nodes
            slots.append(ArenaSlot(name, nodes, offset, size, min(used), max(used)))
    if not slots:
        return None
    size = max(slot.offset + slot.size for slot in slots)
    return ArenaTimeline(size, tuple(map(_label, calls)), tuple(slots))


def _label(op: Operation) -> str:
    if isinstance(op, rt.CallOp):
        return op.callee.string_value()
    return op.callee.data if isinstance(op, rt.CallPackedOp) else op.name


def _users(value: SSAValue, steps: Mapping[Operation, int]) -> Iterator[Operation]:
    """The calls that use a buffer, or a part of it."""
    for use in value.uses:
        op: Operation | None = use.operation
        for result in use.operation.results:
            if isinstance(result.type, MemRefType):
                yield from _users(result, steps)
        while op is not None:
            if op in steps:
                yield op
            op = op.parent_op()


class _SizeValues:
    """The values of sizes and offsets, as far as they follow from the sizes of arguments."""

    def __init__(self, main: func.FuncOp, sizes: Mapping[str, int]) -> None:
        self._shapes = dict(zip(main.body.block.args[1:], _shapes(main), strict=False))
        self._sizes = sizes

    def value(self, value: SSAValue) -> int | None:
        """The value of an index."""
        if isinstance(value, BlockArgument):
            return None
        op = value.owner
        if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
            return op.value.value.data
        if isinstance(op, memref.DimOp):
            return self._dimension(op)
        compute = _ARITHMETIC.get(type(op)) if isinstance(op, Operation) else None
        if compute is None or not isinstance(op, Operation):
            return None
        values = [self.value(operand) for operand in op.operands]
        return None if None in values else compute(*(v for v in values if v is not None))

    def bytes(self, view: memref.ViewOp) -> int | None:
        """The bytes of a view."""
        given = iter(view.sizes)
        kind = memref_type(view.result)
        total = byte_size(kind.element_type)
        for size in kind.get_shape():
            found = self.value(next(given)) if size < 0 else size
            if found is None:
                return None
            total *= found
        return total

    def _dimension(self, op: memref.DimOp) -> int | None:
        source = op.source
        shape = self._shapes.get(source) if isinstance(source, BlockArgument) else None
        place = self.value(op.index)
        if shape is None or place is None or place >= len(shape):
            return None
        dim = shape[place]
        return dim.evaluate(self._sizes) if set(dim.symbols) <= self._sizes.keys() else None


def _shapes(main: func.FuncOp) -> Iterator[tuple[Dim, ...]]:
    """The shapes of the buffers of arguments, in order."""
    for spec in specs_of(main)[0]:
        yield from _of_argument(spec)


def _of_argument(spec: ValueSpec) -> Sequence[tuple[Dim, ...]]:
    shape = tuple(_dim(size) for size in spec.shape)
    if spec.format is None:
        return [shape]
    entries = _dim(spec.nnz if spec.nnz is not None else "?")
    return [(shape[0] + Dim.of(1),), (entries,), (entries,)]


def _dim(size: int | str) -> Dim:
    if isinstance(size, int) or size == "?":
        return Dim.of(size) if isinstance(size, int) else Dim.symbol("?")
    return Dim.parse(size)
