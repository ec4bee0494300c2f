"""A transformation that changes a size of a module wherever it occurs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, TensorType, i64
from xdsl.ir import Attribute
from xdsl.rewriter import Rewriter

from ..core.module import Module
from ..dialects.graph.interfaces import GraphOp
from ..dialects.graph.ops import CallDpsOp, ConstantOp
from .programs import programs


class ShrinkSizes:
    """Change sizes of tensors: of arguments and constants, and of values that depend on them.

    All occurrences of a size change together. There are three places for each: for 1, for 2 or 3,
    and for its half.
    """

    name = "shrink sizes"

    def places(self, module: Module) -> int:
        """Three for each size."""
        return 3 * len(self._sizes(module))

    def shrink(self, module: Module, chosen: Collection[int]) -> None:
        """Change one size."""
        sizes = self._sizes(module)
        for number in list(chosen)[:1]:
            if number >= 3 * len(sizes):
                return
            old = sizes[number // 3]
            new = (1, 2 if old <= 3 else 3, old // 2)[number % 3]
            if new < old:
                for function in [f for f in module.op.ops if isinstance(f, func.FuncOp)]:
                    _resize(module, function, old, new)

    def _sizes(self, module: Module) -> list[int]:
        if any(isinstance(op, CallDpsOp | func.CallOp) for op in module.op.walk()):
            return []
        types = [t for f in programs(module) for t in f.function_type.inputs.data]
        types += [op.type for op in module.op.walk() if isinstance(op, ConstantOp)]
        shapes = [t.get_shape() for t in types if isinstance(t, TensorType)]
        return sorted({n for shape in shapes for n in shape if n > 1}, reverse=True)


def _resize(module: Module, function: func.FuncOp, old: int, new: int) -> None:
    """Change one size of a function, and infer its result types again."""
    if len(function.body.blocks) != 1:
        return
    block = function.body.block
    for argument in block.args:
        if (smaller := _resized(argument.type, old, new)) != argument.type:
            Rewriter.replace_value_with_new_type(argument, smaller)
    for op in list(block.ops):
        if isinstance(op, ConstantOp):
            if old in op.type.get_shape():
                _resize_constant(module, op, old, new)
        elif isinstance(op, GraphOp):
            for key, attr in op.properties.items():
                op.properties[key] = _resized_numbers(attr, old, new)
            op.set_result_types(op.infer_types())
    function.update_function_type()


def _resized(kind: Attribute, old: int, new: int) -> Attribute:
    if not isinstance(kind, TensorType):
        return kind
    shape = [new if n == old else n for n in kind.get_shape()]
    return TensorType(kind.element_type, shape, kind.encoding)


def _resize_constant(module: Module, op: ConstantOp, old: int, new: int) -> None:
    array: Any = op.array(module.weights)
    part = array[tuple(slice(new if n == old else n) for n in op.type.get_shape())]
    if isinstance(part, np.ndarray) and op.key is None:
        made = ConstantOp.literal(np.ascontiguousarray(part))
    else:
        kept = np.ascontiguousarray(part) if isinstance(part, np.ndarray) else part
        key = module.weights.add(op.key or "constant", kept)
        kind = _resized(op.type, old, new)
        assert isinstance(kind, TensorType)
        entries = None if isinstance(kept, np.ndarray) else int(kept.nnz)
        made = ConstantOp.resource(key, kind, entries)
    made.location = op.location
    Rewriter.replace_op(op, made)


def _resized_numbers(attr: Attribute, old: int, new: int) -> Attribute:
    """A list of sizes with one replaced; a single number may mean anything, and is kept."""
    if not isinstance(attr, DenseArrayBase) or attr.elt_type != i64:
        return attr
    values = [new if n == old else n for n in attr.get_values()]
    return DenseArrayBase.from_list(i64, values)
