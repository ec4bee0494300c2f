"""Generated inputs: arrays that fit the inputs of a program, the same each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.boundary.specs import ValueSpec
from ...core.dtype_names import dtype_named, is_real
from ...core.errors import InputError, explain
from ...core.ir.module import Module
from .index_inputs import index_limits

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Numbers = Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray]

_DENSITY = 0.01
"""The default density of a sparse input."""


def random_inputs(
    specs: Sequence[ValueSpec], sizes: Mapping[str, int], module: Module | None = None
) -> list[Any]:
    """Normally distributed arrays; symbolic sizes are those in `sizes`, else 1.

    Integers that a module reads or writes at are any of its indices, all others are 0. Entries of
    sparse matrices are from 0.5 to 1.5, as of graphs, whose degrees have roots, and so are vectors
    with a number for each of several indices, as the weights of an edge list.

    Args:
        specs: the inputs.
        sizes: the symbolic sizes.
        module: the program that takes them; without it no input is known to hold indices.

    Raises:
        InputError: if `sizes` names an unknown size.
    """
    known = {d for spec in specs for d in spec.shape if isinstance(d, str)}
    strangers = sizes.keys() - known
    if strangers:
        fact, expected = "no such symbolic size", ", ".join(sorted(known)) or "none"
        raise InputError(explain("--size", fact, expected=expected, got=min(strangers)))
    random = np.random.default_rng(0)

    def normal(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        return random.standard_normal(shape).astype(dtype)

    def weights(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        return random.uniform(0.5, 1.5, shape).astype(dtype)

    limits = {} if module is None else index_limits(module, sizes)
    counts = {specs[number].shape[-1:] for number in limits}

    def made(number: int, spec: ValueSpec) -> Any:
        if limit := limits.get(number):
            dtype = dtype_named(spec.dtype)
            return random.integers(0, limit, _shape(spec, sizes)).astype(dtype)
        is_of_edges = spec.format is not None or (len(spec.shape) == 1 and spec.shape in counts)
        return _input(spec, sizes, _DENSITY, weights if is_of_edges else normal, random)

    return [made(number, spec) for number, spec in enumerate(specs)]


_SMALL = (5, 3, 7, 2)
_LARGE = (29, 31, 37, 23)
"""More than the rows of a register tile, but not a multiple of them."""
_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 64.0, -64.0)


_OTHERS = (_SMALL[::-1], _LARGE, _LARGE[::-1], (64,), (256,))
"""Sizes to take where a program refuses these: in another order, larger, equal."""


def small_inputs(
    specs: Sequence[ValueSpec], runs: Callable[[Sequence[Any]], bool] = lambda sample: True
) -> list[list[Any]]:
    """Three samples of inputs that exercise all of a program, each with an array per spec.

    Two are normally distributed, with different small sizes and different sizes around 30; the
    third has zeros of both signs, ones, the smallest normal number and large ones. Sparse inputs
    store a third of their entries.

    Args:
        specs: the inputs.
        runs: whether the program takes a sample; if it takes none, the first one is returned.
    """
    random = np.random.default_rng(0)

    def normal(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        return random.standard_normal(shape).astype(dtype)

    def edges(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        tiny = 2.0**-14 if dtype.itemsize == 2 else float(np.finfo(dtype).tiny)
        return random.choice((*_EDGES, tiny, -tiny), shape).astype(dtype)

    sets = ((_SMALL, normal), (_LARGE, normal), (_SMALL, edges))
    found: list[list[Any]] = []
    for choices, numbers in sets:
        made = (_made(specs, each, numbers, random) for each in (choices, *_OTHERS))
        first = next(made)
        found.append(first if runs(first) else next(filter(runs, made), first))
    return found


def _made(
    specs: Sequence[ValueSpec],
    choices: Sequence[int],
    numbers: Numbers,
    random: np.random.Generator,
) -> list[Any]:
    names = dict.fromkeys(d for spec in specs for d in spec.shape if isinstance(d, str))
    sizes = {name: choices[n % len(choices)] for n, name in enumerate(names)}
    return [_input(spec, sizes, 1 / 3, numbers, random) for spec in specs]


def _shape(spec: ValueSpec, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sizes.get(d, 1) if isinstance(d, str) else d for d in spec.shape)


def _input(
    spec: ValueSpec,
    sizes: Mapping[str, int],
    density: float,
    numbers: Numbers,
    random: np.random.Generator,
) -> np.ndarray | csr_array:
    shape = _shape(spec, sizes)
    dtype = dtype_named(spec.dtype)
    if spec.format is not None:
        from scipy.sparse import csr_array, random_array

        rows, columns = shape
        if isinstance(spec.nnz, int):
            density = spec.nnz / max(1, rows * columns)
        matrix = csr_array(random_array((rows, columns), density=density, rng=random))
        matrix = matrix.astype(dtype)
        if is_real(dtype):
            matrix.data[:] = numbers(matrix.data.shape, dtype)
        return matrix
    return numbers(shape, dtype) if is_real(dtype) else np.zeros(shape, dtype)
