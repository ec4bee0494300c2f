"""Index values as polynomials over what is not known about them, in two iterations of a loop."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import affine, arith, memref
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineExpr, AffineMap
from xdsl.traits import is_side_effect_free

from ...core.building.affine import CEIL, FLOOR, Affine, Atom, Variable, polynomial, variable
from ...core.building.facts import Range, Ranges
from ...core.building.polynomials import Polynomial
from .bounds import constant_index
from .linear import joined, with_dims
from .loops import most_iterations
from .ops_access import LoadOp, StoreOp
from .ops_loops import ForOp
from .ops_values import block_shape


class Unknowns:
    """Index values as dimensions: those of one iteration, of the other, and of both.

    Without a loop the iterations are any two of all loops.
    """

    def __init__(self, loop: ForOp | None = None) -> None:
        self.loop = loop
        self.size = None if loop is None else most_iterations(loop)
        self.ranges: Ranges[Atom] = Ranges()
        self.values: dict[int, SSAValue] = {}
        """The index values that dimensions stand for, by their positions."""
        self._sides: dict[Atom, int] = {}
        self._limits: dict[Atom, SSAValue] = {}
        self._dims: dict[tuple[object, ...], AffineExpr] = {}
        self._between = self.dim("distance")
        self.distance = variable(self._between)

    def dim(self, *key: object) -> AffineExpr:
        """The dimension that stands for something."""
        return self._dims.setdefault(key, AffineExpr.dimension(len(self._dims)))

    def below(self, size: int | None, *key: object) -> AffineExpr:
        """The dimension of a counter from 0, up to `size` where that is known."""
        found = self.dim(*key)
        self.ranges.know(variable(found), 0, None if size is None else max(0, size - 1))
        return found

    def expr(self, value: SSAValue, side: int) -> AffineExpr:
        """An index value in one of the two iterations, 0 or 1.

        Raises:
            DivisorError: if it is divided by what is not a positive number.
        """
        constant = constant_index(value)
        if constant is not None:
            return AffineExpr.constant(constant)
        owner = value.owner
        if self.loop is not None and value is self.loop.variable:
            index = self.below(self.size, value)
            return index if side == 0 else index - self._between
        if isinstance(owner, Operation):
            computed = self._computed(owner, side)
            if computed is not None:
                return computed
        key = (value, side) if self._varies(value) else (value,)
        found, loop = self._dims.get(key), loop_of(value)
        if found is None and (loop is not None or isinstance(owner, memref.DimOp)):
            found = self.below(None if loop is None else most_iterations(loop), *key)
        elif found is None:
            found = self.dim(*key)
            if isinstance(owner, affine.MinOp) and not owner.map.data.num_symbols:
                self.ranges.know(variable(found), *self._range_of(owner))
        self.values[variable(found).position] = value
        self._sides[variable(found)] = side
        return found

    def _computed(self, op: Operation, side: int) -> AffineExpr | None:
        """The result of sums, differences, affine maps, products and quotients by constants."""
        match op:
            case affine.ApplyOp() if not op.map.data.num_symbols:
                dims = [self.expr(operand, side) for operand in op.operands]
                return with_dims(op.map.data.results[0], dims)
            case arith.AddiOp():
                return self.expr(op.lhs, side) + self.expr(op.rhs, side)
            case arith.SubiOp():
                return self.expr(op.lhs, side) + self.expr(op.rhs, side) * -1
            case arith.MuliOp():
                for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
                    factor = constant_index(other)
                    if factor is not None:
                        return self.expr(one, side) * factor
            case arith.FloorDivSIOp() | arith.CeilDivSIOp():
                divisor = constant_index(op.rhs)
                if divisor is not None:
                    kind = FLOOR if isinstance(op, arith.FloorDivSIOp) else CEIL
                    by = AffineExpr.constant(divisor)
                    return AffineBinaryOpExpr(kind, self.expr(op.lhs, side), by)
        return None

    def _range_of(self, op: affine.MinOp) -> Range:
        """The range of a minimum, which is the same in all iterations."""
        parts = self._applied(op.map.data, op.operands, 0)
        ends = [self.ranges.of(part) for part in parts]
        lows = [low for low, _ in ends if low is not None]
        if len(lows) == len(parts):
            low = min(lows)
        else:
            least = (n for n in (1, 0) if all(self.is_negative(-part + n - 1) for part in parts))
            low = next(least, None)
        return low, min((high for _, high in ends if high is not None), default=None)

    def _varies(self, value: SSAValue) -> bool:
        """Whether a value may differ between the two iterations."""
        owner = value.owner
        if not isinstance(owner.parent_op(), ForOp):
            return False
        if self.loop is not None and not self.loop.is_ancestor(owner):
            return False
        if isinstance(owner, Block) or owner.regions or not is_side_effect_free(owner):
            return True
        return any(map(self._varies, owner.operands))

    def place(self, access: LoadOp | StoreOp, side: int) -> list[Affine]:
        """The index of the access in one of the two iterations.

        Raises:
            DivisorError: as in `expr`.
        """
        kind = access.result.type if isinstance(access, LoadOp) else access.value.type
        lanes = enumerate(block_shape(kind))
        symbols = [self.below(count, access, axis, side) for axis, count in lanes]
        for axis, limit in zip(access.limited.get_values(), access.limits, strict=True):
            self._limits[variable(symbols[axis])] = limit
            self._sides[variable(symbols[axis])] = side
        dims = [self.expr(index, side) for index in access.indices]
        return [joined(polynomial(e, dims, symbols)) for e in access.map.data.results]

    def value(self, atom: Atom) -> SSAValue | None:
        """The index value that an unknown is, None where it is none."""
        return self.values.get(atom.position) if isinstance(atom, Variable) else None

    # For c > 0:  c * i + r <= c * (n - 1) + r  for i < n,  c * d * (a floordiv d) + r <= c * a + r,
    # c * d * (a ceildiv d) + r <= c * (a + d - 1) + r
    def is_negative(self, value: Affine) -> bool:
        """Whether a polynomial is below 0, whatever loop variables and lanes are in it."""
        return self._is_negative(joined(value), set())

    def _is_negative(self, value: Affine, seen: set[Affine]) -> bool:
        """The same; of polynomials that were seen this is not known.

        Without them each order in which atoms can be replaced would be tried.
        """
        if value in seen:
            return False
        seen.add(value)
        _, most = self.ranges.of(value)
        if most is not None and most < 0:
            return True
        for atom in value.atoms:
            factor, bounds = value.coefficient(atom), list[Affine]()
            if factor <= 0:
                continue
            rest = value - Polynomial.atom(atom) * factor
            if isinstance(atom, Variable):
                bounds = [rest + (bound - 1) * factor for bound in self._bounds(atom)]
            elif atom.function in (FLOOR, CEIL) and factor % atom.divisor == 0:
                most = atom.dividend + (atom.divisor - 1 if atom.function is CEIL else 0)
                bounds = [rest + most * (factor // atom.divisor)]
            if any(self._is_negative(joined(bound), seen) for bound in bounds):
                return True
        return False

    def _bounds(self, atom: Atom) -> list[Affine]:
        """What an unknown is below: of a loop variable the bounds, of a lane the valid ones."""
        side, limit, value = self._sides.get(atom, 0), self._limits.get(atom), self.value(atom)
        if limit is not None and isinstance(limit.owner, affine.MinOp):
            return self._applied(limit.owner.map.data, limit.owner.operands, side)
        if limit is not None:
            return [polynomial(self.expr(limit, side))]
        loop = None if value is None else loop_of(value)
        if loop is None or loop.over_entries:
            return []
        return self._applied(loop.bound.data, loop.bounds, side)

    def _applied(self, map: AffineMap, operands: Sequence[SSAValue], side: int) -> list[Affine]:
        """The results of a map without symbols."""
        dims = [self.expr(operand, side) for operand in operands]
        return [polynomial(expr, dims) for expr in map.results]


def may_be_negative(loop: ForOp) -> bool:
    """Whether a bound of a loop may be below 0, which means no iterations."""
    unknowns = Unknowns()
    dims = [unknowns.expr(value, 0) for value in loop.bounds]
    bounds = (polynomial(expr, dims) for expr in loop.bound.data.results)
    return not all(unknowns.is_negative(-bound - 1) for bound in bounds)


def loop_of(value: SSAValue) -> ForOp | None:
    """The loop whose variable a value is, None for another value."""
    loop = value.owner.parent_op() if isinstance(value.owner, Block) else None
    return loop if isinstance(loop, ForOp) and value is loop.variable else None
