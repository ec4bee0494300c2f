"""What callers see of a program: its inputs and outputs as tensors, with their sizes.

A function of tensors says so in its type. One that was given buffers for them keeps it in
attributes, `signature_attributes`, so that a module can be saved and called at any stage:

    graph.signature   the type that the function had
    graph.arguments   the attributes of its arguments, with `graph.sizes` where one is symbolic
    graph.results     the same of its results
    graph.equal       pairs of sizes that must agree
    graph.computed    sizes in results that it computes, each with an upper bound if it has one; it
                      stores them in this order in a last buffer, of i64, and after them, for each
                      result of a size without an upper bound, where it begins in the arena
    graph.arena       the bytes of its arena, where they depend on symbols
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...core.algebra.dims import Dim, Shape
from ...core.boundary.arguments import Argument, IndexDtypes
from ...core.boundary.signature import Signature
from ...core.boundary.specs import ValueSpec
from ...core.dtype_names import dtype_named
from ...core.errors import CompileError, explain
from ...core.ir.public_function import ARGUMENTS, RESULTS, SIGNATURE, Program, face_of, specs_of
from ...core.ir.typed import tensor_type
from ..sparse_tensor import format_of, index_type, is_sparse, position_type
from .interfaces import unknown_sizes
from .sizes.attributes import EQUAL, equal_attribute, equal_sizes
from .sizes.shapes import SymbolicShapes

SIZES = "graph.sizes"
ENTRIES = "graph.entries"
COMPUTED = "graph.computed"
ARENA = "graph.arena"
_INDEX_WIDTHS = (("i32", "i32"), ("i64", "i64"), ("i64", "i32"))


def signature_attributes(
    function: func.FuncOp, shapes: SymbolicShapes, computed: Sequence[str], arena: Dim
) -> dict[str, Attribute]:
    """The attributes that say of a function on buffers which tensors they stand for.

    Args:
        function: the function while it is one of tensors.
        shapes: the sizes in it.
        computed: those in its results that it computes.
        arena: how many bytes its arena takes.
    """
    arguments = list(function.body.block.args)
    returned = list(cast(func.ReturnOp, function.body.block.last_op).arguments)
    face = face_of(function)
    result: dict[str, Attribute] = {SIGNATURE: face.type}
    for name, values, given in (
        (ARGUMENTS, arguments, face.arguments),
        (RESULTS, returned, face.results),
    ):
        described = [
            DictionaryAttr({**attrs, **_sizes(value, shapes)})
            for value, attrs in zip(values, given, strict=True)
        ]
        if any(one.data for one in described):
            result[name] = ArrayAttr(described)
    equal = [pair for *pair, _ in shapes.equalities if not shapes.is_computed(*pair)]
    if equal:
        result[EQUAL] = equal_attribute((left, right) for left, right in equal)
    if computed:
        sizes = [Dim.symbol(name) for name in computed]
        # A size that nothing bounds is its own upper bound.
        rows = [dict.fromkeys((size, shapes.at_most(size))) for size in sizes]
        result[COMPUTED] = ArrayAttr([_texts(list(row)) for row in rows])
    if not arena.is_static:
        result[ARENA] = StringAttr(str(arena))
    return result


def _sizes(value: SSAValue, shapes: SymbolicShapes) -> dict[str, Attribute]:
    """The sizes of a value as attributes, where its type does not say them."""
    shape, entries = shapes.shape(value), shapes.nnz(value)
    symbolic = any(size < 0 for size in tensor_type(value).get_shape())
    result: dict[str, Attribute] = {SIZES: _texts(shape)} if symbolic else {}
    if entries is not None:
        result[ENTRIES] = StringAttr(str(entries))
    return result


def _texts(dims: Sequence[Dim]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(str(dim)) for dim in dims])


def signature_of(function: Program) -> Signature:
    """The signature of a public function on buffers, from its attributes.

    Raises:
        CompileError: if it has none, or they are malformed.
    """
    face, read = face_of(function), _SizeReader(function)
    if not face.described:
        raise read.fail("does not say what its buffers are", SIGNATURE, "no attribute")
    inputs, outputs = specs_of(function)
    output_shapes = tuple(map(read.shape, face.type.outputs, face.results))
    signature = Signature(
        inputs=tuple(inputs),
        outputs=tuple(map(_named, outputs, output_shapes)),
        input_shapes=tuple(map(read.shape, face.type.inputs, face.arguments)),
        output_shapes=output_shapes,
        entries=tuple(map(read.entries, face.type.inputs, face.arguments)),
        computed=read.computed(),
        equal=read.equal(),
        index_dtypes=tuple(map(read.index_dtypes, face.type.inputs)),
        arena=read.dim(function.attributes.get(ARENA, StringAttr("0"))),
    )
    read.check_symbols(signature)
    return signature


def arguments_of(function: Program) -> tuple[Argument, ...]:
    """What the inputs of a public function demand, at any stage.

    Raises:
        CompileError: if one is no tensor, or one in a sparse format that cannot be called.
    """
    face, read = face_of(function), _SizeReader(function)
    if face.described:
        return signature_of(function).arguments
    fresh = unknown_sizes()
    inputs, _ = specs_of(function)
    return tuple(
        Argument(
            spec,
            tuple(_dim(size, fresh) for size in spec.shape),
            None if spec.format is None else _dim("?" if spec.nnz is None else spec.nnz, fresh),
            read.index_dtypes(kind),
        )
        for spec, kind in zip(inputs, face.type.inputs, strict=True)
    )


def _dim(size: int | str, fresh: Callable[[], Dim]) -> Dim:
    """A size as callers know it; nothing is known of a question mark."""
    if isinstance(size, int):
        return Dim.of(size)
    return fresh() if size == "?" else Dim.symbol(size)


@dataclass(frozen=True)
class _SizeReader:
    """Reads sizes out of attributes of a function, which may have been written by hand."""

    function: Program

    def fail(self, fact: str, expected: object, got: object) -> CompileError:
        subject = f"{self.function.name} @{self.function.sym_name.data}"
        return CompileError(explain(subject, fact, expected=expected, got=got))

    def dim(self, text: Attribute) -> Dim:
        try:
            return Dim.parse(text.data if isinstance(text, StringAttr) else str(text))
        except ValueError as error:
            raise self.fail("wrong size", 'a text such as "2*n"', text) from error

    def array(self, attr: Attribute) -> Sequence[Attribute]:
        if not isinstance(attr, ArrayAttr):
            raise self.fail("wrong attribute", "an array", attr)
        return attr.data

    def computed(self) -> dict[str, Dim | None]:
        attr = self.function.attributes.get(COMPUTED, ArrayAttr[Attribute]([]))
        rows = [self.array(row) for row in self.array(attr)]
        if any(len(row) not in (1, 2) for row in rows):
            raise self.fail(f"wrong {COMPUTED}", "pairs of sizes", attr)
        return {
            str(self.dim(symbol)): self.dim(bound[0]) if bound else None for symbol, *bound in rows
        }

    def equal(self) -> tuple[tuple[Dim, Dim], ...]:
        try:
            return tuple(equal_sizes(self.function))
        except VerifyException as error:
            raise CompileError(str(error)) from error

    def shape(self, kind: Attribute, attrs: Mapping[str, Attribute]) -> Shape:
        declared = cast(TensorType, kind).get_shape()
        if all(size >= 0 for size in declared):
            return tuple(map(Dim.of, declared))
        sizes = self.array(attrs.get(SIZES, ArrayAttr([])))
        if len(sizes) != len(declared):
            raise self.fail(f"wrong {SIZES}", f"{len(declared)} sizes", len(sizes))
        return tuple(
            self.dim(text) if size < 0 else Dim.of(size)
            for size, text in zip(declared, sizes, strict=True)
        )

    def entries(self, kind: Attribute, attrs: Mapping[str, Attribute]) -> Dim | None:
        if not is_sparse(kind):
            return None
        return self.dim(attrs.get(ENTRIES, StringAttr("")))

    def index_dtypes(self, kind: Attribute) -> IndexDtypes | None:
        """The integers of a CSR argument; None for a dense one."""
        if not is_sparse(kind):
            return None
        widths = str(position_type(kind)), str(index_type(kind))
        if format_of(kind) != "csr" or widths not in _INDEX_WIDTHS:
            expected = "CSR with posWidth = 32 or 64, and crdWidth = 32 or posWidth"
            raise self.fail("sparse format that cannot be called", expected, kind)
        return IndexDtypes(*map(dtype_named, widths))

    def check_symbols(self, signature: Signature) -> None:
        """Demand that inputs are of plain symbols, and all else of those symbols."""
        taken = [dim for shape in signature.input_shapes for dim in shape]
        taken += [dim for dim in signature.entries if dim is not None]
        for dim in taken:
            if not dim.is_static and dim != Dim.symbol(dim.symbols[0]):
                raise self.fail("wrong size of an argument", "a number or a name", dim)
        known = {name for dim in taken for name in dim.symbols}
        free = {name for name, bound in signature.computed.items() if bound is None}
        given = [dim for shape in signature.largest_shapes for dim in shape]
        given += [bound for bound in signature.computed.values() if bound is not None]
        given = [dim.substitute(dict.fromkeys(free, Dim.of(0))) for dim in given]
        given += [dim for pair in signature.equal for dim in pair]
        for dim in (*given, signature.arena):
            if not known.issuperset(dim.symbols):
                raise self.fail("a size is not that of an argument", sorted(known), dim)


def _named(spec: ValueSpec, shape: Shape) -> ValueSpec:
    """A specification with known sizes in place of question marks."""
    sizes = tuple(
        str(dim) if size == "?" else size for size, dim in zip(spec.shape, shape, strict=True)
    )
    return replace(spec, shape=sizes)
