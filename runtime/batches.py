"""A program on batches: an array of Dask whose blocks are batches, or any iterable of them."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from ..core.boundary.specs import ValueSpec
from ..core.dtype_names import dtype_named
from ..core.errors import InputError, explain


class Called(Protocol):
    """A program."""

    @property
    def inputs(self) -> list[ValueSpec]: ...

    @property
    def outputs(self) -> list[ValueSpec]: ...

    def __call__(self, /, *inputs: object) -> Any: ...


def mapped(exe: Called, batches: Any) -> Any:
    """The results of a program for each batch; see `Executable.map`."""
    arrays = sys.modules.get("dask.array")
    if arrays is not None and isinstance(batches, arrays.Array):
        # An array of Dask, whose blocks along the first dimension are the results.
        from dask.delayed import delayed

        if len(exe.inputs) != 1 or len(exe.outputs) != 1:
            fact, got = "not one input and one result", f"{len(exe.inputs)} and {len(exe.outputs)}"
            raise InputError(explain("map", fact, expected="1 and 1", got=got))
        (given,), (made,) = exe.inputs, exe.outputs
        _check(given, made, batches)
        inner = dict.fromkeys(range(1, batches.ndim), -1)
        rank, count = batches.ndim, len(made.shape)
        return batches.rechunk(inner).map_blocks(
            _result,
            program=delayed(exe, name=f"stepwell-{uuid.uuid4().hex}", traverse=False),
            dtype=dtype_named(made.dtype),
            chunks=(batches.chunks[0], *((size,) for size in made.shape[1:])),
            drop_axis=list(range(count, rank)),
            new_axis=list(range(rank, count)) or None,
            meta=np.empty((0,) * count, dtype_named(made.dtype)),
        )
    if not isinstance(batches, Iterable):
        expected, got = "an array of Dask, or an iterable", type(batches).__name__
        raise InputError(explain("map", "not batches", expected=expected, got=got))
    return (exe(batch) for batch in batches)


def _check(given: ValueSpec, made: ValueSpec, batches: Any) -> None:
    """Check that the rows of the argument and of the result are those of a batch.

    Raises:
        InputError: if they are not, or the array does not fit the argument.
    """
    rows = given.shape[0] if given.shape and given.format is None else None
    sizes = all(isinstance(size, int) for size in (*given.shape[1:], *made.shape[1:]))
    if not isinstance(rows, str) or made.shape[:1] != (rows,) or not sizes:
        expected, got = "(batch, ...) of each, other sizes fixed", f"{given.shape}, {made.shape}"
        fact = "argument and result do not have one row for each element of a batch"
        raise InputError(explain("map", fact, expected=expected, got=got))
    if batches.dtype != dtype_named(given.dtype) or batches.shape[1:] != given.shape[1:]:
        expected, got = f"{given.dtype} {given.shape}", f"{batches.dtype} {batches.shape}"
        raise InputError(explain("map", "batches do not fit", expected=expected, got=got))


def _result(batch: np.ndarray, program: Called) -> np.ndarray:
    return program(batch)
