"""Whether a kernel that users wrote stores every element of its results, proved from its loops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import affine, arith, memref
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineExpr

from ...core.dims import Dim, Shape
from ...core.typed import tensor_type
from ..loop.bounds import constant_index
from ..loop.ops import SCHEDULE, ForOp, KernelOp, StoreOp
from ..sparse_tensor import part_count
from ..upstream import ops as upstream
from .plan.accesses import RecordedLoop, RecordedLoopKind, Write
from .plan.coverage import Carry, Coverage, Effects, KnownSizes


def uncovered(
    kernel: KernelOp,
    operands: Sequence[SSAValue],
    shapes: Sequence[Shape],
    results: Sequence[Shape],
) -> tuple[int, str, str] | None:
    """The first result of a kernel that is not proved to be stored as a whole.

    Returns its number, its shape, and what is known to be stored, as texts; None where all are. A
    kernel that is scheduled stores vectors, and is not looked at.

    Args:
        kernel: the kernel.
        operands: the operands of a call of it.
        shapes: their shapes.
        results: the shapes of the results, in the same symbols.
    """
    stores = [op for op in kernel.walk() if isinstance(op, StoreOp)]
    if SCHEDULE in kernel.attributes or any(isinstance(s.value.type, VectorType) for s in stores):
        return None
    reader = _Reader(kernel, operands, shapes, results)
    coverage = Coverage(reader.sizes, reader.effects)
    for number in range(len(results)):
        if not coverage.is_covered(number):
            return number, *coverage.explained(number)
    return None


class _Reader:
    """What a kernel does, as a recording of an operator says it."""

    def __init__(
        self,
        kernel: KernelOp,
        operands: Sequence[SSAValue],
        shapes: Sequence[Shape],
        results: Sequence[Shape],
    ) -> None:
        self.outputs = list[SSAValue](kernel.outputs)
        self._shapes = dict(zip(self.outputs, results, strict=True))
        self._numbers: dict[SSAValue, Dim] = {}
        """The numbers of columns of sparse operands."""
        self._atoms: dict[SSAValue, int] = {}
        self._known: dict[int, Dim] = {}
        self.loops: list[RecordedLoop] = []
        self.writes: list[Write] = []
        self.exprs: dict[SSAValue, AffineExpr] = {}
        self.carries: dict[SSAValue, Carry] = {}
        self._bind(kernel.inputs, operands, shapes)
        self._read(kernel.body.block, ())
        self.sizes = KnownSizes(results, self._known, {})
        self.effects = Effects(self.loops, self.writes, {}, self.exprs, self.carries)

    def _bind(
        self, inputs: Sequence[SSAValue], operands: Sequence[SSAValue], shapes: Sequence[Shape]
    ) -> None:
        """Find the sizes of the buffers of the operands."""
        rest = list(inputs)
        for value, shape in zip(operands, shapes, strict=True):
            count = part_count(tensor_type(value))
            parts, rest = rest[:count], rest[count:]
            if count == 1:
                self._shapes[parts[0]] = shape
                continue
            self._shapes[parts[0]] = (shape[0] + 1,)
            self._numbers |= dict.fromkeys(parts[3:], shape[1])

    def _read(self, block: Block, around: tuple[int, ...]) -> None:
        """Note what the operations of a block do."""
        for op in block.ops:
            if isinstance(op, ForOp):
                self._read_loop(op, around)
            elif isinstance(op, StoreOp) and op.buffer in self.outputs:
                index = tuple(self._exprs(op.map.data.results, op.indices))
                combine = None if op.combine is None else op.combine.data.value
                number = self.outputs.index(op.buffer)
                self.writes.append(Write(number, index, False, around, op.value, combine))

    def _read_loop(self, op: ForOp, around: tuple[int, ...]) -> None:
        number, ends = len(self.loops), self._exprs(op.bound.data.results, op.bounds)
        kind = RecordedLoopKind.ENTRIES if op.over_entries else RecordedLoopKind.SERIAL
        extent = ends[0] if len(ends) == 1 and not op.over_entries else None
        atoms = (self._atom(op.variable),)
        self.loops.append(RecordedLoop(kind, around, extent, atoms=atoms))
        self._read(op.body.block, (*around, number))
        values = zip(op.results, op.inits, op.carried, op.yielded, strict=True)
        for last, init, before, after in values:
            self.carries[last] = Carry(number, init, before, after)

    def _exprs(self, exprs: Sequence[AffineExpr], operands: Sequence[SSAValue]) -> list[AffineExpr]:
        """Expressions over operands as expressions over atoms."""
        dims = [self._expr(operand) for operand in operands]
        return [expr.replace_dims_and_symbols(dims, []) for expr in exprs]

    def _expr(self, value: SSAValue) -> AffineExpr:
        """An index value as an expression over atoms."""
        if (number := constant_index(value)) is not None:
            return AffineExpr.constant(number)
        if isinstance(value.owner, affine.ApplyOp):
            (expr,) = self._exprs(value.owner.map.data.results, value.owner.mapOperands)
            return expr
        atom = self._atom(value)
        if (size := self._size(value)) is not None:
            self._known[atom] = size
        expr = AffineExpr.dimension(atom)
        if isinstance(value.owner, arith.IndexCastOp | upstream.IndexCastOp):
            self.exprs[value.owner.input] = expr
        return expr

    def _atom(self, value: SSAValue) -> int:
        return self._atoms.setdefault(value, len(self._atoms))

    def _size(self, value: SSAValue) -> Dim | None:
        """The size that an index value is; None where it is none."""
        op = value.owner
        match op:
            case memref.DimOp() if op.source in self._shapes:
                dimension = constant_index(op.index)
                return None if dimension is None else self._shapes[op.source][dimension]
            case arith.MuliOp():
                left, right = self._size(op.lhs), self._size(op.rhs)
                return None if left is None or right is None else left * right
            case _:
                return self._numbers.get(value)
