"""`graph.if`: one of two computations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, StringAttr, TensorType, i1
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    operand_def,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import (
    HasCanonicalizationPatternsTrait,
    IsolatedFromAbove,
    RecursiveMemoryEffect,
)

from .....core.algebra.dims import Dim, Shape
from .....core.ir.definitions import irdl_op_definition
from .....core.pipelines.exactness import EXACT, states
from ...attrs import ANY_TENSOR, STORED_TENSOR
from ...interfaces import ShapeFacts
from ..sources.constant import splat_of
from .regions import CaptureOfConstant, ControlFlowOp, UnusedCapture, inlined, yielded

_FLAG = TensorType(i1, [])


class _IfCanonicalization(HasCanonicalizationPatternsTrait):
    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return CaptureOfConstant(), UnusedCapture(), KnownBranch(), UnusedResult()


@irdl_op_definition
class IfOp(ControlFlowOp):
    """Run the first region where the condition holds, else the second one.

    %y = graph.if %p captures(%x : tensor<4xf32>) -> (tensor<4xf32>) {
    ^bb0(%a: tensor<4xf32>):
      %r = graph.relu %a : (tensor<4xf32>) -> tensor<4xf32>
      graph.yield %r : tensor<4xf32>
    } else {
    ^bb0(%a: tensor<4xf32>):
      graph.yield %a : tensor<4xf32>
    }

    In Python, where the regions are functions of arrays:

    ```python
    results = then(*captures) if condition else orelse(*captures)
    ```

    Branches may yield tensors of different sizes. Then the size of the result is a computed one, of
    which `sizes` has the name from stage `kernels` on; its upper bound is that of both sizes. It
    has none where a branch computes a size without one.
    """

    name = "graph.if"

    condition = operand_def(_FLAG)
    captures = var_operand_def(ANY_TENSOR)
    sizes = opt_prop_def(ArrayAttr[StringAttr])
    """The symbols of the sizes that differ between branches, in the order of results."""
    res = var_result_def(STORED_TENSOR)
    then = region_def()
    orelse = region_def()

    traits = traits_def(IsolatedFromAbove(), RecursiveMemoryEffect(), _IfCanonicalization())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$condition (`captures` `(` $captures^ `:` type($captures) `)`)? attr-dict-with-keyword "
        "`->` `(` type($res) `)` $then `else` $orelse"
    )

    def __init__(
        self,
        condition: SSAValue | Operation,
        captures: Sequence[SSAValue | Operation],
        result_types: Sequence[Attribute],
        then: Region,
        orelse: Region,
    ) -> None:
        super().__init__(
            operands=[condition, captures], result_types=[result_types], regions=[then, orelse]
        )

    def verify_(self) -> None:
        captures = [value.type for value in self.captures]
        for region in self.regions:
            got = self.check_body(region, captures).operand_types
            pairs = zip(got, self.result_types, strict=False)
            if len(got) != len(self.results) or any(joined(*pair) != pair[1] for pair in pairs):
                fact = "a branch yields other types than the results"
                self.check_types(fact, self.result_types, got)

    def argument_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return list(shapes[1:])

    def result_shapes(
        self, shapes: Sequence[Shape], yielded: Sequence[Sequence[Shape]], facts: ShapeFacts
    ) -> list[Shape]:
        known = dict[tuple[Dim, Dim], Dim]()

        def size(result: SSAValue, axis: int, then: Dim, orelse: Dim) -> Dim:
            if then == orelse:
                return then
            if (then, orelse) not in known:
                most = then.at_most_either(orelse)
                known[then, orelse] = facts.measured(result, axis, most)
            return known[then, orelse]

        return [
            tuple(size(result, axis, *pair) for axis, pair in enumerate(zip(*pair, strict=True)))
            for result, *pair in zip(self.results, *yielded, strict=True)
        ]


def joined(one: Attribute, other: Attribute) -> Attribute:
    """The type of tensors of one of two types, whose sizes may differ; else the first type."""
    if not isinstance(one, TensorType) or not isinstance(other, TensorType):
        return one
    shapes = one.get_shape(), other.get_shape()
    if len(shapes[0]) != len(shapes[1]):
        return one
    sizes = [a if a == b else DYNAMIC_INDEX for a, b in zip(*shapes, strict=True)]
    return TensorType(one.element_type, sizes, one.encoding)


@states(EXACT, "if true { a } else { b } == a")
class KnownBranch(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: IfOp, rewriter: PatternRewriter) -> None:
        known = splat_of(op.condition)
        if known is None:
            return
        body = op.bodies[0 if known else 1]
        if [value.type for value in yielded(body)] == list(op.result_types):
            rewriter.replace(op, [], inlined(body, op, op.captures, rewriter))


@states(
    EXACT,
    "if c { a, b } else { d, e } == if c { a } else { d }  for a second result that nothing reads",
)
class UnusedResult(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: IfOp, rewriter: PatternRewriter) -> None:
        kept = [number for number, result in enumerate(op.results) if result.uses]
        if len(kept) == len(op.results) or op.sizes is not None:
            return
        for body in op.bodies:
            assert body.last_op is not None
            body.last_op.operands = [yielded(body)[number] for number in kept]
        regions = [op.detach_region(region) for region in (op.then, op.orelse)]
        types = [op.results[number].type for number in kept]
        new = IfOp(op.condition, op.captures, types, *regions)
        results = iter(new.results)
        rewriter.replace(op, new, [next(results) if r.uses else None for r in op.results])
