"""Checks of values that later operators rely on.

%c = graph.check_indices %i below 34 "input \\"edge_index\\"" : (tensor<?xi64>) -> tensor<?xi64>
%m = graph.check %n if %fits "the parts do not add up, expected {0}, got {1}" (%size, %sum)
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, StringAttr, TensorType, i1, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.pattern_rewriter import RewritePattern

from .....core.algebra.dims import Dim, Shape
from .....core.boundary.indices import explained_index, outside_from_front
from .....core.boundary.wording import WordingCase, worded
from .....core.errors import InputError
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.provenance import origin
from .....core.ir.typed import dense_array
from .....core.pipelines.exactness import EXACT
from ....rt.abi import DETAIL_WORDS
from ...attrs import ANY_TENSOR, INDEX_TENSOR, STORED_TENSOR, i64_attr
from ...axes import CanonicalPropertiesInterface
from ...constructors import operator
from ...demands import DemandInterface, ReadOperand
from ...interfaces import FusionKind, GraphOp, ShapeFacts, Sizes, rank, tensor_type
from ...rearranging import AliasInterface
from ...rules import rule
from ...traits import KeepsNonnegative, NeverNegative

if TYPE_CHECKING:
    from ...interfaces import Array


class AliasOp(GraphOp, AliasInterface, ABC):
    """An operator of the public function whose result is its operands, in their buffers."""

    FUSION: ClassVar[FusionKind] = FusionKind.OPAQUE


@irdl_op_definition
class CheckIndicesOp(AliasOp, CanonicalPropertiesInterface, HasCanonicalizationPatternsInterface):
    """Indices, which are checked to be in [0, n).

    n is a number, or where it is symbolic the size of an axis of x, whose elements do not
    matter. No index counts from the back, unlike those of `graph.gather`: a negative one is an
    error. Errors begin with `subject`, or the place of the operator in the model.

    %c = graph.check_indices %i of %x axis = 0 "input \\"edge_index\\""
        : (tensor<?xi64>, tensor<?x8xf32>) -> tensor<?xi64>
    %d = graph.check_indices %i below 34 : (tensor<?xi64>) -> tensor<?xi64>
    """

    name = "graph.check_indices"
    traits = traits_def(NeverNegative())

    indices = operand_def(INDEX_TENSOR)
    x = opt_operand_def(ANY_TENSOR)
    axis = opt_prop_def(IntegerAttr.constr(i64))
    size = opt_prop_def(IntegerAttr.constr(i64))
    subject = opt_prop_def(StringAttr)
    result = result_def(INDEX_TENSOR)

    assembly_format = (
        "$indices (`of` $x^ `axis` `=` $axis)? (`below` $size^)? ($subject^)? attr-dict `:` "
        "functional-type(operands, results)"
    )

    def __init__(
        self,
        indices: SSAValue | Operation,
        x: SSAValue | Operation | None = None,
        axis: int | None = None,
        subject: str | None = None,
        size: int | None = None,
        result_type: Attribute | None = None,
    ) -> None:
        """Without `axis` it is the first one of x, unless there is a `size`."""
        if axis is None and x is not None:
            axis = 0
        properties: dict[str, Attribute | None] = {
            "axis": None if axis is None else i64_attr(axis),
            "size": None if size is None else i64_attr(size),
            "subject": None if subject is None else StringAttr(subject),
        }
        super().__init__(operands=[indices, x], properties=properties, result_type=result_type)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (check_below_number,)

    def limit(self, sizes: Sizes) -> Dim:
        """The size that indices are checked against."""
        if self.size is not None:
            return Dim.of(self.size.value.data)
        assert self.x is not None
        return sizes.shape(self.x)[self.axis_from_front]

    @property
    def axis_from_front(self) -> int:
        """The axis of x, counted from the front."""
        assert self.x is not None
        assert self.axis is not None
        return self.axis.value.data % rank(self.x)

    @property
    def what(self) -> str:
        """What errors begin with."""
        return self.subject.data if self.subject is not None else origin(self) or self.name

    def canonical_properties(self) -> dict[str, Attribute]:
        return {} if self.x is None else {"axis": i64_attr(self.axis_from_front)}

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        if (self.x is None) != (self.axis is None) or (self.x is None) == (self.size is None):
            facts.fail("wrong size to check against", "an axis of x, or a number")
        if self.axis is not None:
            facts.axis(self.axis.value.data, len(shapes[1]))
        if self.size is not None and self.size.value.data < 0:
            facts.fail("negative size", "0 or more", self.size.value.data)
        return [shapes[0]]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        indices, *others = cast("tuple[np.ndarray, ...]", arrays)
        if self.size is not None:
            size = self.size.value.data
        else:
            size = others[0].shape[self.axis_from_front]
        fault = outside_from_front(indices, size)
        if fault is not None:
            raise InputError(f"{self.what}: {explained_index(*fault, from_front=True)}")
        return (indices,)


@operator(details=(), message="")
class CheckOp(AliasOp, DemandInterface):
    """x, after a check: where `condition` is false, the call fails with a message.

    `{0}`, `{1}`, `{2}` in the message are details.

    %y = graph.check %x if %fits "the parts do not add up, expected {0}, got {1}" (%n, %sum)
        : (tensor<i64>, tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    """

    name = "graph.check"
    traits = traits_def(KeepsNonnegative())

    x = operand_def(STORED_TENSOR)
    condition = operand_def(TensorType(i1, []))
    details = var_operand_def(TensorType(i64, []))
    message = prop_def(StringAttr)
    result = result_def(STORED_TENSOR)

    assembly_format = (
        "$x `if` $condition $message `(` $details `)` attr-dict `:` "
        "functional-type(operands, results)"
    )

    @property
    def text(self) -> str:
        """The message of an error, in which details are still to be put."""
        return f"{origin(self) or self.name}: {self.message.data}"

    @property
    def demands(self) -> tuple[ReadOperand, ...]:
        return (ReadOperand(self.condition),)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        if len(self.details) > DETAIL_WORDS:
            facts.fail("too many details", f"at most {DETAIL_WORDS}", len(self.details))
        return [shapes[0]]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x, condition, *details = (dense_array(array) for array in arrays)
        if not condition:
            raise InputError(worded([WordingCase(self.text)], [int(number) for number in details]))
        return (x,)


@rule(
    "check_indices(i, x, subject=s) == check_indices(i, subject=s, size=n)  for a static size n of "
    "the axis of x",
    EXACT,
)
def check_below_number(op: CheckIndicesOp, x: SSAValue) -> Mapping[str, int] | None:
    size = tensor_type(x).get_shape()[op.axis_from_front]
    return None if size == DYNAMIC_INDEX else {"n": size}
