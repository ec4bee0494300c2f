"""Transformations that make a module smaller, each at some of the places where it applies.

The result need not be equivalent or valid: `reduce` verifies it and tests whether it still fails.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol, TypeVar

import numpy as np
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import ConstantLike, IsTerminator
from xdsl.transforms.dead_code_elimination import region_dce

from ..core.dtypes import dtype_of
from ..core.ir.module import Module
from ..core.ir.symbols import symbol_of
from ..dialects.graph.ops import ConstantOp
from ..dialects.sparse_tensor import is_sparse
from ..passes.graph.dce import references
from .programs import add_input, drop_unused_inputs, programs, return_of
from .resizing import ShrinkSizes

Place = TypeVar("Place")


class Shrinking(Protocol):
    """A way to make a module smaller."""

    name: str

    def places(self, module: Module) -> int:
        """The number of places where it applies."""
        ...

    def shrink(self, module: Module, chosen: Collection[int]) -> None:
        """Apply it at some of these places, in place."""
        ...


def _removable(module: Module) -> list[Operation]:
    """The operations with results, last first.

    Stores are kept: without them, a program reads uninitialised memory.
    """
    return [
        op
        for op in reversed(list(module.op.walk()))
        if op.results
        and all(inner.results or inner.has_trait(IsTerminator) for inner in op.walk())
        and not (op.has_trait(ConstantLike) and not op.operands)
    ]


class DropResults:
    """Drop results of the program, all but one."""

    name = "drop results"

    def places(self, module: Module) -> int:
        """The results of a program that has several."""
        counts = [len(return_of(f).operands) for f in programs(module)]
        return sum(count for count in counts if count > 1)

    def shrink(self, module: Module, chosen: Collection[int]) -> None:
        """Return the others only."""
        first = 0
        for function in programs(module):
            back = return_of(function)
            count = len(back.operands)
            if count < 2:
                continue
            kept = [n for n in range(count) if first + n not in chosen] or [0]
            first += count
            back.operands = [back.operands[n] for n in kept]
            if function.res_attrs is not None:
                function.res_attrs = ArrayAttr([function.res_attrs.data[n] for n in kept])
            function.update_function_type()


class DropOperations:
    """Replace results by arguments, earlier values or constants of the same types."""

    name = "drop operations"

    def places(self, module: Module) -> int:
        """The removable operations."""
        return len(_removable(module))

    def shrink(self, module: Module, chosen: Collection[int]) -> None:
        """Drop operations, in program order."""
        for op in _chosen(_removable(module), chosen):
            if op.parent is not None:
                values = [_substitute(op, result) for result in op.results]
                if None not in values:
                    Rewriter.replace_op(op, [], values)


class ForwardOperands:
    """Replace results by operands of the same types."""

    name = "forward operands"

    def places(self, module: Module) -> int:
        """The operands of the types of results."""
        return len(self._operands(module))

    def shrink(self, module: Module, chosen: Collection[int]) -> None:
        """Forward operands, for each operation the first that is chosen."""
        for op, operand in _chosen(self._operands(module), chosen):
            if op.parent is not None:
                Rewriter.replace_op(op, [], [operand])

    def _operands(self, module: Module) -> list[tuple[Operation, SSAValue]]:
        return [
            (op, operand)
            for op in _removable(module)
            for operand in op.operands
            if [operand.type] == list(op.result_types)
        ]


class CutOperations:
    """Make results of operations inputs of the program, so that their producers become dead."""

    name = "cut operations"

    def places(self, module: Module) -> int:
        """The operations of programs whose results are dense tensors."""
        return len(self._ops(module))

    def shrink(self, module: Module, chosen: Collection[int]) -> None:
        """Add the inputs."""
        for op in _chosen(self._ops(module), chosen):
            function = op.parent_op()
            assert isinstance(function, func.FuncOp), "they are those of programs"
            for result in op.results:
                result.replace_all_uses_with(add_input(function, result.type))

    def _ops(self, module: Module) -> list[Operation]:
        inside = {f.body.block for f in programs(module)}
        return [
            op
            for op in _removable(module)
            if op.parent in inside and op.operands and all(map(_is_static, op.result_types))
        ]


class ReplaceOperands:
    """Replace operands by arguments and constants of the same type."""

    name = "replace operands"

    def places(self, module: Module) -> int:
        """The computed operands."""
        return len(self._operands(module))

    def shrink(self, module: Module, chosen: Collection[int]) -> None:
        """Replace them."""
        for op, index in _chosen(self._operands(module), chosen):
            value = _argument_like(op, op.operands[index])
            value = value or _constant_before(op, op.operands[index].type)
            if value is not None:
                op.operands[index] = value

    def _operands(self, module: Module) -> list[tuple[Operation, int]]:
        return [
            (op, index)
            for op in _removable(module)
            for index, value in enumerate(op.operands)
            if isinstance(value.owner, Operation) and not value.owner.has_trait(ConstantLike)
        ]


class SimplifyConstants:
    """Replace arrays of weights by ones."""

    name = "simplify constants"

    def places(self, module: Module) -> int:
        """The constants that are in the store."""
        return len(self._constants(module))

    def shrink(self, module: Module, chosen: Collection[int]) -> None:
        """Turn them into literals."""
        for op in _chosen(self._constants(module), chosen):
            shape, dtype = op.type.get_shape(), dtype_of(op.type.element_type)
            Rewriter.replace_op(op, ConstantOp.literal(np.ones(shape, dtype)))

    def _constants(self, module: Module) -> list[ConstantOp]:
        found = [op for op in module.op.walk() if isinstance(op, ConstantOp)]
        return [op for op in found if op.key is not None and not is_sparse(op.type)]


SHRINKINGS: tuple[Shrinking, ...] = (
    DropResults(),
    DropOperations(),
    ForwardOperands(),
    CutOperations(),
    ReplaceOperands(),
    ShrinkSizes(),
    SimplifyConstants(),
)
"""All transformations, in the order in which they are tried."""

KEEPING_INPUTS: tuple[Shrinking, ...] = (
    DropResults(),
    DropOperations(),
    ForwardOperands(),
    ReplaceOperands(),
)
"""Those that keep the inputs of the program, so that given arrays still fit."""


def tidied(module: Module, keep_inputs: bool = False) -> None:
    """Erase dead operations, private functions, inputs, and arrays."""
    region_dce(module.op.body)
    while dead := _unused_symbols(module):
        for op in dead:
            Rewriter.erase_op(op)
    if not keep_inputs:
        for function in programs(module):
            drop_unused_inputs(function)
    keys = {op.key for op in module.op.walk() if isinstance(op, ConstantOp)}
    module.weights = module.weights.only(key for key in keys if key is not None)


def _unused_symbols(module: Module) -> list[Operation]:
    used = {name for op in module.op.ops for name in references(op)}
    private = StringAttr("private")
    return [
        op
        for op in module.op.ops
        if (symbol := symbol_of(op)) is not None
        and (op.properties.get("sym_visibility") == private or op.name == "loop.kernel")
        and symbol not in used
    ]


def _chosen(places: Sequence[Place], chosen: Collection[int]) -> Iterator[Place]:
    """The chosen places, in program order; places are counted from the end."""
    return (places[n] for n in sorted(chosen, reverse=True) if n < len(places))


def _substitute(op: Operation, result: SSAValue) -> SSAValue | None:
    """A value that can replace a result of an operation."""
    value = _argument_like(op, result) or _before(op, result)
    return value or _constant_before(op, result.type)


def _argument_like(op: Operation, like: SSAValue) -> SSAValue | None:
    """An argument of an enclosing block that has the type of a value."""
    block = op.parent
    while block is not None:
        for argument in block.args:
            if argument.type == like.type and argument is not like:
                return argument
        parent = block.parent_op()
        block = None if parent is None or isinstance(parent, func.FuncOp) else parent.parent
    return None


def _before(op: Operation, like: SSAValue) -> SSAValue | None:
    """An operand, else an earlier result of the block, that has the type of a value."""
    for operand in op.operands:
        if operand.type == like.type:
            return operand
    before = op.prev_op
    while before is not None:
        for result in before.results:
            if result.type == like.type:
                return result
        before = before.prev_op
    return None


def _constant_before(op: Operation, kind: Attribute) -> SSAValue | None:
    """A new constant of a type, of ones."""
    made: Operation
    if isinstance(kind, TensorType) and _is_static(kind):
        dtype = dtype_of(kind.element_type)
        made = ConstantOp.literal(np.ones(kind.get_shape(), dtype))
        if made.results[0].type != kind:
            return None
    elif isinstance(kind, IntegerType | IndexType):
        made = arith.ConstantOp(IntegerAttr(1, kind), kind)
    elif isinstance(kind, AnyFloat):
        made = arith.ConstantOp(FloatAttr(1.0, kind), kind)
    else:
        return None
    made.location = op.location
    Rewriter.insert_op(made, InsertPoint.before(op))
    return made.results[0]


def _is_static(kind: Attribute) -> bool:
    return isinstance(kind, TensorType) and kind.has_static_shape() and not is_sparse(kind)
