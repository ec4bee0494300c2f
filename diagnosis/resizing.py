"""Changes of sizes of a module wherever they occur."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute
from xdsl.rewriter import Rewriter

from ..core.ir.module import Module
from ..core.ir.public_function import NNZ
from ..dialects.graph.interfaces import GraphOp, set_result_types
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
        return 3 * len(sizes_of_tensors(module))

    def shrink(self, module: Module, chosen: Collection[int]) -> None:
        """Change one size."""
        sizes = sizes_of_tensors(module)
        for number in list(chosen)[:1]:
            if number >= 3 * len(sizes):
                return
            old = sizes[number // 3]
            new = (1, 2 if old <= 3 else 3, old // 2)[number % 3]
            if new < old:
                resize(module, {old: new})


def sizes_of_tensors(module: Module) -> list[int]:
    """The sizes above 1 of arguments and constants, the largest first.

    Empty if there are functions that are called: nothing infers the types of their results.
    """
    if any(isinstance(op, CallDpsOp | func.CallOp) for op in module.op.walk()):
        return []
    types = [t for f in programs(module) for t in f.function_type.inputs.data]
    types += [op.type for op in module.op.walk() if isinstance(op, ConstantOp)]
    shapes = [t.get_shape() for t in types if isinstance(t, TensorType)]
    return sorted({n for shape in shapes for n in shape if n > 1}, reverse=True)


def resize(module: Module, sizes: Mapping[int, int]) -> None:
    """Change sizes of a module, given new ones by old ones.

    It may be invalid then; the elements of smaller constants are the first ones.
    """
    for function in [f for f in module.op.ops if isinstance(f, func.FuncOp)]:
        _resize(module, function, sizes)


def _resize(module: Module, function: func.FuncOp, sizes: Mapping[int, int]) -> None:
    """Change sizes of a function, and infer its result types again."""
    if len(function.body.blocks) != 1:
        return
    block, attrs = function.body.block, list(function.arg_attrs or ())
    for argument in block.args:
        if (smaller := _resized(argument.type, sizes)) == argument.type:
            continue
        if argument.index < len(attrs):
            attrs[argument.index] = _with_entries(attrs[argument.index], argument.type, smaller)
        Rewriter.replace_value_with_new_type(argument, smaller)
    if attrs:
        function.arg_attrs = ArrayAttr(attrs)
    for op in list(block.ops):
        if isinstance(op, ConstantOp):
            if not sizes.keys().isdisjoint(op.type.get_shape()):
                _resize_constant(module, op, sizes)
        elif isinstance(op, GraphOp):
            for key, attr in op.properties.items():
                op.properties[key] = _resized_numbers(attr, sizes)
            set_result_types(op, op.infer_types())
    function.update_function_type()


def _resized(kind: Attribute, sizes: Mapping[int, int]) -> Attribute:
    if not isinstance(kind, TensorType):
        return kind
    shape = [sizes.get(n, n) for n in kind.get_shape()]
    return TensorType(kind.element_type, shape, kind.encoding)


def _with_entries(attrs: DictionaryAttr, old: Attribute, new: Attribute) -> DictionaryAttr:
    """The attributes of an argument: of a sparse one, whose rows stay as full as they were."""
    entries = attrs.data.get(NNZ)
    if not isinstance(entries, IntegerAttr):
        return attrs
    assert isinstance(old, TensorType)
    assert isinstance(new, TensorType)
    (before, _), (rows, columns) = old.get_shape(), new.get_shape()
    count = min(entries.value.data * rows // max(1, before), rows * columns // 3)
    return DictionaryAttr({**attrs.data, NNZ: IntegerAttr(count, i64)})


def _resize_constant(module: Module, op: ConstantOp, sizes: Mapping[int, int]) -> None:
    array: Any = op.array(module.weights)
    shape = tuple(sizes.get(n, n) for n in op.type.get_shape())
    kind = TensorType(op.type.element_type, shape, op.type.encoding)
    name = op.key or "constant"
    if not isinstance(array, np.ndarray):
        # The first rows of the matrix, with columns modulo their number: rows stay as full as they
        # were. A column that a row has twice then is one entry, the sum of both.
        rows, columns = shape
        pointers = array.indptr[: rows + 1]
        end = pointers[-1]
        indices = (array.indices[:end] % columns).astype(array.indices.dtype)
        matrix = type(array)((array.data[:end].copy(), indices, pointers.copy()), shape=shape)
        matrix.sum_duplicates()
        made = ConstantOp.resource(module.weights.add(name, matrix), kind, int(matrix.nnz))
    else:
        part = np.ascontiguousarray(array[tuple(map(slice, shape))])
        if op.key is None:
            made = ConstantOp.literal(part)
        else:
            made = ConstantOp.resource(module.weights.add(name, part), kind)
    made.location = op.location
    Rewriter.replace_op(op, made)


def _resized_numbers(attr: Attribute, sizes: Mapping[int, int]) -> Attribute:
    """A list of sizes with some replaced; a single number may mean anything, and is kept."""
    if not isinstance(attr, DenseArrayBase) or attr.elt_type != i64:
        return attr
    values = [sizes.get(n, n) for n in attr.get_values()]
    return DenseArrayBase.from_list(i64, values)
