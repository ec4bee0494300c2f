"""`from_mlir`: MLIR text of any stage, and its weights, as a `Module`."""

from __future__ import annotations

import functools
import os
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import DenseResourceAttr, ModuleOp, NoneAttr, TensorType, UnitAttr
from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, ParseError

from ..core.dtypes import dtype_of
from ..core.errors import ImportModelError, explain, first_line, shortened
from ..core.files.reading import ReadingError, read_text
from ..core.files.versions import KEY
from ..core.ir.dominance import verify_module
from ..core.ir.invalid import invalid_operations, place_in_text
from ..core.ir.module import Module
from ..core.ir.parsing import MlirParser
from ..core.ir.provenance import origin
from ..core.ir.refusal import InvalidProgram
from ..core.ir.symbols import find_symbol
from ..core.ir.typed import function_around
from ..core.ir.weights import WeightStore
from ..core.registry import make_context
from ..dialects.graph.nests.proofs import (
    HINT,
    counts_in,
    described,
    equal_sizes,
    holds_in,
    is_computed,
    is_read_beyond,
    outside_of_call,
    uncovered_of_call,
)
from ..dialects.graph.ops import CallDpsOp
from ..dialects.graph.sizes.shapes import SymbolicShapes
from ..dialects.loop.ops import TRUSTED, KernelOp
from ..dialects.loop.proofs.inside import readers_in
from ..dialects.stages import verify_stage


def from_mlir(
    source: str | os.PathLike[str], weights: WeightStore | None = None, *, trusted: bool = False
) -> Module:
    """Read a module from the path of a ``.mlir`` file, or from MLIR text.

    A str with a line break or a brace is text, any other is a path. The weights that the text names
    are those given, else those of the safetensors file beside the path (`m.safetensors` beside
    `m.mlir`).

    Args:
        source: a path, or text.
        weights: the weights that the text names.
        trusted: whether kernels may access buffers at indices that are computed in a way that is
            not understood, such as those of a sort, and store parts of results in ways that are
            not. Where one is outside, the program reads or overwrites other memory: trust only text
            that was written by Stepwell. Text of stages after `scheduled` deals with memory
            directly, and is not checked for this.

    Raises:
        ImportModelError: if the file cannot be read, the text is malformed or does not verify (with
            file, line and column), or names a missing weight, or if a kernel may access
            what is outside of its buffers, or not store each element of its results.
    """
    text, name, beside = _read(source)
    weights = beside if weights is None else weights
    op = _parse(text, name)
    try:
        verify_module(op)
        verify_stage(op)
    except DiagnosticException as error:
        facts = (f"{_place(o, op, text, name)}: {fact}" for o, fact in invalid_operations(op))
        raise ImportModelError(next(facts, f"{name}: {first_line(error)}")) from error
    _check_kernels(op, text, name, trusted)
    _check_weights(op, weights, text, name)
    op.attributes.pop(KEY, None)
    return Module(op, weights)


def _read(source: str | os.PathLike[str]) -> tuple[str, str, WeightStore]:
    """The text, its name in errors, and its weights."""
    if isinstance(source, str) and ("\n" in source or "{" in source):
        return source, "text", WeightStore()
    if source == "":
        raise ImportModelError(explain("from_mlir", "the text is empty"))
    if not isinstance(source, (str, os.PathLike)):
        raise ImportModelError(
            explain("from_mlir", "neither a path nor text", got=type(source).__name__)
        )
    path = Path(source)
    try:
        text = read_text(path)
    except ReadingError as error:
        raise ImportModelError(explain("from_mlir", f"cannot read {path}: {error}")) from error
    beside = path.with_suffix(".safetensors")
    weights = WeightStore.load(beside) if beside.exists() else WeightStore()
    return text, str(path), weights


def _parse(text: str, name: str) -> ModuleOp:
    try:
        return MlirParser(make_context(), text, name).parse_module()
    except ParseError as error:
        place = error.span.get_location()
        raise ImportModelError(f"{place}: {shortened(' '.join(error.msg.split()))}") from error
    except DiagnosticException as error:
        parser = _placing(text, name)
        with suppress(DiagnosticException):
            parser.parse_module()
        place = parser.failed_place
        where = name if place is None else f"{name}:{place[0]}:{place[1]}"
        raise ImportModelError(explain(where, f"cannot parse: {first_line(error)}")) from error


def _placing(text: str, name: str) -> MlirParser:
    """A parser that keeps places."""
    parser = MlirParser(make_context(), text, name)
    parser.keep_places()
    return parser


