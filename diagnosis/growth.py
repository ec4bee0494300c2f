"""How errors of the operators of a program grow on their way to its results.

A budget bounds the error of one operator. Later operators may magnify it: a difference of nearly
equal numbers, an exponential of a large one. The factor is measured: the program runs once more,
with each operator perturbed by the budget.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import ContainerType
from xdsl.ir import Attribute, Operation

from ..backends.reference.inputs import check_inputs
from ..backends.reference.interpreter import run
from ..core.distances import DIGITS, distance, scale
from ..core.dtype_names import is_real
from ..core.errors import StepwellError
from ..core.ir.module import Module
from ..dialects.graph.interfaces import FusionKind, GraphOp
from ..dialects.graph.ops import ConstantOp
from ..dialects.graph.ops.sparse.matrices import with_values
from ..dialects.graph.sizes.shapes import SymbolicShapes, sizes_of
from .traces import Key, Trace, dense

if TYPE_CHECKING:
    from ..backends.reference.interpreter import Array

UNKNOWN_TERMS = 1024
"""The assumed length of the longest sum in a program without operators."""
_MOVES = (FusionKind.BROADCAST, FusionKind.INJECTIVE)
_SUMS = (FusionKind.REDUCTION, FusionKind.CONTRACTION, FusionKind.NEST, FusionKind.OPAQUE)


def digits_of(op: Operation) -> int:
    """The binary digits of the narrowest real type among the values of a module."""
    names = {_name(value.type) for inner in op.walk() for value in inner.results}
    return min((DIGITS[name] for name in names if name in DIGITS), default=24)


def _name(kind: Attribute) -> str:
    return str(kind.get_element_type() if isinstance(kind, ContainerType) else kind)


def longest_sum(module: Module, inputs: list[Any]) -> int:
    """The number of terms of the longest sum of a program on some inputs.

    A multiply-add counts as two operations, so that the result may be twice too large.
    """
    ops = [op for op in module.main.walk() if isinstance(op, GraphOp)]
    if not ops:
        return UNKNOWN_TERMS
    shapes = SymbolicShapes(module.main)
    arrays = check_inputs(module, inputs)
    sizes = shapes.solve(dict(enumerate(map(sizes_of, arrays))))
    longest = 1
    for op in [op for op in ops if op.fusion in _SUMS]:
        flops, results = op.flops(shapes), [shapes.shape(result) for result in op.results]
        lengths = [dim for operand in op.operands for dim in shapes.shape(operand)]
        known = [dim.evaluate(sizes) for dim in lengths if set(dim.symbols) <= sizes.keys()]
        longest = max([longest, *known])
        dims = [dim for shape in results for dim in shape]
        if flops is None or not {s for dim in (flops, *dims) for s in dim.symbols} <= sizes.keys():
            continue
        elements = sum(int(np.prod([d.evaluate(sizes) for d in shape])) for shape in results)
        longest = max(longest, flops.evaluate(sizes) // max(1, elements))
    return longest


def growth(module: Module, inputs: list[Any], ulp: float, digits: int) -> dict[Key, float]:
    """How far each value of a program moves if each of its operators is off by `ulp` units.

    Args:
        module: a program on operators.
        inputs: the inputs to run it on; they are perturbed as well.
        ulp: a budget, in units of a type with `digits` binary digits.
        digits: see there.

    Returns:
        The largest distances, in the same units; none if the program does not run.
    """
    farthest: dict[Key, float] = {}
    try:
        clean = _run(module, check_inputs(module, inputs), None)
        for seed, sign in enumerate((1.0, -1.0, None, None)):
            noise = _Noise(ulp * 2.0 ** (1 - digits), sign, seed)
            arrays = [noise.of(array, False) for array in check_inputs(module, inputs)]
            noisy = _run(module, arrays, noise)
            for key, one, other in _pairs(noisy, clean):
                farthest[key] = max(farthest.get(key, 0.0), _apart(one, other, digits))
    except StepwellError:
        return {}
    return farthest


def _run(module: Module, arrays: list[Any], noise: _Noise | None) -> Trace:
    trace = Trace()

    def observe(op: Operation, results: tuple[Array, ...]) -> tuple[Array, ...] | None:
        moved = results if noise is None else noise(op, results)
        trace.observe(op, moved)
        return moved

    trace.results = tuple(map(dense, run(module, arrays, observe)))
    return trace


def _pairs(one: Trace, other: Trace) -> Iterator[tuple[Key, np.ndarray, np.ndarray]]:
    for number, pair in enumerate(zip(one.results, other.results, strict=True)):
        yield number, *pair
    for key, (_, arrays) in one.operators.items():
        for pair in zip(arrays, other.operators[key][1], strict=True):
            yield key, *pair
    for key, (_, contents) in one.calls.items():
        for a, b in zip(contents, other.calls[key][1], strict=True):
            yield key, a.values, b.values


def _apart(one: np.ndarray, other: np.ndarray, digits: int) -> float:
    """The largest distance; that of opposite numbers if at most two leading digits are right.

    Distances are in units of the largest number, so they say no more where all of it is error.
    """
    if not is_real(one.dtype) or one.shape != other.shape:
        return 0.0
    far = distance(one, other)[0] / scale(one.dtype, digits)
    opposite = 2.0 ** (digits + 1)
    return max(far, opposite) if far >= opposite / 8 else far


class _Noise:
    """Perturb results of operators by `size`: all up, all down, or each element at random."""

    def __init__(self, size: float, sign: float | None, seed: int) -> None:
        self.size, self.sign = size, sign
        self.random = np.random.default_rng(seed)

    def __call__(self, op: Operation, results: tuple[Array, ...]) -> tuple[Array, ...]:
        """The results of an operator, perturbed where it computes them."""
        if not isinstance(op, GraphOp) or isinstance(op, ConstantOp) or op.fusion in _MOVES:
            return results
        return tuple(self.of(result, op.fusion in _SUMS) for result in results)

    def of(self, array: Any, sums: bool) -> Any:
        """Numbers moved by `size` relative to each, or if they are sums to the largest."""
        if not isinstance(array, np.ndarray):
            return with_values(array, self.of(array.data, sums))
        if not is_real(array.dtype) or not array.size:
            return array
        wide = array.astype(np.float64 if array.dtype.itemsize < 8 else np.longdouble)
        signs = self.random.choice((-1.0, 1.0), array.shape) if self.sign is None else self.sign
        finite = np.where(np.isfinite(wide), np.abs(wide), 0)
        unit = np.max(finite) if sums else finite
        with np.errstate(all="ignore"):
            return (wide + signs * self.size * unit).astype(array.dtype)
