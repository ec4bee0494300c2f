"""Random programs of the graph level.

A program is built operator by operator, and each operator is evaluated at once: so the sizes and
elements of all values are known, and what would only be an error, a NaN or an overflow is left out.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, SSAValue
from xdsl.pattern_rewriter import PatternRewriterListener

import stepwell as sw
from stepwell.backends.reference.sizes import check_sizes
from stepwell.core.boundary.specs import SparseSpec
from stepwell.core.dtype_names import is_real
from stepwell.core.dtypes import element_type_of
from stepwell.core.ir.module import Module
from stepwell.core.ir.typed import tensor_type
from stepwell.core.ir.walks import erase_dead
from stepwell.dialects.graph.demands import DemandInterface, SizeOperand, demands
from stepwell.dialects.graph.interfaces import GraphOp
from stepwell.dialects.graph.kinds import FusionKind
from stepwell.dialects.graph.ops import AttentionOp, SmallExpOp, WinogradFilterOp
from stepwell.dialects.graph.plan.visibility import jumps
from stepwell.dialects.sparse_tensor import is_sparse
from stepwell.frontends.values import Value

from .choices import Choices
from .leaves import Array, Leaves
from .operators import DERIVED, Kind, Pattern, Refusal, made, patterns_of, signature_of
from .patience import TooLongError, limited

LARGEST, MOST_ELEMENTS = 1e4, 4000
LARGEST_SIZE = 40
"""Of a dimension that is copied from another one; kernels have tails from 2 elements to 33."""
TRIES, TRIES_OF_OPERANDS = 3, 80
_MOVES = (FusionKind.BROADCAST, FusionKind.INJECTIVE)
_SUMS = (FusionKind.REDUCTION, FusionKind.CONTRACTION, FusionKind.NEST, FusionKind.OPAQUE)
LARGE = 1e16
"""Of this a sum of products of two still is far from the largest f32."""
SMALL = 64.0
"""The largest operand of `graph.small_exp`."""


@dataclass(frozen=True)
class Held:
    """A value of a program and what it is for the inputs of the program.

    `exact` means that no rounding of another order or approximation can change it.
    """

    value: Value
    array: Array
    exact: bool
    kind: Kind

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return tuple(self.array.shape)


@dataclass(frozen=True)
class Leaf:
    """An operand that is not made yet: an input or a constant; names are symbolic sizes."""

    kind: Kind
    shape: tuple[int, ...]
    names: tuple[str | None, ...]
    argument: SSAValue
    matrix: Array = None
    """The elements of a sparse one, which are known before those of others."""


Form = tuple[Held | Leaf, ...] | None
"""The tensors of one operand; None where it is left out."""


@dataclass(frozen=True)
class Case:
    """A program, its inputs, and how it may be compiled."""

    module: Module
    inputs: list[Any]
    special: bool
    """Whether values may be NaN or infinite, so that only exact rewrites keep them."""


@dataclass
class Program:
    """A program under construction.

    Args:
        choices: what decides.
        first: the first operator; None for any.
    """

    choices: Choices
    first: type[GraphOp] | None = None
    values: list[Held] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    in_region: bool = False
    in_loop: bool = False

    def __post_init__(self) -> None:
        choices = self.choices
        self.builder = sw.Builder("main")
        self.special = choices.chance(0.15)
        self.leaves = Leaves(choices, self.special)
        self.sizes = [choices.size() for _ in range(3)]
        symbolic = choices.chance(0.5)
        self.names = dict(zip("nm", dict.fromkeys(self.sizes), strict=False)) if symbolic else {}

    def case(self, steps: int) -> Case:
        """A program of some operators; they may be fewer where none fits."""
        from .structures import random_structure

        if self.first is not None:
            any(self.apply(self.first) for _ in range(TRIES))
            steps -= 1
        for _ in range(steps):
            if self.choices.chance(0.06):
                random_structure(self)
            else:
                self.step()
        if not self.values:
            self.values.append(self._input(Leaf(_FLOAT, (2,), (None,), _argument(_FLOAT, (2,)))))
        self._return()
        module = self.builder.module()
        # A structure that was not finished may leave operators, whose checks nobody is to miss.
        erase_dead(module.op.body, PatternRewriterListener())
        # Symbolic sizes that are equal in each operator may be different ones in the program.
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module.run_reference(*self.inputs)
        return Case(module, self.inputs, self.special)

    def step(self) -> Held | None:
        """Append an operator, if one is found; returns one of its results."""
        for _ in range(TRIES):
            found = self.apply(self.choices.choice(DERIVED))
            if found:
                return self.choices.choice(found)
        return None

    def apply(self, operator: type[GraphOp]) -> list[Held]:
        """Append an operator; returns its results, none where no operands are found.

        As in `patterns_of`, one operand is changed at a time, and a change is kept unless an
        earlier check fails.
        """
        choices, pattern = self.choices, self.choices.choice(patterns_of(operator))
        operands = self._operands(pattern)
        seed, reached = choices.getrandbits(32), Refusal(())
        for _ in range(TRIES_OF_OPERANDS):
            attempt, properties = list(operands), seed
            if pattern and choices.chance(0.7):
                place = choices.randrange(len(pattern))
                attempt[place] = self._form(pattern[place], self._pool(attempt))
            else:
                properties = choices.getrandbits(32)
            values = [form and tuple(map(_ssa, form)) for form in attempt]
            near = [n for form in attempt for o in form or () for n in o.shape] or self.sizes
            result = made(operator, values, Choices(str(properties)), near)
            if isinstance(result, Refusal):
                if result >= reached:
                    operands, seed, reached = attempt, properties, result
                continue
            op, others = result
            flat = [o for form in attempt for o in form or ()]
            arrays = self._arrays(op, flat)
            results = self._results(op, flat, arrays)
            op.erase()
            if results is not None:
                return self._append(operator, attempt, arrays, others, results)
        return []

    def _operands(self, pattern: Pattern) -> list[Form]:
        """Values or leaves of the kinds of a pattern; all of the same sizes where possible."""
        pool = [self.choices.choice(self.sizes)]
        return [self._form(form, pool) for form in pattern]

    def _pool(self, operands: Sequence[Form]) -> list[int]:
        """Sizes for a new operand beside others."""
        found = [self.choices.choice(self.sizes), self.choices.among(1, 2, 4)]
        for one in (one for form in operands for one in form or ()):
            entries = one.array if isinstance(one, Held) else one.matrix
            found += [entries.nnz] * 3 if one.kind.sparse else []
            found += one.shape
        return [n for n in found if n <= LARGEST_SIZE]

    def _form(self, form: tuple[Kind, ...] | None, pool: Sequence[int]) -> Form:
        """Values or leaves for one operand."""
        shape = tuple(self.choices.choice(pool) for _ in range(4))
        if form is None:
            return None
        return tuple(self._operand(kind, pool, shape[: kind.rank], 0.5) for kind in form)

    def _operand(
        self, kind: Kind, pool: Sequence[int], near: tuple[int, ...], reused: float
    ) -> Held | Leaf:
        choices = self.choices
        known = [held for held in self.values if held.kind == kind]
        if known and choices.chance(reused):
            return choices.choice(known[-4:])
        shape = near if choices.chance(0.7) else tuple(choices.choice(pool) for _ in near)
        if math.prod(shape) > MOST_ELEMENTS:
            shape = (*shape[:1], *[1] * (len(shape) - 1))
        names = tuple(self._name(size) for size in shape)
        sizes = [DYNAMIC_INDEX if name else n for n, name in zip(shape, names, strict=True)]
        matrix = self.leaves.array(kind, shape) if kind.sparse else None
        return Leaf(kind, shape, names, _argument(kind, sizes), matrix)

    def _name(self, size: int) -> str | None:
        if self.in_region or not self.choices.chance(0.7):
            return None
        return next((name for name, known in self.names.items() if known == size), None)

    def _arrays(self, op: GraphOp, operands: Sequence[Held | Leaf]) -> list[Array]:
        """The arrays of operands; new ones for leaves."""
        shapes = {result: tuple(tensor_type(result).get_shape()) for result in op.results}
        shapes |= {v: one.shape for v, one in zip(op.operands, operands, strict=True)}
        found: list[Array] = []
        for value, operand in zip(op.operands, operands, strict=True):
            known = operand.array if isinstance(operand, Held) else operand.matrix
            if known is None:
                known = self.leaves.for_use(operand.kind, operand.shape, value, op, shapes)
            found.append(known)
        return found

    def _results(
        self, op: GraphOp, operands: Sequence[Held | Leaf], arrays: Sequence[Array]
    ) -> tuple[Array, ...] | None:
        """What an operator gives; None where it cannot be part of the program."""
        if self.special and _is_unspecified(op, arrays):
            return None
        if self.in_loop and isinstance(op, DemandInterface) and op.demands:
            return None
        for number, operand in enumerate(operands):
            # What is rounded differently may be somewhere else, or another number of elements.
            if isinstance(operand, Held) and not operand.exact and jumps(op, number):
                return None
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with limited():
                    check_sizes(op, arrays)
                    results = op.reference(*arrays)
            except (sw.StepwellError, TooLongError, MemoryError):
                return None
            except (ValueError, IndexError):
                # Symbolic sizes, counts of entries, or sizes in operands, which a call checks.
                if demands(op, SizeOperand) or any(map(_is_open, op.operands)):
                    return None
                raise
        if not all(map(_has_type, results, op.results)):
            return None
        return results if all(self.is_welcome(result) for result in results) else None

    def is_welcome(self, result: Array) -> bool:
        """Whether a result is neither too large, nor infinite where that is not wanted."""
        elements = result if isinstance(result, np.ndarray) else result.data
        if int(np.prod(result.shape)) > MOST_ELEMENTS:
            return False
        if self.special or not elements.size or not is_real(elements.dtype):
            return True
        with np.errstate(all="ignore"):
            return bool(np.all(np.abs(elements.astype(np.float64)) <= LARGEST))

    def _append(
        self,
        operator: type[GraphOp],
        operands: Sequence[tuple[Held | Leaf, ...] | None],
        arrays: Sequence[Array],
        others: dict[str, Any],
        results: Sequence[Array],
    ) -> list[Held]:
        taken, arguments = iter(arrays), dict(others)
        inside: list[Held] = []
        try:
            for operand, form in zip(signature_of(operator).operands, operands, strict=True):
                held = [self._made(one, next(taken)) for one in form or ()]
                inside += held
                if held or not operand.variadic:
                    given = [one.value for one in held]
                    arguments[operand.name] = given if operand.variadic else (given or [None])[0]
        except sw.InputError:
            return []
        try:
            values = self.builder.apply(operator, **arguments, name=f"n{len(self.values)}")
        except sw.InputError:
            return []
        values = values if isinstance(values, tuple) else (values,)
        exact = all(one.exact for one in inside)
        keeps = operator.FUSION in _MOVES
        found = [
            self.held(value, array, exact and (keeps or not is_real(_dtype(array))))
            for value, array in zip(values, results, strict=True)
        ]
        self.values += found
        return found

    def held(self, value: Value, array: Array, exact: bool) -> Held:
        """A value with its elements."""
        kind = Kind(element_type_of(_dtype(array)), array.ndim, not isinstance(array, np.ndarray))
        return Held(value, array, exact, kind)

    def _made(self, leaf: Held | Leaf, array: Array) -> Held:
        """An operand as a value of the program."""
        if isinstance(leaf, Held):
            return leaf
        if self.in_region or (not any(leaf.names) and self.choices.chance(0.4)):
            held = self.held(self.builder.constant(array), array, True)
        else:
            held = self._input(leaf, array)
        self.values.append(held)
        return held

    def _input(self, leaf: Leaf, array: Array = None) -> Held:
        array = self.leaves.array(leaf.kind, leaf.shape) if array is None else array
        shape = tuple(name or n for name, n in zip(leaf.names, leaf.shape, strict=True))
        name, dtype = f"x{len(self.inputs)}", str(leaf.kind.element)
        spec = SparseSpec(shape, dtype) if leaf.kind.sparse else sw.TensorSpec(shape, dtype)
        self.inputs.append(array)
        return self.held(self.builder.input(name, spec), array, True)

    def scalar(self, kind: Kind) -> Held:
        """A new input without dimensions."""
        return self._input(Leaf(kind, (), (), _argument(kind, ())))

    def _return(self) -> None:
        """Return what nothing uses, and at times what something uses."""
        unused = [held for held in self.values if held.value.ssa.first_use is None]
        others = [held for held in self.values if held.value.ssa.first_use is not None]
        chosen = unused or self.values[-1:]
        if others and self.choices.chance(0.3):
            chosen.append(self.choices.choice(others))
        for held in chosen:
            value = self.builder.to_dense(held.value) if held.kind.sparse else held.value
            self.builder.output(value)


def _is_unspecified(op: GraphOp, arrays: Sequence[Array]) -> bool:
    """Whether infinities and NaN among the results depend on how they are computed.

    The order of a sum decides whether it overflows on the way. The value of a key that is masked,
    and a weight of a filter, is multiplied by 0, or left out. A `graph.small_exp` has an upper
    bound for what it takes.
    """
    if isinstance(op, AttentionOp | WinogradFilterOp):
        return True
    if isinstance(op, SmallExpOp):
        return bool(np.any(np.asarray(arrays[0], np.float64) > SMALL))
    return op.fusion in _SUMS and any(map(_is_large, arrays))


def _is_large(array: Array) -> bool:
    """Whether an array has finite numbers whose products may be near the largest float."""
    elements = array if isinstance(array, np.ndarray) else array.data
    if not is_real(elements.dtype):
        return False
    wide = np.abs(elements.astype(np.float64))
    return bool(np.any(np.isfinite(wide) & (wide > LARGE)))


_FLOAT = Kind(element_type_of(np.dtype(np.float32)), 1)


def _ssa(operand: Held | Leaf) -> SSAValue:
    return operand.value.ssa if isinstance(operand, Held) else operand.argument


def _argument(kind: Kind, sizes: Sequence[int]) -> SSAValue:
    return Block(arg_types=[kind.type(sizes)]).args[0]


def _is_open(value: SSAValue) -> bool:
    """Whether a size is only known in a call."""
    kind = tensor_type(value)
    return is_sparse(kind) or not kind.has_static_shape()


def _has_type(array: Array, value: SSAValue) -> bool:
    """Whether it has the known sizes of a type, as it has where no call refuses the operands."""
    known = tensor_type(value).get_shape()
    return all(n in (DYNAMIC_INDEX, size) for n, size in zip(known, array.shape, strict=True))


def _dtype(array: Array) -> np.dtype[Any]:
    return array.dtype


def random_case(seed: str, first: type[GraphOp] | None = None) -> Case | None:
    """The program of a seed; None where no valid one was found."""
    choices = Choices(seed)
    for _ in range(3):
        try:
            return Program(choices, first).case(choices.among(1, 2, 3, 4, 6, 9))
        except (sw.CompileError, sw.InputError):
            # Sizes that were assumed to be equal are known not to be.
            continue
    return None
