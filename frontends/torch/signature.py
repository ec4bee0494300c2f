"""The inputs and outputs of an exported program: their names, and the names of their sizes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType

from ...core.algebra.dims import Dim, Shape
from ...dialects.sparse_tensor import csr
from ..importing.diagnostics import Problem, UnsupportedNodeError
from ..importing.dtypes import tensor_type
from .dtypes import numpy_dtype
from .library import library
from .sizes import TorchSizes


@dataclass(frozen=True)
class TorchInput:
    """A run-time input: its node in the program, its name for callers, its type and shape.

    `entries` names the number of stored entries of a sparse one; it is None for a dense one.
    """

    fx: Any
    name: str
    dtype: np.dtype
    shape: Shape
    entries: str | None = None

    @property
    def type(self) -> TensorType:
        """The type of the argument of the program."""
        dense = tensor_type(self.dtype, self.shape)
        if self.entries is None:
            return dense
        return TensorType(dense.element_type, dense.shape, csr())


def read_inputs(
    program: Any, names: Mapping[str, str], sizes: TorchSizes, sparse: Collection[int] = ()
) -> tuple[list[TorchInput], list[Problem]]:
    """The tensors that a program takes, whose symbols get names, and the unsupported inputs.

    Args:
        program: the exported program.
        names: symbol of torch -> the name that the user gives it.
        sizes: learns the dimension of each symbol.
        sparse: the positions of the arguments that are sparse matrices.
    """
    inputs: list[TorchInput] = []
    problems: list[Problem] = []
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    taken = set(names.values())
    specs = [s for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    given = [
        (number, placeholders[spec.arg.name])
        for number, spec in enumerate(specs)
        if hasattr(spec.arg, "name") and spec.arg.name in placeholders
    ]
    for _, fx in given:
        _name_symbols(fx, names, taken, sizes)
    for number, fx in given:
        value = fx.meta.get("val")
        if isinstance(value, (int, float, bool, str, type(None))):
            continue  # it was a constant of the export
        try:
            found = read_input(fx, value, taken, sizes)
            if number in sparse:
                found = replace(found, entries=unused(f"{fx.name}_entries", taken))
            inputs.append(found)
        except UnsupportedNodeError as error:
            problems.append(Problem(f'input "{fx.name}"', None, error.reason, error.closest))
    return inputs, problems


def _name_symbols(fx: Any, names: Mapping[str, str], taken: set[str], sizes: TorchSizes) -> None:
    """Name the symbols that are sizes of an input."""
    for axis, size in enumerate(getattr(fx.meta.get("val"), "shape", ())):
        symbol = str(size)
        if _expression(size) is not None and size.node.expr.is_Symbol and not sizes.knows(symbol):
            name = names.get(symbol) or unused(f"{fx.name}_{axis}", taken)
            sizes.name(symbol, Dim.symbol(name))


def _expression(size: Any) -> Any:
    """The expression of a size with symbols; None for a number."""
    found = getattr(getattr(size, "node", None), "expr", None)
    return None if found is None or found.is_number else found


def _name_derived(expression: Any, dim: Dim, sizes: TorchSizes) -> None:
    """Name a size such as 2*k+1, and k, unless that is the size of an input too.

    h == 2*k + 1  where  k == (h - 1) // 2
    """
    roots = expression.free_symbols
    factor = expression.coeff(next(iter(roots)))
    rest = expression - factor * next(iter(roots))
    if len(roots) == 1 and factor.is_Integer and factor > 0 and rest.is_Integer:
        (root,) = map(str, roots)
        sizes.name(root, (dim - int(rest)).floordiv(int(factor)))
        equal = sizes.dim(expression)
        if equal is not None:
            sizes.derived[dim] = equal
            sizes.name(str(expression), dim)


def read_input(fx: Any, value: Any, taken: set[str], sizes: TorchSizes) -> TorchInput:
    if type(value).__name__ == "SymInt":
        return TorchInput(fx, fx.name, np.dtype(np.int64), ())
    if not hasattr(value, "shape"):
        raise UnsupportedNodeError(f"a {type(value).__name__} as an input", "a tensor")
    dtype = numpy_dtype(value.dtype)
    if not str(value.layout).endswith("strided"):
        raise UnsupportedNodeError("sparse tensors as inputs", "an edge list, or dense tensors")
    shape: list[Dim] = []
    for axis, size in enumerate(value.shape):
        expression = _expression(size)
        if expression is not None and not sizes.knows(str(expression)):
            _name_derived(expression, Dim.symbol(unused(f"{fx.name}_{axis}", taken)), sizes)
        found = sizes.dim(size)
        if found is None or not (found.is_static or found == Dim.symbol(found.symbols[0])):
            raise UnsupportedNodeError(f"dimension {axis} is {size}", "a size of its own")
        shape.append(found)
    return TorchInput(fx, fx.name, dtype, tuple(shape))


def unused(name: str, taken: set[str]) -> str:
    base = re.sub(r"\W", "_", name, flags=re.ASCII)
    base = base if base[:1].isalpha() else f"d{base}"
    while base in taken:
        base += "_"
    taken.add(base)
    return base


def output_names(program: Any) -> Iterator[str]:
    """The names of the results: keys and attributes where the model returns such, else numbers."""
    tree = library().utils._pytree
    spec = program.call_spec.out_spec
    leaves, _ = tree.tree_flatten_with_path(tree.tree_unflatten(list(range(spec.num_leaves)), spec))
    taken: set[str] = set()
    for number, (path, _) in enumerate(leaves):
        keys = [getattr(step, "key", getattr(step, "name", None)) for step in path]
        name = ".".join(str(key) for key in keys if key is not None)
        name = name if name and name not in taken else f"result{number}"
        taken.add(name)
        yield name
