"""Constant folding: evaluate operators on constants at compile time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from ...core.algebra.dims import Dim, scaled
from ...core.dtypes import dtype_of
from ...core.ir.context import CompilerContext, count, decide
from ...core.ir.public_function import is_public
from ...core.ir.typed import owned
from ...core.ir.weights import WeightStore
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import ROUNDING
from ...core.pipelines.exactness import Exactness
from ...dialects.graph import ops as graph
from ...dialects.graph.interfaces import FusionKind, GraphOp
from ...dialects.sparse_tensor import is_sparse

if TYPE_CHECKING:
    from ...dialects.graph.interfaces import Array

_CONSTANT = "the whole program is constant"
_LITERAL_SIZE = 16
"""Results of up to this many elements become literals."""


class _Folder:
    """Folds operators in order, and tracks which constants new ones derive from.

    Args:
        ctx: has the store for results that are not literals; a plain `Context` has none.
        max_growth: bytes by which a result may exceed four times its operands.
    """

    def __init__(self, ctx: Context, max_growth: int) -> None:
        self.ctx = ctx
        self.store = ctx.weights if isinstance(ctx, CompilerContext) else None
        self.max_growth = max_growth
        self.sources: dict[SSAValue, dict[SSAValue, int]] = {}
        """New constants -> the constants of the program they derive from, with their bytes."""

    def fold(self, op: GraphOp) -> None:
        """Replace `op` by constants if its operands are constants."""
        arrays = self._operands(op)
        if arrays is None:
            return
        work = 4 * sum(_bytes(a) for a in arrays) + self.max_growth
        if sum(_dense_bytes(result.type) for result in op.results) > work:
            return
        results = op.reference(*arrays)
        sources = self._sources(op, arrays)
        if sum(map(_stored_bytes, results)) > 4 * sum(sources.values()) + self.max_growth:
            return
        if not allowed("fold", op):
            return
        constants = [self._constant(op, r, a) for r, a in zip(op.results, results, strict=True)]
        new = [c for c in constants if c is not None]
        if len(new) != len(constants):
            return
        for constant in new:
            constant.location = op.location
        size = sum(map(_bytes, results))
        what, why = f"fold {op.name} into a constant", "its operands are constants"
        decide(self.ctx, op, what, why, scaled(Dim.of(size), "B"))
        count(self.ctx, "bytes of new constants", size)
        Rewriter.replace_op(op, new, [c.result for c in new])
        self.sources.update((constant.result, sources) for constant in new)

    def _sources(self, op: GraphOp, arrays: Sequence[Array]) -> dict[SSAValue, int]:
        """The constants of the program that the operands derive from, with their bytes.

        The growth of a chain of operators is bounded by the operands of its first one.
        """
        result: dict[SSAValue, int] = {}
        for operand, array in zip(op.operands, arrays, strict=True):
            literal = graph.splat_of(operand) is not None
            size = _stored_bytes(array) if literal else _bytes(array)
            result |= self.sources.get(operand) or {operand: size}
        return result

    def _operands(self, op: GraphOp) -> list[Array] | None:
        """The values of the operands, if all are known and `op` may be folded."""
        if not op.operands or op.fusion == FusionKind.CONTRACTION or _calls(op):
            return None
        if not all(_is_static(result.type) for result in op.results):
            return None
        arrays: list[Array] = []
        for operand in op.operands:
            constant = operand.owner
            if not isinstance(constant, graph.ConstantOp):
                return None
            if constant.key is not None and (self.store is None or constant.key not in self.store):
                return None
            arrays.append(constant.array(self.store or WeightStore()))
        return arrays

    def _constant(self, op: GraphOp, result: SSAValue, array: Array) -> graph.ConstantOp | None:
        """The constant that holds an array; None if there is no store for it."""
        if isinstance(array, np.ndarray) and 0 < array.size and _is_literal(op, array):
            constant = graph.ConstantOp.literal(array)
        elif self.store is not None:
            name = self.store.add(_name(op), array)
            type = result.type
            assert isinstance(type, TensorType)
            entries = None if isinstance(array, np.ndarray) else int(array.nnz)
            constant = graph.ConstantOp.resource(name, type, entries)
        else:
            return None
        constant.result.name_hint = result.name_hint
        return constant


def _calls(op: GraphOp) -> bool:
    return isinstance(op, (graph.CallDpsOp, graph.CallPackedOp))


def _is_static(type: Attribute) -> bool:
    return isinstance(type, TensorType) and type.has_static_shape()


def _is_literal(op: GraphOp, array: np.ndarray) -> bool:
    """Whether a result is in the text: all of one value, or small and not made of weights.

    What is made of weights has a name, so that a program with other weights has the same text.
    """
    if _is_splat(array):
        return True
    keys = [owned(operand, graph.ConstantOp).key for operand in op.operands]
    return array.size <= _LITERAL_SIZE and all(key is None for key in keys)


def _is_splat(array: np.ndarray) -> bool:
    flat = array.reshape(-1)
    first = flat[:1].tobytes()
    return first == flat[-1:].tobytes() and flat.tobytes() == first * flat.size


def _dense_bytes(type: Attribute) -> int:
    """The bytes of a dense tensor of static shape; 0 for a sparse one, whose size is unknown."""
    if not isinstance(type, TensorType) or is_sparse(type):
        return 0
    return math.prod(type.get_shape()) * dtype_of(type.element_type).itemsize


def _bytes(array: Array) -> int:
    if isinstance(array, np.ndarray):
        return array.nbytes
    return array.data.nbytes + array.indices.nbytes + array.indptr.nbytes


def _stored_bytes(array: Array) -> int:
    """The bytes that a constant takes: those of one element for a splat."""
    if isinstance(array, np.ndarray) and array.size and _is_splat(array):
        return array.itemsize
    return _bytes(array)


def _name(op: GraphOp) -> str:
    """The name of a result in the weight store: the weight it derives from and the operator."""
    keys = [o.owner.key for o in op.operands if isinstance(o.owner, graph.ConstantOp)]
    first = next((key for key in keys if key is not None), "constant")
    return f"{first}.{op.name.rpartition('.')[2]}"


def _erase_unused(function: func.FuncOp) -> None:
    """Erase unused constants."""
    for op in list(function.walk()):
        if isinstance(op, graph.ConstantOp) and not op.result.uses:
            Rewriter.erase_op(op)


def _report_if_constant(ctx: Context, function: func.FuncOp) -> None:
    """Report once if no result of a program depends on an argument or an effect."""
    returned = function.body.block.last_op if len(function.body.blocks) == 1 else None
    if returned is None or not returned.operands or not is_public(function):
        return
    needed = _needed(returned)
    if needed is None:
        return
    left = dict.fromkeys(op.name for op in needed if not isinstance(op, graph.ConstantOp))
    why = "no result depends on an argument"
    if left:
        why += f"; {', '.join(left)} would grow it or are products, and run on each call"
    program = f"@{function.sym_name.data}"
    decisions = ctx.decisions if isinstance(ctx, CompilerContext) else []
    if not any((d.subject, d.what, d.why) == (program, _CONSTANT, why) for d in decisions):
        decide(ctx, function, _CONSTANT, why, kind="analysis")


def _needed(returned: Operation) -> list[Operation] | None:
    """The operations that results depend on, in order; None with an argument or effect."""
    found: dict[Operation, None] = {}
    queue = list(returned.operands)
    while queue:
        owner = queue.pop().owner
        if not isinstance(owner, Operation) or not is_side_effect_free(owner):
            return None
        if owner not in found:
            found[owner] = None
            queue += owner.operands
    block = returned.parent
    return [op for op in block.ops if op in found] if block is not None else None


@Exactness.EXACT
@dataclass(frozen=True)
class GraphFoldConstantPass(ModulePass):
    """Evaluate operators whose operands are constants, by their NumPy reference.

    Small results and splats become literals, others go to the weight store beside the module. A
    normalised constant graph becomes a CSR constant. Contractions are not folded: compiled code
    computes them, not the slow reference. Nor are operators that would grow the program: a
    result may take four times the bytes of the constants it derives from plus `max_growth`,
    where a splat counts as one element. If no result depends on an argument, the pass reports
    that the whole program is constant.

    Before:

    ```mlir
    func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %v = graph.constant dense<[4.0, 9.0]> : tensor<2xf32>
      %r = graph.sqrt %v : (tensor<2xf32>) -> tensor<2xf32>
      %s = graph.reshape %r shape = [1, 2] : (tensor<2xf32>) -> tensor<1x2xf32>
      %y = graph.mul %x, %s : (tensor<?x2xf32>, tensor<1x2xf32>) -> tensor<?x2xf32>
      func.return %y : tensor<?x2xf32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %s = graph.constant dense<[[2.0, 3.0]]> : tensor<1x2xf32>
      %y = graph.mul %x, %s : (tensor<?x2xf32>, tensor<1x2xf32>) -> tensor<?x2xf32>
      func.return %y : tensor<?x2xf32>
    }
    ```

    Requires: nothing.
    Leaves: no unused constant; of operators on constants only contractions, calls and those
        with too large results.
    """

    name = "graph-fold-constant"
    budget = ROUNDING

    max_growth: int = 4096
    """Bytes by which a result may exceed four times the constants it derives from."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        folder = _Folder(ctx, self.max_growth)
        for function in [f for f in op.walk() if isinstance(f, func.FuncOp)]:
            for inner in list(function.walk()):
                if isinstance(inner, GraphOp):
                    folder.fold(inner)
            _erase_unused(function)
            _report_if_constant(ctx, function)
