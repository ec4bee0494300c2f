"""What the parts of a graph tell each other: rows of a tensor, and partial results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def

from .....core.algebra.dims import Shape
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.typed import dense_array
from ...attrs import NUMERIC_TENSOR, ReduceKindAttr
from ...constructors import operator
from ...interfaces import FusionKind, GraphOp, Indices, Nest, ShapeFacts, element_type
from ...traits import KeepsNonnegative, ReadsPattern
from .products import MatrixOp, require_csr

if TYPE_CHECKING:
    from ...interfaces import Array


@irdl_op_definition
class ExchangeOp(MatrixOp):
    """The rows of x for all columns of a: those of this part, then those of others.

    A part of a graph has rows for the nodes that it owns, which are its first columns as well. Its
    other columns, the halo, are nodes of other parts, which compute their rows of x and send them.
    `stepwell.distributed` does that between two functions of a program; a call by itself has one
    part, which owns all nodes, so that the result is x.

    %h = graph.exchange %a, %x : (tensor<?x?xf32, #csr>, tensor<?x2xf32>) -> tensor<?x2xf32>
    """

    name = "graph.exchange"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE
    traits = traits_def(ReadsPattern(), KeepsNonnegative())

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        require_csr(self.a, facts)
        a, x = shapes
        if not x:
            facts.fail("x has no rows", "rank 1 or more", "rank 0")
        facts.equal(a[0], x[0], "x does not have one row for each row of a")
        facts.equal(a[0], a[1], "a has columns of other parts, and there is one part")
        return [(a[1], *x[1:])]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.x)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (dense_array(arrays[1]),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.at(self.x, index)


@operator()
class CombineOp(GraphOp):
    """A result over all nodes of a graph, of those over the nodes of each part.

    The partial results of the parts are summed, multiplied or compared, or their mean is taken,
    weighted by the numbers of nodes. `stepwell.distributed` does that between two functions of a
    program; a call by itself has one part, so that the result is x.

    %y = graph.combine sum %x : (tensor<16xf32>) -> tensor<16xf32>
    """

    name = "graph.combine"
    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE

    kind = prop_def(ReduceKindAttr)
    x = operand_def(NUMERIC_TENSOR)
    result = result_def(NUMERIC_TENSOR)

    assembly_format = "$kind $x attr-dict `:` functional-type(operands, results)"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def infer_element_types(self) -> list[Attribute]:
        return [element_type(self.x)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        return (dense_array(arrays[0]),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.at(self.x, index)
