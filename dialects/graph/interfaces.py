"""What every operator of the `graph` dialect offers to the rest of the compiler.

An operator says what it is in one class: its shape rule over symbolic dimensions, its
meaning on NumPy arrays, how it fuses, and how it is computed: the scalar value of its result at
an index, or loops that write its results. Passes and conversions work on these four answers and
list no operator, so that an operator of a plug-in gets all of them.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, NoneAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, traits_def
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...core.bounded_cache import bounded_cache
from ...core.dims import Dim, Shape, product
from ...core.dtypes import dtype_of, element_type_of
from ...core.errors import UnsupportedError, explain
from ...core.provenance import origin
from ...core.typed import tensor_type
from .attrs import ReduceKind, compute_type, is_float, is_reordered
from .kinds import FusionKind, Precision, StoredValues
from .nest import Index, Nest, WritingNest
from .shape_facts import ShapeFacts
from .shape_facts import text as text
from .size_bounds import SizeBound

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Array = np.ndarray | csr_array


Bound = tuple[SSAValue, SSAValue, int]
"""An operand with indices or offsets, the operand or result they point into, its dimension."""


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
    PRECISION: ClassVar[Precision | None] = None
    """None: an operator that only moves elements follows its operands, no other one is narrow."""
    DISCONTINUOUS: ClassVar[bool] = False
    """Whether a result jumps where an operand moves by a rounding, as that of `floor` does."""
    NEVER_NEGATIVE: ClassVar[bool] = False
    """Whether no element of a result is less than 0; it may be -0.0 or NaN."""
    KEEPS_NONNEGATIVE: ClassVar[bool] = False
    """Whether no element of a result is less than 0 where none of the operands is."""
    STORED_VALUES: ClassVar[StoredValues | None] = None
    """How it uses the stored values of a sparse first operand; None: in another way, or there is
    none."""
    HOMOGENEOUS: ClassVar[bool] = False
    """Whether it has one operand, is elementwise, and ``f(s * x) == s * f(x)`` for s > 0."""
    RECOMPUTE_COST: ClassVar[int | None] = None
    """What computing one element costs, in simple operations; None: counted in `value_at`."""

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
            VerifyException: if the operands do not fit together.
        """
        placeholder = result_type or _DENSE
        count = len(self.get_irdl_definition().results)
        super().__init__(
            operands=operands, properties=properties, result_types=[placeholder] * count
        )
        if result_type is None:
            self.set_result_types(self.infer_types())

    @property
    def fusion(self) -> FusionKind:
        """How the operator takes part in fusion."""
        return self.FUSION

    @property
    def refusal(self) -> str | None:
        """Why the operator cannot be (part of) a kernel; None where it can."""
        if self.writes or type(self).value_at is not GraphOp.value_at:
            return None
        return f"{self.name} has no value at an index: it is opaque"

    @property
    def is_foreign(self) -> bool:
        """Whether users wrote the loops of the operator: it is of a plug-in, or calls a kernel."""
        return not type(self).__module__.startswith(f"{__package__}.")

    @property
    def has_kernel(self) -> bool:
        """Whether the operator can be (part of) a kernel."""
        return self.refusal is None

    @property
    def writes(self) -> bool:
        """Whether the operator writes its results in loops of its own: see `write`."""
        return type(self).write is not GraphOp.write

    @property
    def is_alias(self) -> bool:
        """Whether the result is a part of the first operand's buffer, perhaps in another shape.

        Outside of kernels the operator then needs no code. By default it does.
        """
        return False

    def canonical_properties(self) -> dict[str, Attribute]:
        """Properties in canonical form, to which `graph-canonicalize-ops` brings them."""
        return {}

    def jumps_with(self, operand: int) -> bool:
        """Whether a result may jump where the operand of this number moves by a rounding.

        By default it does where the operator is `DISCONTINUOUS`, and where it makes something
        else of floats: truth values, integers, quantised numbers.
        """
        if not is_float(element_type(self.operands[operand])):
            return False
        return self.DISCONTINUOUS or not all(is_float(element_type(r)) for r in self.results)

    def is_nonnegative(self, operands: Sequence[bool]) -> bool:
        """Whether no element of a result is less than 0, from whether that is known of operands.

        Nothing is known of operands that are not floats, as sums of integers may wrap around.
        """
        return self.NEVER_NEGATIVE or (self.KEEPS_NONNEGATIVE and all(operands))

    @property
    def is_order_statistic(self) -> bool:
        """Whether each element of the result is one of the first operand's, chosen by its order.

        Their maximum is one: an increasing function may be applied to the result instead of to
        the operand. By default it is not.
        """
        return False

    def on_blocks(self, axis: int, size: int) -> dict[str, Attribute] | None:
        """The properties with which the operator works on blocks of an axis.

        Operands of shape ``[..., n, ...]`` then have the shape ``[..., n / size, ..., size]``, and
        so has the result. None, the default, if that cannot be; elementwise operators that
        read operands at their own index need not say anything.

        Args:
            axis: a dimension of all operands and of the result.
            size: the elements in a block, which divide the sizes of that dimension.
        """
        return None

    def on_transposed(self, order: Sequence[int]) -> dict[str, Attribute] | None:
        """The properties with which the operator works on operands with permuted dimensions.

        Dimension i of each is then what dimension order[i] was, and so is that of the result if it
        has as many; one of fewer dimensions is as it was. None, the default, if that cannot be;
        elementwise operators that read operands at their own index need not say anything.

        Args:
            order: a permutation of the dimensions of all operands.
        """
        return None

    @property
    def on_part(self) -> dict[str, Attribute] | None:
        """The properties with which the operator works on a part of a graph.

        The matrix of a part has columns for its own nodes, which are its rows, and then for nodes
        of other parts. None, the default, if the operator works on none where it computes with the
        numbers of rows or columns; where it does not, it need not say anything.
        """
        return None

    @property
    def over_parts(self) -> tuple[ReduceKind, Mapping[str, Attribute]] | None:
        """How a result over all nodes follows from those over the nodes of each part of a graph.

        It is the kind of the reduction of the partial results, and the properties with which the
        operator works on a part, which may have no nodes. A mean is weighted by the number of
        nodes. None, the default, if a result is not such a reduction along axis 0.
        """
        return None

    @property
    def index_bounds(self) -> tuple[Bound, ...]:
        """Operands that hold indices, what they point into, and the dimension of it.

        Such operands are arguments of a kernel, never computed inside it, because they are
        checked before it runs. By default there are none.
        """
        return ()

    @property
    def size_bounds(self) -> tuple[SizeBound, ...]:
        """Dimensions of operands, and the least and the largest size that each may have.

        Where that size is symbolic, it is checked before a kernel runs. By default there are none.
        """
        return ()

    @property
    def offset_bounds(self) -> tuple[Bound, ...]:
        """Operands that hold offsets, the operand whose slices they delimit, its dimension.

        Offsets never decrease, from 0 up to the size of the dimension. They are arguments of a
        kernel and checked as indices are. By default there are none.
        """
        return ()

    @property
    def size_operands(self) -> tuple[SSAValue, ...]:
        """Operands that hold sizes: see `ShapeFacts.size`. By default there are none.

        Such operands are arguments of a kernel, because they are read before it runs.
        """
        return ()

    @property
    def size_results(self) -> tuple[SSAValue, ...]:
        """Results that hold the sizes of others: see `ShapeFacts.size`. By default there are none.

        A group that computes such an operator returns them all.
        """
        return ()

    @property
    def checked_operands(self) -> set[SSAValue]:
        """The operands that hold indices, offsets or sizes."""
        bounds = (*self.index_bounds, *self.offset_bounds)
        return {*(value for value, _, _ in bounds), *self.size_operands}

    @abstractmethod
    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        """The shape rule: shapes of the results from those of the operands.

        Raises:
            VerifyException: if they cannot fit together (through `facts`).
        """

    def infer_element_types(self) -> list[Attribute]:
        """The element types of the results; by default that of the first operand."""
        return [element_type(self.operands[0])] * len(self.results)

    def infer_encodings(self) -> list[Attribute]:
        """The encodings of the results; by default dense."""
        return [_DENSE] * len(self.results)

    def infer_nnz(self, nnz: Sequence[Dim | None], facts: ShapeFacts) -> list[Dim | None]:
        """The entry counts of sparse results, None for dense ones; by default unknown."""
        return [None if e == _DENSE else facts.fresh() for e in self.infer_encodings()]

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

    def value_at(self, nest: Nest, index: Index, result: int = 0) -> SSAValue:
        """The scalar value of a result at an index, in `nest.compute_type`.

        Raises:
            UnsupportedError: if the operator is opaque.
        """
        raise UnsupportedError(
            explain(self.name, "an opaque operator has no value at an index", origin=origin(self))
        )

    def write(self, nest: WritingNest) -> None:
        """Write the results in loops of the operator's own, instead of `value_at`.

        For what an element cannot say by itself: it depends on those before it, or many
        elements go to one, or to a place that is computed.

        Raises:
            UnsupportedError: if the operator has no such loops.
        """
        raise UnsupportedError(
            explain(self.name, "the operator writes no loops of its own", origin=origin(self))
        )

    def may_batch(self, operands: Set[int]) -> bool:
        """Whether the operands of these numbers may have one more dimension in front.

        The result then has it too, and a slice of the result is that of slices. By default not.
        """
        return False

    def result_index(self, nest: Nest, index: Index) -> Index | None:
        """Where in the result the element of the first operand at an index is.

        None where the result is not just another arrangement of the operand's elements, in the
        same order, or where that takes sizes that are not known. By default it is not.
        """
        return None

    def infer_types(self) -> list[TensorType]:
        """The types of the results; a dimension that is not a number is ``?``."""
        fresh = unknown_sizes()
        shapes = {value: declared_shape(value, fresh) for value in dict.fromkeys(self.operands)}
        facts = ShapeFacts(self, fresh)
        inferred = self.infer_shapes([shapes[value] for value in self.operands], facts)
        elements, encodings = self.infer_element_types(), self.infer_encodings()
        return [
            _tensor(element, tuple(d.value if d.is_static else DYNAMIC_INDEX for d in shape), form)
            for shape, element, form in zip(inferred, elements, encodings, strict=True)
        ]

    def set_result_types(self, types: Sequence[Attribute]) -> None:
        """Give the results, which must not have users yet, these types."""
        for result, type in zip(tuple(self.results), types, strict=True):
            Rewriter.replace_value_with_new_type(result, type)

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
