"""`CompositeOp`: elementwise operators that are short functions of other operators."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import FloatAttr, TensorType, f64
from xdsl.dialects.utils.enum_attribute import EnumAttribute
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import OpDef, VariadicDef, irdl_op_definition
from xdsl.rewriter import InsertPoint

from ...core.bounded_cache import bounded_cache
from .attrs import compute_type, is_half
from .interfaces import GraphOp, Nest, element_type
from .op_builder import InsertingBuilder, OpBuilder
from .ops_constant import ConstantOp
from .ops_elementwise import ElementwiseOp


class CompositeOp(ElementwiseOp, ABC):
    """An elementwise operator whose meaning is its `body`, a function of an `OpBuilder`.

    16-bit operands are computed with in f32, and the result, of the element type of the first
    operand, is rounded once. `graph-simplify-inference` replaces the operator by its body. A
    subclass may override `scalar` or `array`, with the reason.
    """

    STAYS_CLOSED: ClassVar[bool] = False
    """Whether it is never replaced by its body: passes match it or use its facts, or its own
    `scalar` is better."""

    @abstractmethod
    def body(self, b: OpBuilder[Any], *args: Any, **kwargs: Any) -> Any:
        """The result, computed by operators of a builder: ``body(b, x)`` of one operand."""

    def scalar(self, nest: Nest, *operands: SSAValue) -> SSAValue:
        def compute(op: GraphOp, given: list[SSAValue]) -> SSAValue:
            if isinstance(op, ConstantOp):
                return op.value_at(nest, ())
            return cast(ElementwiseOp, op).scalar(nest, *given)

        return self._evaluated(operands, compute)

    def array(self, *operands: np.ndarray) -> np.ndarray:
        return self._evaluated(operands, lambda op, given: op.reference(*given)[0])

    def _evaluated(
        self, operands: tuple[Any, ...], compute: Callable[[Any, list[Any]], Any]
    ) -> Any:
        kinds = (element_type(operand) for operand in self.operands)
        types = tuple(TensorType(compute_type(k) if is_half(k) else k, []) for k in kinds)
        block, result = _body(type(self), tuple(self.properties.items()), types)
        values: dict[SSAValue, Any] = dict(zip(block.args, operands, strict=True))
        for op in block.ops:
            values[op.results[0]] = compute(op, [values[operand] for operand in op.operands])
        return values[result]


@bounded_cache
def _body(
    operator: type[CompositeOp],
    properties: tuple[tuple[str, Attribute], ...],
    types: tuple[TensorType, ...],
) -> tuple[Block, SSAValue]:
    """The body of an operator on scalars: a block whose arguments are the operands, its result."""
    block = Block(arg_types=types)
    op = operator.create(operands=block.args, properties=dict(properties), result_types=types[:1])
    b = InsertingBuilder(Builder(InsertPoint.at_end(block)), [op])
    return block, op.body(b, *block.args)


CompositeT = TypeVar("CompositeT", bound=CompositeOp)


def composite(**defaults: float | str) -> Callable[[type[CompositeT]], type[CompositeT]]:
    """Define a composite: `irdl_op_definition`, with what follows from operands and properties.

    That is its constructor and its format, unless the class has its own: the operands, and each
    property, a number or a choice, by its name.

    Args:
        defaults: the defaults of the properties, as arguments of the constructor.

    Raises:
        TypeError: if an operand is optional or a list, or a property has no default.
    """

    def define(cls: type[CompositeT]) -> type[CompositeT]:
        parts = OpDef.from_pyrdl(cls)
        operands, properties = [name for name, _ in parts.operands], list(parts.properties)
        if any(isinstance(kind, VariadicDef) for _, kind in parts.operands):
            raise TypeError(f"{cls.__name__}: an operand of a composite is optional or a list")
        if "assembly_format" not in vars(cls):
            settings = "".join(f" `{name}` `=` ${name}" for name in properties)
            values = " `,` ".join(f"${name}" for name in operands)
            cls.assembly_format = (
                f"{values}{settings} attr-dict `:` functional-type(operands, results)"
            )
        if "__init__" not in vars(cls):
            if set(properties) != set(defaults):
                fact = f"expected defaults of {properties}, got {list(defaults)}"
                raise TypeError(f"{cls.__name__}: {fact}")
            cls.__init__ = _constructor(parts, defaults)
        return irdl_op_definition(cls)

    return define


def _constructor(parts: OpDef, defaults: dict[str, float | str]) -> Callable[..., None]:
    def parameter(name: str, annotation: str, default: Any = inspect.Parameter.empty) -> Any:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Parameter(name, kind, default=default, annotation=annotation)

    operands = [name for name, _ in parts.operands]
    signature = inspect.Signature(
        [
            parameter("self", "GraphOp"),
            *(parameter(name, "SSAValue | Operation") for name in operands),
            *(parameter(n, type(defaults[n]).__name__, defaults[n]) for n in parts.properties),
            parameter("result_type", "Attribute | None", None),
        ]
    )

    def attribute(name: str, value: Any) -> Attribute:
        if not isinstance(value, str):
            return FloatAttr(value, f64)
        (kind,) = cast(set[type[EnumAttribute]], parts.properties[name].constr.get_bases())
        return kind(kind.enum_type(value))

    def constructor(self: CompositeOp, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        GraphOp.__init__(
            self,
            operands=[given[name] for name in operands],
            properties={name: attribute(name, given[name]) for name in parts.properties},
            result_type=given["result_type"],
        )

    constructor.__signature__ = signature  # type: ignore[attr-defined]
    return constructor
