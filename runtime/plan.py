"""Plans, which describe executables to the compiled call boundary; see `boundary/plan.py`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..backends.llvm.boundary.plan import (
    ARGUMENTS,
    CSR,
    DENSE,
    FIXED,
    IN_ARENA,
    POLYNOMIAL,
    RECORDS,
    RESIZED,
)
from ..core.algebra.dims import Dim, SizeQuotient
from ..core.boundary.arguments import Argument
from ..core.boundary.signature import Signature
from ..core.boundary.specs import ValueSpec
from ..core.dtype_names import dtype_named
from .objects import dtype_word, look_for_scipy, matrix_types


def is_passed(spec: ValueSpec) -> list[bool]:
    """Whether the size of each dimension is an argument of compiled code."""
    return [isinstance(dim, str) for dim in spec.shape]


def frame_size(signature: Signature) -> int:
    """The number of words of a frame."""
    return _places(signature)[-1]


def _places(signature: Signature) -> tuple[int, ...]:
    """The positions in a frame of the parts that `Plan` names, and its end."""
    sparse = sum(spec.format is not None for spec in signature.inputs)
    buffers = len(signature.inputs) + 2 * sparse + len(signature.outputs)
    rank = max((len(spec.shape) for spec in signature.outputs), default=0)
    # For a sparse input, a call keeps five objects alive: matrix, shape and three arrays.
    symbols = len(_symbols(signature)) + signature.reported
    sizes = (symbols, 2 * buffers, 5 * sparse, len(signature.outputs), rank)
    # The number of argument words: buffers as addresses, and their symbolic sizes. Where sizes are
    # computed, the last word is the address of the buffer for them.
    words = int(bool(signature.computed))
    for spec in (*signature.inputs, *signature.outputs):
        words += sum(is_passed(spec)) + (1 if spec.format is None else 5)
    places = [ARGUMENTS + words]
    for size in sizes:
        places.append(places[-1] + size)
    return tuple(places)


def _symbols(signature: Signature) -> dict[str, int]:
    """The symbols of the inputs, by number."""
    dims = [dim for argument in signature.arguments for dim in argument.shape]
    dims += [a.entries for a in signature.arguments if a.entries is not None]
    names = dict.fromkeys(name for dim in dims for name in dim.symbols)
    return {name: number for number, name in enumerate(names)}


def plan_of(signature: Signature, code: int, slow: object, fail: object) -> ExecutablePlan | None:
    """The plan of an executable; None if a number in its sizes is too large."""
    try:
        return ExecutablePlan(signature, code, slow, fail)
    except OverflowError:
        return None


@dataclass(frozen=True)
class _PlannedResult:
    """A result: what becomes of it, its shape, and that of the array that is passed for it."""

    spec: ValueSpec
    placement: int
    own: Sequence[Dim]
    begun: Sequence[Dim]

    @property
    def dtype(self) -> Any:
        return dtype_named(self.spec.dtype)


class ExecutablePlan:
    """The plan of an executable as a table in memory, with the objects it points to."""

    def __init__(self, signature: Signature, code: int, slow: object, fail: object) -> None:
        """Write the plan.

        Args:
            signature: the inputs and results of the program.
            code: the address of the program.
            slow: see `Plan.SLOW`.
            fail: see `Plan.FAIL`.

        Raises:
            OverflowError: if a number in it has more than 64 bits.
        """
        self._signature = signature
        self._given = len(_symbols(signature))
        numbers = enumerate(signature.computed, self._given)
        self._symbols = _symbols(signature) | {name: number for number, name in numbers}
        self._kept: list[object] = [slow, fail]
        look_for_scipy()
        places = _places(signature)
        words = [
            *(code, 0, id(slow), id(fail)),
            *(len(signature.inputs), len(signature.outputs), self._given),
            *places[:-1],
            places[0] + self._given if signature.computed else 0,
        ]
        assert len(words) == RECORDS
        words += self._records()
        if any(not -(1 << 63) <= word < 1 << 63 for word in words):
            raise OverflowError("a size has more than 64 bits")
        self.words = (ctypes.c_int64 * len(words))(*words)
        self.address = ctypes.addressof(self.words)

    def _records(self) -> list[int]:
        signature = self._signature
        words: list[int] = []
        for argument in signature.arguments:
            words += self._argument(argument)
        words.append(len(signature.equal))
        for left, right in signature.equal:
            words += self._code(left - right)
        words += self._code(signature.arena)
        for result in self._results():
            element, rank = _element(result.dtype), len(result.own)
            words += [self._address(result.dtype), *element, rank, result.placement]
            words += self._dimensions(result.spec, result.begun)
        return words + self._computed()

    def _results(self) -> list[_PlannedResult]:
        signature = self._signature
        shapes = signature.output_shapes, signature.largest_shapes, signature.in_arena
        found: list[_PlannedResult] = []
        for spec, own, most, in_arena in zip(signature.outputs, *shapes, strict=True):
            if in_arena:
                found.append(_PlannedResult(spec, IN_ARENA, own, [Dim.of(0)] * len(own)))
            else:
                found.append(_PlannedResult(spec, FIXED if own == most else RESIZED, own, most))
        return found

    def _computed(self) -> list[int]:
        """The records of the results whose sizes the program computes."""
        computed = [(n, r) for n, r in enumerate(self._results()) if r.placement != FIXED]
        words, begin = [len(computed)], len(self._symbols)
        for number, result in computed:
            descr, (_, size) = self._address(result.dtype), _element(result.dtype)
            words += [number, result.placement, descr, size, len(result.own)]
            words += [word for dim in result.own for word in self._code(dim)]
            if result.placement == IN_ARENA:
                words.append(~begin)
                begin += 1
        return words

    def _argument(self, argument: Argument) -> list[int]:
        spec, entries, indices = argument.spec, argument.entries, argument.index_dtypes
        element = _element(dtype_named(spec.dtype))
        dimensions = self._dimensions(spec, argument.shape)
        if entries is None or indices is None:
            return [DENSE, *element, len(argument.shape), *dimensions]
        types = (matrix_types(), self._address(spec.dtype))
        words = [*element, *_element(indices.indptr), *_element(indices.indices)]
        return [CSR, *words, *types, *dimensions, *self._code(entries)]

    def _address(self, kept: object) -> int:
        self._kept.append(kept)
        return id(kept)

    def _dimensions(self, spec: ValueSpec, shape: Sequence[Dim]) -> list[int]:
        words: list[int] = []
        for dim, passed in zip(shape, is_passed(spec), strict=True):
            words += [*self._code(dim), int(passed)]
        return words

    def _code(self, dim: Dim) -> list[int]:
        if dim.is_static and dim.value >= 0:
            return [dim.value]
        if not dim.is_static and dim == Dim.symbol(dim.symbols[0]):
            return [~self._symbols[dim.symbols[0]]]
        words = [POLYNOMIAL, len(dim.terms)]
        for names, coefficient in dim.terms:
            words += [coefficient, len(names)]
            for name in names:
                words += self._factor(name)
        return words

    def _factor(self, name: str) -> list[int]:
        if isinstance(name, SizeQuotient):
            return [-name.divisor, *self._code(name.dividend)]
        return [self._symbols[name]]


def _element(dtype: Any) -> list[int]:
    """The word of a dtype, and the size of an element in bytes."""
    return [dtype_word(dtype), dtype.itemsize]
