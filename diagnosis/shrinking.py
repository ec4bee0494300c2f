"""Transformations that make a module smaller, each at some of the places where it applies.

The result need not be equivalent or valid: `reduce` verifies it and tests whether it still fails.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import ConstantLike, IsTerminator
from xdsl.transforms.dead_code_elimination import region_dce

from ..core.dtypes import dtype_of
from ..core.module import NAME, Module, argument_attrs, is_public
from ..dialects.graph.interfaces import GraphOp
from ..dialects.graph.ops import CallDpsOp, ConstantOp
from ..dialects.rt import ops as rt
from ..dialects.sparse_tensor import is_sparse
from ..passes.graph.dce import references

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


def programs(module: Module) -> list[func.FuncOp]:
    """The public functions on tensors."""
    found = [f for f in module.op.ops if isinstance(f, func.FuncOp) and is_public(f)]
    on_tensors = [f for f in found if rt.ContextType() not in f.function_type.inputs.data]
    return [f for f in on_tensors if len(f.body.blocks) == 1]


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
        counts = [len(_return_of(f).operands) for f in programs(module)]
        return sum(count for count in counts if count > 1)

    def shrink(self, module: Module, chosen: Collection[int]) -> None:
        """Return the others only."""
        first = 0
        for function in programs(module):
            back = _return_of(function)
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
                result.replace_all_uses_with(_add_input(function, result.type))

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
            _drop_unused_inputs(function)
    keys = {op.key for op in module.op.walk() if isinstance(op, ConstantOp)}
    module.weights = module.weights.only(key for key in keys if key is not None)


def _unused_symbols(module: Module) -> list[Operation]:
    used = {name for op in module.op.ops for name in references(op)}
    private = StringAttr("private")
    return [
        op
        for op in module.op.ops
        if isinstance(symbol := op.properties.get("sym_name"), StringAttr)
        and (op.properties.get("sym_visibility") == private or op.name == "loop.kernel")
        and symbol.data not in used
    ]


def _return_of(function: func.FuncOp) -> Operation:
    last = function.body.block.last_op
    assert last is not None, "a verified function has a terminator"
    return last


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


def _add_input(function: func.FuncOp, kind: Attribute) -> BlockArgument:
    block = function.body.block
    known = _argument_attrs(function)
    taken = {attrs.data.get(NAME) for attrs in known}
    name = next(n for n in _names() if StringAttr(n) not in taken)
    argument = block.insert_arg(kind, len(block.args))
    argument.name_hint = name
    shape = kind.get_shape() if isinstance(kind, TensorType) else ()
    function.arg_attrs = ArrayAttr([*known, argument_attrs(name, list(shape))])
    function.update_function_type()
    return argument


def _names() -> Iterator[str]:
    number = 0
    while True:
        yield f"in{number}"
        number += 1


def _argument_attrs(function: func.FuncOp) -> list[DictionaryAttr]:
    if function.arg_attrs is None:
        return [DictionaryAttr({})] * len(function.body.block.args)
    return list(function.arg_attrs.data)


def _drop_unused_inputs(function: func.FuncOp) -> None:
    """Drop unused inputs; one stays, as a program without inputs is a different case."""
    block, attrs = function.body.block, _argument_attrs(function)
    unused = [n for n, argument in enumerate(block.args) if not argument.uses]
    for number in reversed(unused if len(unused) < len(block.args) else unused[1:]):
        block.erase_arg(block.args[number])
        del attrs[number]
    if function.arg_attrs is not None:
        function.arg_attrs = ArrayAttr(attrs)
    function.update_function_type()


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
