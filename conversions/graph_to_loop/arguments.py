"""The arguments of a kernel: those of each tensor, and their attributes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue

from ...core.ir.refusal import refused
from ...core.ir.typed import tensor_type
from ...dialects.graph.buffers import buffer_types
from ...dialects.graph.demands import IndexBound, OffsetBound, SizeBound, demands
from ...dialects.graph.interfaces import GraphOp
from ...dialects.graph.sizes.shapes import SymbolicShapes
from ...dialects.loop.arguments import BOUNDS, CONSTANT, INDPTR, OFFSETS, SIZES, SizeCondition
from ...dialects.sparse_tensor import is_sparse


@dataclass(frozen=True)
class SparseArgument:
    """The arguments of a kernel for one CSR matrix."""

    indptr: SSAValue
    indices: SSAValue
    values: SSAValue
    columns: SSAValue | None = None
    """The number of columns, unless it is static."""


KernelArgument = SSAValue | SparseArgument


def arguments_of(function: func.FuncOp, block: Block) -> dict[SSAValue, KernelArgument]:
    """Pair the arguments of a primitive function with those of its kernel."""
    result: dict[SSAValue, KernelArgument] = {}
    position = 0
    for arg in function.body.block.args:
        count = len(buffer_types(tensor_type(arg)))
        values = block.args[position : position + count]
        position += count
        result[arg] = values[0] if count == 1 else SparseArgument(*values)
        for value in values:
            value.name_hint = arg.name_hint
    return result


def argument_attrs(
    function: func.FuncOp, constant: Sequence[bool], shapes: SymbolicShapes
) -> list[DictionaryAttr]:
    """The attributes of the inputs of a kernel.

    Args:
        function: the primitive function that it is made of.
        constant: for each of its arguments, whether all callers pass a constant of the program.
        shapes: its symbolic shapes.
    """
    operators = [op for op in function.body.block.ops if isinstance(op, GraphOp)]
    checked = {
        BOUNDS: _extents(operators, IndexBound, shapes),
        OFFSETS: _extents(operators, OffsetBound, shapes),
    }
    result: list[DictionaryAttr] = []
    for arg, is_constant in zip(function.body.block.args, constant, strict=True):
        data: dict[str, Attribute] = {}
        if is_constant:
            data[CONSTANT] = UnitAttr()
        data |= {name: extents[arg] for name, extents in checked.items() if arg in extents}
        count = len(buffer_types(tensor_type(arg)))
        first = data | {INDPTR: UnitAttr()} if is_sparse(arg.type) else data
        result += [DictionaryAttr(first), *[DictionaryAttr(data)] * (count - 1)]
    if sizes := _size_conditions(function, shapes):
        result[0] = DictionaryAttr({**result[0].data, SIZES: sizes})
    return result


def _size_conditions(function: func.FuncOp, shapes: SymbolicShapes) -> Attribute | None:
    """What operators demand of symbolic sizes, as text; None without any."""
    texts: list[str] = []
    for op in (op for op in function.body.block.ops if isinstance(op, GraphOp)):
        for bound in demands(op, SizeBound):
            size = shapes.shape(bound.operand)[bound.dimension]
            if not size.is_static:
                conditions = bound.conditions(op, size)
                texts += [str(_in_arguments(needed, op, shapes)) for needed in conditions]
    return ArrayAttr([StringAttr(text) for text in dict.fromkeys(texts)]) if texts else None


def _in_arguments(needed: SizeCondition, op: GraphOp, shapes: SymbolicShapes) -> SizeCondition:
    """The condition on sizes of arguments; of computed sizes the upper bound is checked."""
    known = shapes.in_arguments(needed.size)
    if known is None and needed.is_upper:
        known = shapes.in_arguments(shapes.at_most(needed.size))
    if known is None:
        fact = "a size cannot be checked before the kernel runs"
        raise refused(op, fact, expected="one that the arguments have", got=needed.size)
    return replace(needed, size=known)


def _extents(
    operators: Iterable[GraphOp], kind: type[IndexBound | OffsetBound], shapes: SymbolicShapes
) -> dict[SSAValue, Attribute]:
    """For each argument that holds indices, or offsets, their extents as text."""
    result: dict[SSAValue, list[str]] = {}
    for op, bound in ((one, own) for one in operators for own in demands(one, kind)):
        extent = shapes.in_arguments(shapes.shape(bound.into)[bound.dimension])
        if not isinstance(bound.operand, BlockArgument) or extent is None:
            raise refused(
                op,
                "indices cannot be checked before the kernel runs",
                expected="indices and an extent that the arguments have",
            )
        result.setdefault(bound.operand, []).append(str(extent))
    return {
        value: ArrayAttr([StringAttr(text) for text in dict.fromkeys(texts)])
        for value, texts in result.items()
    }
