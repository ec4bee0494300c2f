"""Sizes as index values: numbers, sizes of buffers, and symbolic dimensions."""

from __future__ import annotations

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...core.algebra.dims import Dim, SizeQuotient
from ...core.building.arithmetic import INDEX, summed
from ...core.ir.refusal import refused
from ...core.ir.typed import memref_type


class SizeEmitter:
    """Emits sizes into a block, each once. `symbols` holds the values of known symbols.

    What follows from a symbol of another block is emitted into `current`, which then is that one,
    or is in it.
    """

    def __init__(self, block: Block) -> None:
        self.block = self.current = block
        self.symbols: dict[str, SSAValue] = {}
        self._numbers: dict[int, SSAValue] = {}
        self._computed: dict[object, SSAValue] = {}
        self._extents: dict[tuple[SSAValue, int], SSAValue] = {}

    def index(self, value: int) -> SSAValue:
        """An index constant, at the top of the block."""
        if value not in self._numbers:
            op = arith.ConstantOp(IntegerAttr(value, INDEX))
            first = self.block.first_op
            if first is None:
                self.block.add_op(op)
            else:
                self.block.insert_op_before(op, first)
            self._numbers[value] = op.result
        return self._numbers[value]

    def of(self, buffer: SSAValue, dimension: int) -> SSAValue:
        """The size of a dimension of a buffer."""
        size = memref_type(buffer).get_shape()[dimension]
        if size != DYNAMIC_INDEX:
            return self.index(size)
        if (buffer, dimension) not in self._extents:
            op = memref.DimOp(buffer, self.index(dimension))
            self._extents[buffer, dimension] = self._insert(op)
        return self._extents[buffer, dimension]

    def rows(self, indptr: SSAValue) -> SSAValue:
        """The number of rows of a CSR matrix."""
        return self._insert(arith.SubiOp(self.of(indptr, 0), self.index(1)))

    def symbol(self, name: str, op: Operation, hint: str | None = None) -> SSAValue:
        """The size called `name`, which `op` needs.

        Raises:
            PassFailedException: if it is not known.
        """
        if name not in self.symbols:
            fact = f'size "{name}" is not that of an argument'
            raise refused(op, fact, hint=hint)
        return self.symbols[name]

    def value(self, dim: Dim, op: Operation, hint: str | None = None) -> SSAValue:
        """A symbolic dimension, which `op` needs, as an index value.

        Raises:
            PassFailedException: if a size in it is not known.
        """

        def atom(name: str) -> SSAValue:
            if not isinstance(name, SizeQuotient):
                return self.symbol(name, op, hint)
            divisor = self.index(name.divisor)
            return self.pure(arith.DivUIOp, [self.value(name.dividend, op, hint), divisor], INDEX)

        return summed(dim, self, atom)

    def pure(self, kind: type[Operation], operands: list[SSAValue], _: Attribute) -> SSAValue:
        """The result of a pure operation, emitted once."""
        outer = all(block_of(operand) is self.block for operand in operands)
        home = self.block if outer else self.current
        key = (kind, home, *operands)
        if key not in self._computed:
            made = kind(*operands)
            home.add_op(made)
            self._computed[key] = made.results[0]
        return self._computed[key]

    def _insert(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]


def block_of(value: SSAValue) -> Block | None:
    """The block that a value is defined in."""
    return value.owner.parent if isinstance(value.owner, Operation) else value.owner
