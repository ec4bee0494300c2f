"""What every operator of the `graph` dialect offers to the rest of the compiler.

An operator says what it is in one class: its shape rule over symbolic dimensions, its
meaning on NumPy arrays, how it fuses, and how it is computed: the scalar value of its result at
an index, or loops that write its results. Passes and conversions work on these four answers and
list no operator, so that an operator of a plug-in gets all of them.
"""

from __future__ import annotations

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr, SymbolRefAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, VariadicDef, traits_def
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from ...core.algebra.dims import Dim, Shape, product
from ...core.bounded_cache import bounded_cache
from ...core.building.creation import initialize
from ...core.dtypes import dtype_of, element_type_of
from ...core.errors import StepwellError, UnsupportedError, explain
from ...core.ir.provenance import origin
from ...core.ir.refusal import OperationRefused
from ...core.ir.typed import tensor_type
from .attrs import compute_type, is_reordered
from .kinds import FusionKind
from .nests.nest import Indices, Nest
from .sizes.facts import ShapeFacts
from .sizes.facts import text as text

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .nests.body import KernelBody

    Array = np.ndarray | csr_array


class Sizes(Protocol):
    """The sizes of the tensors of a function."""

    def shape(self, value: SSAValue) -> Shape:
        """The shape of a tensor."""
        ...

    def nnz(self, value: SSAValue) -> Dim | None:
        """The number of stored entries of a sparse tensor; None for a dense one."""
        ...


def element_type(value: SSAValue) -> Attribute:
    """The element type of a tensor value."""
    return tensor_type(value).element_type


def rank(value: SSAValue) -> int:
    """The number of dimensions of a tensor value."""
    return tensor_type(value).get_num_dims()


def declared_shape(value: SSAValue, fresh: Callable[[], Dim]) -> Shape:
    """The shape that a type declares, with a new symbol for each ``?``."""
    sizes = tensor_type(value).get_shape()
    return tuple(fresh() if n == DYNAMIC_INDEX else Dim.of(n) for n in sizes)


def declared_size(value: SSAValue, dimension: int) -> Dim | None:
    """The size of a dimension that the type of a result declares; None for ``?``, or before there
    is a type."""
    sizes = value.type.get_shape() if isinstance(value.type, TensorType) else ()
    size = sizes[dimension] if dimension < len(sizes) else DYNAMIC_INDEX
    return None if size == DYNAMIC_INDEX else Dim.of(size)


_DENSE = NoneAttr()
"""The encoding of a dense tensor."""


@bounded_cache
def _tensor(element: Attribute, shape: tuple[int, ...], encoding: Attribute) -> TensorType:
    """A tensor type, made once."""
    return TensorType(element, shape, encoding)


def unknown_sizes() -> Callable[[], Dim]:
    """Makes a new symbol at each call."""
    numbers = itertools.count()
    return lambda: Dim.symbol(f"_{next(numbers)}")


