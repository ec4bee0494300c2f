"""`bind_params`: replace inputs of a program by constants, and their symbolic sizes by numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from xdsl.utils.exceptions import PassFailedException

from ..core.boundary.specs import ValueSpec
from ..core.errors import InputError, explain
from ..core.ir.module import Module
from ..core.registry import make_context
from ..frontends.arrays import csr_matrix_of, dense_array, is_scipy
from ..passes.graph.bind_params import GraphBindParamsPass

if TYPE_CHECKING:
    from ..core.ir.weights import Array


def bind_params(module: Module, arrays: Mapping[str, Any]) -> Module:
    """A module in which inputs are replaced by arrays.

    Symbolic sizes of these inputs become those of the arrays, in the whole module.

    Args:
        module: a module at a stage before `buffers`; it is not changed.
        arrays: arrays by input name, of the dtype and shape of the input; a `scipy.sparse` matrix
            or a graph for a sparse input. They are copied.

    Raises:
        InputError: if there is no such input, an array does not fit its input, two arrays disagree
            about a symbolic size, an operator rejects these sizes, or the module is on buffers
            already.
    """
    if not isinstance(arrays, Mapping):
        fact, expected = "arrays is not a mapping", "a mapping from names of inputs"
        got = type(arrays).__name__
        raise InputError(explain("bind_params", fact, expected=expected, got=got))
    specs = {spec.name: spec for spec in module.inputs}
    for name in arrays:
        if name not in specs:
            expected = ", ".join(specs) or "none"
            raise InputError(explain("bind_params", f'no input "{name}"', expected=expected))
    result = module.clone()
    ctx = make_context(result.weights)
    try:
        found = {name: _array(specs[name], array) for name, array in arrays.items()}
        GraphBindParamsPass(names=tuple(arrays)).bind(ctx, result.op, found)
    except PassFailedException as error:
        raise InputError(str(error)) from error
    return result


def _array(spec: ValueSpec, values: Any) -> Array:
    """A copy of an array for the weight store."""
    subject = f'argument "{spec.name}"'
    if hasattr(values, "to_csr"):
        values = values.to_csr(spec.dtype)
    return csr_matrix_of(values, subject) if is_scipy(values) else dense_array(values, subject)
