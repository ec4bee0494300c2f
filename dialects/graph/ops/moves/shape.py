"""Operators that move elements by their position alone: transpose, reshape, broadcast_to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.pattern_rewriter import RewritePattern

from .....core.algebra.dims import Dim, Shape, product
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.typed import dense_array
from .....core.pipelines.exactness import EXACT
from ...attrs import I64_ARRAY, STORED_TENSOR, i64_array, ints
from ...constructors import operator
from ...interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    declared_shape,
    rank,
    tensor_type,
    text,
    unknown_sizes,
)
from ...positions import delinearize, linearize
from ...rearranging import AliasInterface, ReshapeInterface
from ...rules import rule
from ...traits import KeepsNonnegative
from ..elementwise.bases import broadcast_index

if TYPE_CHECKING:
    from ...interfaces import Array


@irdl_op_definition
class TransposeOp(GraphOp, HasCanonicalizationPatternsInterface):
    """Dimension i of the result is dimension permutation[i] of x.

    %y = graph.transpose %x permutation = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
    """

    name = "graph.transpose"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE
    traits = traits_def(KeepsNonnegative())

    x = operand_def(STORED_TENSOR)
    permutation = prop_def(I64_ARRAY)
    result = result_def(STORED_TENSOR)

    assembly_format = (
        "$x `permutation` `=` $permutation attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        permutation: Sequence[int],
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {"permutation": i64_array(permutation)}
        super().__init__(operands=[x], properties=properties, result_type=result_type)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (transpose_nothing, transpose_twice)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        permutation = ints(self.permutation)
        if sorted(permutation) != list(range(len(x))):
            expected = f"each of {len(x)} dimensions once"
            facts.fail("not a permutation", expected, list(permutation))
        return [tuple(x[p] for p in permutation)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = dense_array(arrays[0])
        # `ascontiguousarray` would make a vector of a scalar.
        return (np.transpose(x, ints(self.permutation)).copy(order="C"),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        permutation = ints(self.permutation)
        return nest.at(self.x, tuple(index[permutation.index(i)] for i in range(len(index))))


@irdl_op_definition
class ReshapeOp(GraphOp, AliasInterface, ReshapeInterface, HasCanonicalizationPatternsInterface):
    """The same elements, in row-major order, with another shape.

    In `shape` 0 copies the size of that dimension of x, and at most one -1 is inferred, as in
    ONNX.

    %y = graph.reshape %x shape = [0, -1] : (tensor<?x2x3xf32>) -> tensor<?x6xf32>
    """

    name = "graph.reshape"
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE
    traits = traits_def(KeepsNonnegative())

    x = operand_def(STORED_TENSOR)
    shape = prop_def(I64_ARRAY)
    result = result_def(STORED_TENSOR)

    assembly_format = "$x `shape` `=` $shape attr-dict `:` functional-type(operands, results)"

    def __init__(
        self,
        x: SSAValue | Operation,
        shape: Sequence[int],
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {"shape": i64_array(shape)}
        super().__init__(operands=[x], properties=properties, result_type=result_type)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (reshape_nothing, reshape_twice)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        target = ints(self.shape)
        if target.count(-1) > 1 or any(n < -1 for n in target):
            facts.fail("not a shape", "sizes, 0, and -1 at most once", list(target))
        if any(n == 0 and i >= len(x) for i, n in enumerate(target)):
            facts.fail("0 copies a dimension that x does not have", f"rank {len(x)}", list(target))
        sizes = [x[i] if n == 0 else Dim.of(n) for i, n in enumerate(target)]
        if -1 in target:
            # Copied sizes are on both sides: [0, -1] has a meaning for an x without elements too.
            rest = product(tuple(n for i, n in enumerate(x) if target[i : i + 1] != (0,)))
            known = math.prod(n for n in target if n > 0)
            fact = f"elements of {text(x)} do not fit"
            sizes[target.index(-1)] = facts.quotient(rest, known, fact)
            return [tuple(sizes)]
        facts.equal(product(x), product(tuple(sizes)), f"elements of {text(x)} do not fit")
        return [tuple(sizes)]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = dense_array(arrays[0])
        given = ints(self.shape)
        sizes = [x.shape[i] if n == 0 else n for i, n in enumerate(given)]
        if -1 in given:
            left = math.prod(n for i, n in enumerate(x.shape) if given[i : i + 1] != (0,))
            sizes[given.index(-1)] = left // math.prod(n for n in given if n > 0)
        return (np.ascontiguousarray(x).reshape(sizes),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        own: list[AffineExpr] = []
        for inputs, outputs in self.groups():
            sizes = [nest.extent(self.result, j) for j in outputs]
            linear = linearize(nest, [index[j] for j in outputs], sizes)
            own += delinearize(nest, linear, [nest.extent(self.x, i) for i in inputs])
        return nest.at(self.x, tuple(own))

    def result_index(self, nest: Nest, index: Indices) -> Indices | None:
        """The index in the result of the element of x at an index; None if it is not affine."""
        own: list[AffineExpr] = []
        for inputs, outputs in self.groups():
            sizes = [nest.extent(self.x, i) for i in inputs]
            targets = [nest.extent(self.result, j) for j in outputs]
            inner = (*sizes[1:], *targets[1:])
            if not all(isinstance(size, AffineConstantExpr) for size in inner):
                return None
            own += delinearize(nest, linearize(nest, [index[i] for i in inputs], sizes), targets)
        return tuple(own)

    def groups(self) -> list[tuple[list[int], list[int]]]:
        """Runs of dimensions of x and of the result with the same number of elements.

        Elements keep their place within a run, so that a dimension which is not reshaped
        (the batch) keeps its index. A dimension of size 1 that comes or goes is a run by itself.
        """
        fresh = unknown_sizes()
        x = declared_shape(self.x, fresh)
        (result,) = self.infer_shapes([x], ShapeFacts(self, fresh))
        runs: list[tuple[list[int], list[int]]] = []
        i = j = 0
        while i < len(x) or j < len(result):
            first_i, first_j = i, j
            alone = [dims[n : n + 1] == (1,) for dims, n in ((x, i), (result, j))]
            i += alone[0] or (i < len(x) and not alone[1])
            j += alone[1] or (j < len(result) and not alone[0])
            while (a := product(x[first_i:i])) != (b := product(result[first_j:j])):
                if i < len(x) and (b.exact_div(a) is not None or j == len(result)):
                    i += 1
                elif j < len(result) and (a.exact_div(b) is not None or i == len(x)):
                    j += 1
                elif (i, j) == (len(x), len(result)):
                    break
                else:
                    i, j = len(x), len(result)
            runs.append((list(range(first_i, i)), list(range(first_j, j))))
        return runs


@operator()
class BroadcastToOp(GraphOp, HasCanonicalizationPatternsInterface):
    """x repeated along dimensions of size 1 and along new leading ones, as in NumPy.

    In `shape` -1 keeps the size of that dimension of x (counted from the back).

    %y = graph.broadcast_to %x shape = [4, 3] : (tensor<3xf32>) -> tensor<4x3xf32>
    """

    name = "graph.broadcast_to"
    FUSION: ClassVar[FusionKind] = FusionKind.BROADCAST
    traits = traits_def(KeepsNonnegative())

    x = operand_def(STORED_TENSOR)
    shape = prop_def(I64_ARRAY)
    result = result_def(STORED_TENSOR)

    assembly_format = "$x `shape` `=` $shape attr-dict `:` functional-type(operands, results)"

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (broadcast_nothing,)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        target = ints(self.shape)
        new = len(target) - len(x)
        if new < 0 or any(n < -1 for n in target) or -1 in target[: max(new, 0)]:
            expected = "a shape of at least its rank"
            facts.fail(f"{text(x)} does not broadcast", expected, list(target))
        fact = f"{text(x)} does not broadcast to {list(target)}"
        leading = tuple(Dim.of(n) for n in target[:new])
        return [
            leading
            + tuple(
                d if n == -1 else Dim.of(n) if d == 1 else facts.equal(Dim.of(n), d, fact)
                for n, d in zip(target[new:], x, strict=True)
            )
        ]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = dense_array(arrays[0])
        target = list(ints(self.shape))
        new = len(target) - x.ndim
        sizes = target[:new] + [
            d if n == -1 else n for n, d in zip(target[new:], x.shape, strict=True)
        ]
        return (np.ascontiguousarray(np.broadcast_to(x, sizes)).reshape(sizes),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        return nest.at(self.x, broadcast_index(self.x, index[len(index) - rank(self.x) :]))


@rule("transpose(x, p) == x  for p = [0, 1, ...]", EXACT)
def transpose_nothing(x: SSAValue, p: tuple[int, ...]) -> bool:
    return p == tuple(range(rank(x)))


@rule("transpose(transpose(x, p), q) == transpose(x, r)  for r = [p[i] for i in q]", EXACT)
def transpose_twice(p: tuple[int, ...], q: tuple[int, ...]) -> Mapping[str, list[int]]:
    return {"r": [p[i] for i in q]}


@rule("reshape(x, s) == x  for x of that shape, where symbolic sizes are copied or -1", EXACT)
def reshape_nothing(x: SSAValue, s: tuple[int, ...]) -> bool:
    return all(n >= 0 or t <= 0 for n, t in zip(tensor_type(x).get_shape(), s, strict=False))


@rule("reshape(y := reshape(x, s), t) == reshape(x, shape)  if t copies only what s copied", EXACT)
def reshape_twice(
    y: SSAValue, s: tuple[int, ...], t: tuple[int, ...]
) -> Mapping[str, list[int]] | None:
    between, target = tensor_type(y).get_shape(), list[int]()
    for i, n in enumerate(t):
        if n != 0 or s[i] == 0:
            target.append(n)
        elif between[i] > 0:
            target.append(between[i])
        else:
            return None
    return {"shape": target}


@rule("broadcast_to(x, s) == x  for x of that shape, where symbolic sizes are kept", EXACT)
def broadcast_nothing(x: SSAValue, s: tuple[int, ...]) -> bool:
    return all(n >= 0 or t == -1 for n, t in zip(tensor_type(x).get_shape(), s, strict=False))