class GraphOp(IRDLOperation, ABC):
    """Base class of the operators: pure functions of tensors with four answers.

    A subclass declares its operands, properties and results, sets `FUSION`, and implements
    `infer_shapes`, `reference` and, unless it is opaque, either `value_at` or `write`.
    """

    FUSION: ClassVar[FusionKind] = FusionKind.OPAQUE
    """`fusion`, unless that depends on more than the class."""

    traits = traits_def(Pure())

    def __init__(
        self,
        *,
        operands: Sequence[SSAValue | Operation | Sequence[SSAValue | Operation] | None] = (),
        properties: dict[str, Attribute | None] | None = None,
        result_type: Attribute | None = None,
    ) -> None:
        """Build the operation; without `result_type` the types of its results are inferred.

        A `result_type` is that of all results.

        Raises:
            VerifyException: if the operands do not fit together; they are then not used.
        """
        given = properties or {}
        types = [result_type or _DENSE] * len(self.get_irdl_definition().results)
        values = [operand for operand in operands if isinstance(operand, SSAValue)]
        if len(values) == len(operands) == _number_of_operands(type(self)):
            # The general constructor is slow, and most operators need none of it.
            present = {name: data for name, data in given.items() if data is not None}
            initialize(self, values, types, present)
        else:
            super().__init__(operands=operands, properties=given, result_types=types)
        if result_type is None:
            try:
                set_result_types(self, self.infer_types())
            except VerifyException:
                self.drop_all_references()
                raise

    @property
    def fusion(self) -> FusionKind:
        """How the operator takes part in fusion."""
        return self.FUSION

    @property
    def refusal(self) -> str | None:
        """Why the operator cannot be (part of) a kernel; None where it can."""
        kind = type(self)
        nest = self.fusion == FusionKind.NEST
        made = kind.write is not GraphOp.write if nest else kind.value_at is not GraphOp.value_at
        return None if made else f"{self.name} has no value at an index: it is opaque"

    @abstractmethod
    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        """The shape rule: shapes of the results from those of the operands.

        Raises:
            VerifyException: if they cannot fit together (through `facts`).
        """

    def infer_element_types(self) -> list[Attribute]:
        """The element types of the results; by default that of the first operand."""
        return [element_type(self.operands[0])] * len(self.results)

    def flops(self, sizes: Sizes) -> Dim | None:
        """How many operations on numbers it takes, a multiply-add counting two.

        By default one for each element of the results of an elementwise operator, none where
        numbers only move, one for each element that is reduced or read by loops of its own; None
        where it is not known.
        """
        if self.fusion in (FusionKind.CONTRACTION, FusionKind.OPAQUE):
            return None
        moves = self.fusion in (FusionKind.BROADCAST, FusionKind.INJECTIVE)
        reads = (FusionKind.REDUCTION, FusionKind.NEST)
        values = self.operands[:1] if self.fusion in reads else self.results
        counts = [sizes.nnz(v) or product(sizes.shape(v)) for v in values]
        return Dim.of(0) if moves else sum(counts, Dim.of(0))

    @abstractmethod
    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        """The meaning of the operator on NumPy arrays and `scipy.sparse.csr_array`.

        The dtypes of the results are those of the result types: see `stored`.
        """

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        """The scalar value of a result at an index, in `nest.compute_type`.

        Raises:
            UnsupportedError: if the operator is opaque, or writes its results itself.
        """
        fact = "has no value at an index"
        hint = "it has loops of its own" if self.fusion == FusionKind.NEST else "it is opaque"
        raise UnsupportedError(explain(self.name, fact, origin=origin(self), hint=hint))

    def write(self, k: KernelBody, *buffers: Any, **_: Any) -> None:
        """Write the results in loops of the operator's own, as one does whose `FUSION` is `NEST`.

        For what an element cannot say by itself: it depends on those before it, or many
        elements go to one, or to a place that is computed. ``write(k, x, y)`` is given a buffer of
        each operand and of each result: None for one that is left out, a tuple for several ones.

        Raises:
            UnsupportedError: if the operator has no such loops.
        """
        raise UnsupportedError(
            explain(self.name, "the operator writes no loops of its own", origin=origin(self))
        )

    def infer_types(self) -> list[TensorType]:
        """The types of the results; a dimension that is not a number is ``?``."""
        fresh = unknown_sizes()
        shapes = {value: declared_shape(value, fresh) for value in dict.fromkeys(self.operands)}
        facts = ShapeFacts(self, fresh)
        inferred = self.infer_shapes([shapes[value] for value in self.operands], facts)
        elements, encodings = self.infer_element_types(), encodings_of(self)
        return [
            _tensor(element, tuple(d.value if d.is_static else DYNAMIC_INDEX for d in shape), form)
            for shape, element, form in zip(inferred, elements, encodings, strict=True)
        ]

    def verify_(self) -> None:
        """Compare the declared result types with the inferred ones; ``?`` fits any size."""
        for result, inferred in zip(self.results, self.infer_types(), strict=True):
            declared = tensor_type(result)
            if not compatible(declared, inferred):
                where = origin(self)
                fact = "result type differs"
                raise VerifyException(
                    explain(self.name, fact, expected=inferred, got=declared, origin=where)
                )

    def stored(self, *values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Values rounded to the element types of the results, as they are stored."""
        types = self.infer_element_types()
        return tuple(
            np.asarray(value).astype(dtype_of(type), copy=False)
            for value, type in zip(values, types, strict=True)
        )


class SparseResultInterface(Operation, ABC):
    """An operator that has sparse results."""

    @abstractmethod
    def infer_encodings(self) -> list[Attribute]:
        """The encodings of the results."""

    def infer_nnz(self, nnz: Sequence[Dim | None], facts: ShapeFacts) -> list[Dim | None]:
        """The entry counts of sparse results, None for dense ones; by default unknown."""
        return [None if e == _DENSE else facts.fresh() for e in self.infer_encodings()]


def encodings_of(op: GraphOp) -> list[Attribute]:
    """The encodings of the results of an operator, as its rule says."""
    if isinstance(op, SparseResultInterface):
        return op.infer_encodings()
    return [_DENSE] * len(op.results)


@functools.cache
def _number_of_operands(kind: type[GraphOp]) -> int | None:
    """How many values an operator takes; None if some may be absent, or it has regions."""
    definition = kind.get_irdl_definition()
    operands = definition.operands
    if definition.regions or any(isinstance(operand, VariadicDef) for _, operand in operands):
        return None
    return len(operands)


def set_result_types(op: Operation, types: Sequence[Attribute]) -> None:
    """Give the results of an operation, which must not have users yet, these types."""
    for result, type in zip(tuple(op.results), types, strict=True):
        Rewriter.replace_value_with_new_type(result, type)


def names_a_symbol(op: GraphOp) -> bool:
    """Whether what an operator does is written elsewhere, such as in a kernel that it calls."""
    return any(isinstance(data, SymbolRefAttr) for data in op.properties.values())


def is_foreign(op: Operation) -> bool:
    """Whether users wrote the loops of an operator: it is of a plug-in, or calls a kernel."""
    if not isinstance(op, GraphOp):
        return False
    return names_a_symbol(op) or not type(op).__module__.startswith(f"{__package__}.")


@contextmanager
def faults_of(op: GraphOp) -> Iterator[None]:
    """Name an operator that users wrote in the error of an exception that it raises.

    Raises:
        UnsupportedError: from that exception.
    """
    try:
        yield
    except (StepwellError, OperationRefused, RecursionError, MemoryError):
        raise
    except Exception as error:
        if not is_foreign(op):
            raise
        # The boundary to code of others: it may raise anything.
        text = str(error).partition("\n\n")[0] if isinstance(error, DiagnosticException) else error
        fact = " ".join(f"raised {type(error).__name__}: {text}".split())
        raise UnsupportedError(explain(op.name, fact, origin=origin(op))) from error


def widened(array: np.ndarray) -> np.ndarray:
    """An array in the type in which it is computed: see `compute_type`; one of ui64 as it is."""
    if is_reordered(element_type_of(array.dtype)):
        return array
    return array.astype(dtype_of(compute_type(element_type_of(array.dtype))), copy=False)


def compatible(declared: TensorType, inferred: TensorType) -> bool:
    """Whether a tensor may have both types: ``?`` fits any size."""
    if declared.element_type != inferred.element_type or declared.encoding != inferred.encoding:
        return False
    pairs = list(zip(declared.get_shape(), inferred.get_shape(), strict=False))
    return declared.get_num_dims() == inferred.get_num_dims() and all(
        a == b or DYNAMIC_INDEX in (a, b) for a, b in pairs
    )


def broadcasts(value: SSAValue, to: SSAValue) -> bool:
    """Whether the types alone say that a value broadcasts to the shape of another one.

    Then no call has to compare their sizes.
    """
    sizes, target = tensor_type(value).get_shape(), tensor_type(to).get_shape()
    aligned = zip(reversed(sizes), reversed(target), strict=False)
    return len(sizes) <= len(target) and all(n in (1, m) and n >= 0 for n, m in aligned)
