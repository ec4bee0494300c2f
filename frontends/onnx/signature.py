"""The inputs of a model, and their shapes after `shapes` has fixed symbols."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, ValueInfoProto

from ...core.algebra.dims import Dim, Shape
from ...core.boundary.arrays import is_integer
from ..importing.diagnostics import Problem, UnsupportedNodeError
from ..importing.sizes import check_shape
from .diagnostics import broken
from .dtypes import is_text, number_of_texts, numpy_dtype
from .sequences import Tensors, tensors_of

Size = int | str | None

Shapes = Mapping[str, Sequence[Size] | Sequence[Sequence[Size]] | None]
"""The shape of an input, or of each tensor of a sequence; None for an optional without one."""

_UNKNOWN: tuple[Size, ...] = (-1, "", "-1", "?")
"""The spellings of an unknown dimension by exporters. Two unknown dimensions need not be equal,
unlike two of the same name."""


@dataclass(frozen=True)
class OnnxInput:
    """A run-time input: its name for callers, its element type and its shape.

    Of strings, `is_text`, the elements are numbers in the table of the model.
    """

    name: str
    dtype: np.dtype
    shape: Shape
    is_text: bool = False


def read_inputs(
    graph: GraphProto,
    initialised: set[str],
    shapes: Shapes | None,
) -> tuple[list[OnnxInput], Tensors]:
    """The inputs of `graph` that are not initialisers, and what is a sequence or not supported.

    Raises:
        ImportModelError: if a shape is missing or too large, or `shapes` does not fit the model.
    """
    if shapes is not None and not isinstance(shapes, Mapping):
        got = type(shapes).__name__
        raise broken("shapes: expected a mapping of input names", got=got)
    infos = [info for info in graph.input if info.name not in initialised]
    _check_names(infos, shapes or {})
    tensors, names = tensors_of(infos, shapes or {}), _Symbols()
    sizes, problems = _declared(tensors.infos, tensors.shapes)
    tensors.problems += problems
    declared = {name: _given(name, dims, tensors.shapes) for name, (_, dims) in sizes.items()}
    bound = _bindings(sizes, declared)
    texts = {info.name for info in tensors.infos if is_text(info.type)}
    inputs: list[OnnxInput] = []
    for name, (dtype, dims) in sizes.items():
        resolved = [
            _resolve(name, axis, dim, given, bound, names)
            for axis, (dim, given) in enumerate(zip(dims, declared[name], strict=True))
        ]
        numbers = [d.value if d.is_static else 1 for d in resolved]
        check_shape(numbers, dtype.itemsize, f'onnx: input "{name}"')
        inputs.append(OnnxInput(name, dtype, tuple(resolved), name in texts))
    return inputs, tensors


def declared_sizes(graph: GraphProto) -> dict[str, list[int | None]]:
    """The sizes that a graph declares for values; None for those that it does not know."""
    shaped = [
        value
        for value in (*graph.value_info, *graph.output)
        if value.type.tensor_type.HasField("shape")
    ]
    return {
        value.name: [
            dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None
            for dim in value.type.tensor_type.shape.dim
        ]
        for value in shaped
    }


def _declared(
    infos: Sequence[ValueInfoProto],
    shapes: Mapping[str, Sequence[Size]],
) -> tuple[dict[str, tuple[np.dtype, list[Size]]], list[Problem]]:
    """Input name -> element type and dimensions (a str is a symbol, None is unnamed)."""
    result: dict[str, tuple[np.dtype, list[Size]]] = {}
    problems: list[Problem] = []
    for info in infos:
        if not info.name:
            raise broken("an input has no name")
        if info.name in result:
            raise broken(f'value "{info.name}" is defined twice', origin="inputs")
        kind = info.type.WhichOneof("value")
        try:
            if kind is None:
                raise broken(f'input "{info.name}" has no type')
            if kind != "tensor_type":
                noun = kind.removesuffix("_type").replace("_", " ")
                raise UnsupportedNodeError(f"{noun} inputs are not supported", "tensor inputs")
            dtype = numpy_dtype(number_of_texts(info.type.tensor_type.elem_type))
        except UnsupportedNodeError as error:
            problems.append(Problem(f'input "{info.name}"', None, error.reason, error.closest))
            continue
        result[info.name] = (dtype, _dimensions(info, shapes.get(info.name)))
    return result, problems


def _check_names(infos: Sequence[ValueInfoProto], shapes: Shapes) -> None:
    known = [info.name for info in infos]
    for name in shapes:
        if name not in known:
            inputs = ", ".join(known) or "no inputs"
            raise broken(f'shapes: unknown input "{name}"', expected=inputs, got=name)


def _dimensions(info: ValueInfoProto, given: Sequence[Size] | None) -> list[Size]:
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        if given is None:
            raise broken(
                f'input "{info.name}" has no shape',
                hint=f'give one: shapes={{"{info.name}": (...)}}',
            )
        return [None] * len(given)
    dims: list[Size] = []
    for dim in tensor.shape.dim:
        size: Size = dim.dim_value if dim.HasField("dim_value") else dim.dim_param
        dims.append(None if size in _UNKNOWN else size)
    return dims


def _given(name: str, dims: Sequence[Size], shapes: Mapping[str, Sequence[Size]]) -> Sequence[Size]:
    """The sizes that the caller gives for an input; None for each one left to the model."""
    given = shapes.get(name)
    if given is None:
        return [None] * len(dims)
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise broken(f'shapes: "{name}" needs a tuple', got=type(given).__name__)
    if len(given) != len(dims):
        raise broken(f'shapes: rank of input "{name}" differs', expected=len(dims), got=len(given))
    for size in given:
        if not (size is None or isinstance(size, str) or (is_integer(size) and size >= 0)):
            raise broken(
                f'shapes: bad dimension of input "{name}"',
                expected="a size, a name or None",
                got=repr(size),
            )
    return [int(size) if isinstance(size, np.integer) else size for size in given]


def _bindings(
    sizes: Mapping[str, tuple[np.dtype, Sequence[Size]]],
    declared: Mapping[str, Sequence[Size]],
) -> dict[str, int | str]:
    """Symbol of the model -> the number or name that the caller gives it."""
    bound: dict[str, int | str] = {}
    for name, (_, dims) in sizes.items():
        for axis, (dim, given) in enumerate(zip(dims, declared[name], strict=True)):
            if given is None:
                continue
            if isinstance(dim, int) and dim != given:
                raise broken(
                    f'shapes: dimension {axis} of input "{name}" is fixed by the model',
                    expected=dim,
                    got=given,
                )
            if isinstance(dim, str) and bound.setdefault(dim, given) != given:
                raise broken(
                    f'shapes: symbol "{dim}" is given two sizes (input "{name}")',
                    expected=bound[dim],
                    got=given,
                )
    return bound


class _Symbols:
    """Names of dimensions that are valid in the IR, one for each symbol of the model."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()

    def dim(self, symbol: str) -> Dim:
        if symbol not in self._names:
            base = re.sub(r"\W", "_", symbol, flags=re.ASCII)
            base = base if base[:1].isalpha() else f"d{base}"
            name = base if base not in self._taken else f"{base}_{len(self._taken)}"
            while name in self._taken:
                name += "_"
            self._taken.add(name)
            self._names[symbol] = name
        return Dim.symbol(self._names[symbol])


def _resolve(
    name: str, axis: int, dim: Size, given: Size, bound: Mapping[str, int | str], names: _Symbols
) -> Dim:
    size = bound.get(dim, dim) if isinstance(dim, str) else given if dim is None else dim
    if size is None:
        size = f"{name}_{axis}"
    return names.dim(size) if isinstance(size, str) else Dim.of(size)
