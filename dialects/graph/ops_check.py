"""Checks of values that later operators rely on.

%c = graph.check_indices %i of %x axis = 0 "input \\"edge_index\\""
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from ...core.dims import Shape
from ...core.errors import InputError
from ...core.indices import explained_index, outside_from_front
from ...core.provenance import origin
from .attrs import ANY_TENSOR, INDEX_TENSOR, i64_attr
from .interfaces import FusionKind, GraphOp, ShapeFacts, rank

if TYPE_CHECKING:
    from .interfaces import Array


class AliasOp(GraphOp, ABC):
    """An operator of the public function whose result is its operands, in their buffers."""

    FUSION: ClassVar[FusionKind] = FusionKind.OPAQUE


@irdl_op_definition
class CheckIndicesOp(AliasOp):
    """Indices, which are checked to be in [0, n) for the size n of an axis of x.

    None counts from the back, unlike those of `graph.gather`: a negative one is an error. What x
    holds does not matter. Errors begin with `subject`, or the place of the operator in the model.

    %c = graph.check_indices %i of %x axis = 0 "input \\"edge_index\\""
        : (tensor<?xi64>, tensor<?x8xf32>) -> tensor<?xi64>
    """

    name = "graph.check_indices"
    NEVER_NEGATIVE: ClassVar[bool] = True

    indices = operand_def(INDEX_TENSOR)
    x = operand_def(ANY_TENSOR)
    axis = prop_def(IntegerAttr.constr(i64))
    subject = opt_prop_def(StringAttr)
    result = result_def(INDEX_TENSOR)

    assembly_format = (
        "$indices `of` $x `axis` `=` $axis ($subject^)? attr-dict `:` "
        "functional-type(operands, results)"
    )

    def __init__(
        self,
        indices: SSAValue | Operation,
        x: SSAValue | Operation,
        axis: int = 0,
        subject: str | None = None,
        result_type: Attribute | None = None,
    ) -> None:
        text = None if subject is None else StringAttr(subject)
        properties: dict[str, Attribute | None] = {"axis": i64_attr(axis), "subject": text}
        super().__init__(operands=[indices, x], properties=properties, result_type=result_type)

    @property
    def axis_from_front(self) -> int:
        """The axis of x, counted from the front."""
        return self.axis.value.data % rank(self.x)

    @property
    def what(self) -> str:
        """What errors begin with."""
        return self.subject.data if self.subject is not None else origin(self) or self.name

    def canonical_properties(self) -> dict[str, Attribute]:
        return {"axis": i64_attr(self.axis_from_front)}

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        facts.axis(self.axis.value.data, len(shapes[1]))
        return [shapes[0]]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        indices, x = cast(tuple[np.ndarray, np.ndarray], arrays)
        fault = outside_from_front(indices, x.shape[self.axis_from_front])
        if fault is not None:
            raise InputError(f"{self.what}: {explained_index(*fault, from_front=True)}")
        return (indices,)
