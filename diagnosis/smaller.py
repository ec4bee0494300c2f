"""The same program with smaller sizes, which takes less time to be interpreted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.utils.exceptions import VerifyException

from ..backends.reference.inputs import check_inputs
from ..backends.reference.samples import small_inputs
from ..core.algebra.dims import product
from ..core.errors import StepwellError
from ..core.ir.module import Module
from ..dialects.graph.interfaces import GraphOp
from ..dialects.graph.sizes.shapes import SymbolicShapes, sizes_of
from ..dialects.program import named_weights
from ..dialects.stages import stage_of
from .resizing import resize, sizes_of_tensors


@dataclass(frozen=True)
class Smaller:
    """A program with smaller sizes, and these by the original ones."""

    module: Module
    sizes: Mapping[int, int]

    def __str__(self) -> str:
        return named_sizes(self.sizes)


def named_sizes(sizes: Mapping[int, int]) -> str:
    """Smaller sizes by the original ones, for a message."""
    pairs = (f"{new} for {old}" for old, new in sorted(sizes.items()))
    return f"sizes: {', '.join(pairs)}"


LARGE = 1 << 20
"""More operations than this on some inputs make a program large: it takes long to interpret."""

_LANES = 16
"""Sizes keep their remainder by the number of lanes of the widest vectors."""
_DIVISORS = {64: 4, 32: 8, 16: 16}
"""The smallest sizes, in the order in which they are tried, and what divides related ones."""


def operations(module: Module, inputs: Sequence[Any]) -> int:
    """About how many operations on numbers a program takes on some inputs.

    Raises:
        StepwellError: if the inputs do not fit.
    """
    arrays = check_inputs(module, inputs)
    try:
        shapes = SymbolicShapes(module.main)
        sizes = shapes.solve(dict(enumerate(map(sizes_of, arrays))))
    except VerifyException:
        return 0  # the run that follows says what is wrong
    total = 0
    for op in module.main.walk():
        if not isinstance(op, GraphOp):
            continue
        elements = (shapes.nnz(value) or product(shapes.shape(value)) for value in op.results)
        counts = [op.flops(shapes), *elements]
        known = (dim for dim in counts if dim is not None and set(dim.symbols) <= sizes.keys())
        total += sum(dim.evaluate(sizes) for dim in known)
    return total


def is_large(module: Module, samples: Sequence[Sequence[Any]]) -> bool:
    """Whether a program of operators takes long to be interpreted on one of some inputs."""
    if stage_of(module.op) != "graph":
        return False
    return any(_takes_more(module, arrays, LARGE) for arrays in samples)


def made_up(
    module: Module,
    runs: Callable[[Sequence[Any]], bool] = lambda sample: True,
    most: int = 8 * LARGE,
) -> list[list[Any]]:
    """Made-up inputs for a program: see `small_inputs`.

    Where all sizes are known, normally distributed numbers in these are enough. Except for the
    first ones, inputs for which the program takes more than `most` operations are left out.
    """
    first, second, *others = small_inputs(module.inputs, runs)
    has_symbols = any(isinstance(dim, str) for spec in module.inputs for dim in spec.shape)
    rest = [second, *others] if has_symbols else others
    if stage_of(module.op) == "graph":
        rest = [arrays for arrays in rest if not _takes_more(module, arrays, most)]
    return [first, *rest]


def _takes_more(module: Module, arrays: Sequence[Any], count: int) -> bool:
    try:
        return operations(module, arrays) > count
    except StepwellError:
        return False  # the run that follows says what is wrong


def smaller(module: Module) -> Smaller | None:
    """The program with smaller sizes, as small as takes little time to be interpreted.

    All occurrences of a size change together, different ones stay different and keep their order
    and their remainder by 16; if related sizes prevent that, they are divided by a common number.

    Args:
        module: a program of operators.

    Returns:
        The program, None if no sizes can be changed.
    """
    found: Smaller | None = None
    for least in _DIVISORS:
        candidate = _with_least(module, least)
        if candidate is None:
            continue
        found = candidate
        if not is_large(found.module, made_up(found.module)):
            break
    return found


def _with_least(module: Module, least: int) -> Smaller | None:
    """The program with all sizes as small as possible, but not below `least`."""
    wanted = _reduced(sizes_of_tensors(module), least)
    whole = _resized(module, wanted)
    if whole is not None:
        return whole
    found, accepted = None, dict[int, int]()
    for old, new in sorted(wanted.items(), reverse=True):
        candidate = _resized(module, accepted | {old: new})
        if candidate is not None:
            found, accepted = candidate, accepted | {old: new}
    divisor = _DIVISORS[least]
    values = [result for op in module.op.walk() for result in op.results]
    kinds = [value.type for value in (*module.main.body.block.args, *values)]
    sizes = {n for kind in kinds if isinstance(kind, TensorType) for n in kind.get_shape()}
    others = sizes - accepted.keys()
    rest = [n for n in others if n >= 2 * _LANES and n % divisor == 0]
    return _resized(module, accepted | {n: n // divisor for n in rest}) or found


def _reduced(sizes: Sequence[int], least: int) -> dict[int, int]:
    """A smaller size for each: in the same order, and with the same remainder."""
    kept = {n for n in sizes if n < 2 * _LANES}
    found: dict[int, int] = {}
    last = least - 1
    for old in sorted(set(sizes) - kept):
        new = last + 1 + (old - last - 1) % _LANES
        while new in kept:
            new += _LANES
        if new < old:
            found[old] = last = new
        else:
            kept.add(old)
            last = max(last, old)
    return found


def _resized(module: Module, sizes: Mapping[int, int]) -> Smaller | None:
    """The program with other sizes, None if it is not valid or does not run."""
    if not sizes:
        return None
    small = module.clone()
    try:
        resize(small, sizes)
        small.verify()
        small.run_reference(*small_inputs(small.inputs)[0])
    except Exception:
        # An arbitrary change may be invalid, and crash the code that handles it.
        return None
    return Smaller(Module(small.op, small.weights.only(named_weights(small.op))), sizes)
