"""`graph.if`: one of two computations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
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

from ...core.dims import Shape
from ...core.exactness import Exactness
from .attrs import ANY_TENSOR, DENSE_TENSOR
from .interfaces import ShapeFacts
from .ops_constant import splat_of
from .ops_control import CaptureOfConstant, ControlFlowOp, UnusedCapture, inlined, yielded

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
    """

    name = "graph.if"

    condition = operand_def(_FLAG)
    captures = var_operand_def(ANY_TENSOR)
    res = var_result_def(DENSE_TENSOR)
    then = region_def()
    orelse = region_def()

    traits = traits_def(IsolatedFromAbove(), RecursiveMemoryEffect(), _IfCanonicalization())
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
        for region in self.regions:
            last = self.check_body(region, [value.type for value in self.captures])
            self.check_types(
                "a branch yields other types than the results",
                self.result_types,
                last.operand_types,
            )

    def argument_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return list(shapes[1:])

    def result_shapes(
        self, shapes: Sequence[Shape], yielded: Sequence[Sequence[Shape]], facts: ShapeFacts
    ) -> list[Shape]:
        fact = "the branches yield different sizes"
        return [
            tuple(facts.equal(a, b, fact) for a, b in zip(one, other, strict=True))
            for one, other in zip(*yielded, strict=True)
        ]


# if true { a } else { b } == a
@Exactness.EXACT
class KnownBranch(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: IfOp, rewriter: PatternRewriter) -> None:
        known = splat_of(op.condition)
        if known is not None:
            body = op.bodies[0 if known else 1]
            rewriter.replace(op, [], inlined(body, op, op.captures, rewriter))


@Exactness.EXACT
class UnusedResult(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: IfOp, rewriter: PatternRewriter) -> None:
        kept = [number for number, result in enumerate(op.results) if result.uses]
        if len(kept) == len(op.results):
            return
        for body in op.bodies:
            assert body.last_op is not None
            body.last_op.operands = [yielded(body)[number] for number in kept]
        regions = [op.detach_region(region) for region in (op.then, op.orelse)]
        types = [op.results[number].type for number in kept]
        new = IfOp(op.condition, op.captures, types, *regions)
        results = iter(new.results)
        rewriter.replace(op, new, [next(results) if r.uses else None for r in op.results])
