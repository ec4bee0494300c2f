"""The public function of a module: how attributes of it describe the inputs and the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute

from ..boundary.specs import Key, ValueSpec
from ..dtypes import ELEMENT_TYPES
from ..errors import CompileError, explain

NAME, DIMS, NNZ, PATH = "graph.name", "graph.dims", "graph.nnz", "graph.path"
"""Attributes of arguments and results: the public name, the names of the dimensions, the number of
stored entries, and the place in an argument of the model that is a dictionary or a sequence."""
EXAMPLE, LABELS = "graph.example", "graph.labels"
"""Attributes of an argument whose sizes are those of an example, and of arguments and results that
are numbers of strings: the strings."""
SIGNATURE, ARGUMENTS, RESULTS = "graph.signature", "graph.arguments", "graph.results"
"""Attributes of a function on buffers: its type as one of tensors, and their attributes."""


Program: TypeAlias = func.FuncOp | llvm.FuncOp
"""The public function of a module: an `llvm.func` at the last stage, before that a `func.func`."""

_Function = TypeVar("_Function", bound=Program)


def main_of(module: ModuleOp) -> func.FuncOp:
    """The public function of a module before stage `llvm`.

    Raises:
        CompileError: if there is none, or more than one.
    """
    return _only([f for f in module.ops if isinstance(f, func.FuncOp) and is_public(f)])


def program_of(module: ModuleOp) -> Program:
    """The public function of a module, at any stage.

    Raises:
        CompileError: if there is none, or more than one.
    """
    return _only([f for f in module.ops if isinstance(f, Program) and is_public(f)])


def _only(found: Sequence[_Function]) -> _Function:
    if len(found) != 1:
        names = ", ".join(f.sym_name.data for f in found) or "none"
        raise CompileError(
            explain("module", "one public function is needed", expected=1, got=names)
        )
    return found[0]


def is_public(function: Program) -> bool:
    """Whether callers see a function; an `llvm.func` without a body is defined elsewhere."""
    if isinstance(function, llvm.FuncOp):
        return function.linkage.linkage.data == "external" and bool(function.body.blocks)
    visibility = function.sym_visibility
    return visibility is None or visibility.data == "public"


@dataclass(frozen=True)
class Face:
    """The signature of a function on tensors: its type, and attributes of arguments and results.

    `described` means that the function is on buffers now, and keeps the signature in attributes.
    """

    type: FunctionType
    arguments: tuple[Mapping[str, Attribute], ...]
    results: tuple[Mapping[str, Attribute], ...]
    described: bool


def face_of(function: Program) -> Face:
    """The signature of a function on tensors.

    Raises:
        CompileError: if the attributes of the signature are malformed, or an `llvm.func` lacks
            them.
    """
    kept = function.attributes.get(SIGNATURE)
    if described := isinstance(kept, FunctionType):
        kind = kept
        given = function.attributes.get(ARGUMENTS), function.attributes.get(RESULTS)
    elif isinstance(function, llvm.FuncOp):
        subject = f"{function.name} @{function.sym_name.data}"
        fact = "does not say what its buffers are"
        raise CompileError(explain(subject, fact, expected=SIGNATURE, got="no attribute"))
    else:
        kind, given = function.function_type, (function.arg_attrs, function.res_attrs)
    arguments, results = (
        _dictionaries(function, attrs, len(types.data))
        for attrs, types in zip(given, (kind.inputs, kind.outputs), strict=True)
    )
    return Face(kind, arguments, results, described)


def _dictionaries(
    function: Program, attrs: Attribute | None, count: int
) -> tuple[Mapping[str, Attribute], ...]:
    if attrs is None:
        return ({},) * count
    found = attrs.data if isinstance(attrs, ArrayAttr) else ()
    result = tuple(one.data for one in found if isinstance(one, DictionaryAttr))
    if len(found) != count or len(result) != count:
        subject = f"{function.name} @{function.sym_name.data}"
        raise CompileError(
            explain(subject, "wrong attributes", expected=f"{count} dictionaries", got=attrs)
        )
    return result


def specs_of(function: Program) -> tuple[list[ValueSpec], list[ValueSpec]]:
    """The inputs and results of a public function, in order.

    Raises:
        CompileError: if an argument or result is not a tensor.
    """
    face = face_of(function)
    inputs, outputs = (
        [_spec(t, a, f"{name}{n}") for n, (t, a) in enumerate(zip(types, attrs, strict=True))]
        for name, types, attrs in (
            ("arg", face.type.inputs, face.arguments),
            ("result", face.type.outputs, face.results),
        )
    )
    return inputs, outputs


def _spec(kind: Attribute, attrs: Mapping[str, Attribute], default_name: str) -> ValueSpec:
    name = attrs.get(NAME)
    label = name.data if isinstance(name, StringAttr) else default_name
    if not isinstance(kind, TensorType):
        raise CompileError(
            explain("module", f'"{label}" is not a tensor', expected="tensor", got=kind)
        )
    if str(kind.element_type) not in ELEMENT_TYPES:
        fact = f'"{label}" has elements of an unknown type'
        raise CompileError(
            explain("module", fact, expected=", ".join(ELEMENT_TYPES), got=kind.element_type)
        )
    dims = attrs.get(DIMS)
    symbols = (
        [s.data for s in dims if isinstance(s, StringAttr)] if isinstance(dims, ArrayAttr) else []
    )
    shape = tuple(
        (symbols[i] if i < len(symbols) and symbols[i] else "?") if d == DYNAMIC_INDEX else d
        for i, d in enumerate(kind.get_shape())
    )
    labels = attrs.get(LABELS)
    labels = labels.data if isinstance(labels, ArrayAttr) else ()
    sparse = not isinstance(kind.encoding, NoneAttr)
    return ValueSpec(
        label,
        shape,
        str(kind.element_type),
        "csr" if sparse else None,
        _entries(attrs.get(NNZ)) if sparse else None,
        tuple(_keys(attrs.get(PATH))),
        EXAMPLE in attrs,
        tuple(text.data for text in labels if isinstance(text, StringAttr)),
    )


def _entries(attr: Attribute | None) -> int | str:
    if isinstance(attr, IntegerAttr):
        return attr.value.data
    return attr.data if isinstance(attr, StringAttr) else "?"


def _keys(attr: Attribute | None) -> Iterator[Key]:
    """The keys of a path."""
    for key in attr if isinstance(attr, ArrayAttr) else ():
        if isinstance(key, StringAttr):
            yield key.data
        elif isinstance(key, IntegerAttr):
            yield key.value.data
        elif isinstance(key, ArrayAttr):
            yield tuple(part.data for part in key if isinstance(part, StringAttr))


def state_paths(function: func.FuncOp, paths: Mapping[str, Sequence[Key]]) -> None:
    """State the places of inputs in the arguments of a model, by the names of the inputs."""
    from xdsl.dialects.builtin import i64

    def attribute(key: Key) -> Attribute:
        if isinstance(key, tuple):
            return ArrayAttr(list(map(StringAttr, key)))
        return StringAttr(key) if isinstance(key, str) else IntegerAttr(key, i64)

    specs = specs_of(function)[0]
    found = [paths.get(spec.name) for spec in specs]
    _state(
        function,
        [{} if path is None else {PATH: ArrayAttr(list(map(attribute, path)))} for path in found],
    )


def state_example(function: func.FuncOp) -> None:
    """State that the sizes of the inputs of a function are those of an example."""
    _state(function, [{EXAMPLE: UnitAttr()}] * len(function.function_type.inputs))


def _state(function: func.FuncOp, stated: Sequence[Mapping[str, Attribute]]) -> None:
    """Add attributes to those of each argument of a function."""
    pairs = zip(face_of(function).arguments, stated, strict=True)
    function.arg_attrs = ArrayAttr([DictionaryAttr({**old, **new}) for old, new in pairs])


def argument_attrs(
    name: str,
    dims: Sequence[int | str],
    nnz: int | str | None = None,
    labels: Sequence[str] = (),
) -> DictionaryAttr:
    """The attributes of an argument of the public function.

    Args:
        name: its name for callers.
        dims: its dimensions; a str names a symbolic one.
        nnz: for a sparse argument, its number of stored entries or the symbol for it.
        labels: the strings whose numbers it holds.
    """
    from xdsl.dialects.builtin import i64

    data: dict[str, Attribute] = {NAME: StringAttr(name)}
    if any(isinstance(d, str) for d in dims):
        data[DIMS] = ArrayAttr([StringAttr(d if isinstance(d, str) else "") for d in dims])
    if nnz is not None:
        data[NNZ] = IntegerAttr(nnz, i64) if isinstance(nnz, int) else StringAttr(nnz)
    if labels:
        data[LABELS] = ArrayAttr(list(map(StringAttr, labels)))
    return DictionaryAttr(data)