def _check_kernels(op: ModuleOp, text: str, name: str, trusted: bool) -> None:
    """Check that kernels stay inside of their buffers and store whole results, as far as is known.

    Sizes on which it depends that accesses are inside are noted, and checked in each call.
    """
    shapes_of = functools.cache(SymbolicShapes)
    for call in op.walk():
        kernel = find_symbol(call, call.callee) if isinstance(call, CallDpsOp) else None
        function = function_around(call)
        if not isinstance(call, CallDpsOp) or not isinstance(kernel, KernelOp) or function is None:
            continue
        _mark(kernel, trusted)
        try:
            shapes = shapes_of(function)
        except InvalidProgram as error:
            where = _place(function, op, text, name)
            raise ImportModelError(f"{where}: {first_line(error)}") from error
        found = _outside(kernel, call, shapes, trusted) or _unstored(kernel, call, shapes, trusted)
        if found is not None:
            place, (fact, expected, got), hint = found
            where = f"{_place(place, op, text, name)}: kernel {kernel.sym_name.data}"
            if not trusted:
                hint += "; for text of Stepwell's own give trusted=True (--trusted)"
            words = explain(where, fact, expected=expected, got=got, origin=origin(call), hint=hint)
            raise ImportModelError(words)


def _mark(kernel: KernelOp, trusted: bool) -> None:
    """Note in a kernel whether the indices that it computes are trusted, for later passes."""
    kernel.attributes.pop(TRUSTED, None)
    if trusted and any(map(is_computed, readers_in(kernel))):
        kernel.attributes[TRUSTED] = UnitAttr()


_Found: TypeAlias = tuple[Operation, tuple[str, str, str], str]
"""An operation, what is wrong with it (the fact, expected, got), and how to mend it."""


def _outside(
    kernel: KernelOp, call: CallDpsOp, shapes: SymbolicShapes, trusted: bool
) -> _Found | None:
    """An access that may be outside of its buffer in a call."""
    accepts = is_computed if trusted else lambda access: False
    holds = functools.partial(holds_in, call, shapes)
    found = outside_of_call(kernel, call.arguments, trusted=accepts, holds=holds)
    return None if found is None else (found.access, described(found), HINT)


def _unstored(
    kernel: KernelOp, call: CallDpsOp, shapes: SymbolicShapes, trusted: bool
) -> _Found | None:
    """A result of a kernel of which a call may leave elements undefined."""
    if trusted:
        return None
    sizes_of = functools.partial(equal_sizes, shapes=shapes)
    counts = counts_in(shapes, dict(zip(call.results, kernel.outputs, strict=False)))
    for found in uncovered_of_call(kernel, call.arguments, sizes_of(call), counts):
        result, width = call.results[found.number], found.width
        if width is None or is_read_beyond(result, width, sizes_of):
            return kernel, found.facts, "store a first value to each"
    return None


def _place(op: Operation, module: ModuleOp, text: str, name: str) -> str:
    """Where an operation is in the text, as ``file:line:column``."""
    return place_in_text(op, module, _placing(text, name)) or name


def _check_weights(op: ModuleOp, weights: WeightStore, text: str, name: str) -> None:
    """Check that each named weight is in the store and has the declared type."""
    for inner in op.walk():
        for attr in (*inner.properties.values(), *inner.attributes.values()):
            if not isinstance(attr, DenseResourceAttr):
                continue
            fact = _weight_error(attr, weights)
            if fact is not None:
                where = _place(inner, op, text, name)
                raise ImportModelError(explain(where, fact, origin=origin(inner)))


def _weight_error(attr: DenseResourceAttr, weights: WeightStore) -> str | None:
    key = attr.resource_handle.data
    if key not in weights:
        return f'weight "{key}" is not in the weights beside the text'
    array = weights[key]
    if not isinstance(attr.type, TensorType):
        return f'weight "{key}" has type {attr.type}, expected a tensor'
    declared = (tuple(attr.type.get_shape()), str(dtype_of(attr.type.element_type)))
    stored = (tuple(array.shape), str(array.dtype))
    if declared != stored:
        return f'weight "{key}" differs from its type, expected {declared}, got {stored}'
    dense = isinstance(attr.type.encoding, NoneAttr)
    if dense != isinstance(array, np.ndarray):
        return f'weight "{key}" is stored {"sparse" if dense else "dense"}, unlike its type'
    return None
