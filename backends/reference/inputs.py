"""Checks of the arguments of a reference run, the same as for a compiled program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from xdsl.utils.exceptions import VerifyException

from ...core.boundary.arguments import Csr, sizes, taken
from ...core.boundary.indices import explained, fault_of
from ...core.errors import CompileError, InputError
from ...core.ir.module import Module
from ...dialects.graph.signature import arguments_of
from ...dialects.graph.sizes.guards import check_guards, guards_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Array = np.ndarray | csr_array


def check_inputs(module: Module, values: Sequence[object]) -> list[Array]:
    """The inputs as arrays and CSR matrices.

    Raises:
        CompileError: if the module has an input of a type that no argument can have.
        InputError: if the number of inputs, or the kind, dtype, rank or size of one is wrong, if
            two dimensions with the same name differ, sizes contradict what the module was made for,
            or a CSR matrix is inconsistent.
    """
    arguments = arguments_of(module.program)
    found = taken(arguments, values)
    try:
        guards = guards_of(module.program)
    except VerifyException as error:
        raise CompileError(str(error)) from error
    check_guards(guards, arguments, sizes(arguments, found))
    return [
        _matrix(argument.spec.name, value) if isinstance(value, Csr) else value
        for argument, value in zip(arguments, found, strict=True)
    ]


def _matrix(name: str, value: Csr) -> csr_array:
    """A CSR matrix, after a check of the contents of its arrays.

    Raises:
        InputError: with the first rule that does not hold.
    """
    from scipy.sparse import csr_array

    fault = fault_of(value.indptr, value.indices, value.shape[1])
    if fault is not None:
        raise InputError(f'input "{name}": {explained(*fault)}')
    return csr_array((value.values, value.indices, value.indptr), shape=value.shape)
