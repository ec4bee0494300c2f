"""The programs of a module, its public functions on tensors: their inputs and returns."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation

from ..core.ir.module import Module
from ..core.ir.public_function import NAME, argument_attrs, is_public
from ..dialects.rt import ops as rt


def programs(module: Module) -> list[func.FuncOp]:
    """The public functions on tensors."""
    found = [f for f in module.op.ops if isinstance(f, func.FuncOp) and is_public(f)]
    on_tensors = [f for f in found if rt.ContextType() not in f.function_type.inputs.data]
    return [f for f in on_tensors if len(f.body.blocks) == 1]


def return_of(function: func.FuncOp) -> Operation:
    """The operation that returns the results of a program."""
    last = function.body.block.last_op
    assert last is not None, "a verified function has a terminator"
    return last


def add_input(function: func.FuncOp, kind: Attribute) -> BlockArgument:
    """A new last input of a program, with a name that no other input has."""
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


def drop_unused_inputs(function: func.FuncOp) -> None:
    """Drop unused inputs; one stays, as a program without inputs is a different case."""
    block, attrs = function.body.block, _argument_attrs(function)
    unused = [n for n, argument in enumerate(block.args) if not argument.uses]
    for number in reversed(unused if len(unused) < len(block.args) else unused[1:]):
        block.erase_arg(block.args[number])
        del attrs[number]
    if function.arg_attrs is not None:
        function.arg_attrs = ArrayAttr(attrs)
    function.update_function_type()
