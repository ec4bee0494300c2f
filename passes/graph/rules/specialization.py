"""Replace symbolic sizes of a function by numbers: in types, attributes and callees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from ....core.algebra.dims import Dim, Shape
from ....core.errors import explain
from ....core.ir.provenance import origin
from ....core.ir.public_function import DIMS, NNZ
from ....core.ir.symbols import find_symbol, free_symbol
from ....core.ir.typed import tensor_type
from ....dialects.graph.buffers import buffer_types
from ....dialects.graph.ops.control.call import CallDpsOp, CallLikeOp
from ....dialects.graph.ops.control.loop import LoopOp
from ....dialects.graph.sizes.attributes import (
    EQUAL,
    argument_attributes,
    equal_attribute,
    equal_sizes,
)
from ....dialects.graph.sizes.guards import GUARDS, guards_attribute, guards_of
from ....dialects.graph.sizes.shapes import SymbolicShapes
from ....dialects.loop.ops import KernelOp

Known = Mapping[str, int]
"""Symbols of a function whose values are known."""


class Specializer:
    """Fixes sizes in functions of one module; a function that is called elsewhere is copied."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self._copies: dict[func.FuncOp, dict[tuple[tuple[str, int], ...], func.FuncOp]] = {}

    def fix(self, function: func.FuncOp, known: Known) -> None:
        """Replace symbols, and all sizes that follow from them, by numbers.

        Raises:
            VerifyException: if an operator or a kernel does not accept these sizes.
        """
        shapes = SymbolicShapes(function)
        while known:
            _substitute(function, shapes, known)
            shapes = SymbolicShapes(function)
            # Only now do rules yield numbers, which in turn may fix sizes of arguments.
            known = {n: s for n, s in shapes.solve({}).items() if n in shapes.bindings}
        calls = [op for op in function.walk() if isinstance(op, func.CallOp)]
        operands = {call: [_sizes(value, shapes) for value in call.operands] for call in calls}
        for op in list(function.body.walk()):
            arguments = [a for region in op.regions for b in region.blocks for a in b.args]
            for value in (*op.results, *arguments):
                _refine(value, shapes.shape(value))
            if isinstance(op, CallDpsOp):
                # Refuse operands whose number of buffers differs from that of the kernel.
                kernel = find_symbol(op, op.callee)
                values = (*op.operands, *op.results)
                buffers = [b for value in values for b in buffer_types(tensor_type(value))]
                if isinstance(kernel, KernelOp) and len(kernel.body.block.args) != len(buffers):
                    fact, where = f"{op.callee} is made for symbolic sizes", origin(op)
                    hint = 'replace them by numbers at a stage before "kernels"'
                    raise VerifyException(explain(op.name, fact, origin=where, hint=hint))
        for call, sizes in operands.items():
            self._fix_call(call, sizes)
        function.update_function_type()

    def _fix_call(self, call: func.CallOp, sizes: Sequence[Sequence[int | None]]) -> None:
        """Redirect a call to the copy of its callee for operands of these sizes."""
        callee = find_symbol(call, call.callee)
        if not isinstance(callee, func.FuncOp) or not callee.body.blocks:
            return
        known = SymbolicShapes(callee).solve(dict(enumerate(sizes)))
        if not known:
            return
        copies = self._copies.setdefault(callee, {})
        key = tuple(sorted(known.items()))
        if key not in copies:
            copies[key] = self._copy(callee)
            self.fix(copies[key], known)
        copy = copies[key]
        call.callee = SymbolRefAttr(copy.sym_name)
        for result, kind in zip(tuple(call.results), copy.function_type.outputs, strict=True):
            Rewriter.replace_value_with_new_type(result, kind)

    def _copy(self, callee: func.FuncOp) -> func.FuncOp:
        names = {f.sym_name.data for f in self.module.ops if isinstance(f, func.FuncOp)}
        copy = callee.clone()
        copy.sym_name = StringAttr(free_symbol(callee.sym_name.data, names))
        Rewriter.insert_op(copy, InsertPoint.after(callee))
        return copy

    def settle(self) -> None:
        """Erase functions of which only copies are called; one copy takes over the name."""
        calls = [op for op in self.module.walk() if isinstance(op, func.CallOp)]
        for callee, copies in self._copies.items():
            name = callee.sym_name
            if any(call.callee.root_reference == name for call in calls):
                continue
            Rewriter.erase_op(callee)
            copy = next(iter(copies.values()))
            for call in calls:
                if call.callee.root_reference == copy.sym_name:
                    call.callee = SymbolRefAttr(name)
            copy.sym_name = name


