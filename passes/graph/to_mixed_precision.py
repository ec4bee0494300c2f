"""Store operands and results of large operators in 16 bits, where the error is small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, bf16, f16, f32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from ...core.errors import explain
from ...core.ir.context import decide, weights_of
from ...core.ir.walks import blocks_in
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import STORAGE
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.attrs import PRIMITIVE
from ...dialects.graph.interfaces import FusionKind, GraphOp, element_type
from ...dialects.graph.kinds import Precision
from ...dialects.graph.known import elements_of, is_constant
from ...dialects.graph.traits import HalfPrecision
from ...dialects.sparse_tensor import is_sparse
from ...dialects.upstream.element_types import with_element_type

TYPES = {"f16": f16, "bf16": bf16}
LARGEST = {"f16": 65504.0, "bf16": 3.38e38}
"""Weights beyond this would be infinite."""


def precision_of(op: GraphOp) -> Precision:
    """The policy that an operator declares, or the default for its kind of fusion."""
    if (stated := op.get_trait(HalfPrecision)) is not None:
        return stated.policy
    moves = op.fusion in (FusionKind.INJECTIVE, FusionKind.BROADCAST)
    return Precision.FOLLOW if moves else Precision.NEVER


class Narrowing:
    """Rewrites operators of a block to work on a narrow type.

    Args:
        ctx: has the weights, and receives the decisions.
        type: "f16" or "bf16".
        named: policies by name of operator, which override the declared ones.
    """

    def __init__(self, ctx: Context, type: str, named: Mapping[str, Precision]) -> None:
        self.ctx, self.type, self.named = ctx, type, named
        self.narrow: dict[SSAValue, SSAValue] = {}
        """Values in f32 -> the same in the narrow type."""
        self.replaced: dict[Operation, Operation] = {}
        """Original operators -> those that work on the narrow type."""

    def run(self, block: Block) -> None:
        """Narrow the operators that may be; values used by other operations keep their types."""
        for op in list(block.ops):
            if isinstance(op, GraphOp) and self._is_candidate(op):
                self._decide(op)
        for op in reversed(list(block.ops)):
            if isinstance(op, graph.CastOp) and not op.result.uses:
                Rewriter.erase_op(op)

    def _is_candidate(self, op: GraphOp) -> bool:
        """Whether an operator has tensors of f32, and no sparse one."""
        values = (*op.operands, *op.results)
        if isinstance(op, graph.ConstantOp) or any(is_sparse(value.type) for value in values):
            return False
        return bool(self._wide(op)) and all(element_type(r) == f32 for r in op.results)

    def _wide(self, op: GraphOp) -> list[SSAValue]:
        return [o for o in op.operands if element_type(o) == f32]

    def _decide(self, op: GraphOp) -> None:
        wide = self._wide(op)
        policy = self.named.get(op.name) or precision_of(op)
        already = [value for value in wide if value in self.narrow]
        if policy == Precision.NEVER:
            if already:
                self._keep(op, "its policy is never")
            return
        if policy == Precision.FOLLOW and not already:
            return
        if policy == Precision.FOLLOW and not all(v in already or is_constant(v) for v in wide):
            self._keep(op, "some of its operands are in f32")
            return
        arrays = [elements_of(v, weights_of(self.ctx)) for v in wide if is_constant(v)]
        if not all(array is not None and self._fits(array) for array in arrays):
            why = f"its weights are unknown, or beyond {LARGEST[self.type]:g}"
            self._keep(op, why)
            return
        if not allowed("narrow", op):
            return
        bytes = sum(array.nbytes for array in arrays if array is not None)
        cost = f"{bytes // 2} instead of {bytes} bytes of weights" if bytes else None
        decide(
            self.ctx, op, f"store {op.name} in {self.type}", f"its policy is {policy.value}", cost
        )
        self._replace(op)

    def _keep(self, op: GraphOp, why: str) -> None:
        decide(self.ctx, op, f"compute {op.name} in f32", why, kind="missed")

    def _fits(self, array: np.ndarray) -> bool:
        finite = array[np.isfinite(array)]
        return bool(np.all(np.abs(finite) <= LARGEST[self.type]))

    def _replace(self, op: GraphOp) -> None:
        operands = [self._narrowed(v, op) if v in self._wide(op) else v for v in op.operands]
        narrow = TYPES[self.type]
        types = [with_element_type(cast(TensorType, r.type), narrow) for r in op.results]
        new = type(op).create(
            operands=operands,
            result_types=types,
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        wide = [graph.CastOp(result, f32) for result in new.results]
        for part in (new, *wide):
            part.location = op.location
        for old, result, back in zip(op.results, new.results, wide, strict=True):
            result.name_hint = old.name_hint
            self.narrow[back.result] = result
        self.replaced[op] = new
        Rewriter.replace_op(op, [new, *wide], [back.result for back in wide])

    def _narrowed(self, value: SSAValue, user: Operation) -> SSAValue:
        """A value in the narrow type, by one cast for all its users."""
        if value not in self.narrow:
            cast_op = graph.CastOp(value, TYPES[self.type])
            cast_op.location = user.location
            cast_op.result.name_hint = value.name_hint
            Rewriter.insert_op(cast_op, InsertPoint.before(user))
            self.narrow[value] = cast_op.result
        return self.narrow[value]


@Exactness.ROUNDING
@dataclass(frozen=True)
class GraphToMixedPrecisionPass(ModulePass):
    """Store weights and intermediates in f16 or bf16, by a policy for each operator.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4xf32> {
      %d = graph.dense %x, %w : (tensor<?x8xf32>, tensor<4x8xf32>) -> tensor<?x4xf32>
      %r = graph.relu %d : (tensor<?x4xf32>) -> tensor<?x4xf32>
      %y = graph.softmax %r axis = 1 : (tensor<?x4xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    ```

    Options: `type=bf16`

    After:

    ```mlir
    func.func @main(%x: tensor<?x8xf32>, %w: tensor<4x8xf32>) -> tensor<?x4xf32> {
      %xn = graph.cast %x : (tensor<?x8xf32>) -> tensor<?x8xbf16>
      %wn = graph.cast %w : (tensor<4x8xf32>) -> tensor<4x8xbf16>
      %d = graph.dense %xn, %wn
          : (tensor<?x8xbf16>, tensor<4x8xbf16>) -> tensor<?x4xbf16>
      %r = graph.relu %d : (tensor<?x4xbf16>) -> tensor<?x4xbf16>
      %f = graph.cast %r : (tensor<?x4xbf16>) -> tensor<?x4xf32>
      %y = graph.softmax %f axis = 1 : (tensor<?x4xf32>) -> tensor<?x4xf32>
      func.return %y : tensor<?x4xf32>
    }
    ```

    Operators still compute, and sum, in f32; only the results they store are rounded to 16
    bits. An operator declares its policy as `HalfPrecision`: `ALWAYS` (products and convolutions),
    `FOLLOW` (if its operands are narrow or constants: sums, activations by comparison, data
    movement), `NEVER` (all others: exponentials, reductions, sparse products). Arguments and
    results of functions keep their types. The choice for each operator is recorded as a
    decision; `stepwell.to_mixed_precision` measures the error.

    Requires: `graph-open-composites` and the folding of scales before it, since f16 is not
        folded; `graph-fold-constant` after it, which stores the weights.
    Leaves: operators on f64 or sparse tensors, and those with weights beyond the type's range.
    """

    name = "graph-to-mixed-precision"
    budget = STORAGE

    type: str = "bf16"
    """`bf16`, which has the range of f32, or `f16`, which has three more bits of precision."""
    always: tuple[str, ...] = ()
    """Operators to treat as `ALWAYS`: `exp`, or quoted with its dialect `"acme.swish"`."""
    follow: tuple[str, ...] = ()
    """Operators to treat as `FOLLOW`."""
    never: tuple[str, ...] = ()
    """Operators to treat as `NEVER`."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.replace(ctx, op)

    def replace(self, ctx: Context, op: ModuleOp) -> dict[Operation, Operation]:
        """Narrow operators of a module; return the old ones with their replacements."""
        if self.type not in TYPES:
            expected = " or ".join(TYPES)
            raise PassFailedException(
                explain(self.name, "unknown type", expected=expected, got=self.type)
            )
        narrowing = Narrowing(ctx, self.type, self._named(ctx))
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            if PRIMITIVE not in function.attributes and len(function.body.blocks) == 1:
                for block in blocks_in(function):
                    narrowing.run(block)
        return narrowing.replaced

    def _named(self, ctx: Context) -> Mapping[str, Precision]:
        """The policies that the options name."""
        found: dict[str, Precision] = {}
        for precision in Precision:
            for name in getattr(self, precision.value):
                full = name if "." in name else f"graph.{name}"
                if ctx.get_optional_op(full) is None:
                    raise PassFailedException(explain(self.name, f'unknown operator "{full}"'))
                if found.setdefault(full, precision) != precision:
                    raise PassFailedException(explain(self.name, f'"{full}" is in two lists'))
        return found
