"""Building the loops of an operator that writes its results, and of those fused after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...core.errors import UnsupportedError, explain
from ...core.ir.provenance import origin
from ...core.ir.typed import owned
from ...dialects.graph.combiners import COMBINERS
from ...dialects.graph.interfaces import GraphOp, element_type, rank
from ...dialects.graph.nests import scalars
from ...dialects.graph.nests.nest import Indices, WritingNest
from ...dialects.graph.plan.nest_plan import NestPlan
from ...dialects.graph.plan.visibility import StoredRounding
from ...dialects.graph.sizes.shapes import SymbolicShapes
from ...dialects.loop.attrs import Combine
from ...dialects.loop.ops import KernelOp
from .arguments import KernelArgument
from .nest import NestBuilder

Targets = Mapping[SSAValue, Sequence[tuple[SSAValue, SSAValue]]]
"""For each result of the operator the results of the kernel that its elements give, and where
these are stored."""


class NestWriter(NestBuilder, WritingNest):
    """Builds the loops of one operator.

    Args:
        kernel: the kernel, whose body is to be filled.
        arguments: for each argument of the primitive function what stands for it.
        shapes: the symbolic shapes of the primitive function.
        op: the operator.
        targets: where its elements go.
        rounding: knows which values are rounded to 16 bits, though they are not stored.
    """

    def __init__(
        self,
        kernel: KernelOp,
        arguments: dict[SSAValue, KernelArgument],
        shapes: SymbolicShapes,
        op: GraphOp,
        targets: Targets,
        rounding: StoredRounding,
    ) -> None:
        results = [pair for pairs in targets.values() for pair in pairs]
        super().__init__(kernel, arguments, results, shapes, NestPlan(), rounding)
        self.op, self.targets = op, targets

    def write(self, result: int, index: Indices, value: SSAValue) -> None:
        """Write an element, and what follows from it."""
        source = self.op.results[result]
        zero, sizes = AffineExpr.constant(0), self.shapes.shape(source)
        own = tuple(zero if size == 1 else e for e, size in zip(index, sizes, strict=True))
        if self.known((source, own)) is not None:
            raise self._wrong("writes an element twice", "fill and update", own)
        written = self.as_element(source, value)
        self.scopes[-1].memo |= {(source, index): written, (source, own): written}
        for target, buffer in self.targets.get(source, ()):
            with self.standing_for(owned(target, GraphOp)):
                self.store_element(self.at(target, own), buffer, own, element_type(target))

    def fill(self, result: int, value: Callable[[Indices], SSAValue]) -> None:
        """Give each element of a result its first value."""
        source = self.op.results[result]
        if not self.targets.get(source):
            return
        with self.loops([self.extent(source, dim) for dim in range(rank(source))]) as index:
            first = value(index)
            for _, buffer in self.targets[source]:
                self.store_element(first, buffer, index, element_type(source))

    def update(
        self, result: int, index: Indices, value: SSAValue, combine: str | None = None
    ) -> None:
        """Change an element of a result, in memory."""
        if combine is not None and combine not in COMBINERS:
            raise self._wrong("combines in an unknown way", ", ".join(COMBINERS), combine)
        source = self.op.results[result]
        kind = element_type(source)
        for _, buffer in self.targets.get(source, ()):
            if combine is None:
                self.store_element(value, buffer, index, kind)
            elif COMBINERS[combine].works_on(kind):
                self.store(value, buffer, index, Combine(combine))
            else:
                before = scalars.computed(self, self.load_here(buffer, index), kind)
                after = COMBINERS[combine].joined(self, before, value, kind)
                self.store_element(scalars.wrapped(self, after, kind), buffer, index, kind)

    def _wrong(self, fact: str, expected: object, got: object) -> UnsupportedError:
        """An error that names the operator and its node."""
        where = origin(self.op)
        return UnsupportedError(
            explain(self.op.name, fact, expected=expected, got=got, origin=where)
        )
