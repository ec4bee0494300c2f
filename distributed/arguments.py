"""The arguments of a program on a graph: checked against its inputs, without the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.boundary.specs import ValueSpec
from ..core.dtype_names import dtype_named
from ..core.errors import InputError, explain
from .partition import Partition
from .program import SplitProgram
from .storage.rows import Rows, rows_of


def arguments_of(
    subject: str,
    program: SplitProgram,
    partition: Partition,
    specs: Sequence[ValueSpec],
    inputs: Sequence[Any],
) -> dict[str, Rows | np.ndarray]:
    """The arguments by name: rows that can be read for those with one for each node, else arrays.

    Args:
        subject: what errors about the number of arguments begin with.
        program: the program.
        partition: the graph.
        specs: the inputs, without the graph.
        inputs: an argument for each.

    Raises:
        InputError: if they do not fit.
    """
    if len(inputs) != len(specs):
        expected = f"{len(specs)} ({', '.join(s.name for s in specs) or 'none'}), and no graph"
        fact, got = "wrong number of inputs", len(inputs)
        raise InputError(explain(subject, fact, expected=expected, got=got))
    found: dict[str, Rows | np.ndarray] = {}
    for spec, value in zip(specs, inputs, strict=True):
        by_rows = program.is_of_rows(spec.name)
        array = rows_of(spec.name, value) if by_rows else np.asarray(value)
        nodes = partition.num_nodes
        _check(spec, array, [nodes if n == program.sizes.nodes else n for n in spec.shape])
        found[spec.name] = array
    return found


def _check(spec: ValueSpec, array: Rows | np.ndarray, want: Sequence[int | str | None]) -> None:
    fits = len(array.shape) == len(want) and all(
        not isinstance(a, int) or a == b for a, b in zip(want, array.shape, strict=True)
    )
    if not fits or array.dtype != dtype_named(spec.dtype):
        expected = f"{dtype_named(spec.dtype)} {tuple(want)}"
        got = f"{array.dtype} {tuple(array.shape)}"
        raise InputError(explain(f'input "{spec.name}"', "wrong array", expected=expected, got=got))
