"""`CompositeOp`: operators that are short functions of other operators."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar, cast

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import VariadicDef
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import VerifyException

from ...core.algebra.dims import Dim, Shape, product
from ...core.bounded_cache import bounded_cache
from ...core.dtypes import dtype_of
from ...core.errors import UnsupportedError, explain
from ...core.ir.definitions import give_format, irdl_op_definition
from ...core.ir.provenance import origin
from .attrs import compute_type, is_half
from .constructors import constructor
from .interfaces import (
    FusionKind,
    GraphOp,
    Indices,
    Nest,
    ShapeFacts,
    Sizes,
    declared_shape,
    element_type,
    faults_of,
    tensor_type,
    unknown_sizes,
)
from .nests import scalars
from .nests.nest import PlaceSteps, Steps
from .op_builder import InsertingBuilder, OpBuilder
from .ops.elementwise.bases import broadcast_index, broadcast_shapes

if TYPE_CHECKING:
    from .interfaces import Array


_BODY = "_body_and_its_key"
"""Where an operator keeps its body, with the properties and types that it was built for."""


class CompositeOp(GraphOp, ABC):
    """An operator whose meaning is its `body`, a function of an `OpBuilder`.

    16-bit operands are computed with in f32, and results, of the element type of the first
    operand, are rounded once. `graph-open-composites` replaces the operator by its body. A
    subclass may override what follows from the body, with the reason.
    """

    FUSION: ClassVar[FusionKind] = FusionKind.ELEMENTWISE
    BROADCASTS: ClassVar[bool] = True
    """Whether the operands of an elementwise operator are broadcast as in NumPy."""

    def opens(self, late: bool) -> bool:
        """Whether it is replaced by its body: by default before the passes that match operators.

        It stays where passes match it or use its facts, or its own value at an index is better.

        Args:
            late: after those passes, else before.
        """
        return not late

    @abstractmethod
    def body(self, b: OpBuilder[Any], *args: Any, **kwargs: Any) -> Any:
        """The result, computed by operators of a builder: ``body(b, x)`` of one operand.

        An optional operand may be None, a list of operands is a list, and several results are a
        tuple. Values have no arithmetic of their own: ``b.mul(x, 2)``, not ``x * 2``. Without
        another `FUSION` all operators are elementwise.
        """

    def opened(
        self, b: OpBuilder[SSAValue], value_of: Callable[[SSAValue], SSAValue]
    ) -> tuple[SSAValue, ...]:
        """The results, computed by operators of a builder.

        Args:
            b: the builder.
            value_of: its value for an operand; one for 16 bits is in f32.

        Raises:
            UnsupportedError: if the body of an operator of a plug-in raises an exception, or does
                not return a value for each result.
        """
        arguments: list[Any] = []
        for name, _ in self.get_irdl_definition().operands:
            given = getattr(self, name)
            if isinstance(given, SSAValue):
                arguments.append(value_of(given))
            else:
                arguments.append(None if given is None else [value_of(v) for v in given])
        try:
            returned = self.body(b, *arguments)
        except VerifyException as error:
            if not _is_of_scalars(type(self)):
                raise  # operands that do not fit
            fact = "its body does not compute single elements, but its FUSION is elementwise"
            raise _refused(self, fact, got=error) from error
        except Exception:
            with faults_of(self):
                raise
        results = returned if isinstance(returned, tuple) else (returned,)
        wrong = [type(y).__name__ for y in results if not isinstance(y, SSAValue)]
        if wrong or len(results) != len(self.results):
            got = ", ".join(wrong) or len(results)
            count = len(self.results)
            expected = "a value" if count == 1 else f"a tuple of {count} values"
            raise _refused(self, "its body returns something else", expected=expected, got=got)
        return results

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        common = broadcast_shapes(self, shapes, facts) if _is_of_scalars(type(self)) else None
        body = self._body
        if common is not None:
            return [common]
        values = body.evaluated(shapes, lambda op, given: op.infer_shapes(given, facts))
        return [values[result] for result in body.results]

    def flops(self, sizes: Sizes) -> Dim | None:
        if not _is_of_scalars(type(self)):
            return self._body.flops([sizes.shape(operand) for operand in self.operands])
        work = self._body.flops([()] * len(self.operands))
        return None if work is None else work * product(sizes.shape(self.results[0]))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        body = self._body
        types = (dtype_of(element_type(argument)) for argument in body.block.args)
        given: list[Array] = [
            array.astype(type, copy=False) for array, type in zip(arrays, types, strict=True)
        ]
        # Overflow and invalid operations have the values of IEEE 754, and no warning.
        with np.errstate(all="ignore"):
            values = body.evaluated(given, lambda op, operands: op.reference(*operands))
            return self.stored(*(cast(np.ndarray, values[y]) for y in body.results))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        body = self._body
        inner = _BodyNest(nest, self, body)
        if not _is_of_scalars(type(self)):
            return inner.at(body.results[result], index)
        for argument, operand in zip(body.block.args, self.operands, strict=True):
            # A single operand is never broadcast: it is read at the index, also in a size of 1.
            own = index if len(self.operands) == 1 else broadcast_index(operand, index)
            inner.know(argument, (), nest.at(operand, own))
        return inner.at(body.results[result], ())

    @property
    def _body(self) -> _Body:
        types = tuple(
            TensorType(
                compute_type(element) if is_half(element) else element,
                () if _is_of_scalars(type(self)) else kind.get_shape(),
                kind.encoding,
            )
            for kind in map(tensor_type, self.operands)
            for element in (kind.element_type,)
        )
        key = type(self), tuple(self.properties.items()), types
        if self.FUSION == FusionKind.ELEMENTWISE:
            return _built_of_elements(*key)
        # Others differ with the sizes of programs, and last as long as the operator.
        known = vars(self).get(_BODY)
        if known is None or known[0] != key:
            known = vars(self)[_BODY] = key, _built(*key)
        return known[1]


def _is_of_scalars(operator: type[CompositeOp]) -> bool:
    """Whether the body is that of one element."""
    return operator.FUSION == FusionKind.ELEMENTWISE and operator.BROADCASTS


def _refused(
    op: CompositeOp, fact: str, *, expected: object = None, got: object = None
) -> UnsupportedError:
    return UnsupportedError(explain(op.name, fact, expected=expected, got=got, origin=origin(op)))


T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True)
class _Body:
    """The body of a composite as IR: a block whose arguments are the operands.

    That of an elementwise one is on scalars.
    """

    block: Block
    results: tuple[SSAValue, ...]

    def evaluated(
        self, given: Iterable[T], compute: Callable[[GraphOp, list[T]], Iterable[T]]
    ) -> dict[SSAValue, T]:
        """All values of the body, from those of the operands."""
        values = dict[SSAValue, T](zip(self.block.args, given, strict=True))
        for op in self.block.ops:
            assert isinstance(op, GraphOp)
            found = compute(op, [values[operand] for operand in op.operands])
            values |= zip(op.results, found, strict=True)
        return values

    def shapes(self, given: Iterable[Shape]) -> dict[SSAValue, Shape]:
        """The shapes of all values of the body, with the sizes that their types have."""
        fresh = unknown_sizes()

        def known(op: GraphOp, of_operands: list[Shape]) -> Iterable[Shape]:
            inferred = op.infer_shapes(of_operands, ShapeFacts(op, fresh))
            for result, shape in zip(op.results, inferred, strict=True):
                sizes = zip(shape, tensor_type(result).get_shape(), strict=True)
                yield tuple(size if n < 0 else Dim.of(n) for size, n in sizes)

        return self.evaluated(given, known)

    def flops(self, given: Iterable[Shape]) -> Dim | None:
        """The work of all operators; None if that of one is not known."""
        sizes, total = _BodySizes(self.shapes(given)), Dim.of(0)
        for op in self.block.ops:
            work = cast(GraphOp, op).flops(sizes)
            if work is None:
                return None
            total = total + work
        return total


@dataclass(frozen=True)
class _BodySizes:
    shapes: dict[SSAValue, Shape]

    def shape(self, value: SSAValue) -> Shape:
        return self.shapes[value]

    def nnz(self, value: SSAValue) -> Dim | None:
        return None


def _built(
    operator: type[CompositeOp],
    properties: tuple[tuple[str, Attribute], ...],
    types: tuple[TensorType, ...],
) -> _Body:
    block = Block(arg_types=types)
    count = len(operator.get_irdl_definition().results)
    op = operator.create(
        operands=block.args, properties=dict(properties), result_types=types[:1] * count
    )
    b = InsertingBuilder(Builder(InsertPoint.at_end(block)), [op])
    with np.errstate(over="ignore"):  # numbers that become infinities
        results = op.opened(b, lambda operand: operand)
    if _is_of_scalars(operator):
        for inner in block.ops:
            if inner.operands and cast(GraphOp, inner).fusion != FusionKind.ELEMENTWISE:
                fact = "its body is not elementwise, but its FUSION is"
                raise _refused(op, fact, expected="elementwise operators", got=inner.name)
    return _Body(block, results)


_built_of_elements = bounded_cache(_built)
"""Elementwise ones, which are few: most are on scalars."""


class _BodyNest(Nest):
    """The nest of a composite, which also has the elements of the values of its body.

    What is computed for a value at an index is known in the reductions inside, as it is placed
    outside of them.
    """

    def __init__(self, nest: Nest, op: CompositeOp, body: _Body) -> None:
        self._nest, self._op, self._body = nest, op, body
        self._operands = dict[SSAValue, SSAValue](zip(body.block.args, op.operands, strict=True))
        self._known: list[dict[tuple[SSAValue, Indices], SSAValue]] = [{}]

    def know(self, value: SSAValue, index: Indices, scalar: SSAValue) -> SSAValue:
        """Remember the element of a value."""
        self._known[-1][value, index] = scalar
        return scalar

    def at(self, value: SSAValue, index: Indices) -> SSAValue:
        for known in self._known:
            if (scalar := known.get((value, index))) is not None:
                return scalar
        if value in self._operands:
            return self.know(value, index, self._nest.at(self._operands[value], index))
        op = value.owner
        assert isinstance(value, OpResult)
        assert isinstance(op, GraphOp)
        scalar = op.value_at(self, index, value.index)
        return self.know(value, index, scalars.wrapped(self, scalar, element_type(value)))

    def extent(self, value: SSAValue, dim: int) -> AffineExpr:
        if value in self._operands:
            return self._nest.extent(self._operands[value], dim)
        size = self._shapes[value][dim]
        if size.is_static:
            return AffineExpr.constant(size.value)
        if size.name not in self._sizes:
            fact = "a size inside of its body is not that of an operand"
            raise UnsupportedError(explain(self._op.name, fact, got=size, origin=origin(self._op)))
        return self._nest.extent(*self._sizes[size.name])

    @functools.cached_property
    def _shapes(self) -> dict[SSAValue, Shape]:
        return self._body.shapes(self._own_shapes.values())

    @functools.cached_property
    def _own_shapes(self) -> dict[SSAValue, Shape]:
        fresh = unknown_sizes()
        return {value: declared_shape(value, fresh) for value in self._body.block.args}

    @functools.cached_property
    def _sizes(self) -> dict[str | None, tuple[SSAValue, int]]:
        """The operand and its dimension that have a symbolic size, by its name."""
        return {
            size.name: (self._operands[value], dim)
            for value, shape in self._own_shapes.items()
            for dim, size in enumerate(shape)
            if not size.is_static
        }

    def reduce_several(
        self,
        extents: Sequence[AffineExpr],
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: Steps,
    ) -> Sequence[SSAValue]:
        return self._nest.reduce_several(extents, combines, inits, self._inside(step))

    def pattern_several(
        self,
        matrix: SSAValue,
        row: AffineExpr,
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: PlaceSteps,
    ) -> Sequence[SSAValue]:
        own = self._operands[matrix]
        return self._nest.pattern_several(own, row, combines, inits, self._inside(step))

    def _inside(self, step: Callable[P, T]) -> Callable[P, T]:
        """A step that forgets what it computed when it ends."""

        def inner(*args: P.args, **kwargs: P.kwargs) -> T:
            self._known.append({})
            try:
                return step(*args, **kwargs)
            finally:
                self._known.pop()

        return inner

    def entry(self, matrix: SSAValue, position: AffineExpr) -> tuple[AffineExpr, AffineExpr]:
        return self._nest.entry(self._operands[matrix], position)

    def stored_entry(self, matrix: SSAValue, position: AffineExpr) -> SSAValue:
        return self._nest.stored_entry(self._operands[matrix], position)

    def count(self, matrix: SSAValue, row: AffineExpr) -> AffineExpr:
        return self._nest.count(self._operands[matrix], row)

    def index(self, value: SSAValue) -> AffineExpr:
        return self._nest.index(value)

    def value(self, expr: AffineExpr) -> SSAValue:
        return self._nest.value(expr)

    def constant(self, value: float | int | bool, type: Attribute) -> SSAValue:
        return self._nest.constant(value, type)

    def insert(self, op: Operation) -> SSAValue:
        return self._nest.insert(op)


CompositeT = TypeVar("CompositeT", bound=CompositeOp)


def composite(**defaults: float | str) -> Callable[[type[CompositeT]], type[CompositeT]]:
    """Define a composite: `irdl_op_definition`, with what follows from operands and properties.

    That is its constructor and its format, unless the class has its own: the operands, and each
    property, a number or a choice, by its name.

    Args:
        defaults: the defaults of the properties, as arguments of the constructor.

    Raises:
        TypeError: if an operand is optional or a list, or there is no property of a default.
    """

    def define(cls: type[CompositeT]) -> type[CompositeT]:
        made = irdl_op_definition(cls)
        parts = made.get_irdl_definition()
        operands, properties = [name for name, _ in parts.operands], list(parts.properties)
        if any(isinstance(kind, VariadicDef) for _, kind in parts.operands):
            raise TypeError(f"{cls.__name__}: an operand of a composite is optional or a list")
        if made.print == Operation.print:
            settings = "".join(f" `{name}` `=` ${name}" for name in properties)
            values = " `,` ".join(f"${name}" for name in operands)
            types = "functional-type(operands, results)"
            give_format(made, f"{values}{settings} attr-dict `:` {types}")
        if "__init__" not in vars(cls):
            made.__init__ = constructor(made, defaults)
        return made

    return define
