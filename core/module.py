"""A model inside the compiler: an MLIR module and the store of its weights."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

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
)
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from .building.creation import copied
from .decisions import Decision
from .display import displayed
from .dominance import verify_dominance, verify_module
from .dtypes import ELEMENT_TYPES
from .errors import CompileError, StepwellError, explain, first_line
from .printing import module_text
from .specs import Key, ValueSpec
from .weights import WeightStore
from .writing import is_device, written

NAME, DIMS, NNZ, PATH = "graph.name", "graph.dims", "graph.nnz", "graph.path"
"""Attributes of arguments and results: the public name, the names of the dimensions, the number of
stored entries, and the place in an argument of the model that is a dictionary or a sequence."""
SIGNATURE, ARGUMENTS, RESULTS = "graph.signature", "graph.arguments", "graph.results"
"""Attributes of a function on buffers: its type as one of tensors, and their attributes."""


Program: TypeAlias = func.FuncOp | llvm.FuncOp
"""The public function of a module: an `llvm.func` at the last stage, before that a `func.func`."""


class Module:
    """An MLIR module (xDSL's `ModuleOp`) with its weights.

    Args:
        op: the module; its public function is the program.
        weights: the arrays that the IR names.

    Attributes:
        decisions: those that were taken where it was made, which are no part of its text.
    """

    def __init__(self, op: ModuleOp, weights: WeightStore | None = None) -> None:
        self.decisions: tuple[Decision, ...] = ()
        self.op = op
        self.weights = weights if weights is not None else WeightStore()

    @property
    def main(self) -> func.FuncOp:
        """The public function of a module before stage `llvm`.

        Raises:
            CompileError: if there is none, or more than one.
        """
        return _only([f for f in self.op.ops if isinstance(f, func.FuncOp) and is_public(f)])

    @property
    def program(self) -> Program:
        """The public function of the module, at any stage.

        Raises:
            CompileError: if there is none, or more than one.
        """
        return _only([f for f in self.op.ops if isinstance(f, Program) and is_public(f)])

    @property
    def inputs(self) -> list[ValueSpec]:
        """The inputs of the program, in order."""
        return specs_of(self.program)[0]

    @property
    def outputs(self) -> list[ValueSpec]:
        """The results of the program, in order."""
        return specs_of(self.program)[1]

    def text(self, *, locations: bool = False) -> str:
        """The IR as MLIR text, which states its version."""
        return module_text(self.op, locations=locations, versioned=True)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return displayed(self)

    def clone(self) -> Module:
        """A deep copy of the IR; the arrays are shared."""
        copy = Module(copied(self.op), self.weights.copy())
        copy.decisions = self.decisions
        return copy

    def verify(self) -> None:
        """Verify the module.

        Raises:
            CompileError: with the first fact that does not hold.
        """
        try:
            verify_module(self.op)
        except VerifyException as error:
            raise CompileError(first_line(error)) from error

    def verify_order(self) -> None:
        """Check dominance, which the verification between passes leaves out.

        Raises:
            CompileError: naming the first operation that uses a value too early.
        """
        try:
            verify_dominance(self.op)
        except VerifyException as error:
            raise CompileError(first_line(error)) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `model.mlir`, and `model.safetensors` beside it where there are weights.

        To a pipe or a device, such as `/dev/stdout`, only the text is written.

        Raises:
            StepwellError: if the folder cannot be written, and older files are then unharmed; if
                the path is that of the weights.
        """
        try:
            alone = is_device(path) or not len(self.weights)
            beside = path if alone else Path(path).with_suffix(".safetensors")
            if not alone and beside == Path(path):
                fact = f"cannot write {path}: weights are written to this file"
                raise StepwellError(explain("save", fact, expected="another ending"))
            text = self.text(locations=True).encode()
            # The text takes its place last: what can fail has been done by then.
            with written(path) as file:
                file.write(text)
                file.flush()
                if not alone:
                    self.weights.save(beside)
        except OSError as error:
            fact = f"cannot write {path}: {error.strerror}"
            raise StepwellError(explain("save", fact)) from error

    def run_reference(self, *inputs: object) -> Any:
        """Run the module on NumPy and SciPy, operator by operator.

        Returns one array, or a tuple of them where the program has several results.
        """
        from .registry import backend

        results = backend("reference")(self, inputs)
        assert isinstance(results, tuple)
        return results[0] if len(results) == 1 else results


_Function = TypeVar("_Function", bound=Program)


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
    sparse = not isinstance(kind.encoding, NoneAttr)
    return ValueSpec(
        label,
        shape,
        str(kind.element_type),
        "csr" if sparse else None,
        _entries(attrs.get(NNZ)) if sparse else None,
        tuple(_keys(attrs.get(PATH))),
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

    specs, attrs = specs_of(function)[0], face_of(function).arguments
    stated = [
        {**given, PATH: ArrayAttr(list(map(attribute, paths[spec.name])))}
        if spec.name in paths
        else given
        for spec, given in zip(specs, attrs, strict=True)
    ]
    function.arg_attrs = ArrayAttr(list(map(DictionaryAttr, stated)))


def argument_attrs(
    name: str, dims: Sequence[int | str], nnz: int | str | None = None
) -> DictionaryAttr:
    """The attributes of an argument of the public function.

    Args:
        name: its name for callers.
        dims: its dimensions; a str names a symbolic one.
        nnz: for a sparse argument, its number of stored entries or the symbol for it.
    """
    from xdsl.dialects.builtin import i64

    data: dict[str, Attribute] = {NAME: StringAttr(name)}
    if any(isinstance(d, str) for d in dims):
        data[DIMS] = ArrayAttr([StringAttr(d if isinstance(d, str) else "") for d in dims])
    if nnz is not None:
        data[NNZ] = IntegerAttr(nnz, i64) if isinstance(nnz, int) else StringAttr(nnz)
    return DictionaryAttr(data)