def _sizes(value: SSAValue, shapes: SymbolicShapes) -> list[int | None]:
    """The sizes of a value as `SymbolicShapes.solve` takes them."""
    entries = shapes.nnz(value)
    dims = (*shapes.shape(value), *([] if entries is None else [entries]))
    return [dim.value if dim.is_static else None for dim in dims]


def _refine(value: SSAValue, shape: Shape) -> None:
    """Set the static sizes in the type of a tensor."""
    kind = tensor_type(value)
    sizes = [d.value if d.is_static else DYNAMIC_INDEX for d in shape]
    if sizes != list(kind.get_shape()):
        Rewriter.replace_value_with_new_type(
            value, TensorType(kind.element_type, sizes, kind.encoding)
        )


def _substitute(function: func.FuncOp, shapes: SymbolicShapes, known: Known) -> None:
    """Substitute sizes in the arguments of a function and wherever their symbols occur."""
    dims = {name: Dim.of(size) for name, size in known.items()}
    given: list[DictionaryAttr] = []
    for number, argument in enumerate(function.args):
        data = _renamed(argument_attributes(function, number), dims)
        if isinstance(argument.type, TensorType):
            _refine(argument, tuple(d.substitute(dims) for d in shapes.shape(argument)))
            entries = shapes.nnz(argument)
            if entries is not None and (count := entries.substitute(dims)).is_static:
                data[NNZ] = IntegerAttr(count.value, i64)
        given.append(DictionaryAttr(data))
    if any(one.data for one in given):
        function.arg_attrs = ArrayAttr(given)
    if function.res_attrs is not None:
        results = [_renamed(one.data, dims) for one in function.res_attrs]
        function.res_attrs = ArrayAttr(list(map(DictionaryAttr, results)))
    for op in list(function.body.walk()):
        if isinstance(op, LoopOp):
            op.substitute(dims)
        if isinstance(op, CallLikeOp) and op.result_dims is not None:
            for result in op.results:
                _refine(result, tuple(d.substitute(dims) for d in shapes.shape(result)))
            rows = [_texts(row, dims) for row in op.result_dims]
            op.result_dims = ArrayAttr(rows) if any(name.data for r in rows for name in r) else None
        if isinstance(op, CallLikeOp) and op.result_sizes is not None:
            op.result_sizes = ArrayAttr([size.with_sizes(dims) for size in op.result_sizes])
    pairs = [(a.substitute(dims), b.substitute(dims)) for a, b in equal_sizes(function)]
    pairs = [(a, b) for a, b in pairs if a != b]
    function.attributes.pop(EQUAL, None)
    if pairs:
        function.attributes[EQUAL] = equal_attribute(pairs)
    # Substitute sizes in the conditions of a function, of which those that are decided go.
    guards = guards_of(function)
    changed = [(guard, guard.with_sizes(known)) for guard in guards]
    for guard, new in changed:
        if not new.names and not new.holds({}):
            got = ", ".join(f"{name} = {known[name]}" for name in guard.names)
            subject = f"{function.name} @{function.sym_name.data}"
            text = explain(subject, "not made for these sizes", expected=guard.text, got=got)
            raise VerifyException(text)
    function.attributes.pop(GUARDS, None)
    if kept := [new for _, new in changed if new.names]:
        function.attributes[GUARDS] = guards_attribute(kept)


def _renamed(given: Mapping[str, Attribute], dims: Mapping[str, Dim]) -> dict[str, Attribute]:
    """The attributes of an argument or result; static sizes have no names."""
    data = dict(given)
    if DIMS in data:
        data[DIMS] = texts = _texts(data[DIMS], dims)
        if not any(text.data for text in texts):
            del data[DIMS]
    return data


def _texts(row: Attribute, dims: Mapping[str, Dim]) -> ArrayAttr[StringAttr]:
    """Names of sizes, "" for one that is a number."""
    names = [cast(StringAttr, name).data for name in cast(ArrayAttr, row)]
    known = [Dim.parse(name).substitute(dims) if name else None for name in names]
    return ArrayAttr([StringAttr("" if d is None or d.is_static else str(d)) for d in known])
