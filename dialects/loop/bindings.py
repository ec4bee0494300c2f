"""What stands for the values and indices of a kernel that is rebuilt, and where operations go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from xdsl.dialects import affine, arith
from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from ...core.algebra.affine import normalized
from ...core.building.arithmetic import INDEX, computed
from .proofs.bounds import constant_index
from .syntax import compress

EmittedOp = TypeVar("EmittedOp", bound=Operation)


class Bindings:
    """The new values of a rebuilt kernel, for each old one.

    Args:
        source: the first old operation.
    """

    def __init__(self, source: Operation) -> None:
        self.source = source
        """The old operation that is being visited."""
        self.open: list[Block] = []
        self._bound: dict[SSAValue, SSAValue | AffineExpr] = _Itself()
        self._indices: list[SSAValue] = []
        self._numbers: dict[SSAValue, AffineExpr] = {}
        self._computed: dict[tuple[Block, AffineExpr], SSAValue] = {}

    # Where operations go.

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Emit into `block` within the context."""
        self.open.append(block)
        yield
        self.open.pop()

    @property
    def block(self) -> Block:
        """Where operations go."""
        return self.open[-1]

    def emit(self, op: EmittedOp, source: Operation | None = None) -> EmittedOp:
        """Append an operation; `source` is the old one that it comes from, else the visited one."""
        op.location = (source or self.source).location
        self.block.add_op(op)
        return op

    # Values and indices.

    def bind(self, old: SSAValue, new: SSAValue | AffineExpr) -> None:
        """Replace an old value by a new one, or by an expression over new indices."""
        self._bound[old] = new
        hint = old.name_hint
        if hint is not None and not isinstance(new, AffineExpr) and new.name_hint is None:
            new.name_hint = hint

    def bind_all(self, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        """Replace each of some old values by a new one."""
        for before, after in zip(old, new, strict=True):
            self.bind(before, after)

    def value(self, old: SSAValue) -> SSAValue:
        """The new value that stands for an old one; an expression is computed here."""
        new = self._bound[old]
        if type(new) is OpResult:  # most are, and SSAValue is an ABC: isinstance is slow
            return new
        return new if isinstance(new, SSAValue) else self.compute(new)

    def expr(self, old: SSAValue) -> AffineExpr:
        """The expression over new indices that stands for an old index."""
        new = self._bound[old]
        return self.number(new) if isinstance(new, SSAValue) else new

    def number(self, new: SSAValue) -> AffineExpr:
        """The expression of a new index value: its constant, or a new dimension."""
        known = self._numbers.get(new)
        if known is None:
            constant = constant_index(new)
            if constant is None:
                known = AffineExpr.dimension(len(self._indices))
                self._indices.append(new)
            else:
                known = AffineExpr.constant(constant)
            self._numbers[new] = known
        return known

    def compute(self, expr: AffineExpr) -> SSAValue:
        """An index expression as an `index` value."""
        return computed(expr, self.known, self._place)

    def known(self, expr: AffineExpr) -> SSAValue | None:
        """The value that an expression has where operations go now."""
        if isinstance(expr, AffineDimExpr):
            return self._indices[expr.position]
        for block in self.open:
            if (known := self._computed.get((block, expr))) is not None:
                return known
        if isinstance(expr, AffineConstantExpr):
            return self._place(expr, arith.ConstantOp(IntegerAttr(expr.value, INDEX)))
        return None

    def _place(self, expr: AffineExpr, op: Operation) -> SSAValue:
        self._computed[self.block, expr] = self.emit(op).results[0]
        return op.results[0]

    def composed(
        self, map: AffineMap, operands: Sequence[SSAValue], symbols: Sequence[AffineExpr] = ()
    ) -> list[AffineExpr]:
        """The results of an old map on old operands, over new indices and `symbols`."""
        dims = [self.expr(operand) for operand in operands]
        return [
            # Most results are an index by itself, for which most often another one stands.
            dims[e.position]
            if type(e) is AffineDimExpr and type(dims[e.position]) is AffineDimExpr
            else normalized(e, dims, symbols or None)
            for e in map.results
        ]

    def map(
        self, exprs: Sequence[AffineExpr], num_symbols: int = 0
    ) -> tuple[AffineMap, list[SSAValue]]:
        """The map of these expressions, and the indices it is applied to."""
        return compress(exprs, self._indices, num_symbols)

    def smallest(self, exprs: Sequence[AffineExpr], source: Operation) -> SSAValue:
        """The smallest of some index expressions as an `index` value."""
        constants = [e.value for e in exprs if isinstance(e, AffineConstantExpr)]
        others = list(dict.fromkeys(e for e in exprs if not isinstance(e, AffineConstantExpr)))
        if constants:
            others.insert(0, AffineExpr.constant(min(constants)))
        if len(others) == 1:
            return self.compute(others[0])
        map, operands = self.map(others)
        return self.emit(affine.MinOp(operands, AffineMapAttr(map)), source).result

    def follows(self, indices: Sequence[SSAValue]) -> bool:
        """Whether an expression or a constant stands for one of these indices."""
        for index in indices:
            new = self._bound[index]
            if not isinstance(new, SSAValue) or isinstance(new.owner, arith.ConstantOp):
                return True
        return False


class _Itself(dict[SSAValue, SSAValue | AffineExpr]):
    """Maps a value without a replacement to itself."""

    def __missing__(self, value: SSAValue) -> SSAValue:
        return value
