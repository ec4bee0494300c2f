"""`pad_same`: padding with which windows cover a tensor whose size only a call decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BoolAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import prop_def, traits_def
from xdsl.pattern_rewriter import RewritePattern

from .....core.algebra.dims import Dim, Shape
from .....core.building.sizes import affine_size
from .....core.ir.definitions import irdl_op_definition
from .....core.ir.typed import dense_array
from .....core.pipelines.exactness import EXACT
from ...attrs import I64_ARRAY, i64_array, ints
from ...interfaces import Indices, Nest, ShapeFacts, tensor_type
from ...remapped_axes import BlockableInterface, HoldsNumbers
from ...rules import rule
from ..products.window import check_steps
from .padding import PaddingOp, value_property

if TYPE_CHECKING:
    from ...interfaces import Array


def same_padding(size: Dim, extent: int, stride: int) -> Dim:
    """The least padding with which ceil(size / stride) windows fit.

    Args:
        size: the number of elements.
        extent: how many of them a window spans.
        stride: how many are between the beginnings of windows.
    """
    # max(0, extent - stride + m), where m elements are missing for a multiple of the stride
    missing = size.ceildiv(stride) * stride - size
    if extent >= stride:
        return missing + (extent - stride)
    # max(0, m - k) == the sum of m >= j over all j from k + 1 to stride - 1
    steps = range(stride - extent + 1, stride)
    return sum(((missing + (stride - j)).floordiv(stride) for j in steps), start=Dim.of(0))


@irdl_op_definition
class PadSameOp(PaddingOp, BlockableInterface):
    """x, padded on its trailing dimensions so that ceil(size / stride) windows fit.

    A window spans `extents` elements. Half of the padding is before x and half after it; of an odd
    number one more is after it if `more_after` is true, else before it. It depends on the sizes of
    x: `graph.pad` is for those that are known.

    %y = graph.pad_same %x extents = [3] strides = [2] more_after = true value = 0.0 : f64
        : (tensor<4x?xf32>) -> tensor<4x?xf32>
    """

    name = "graph.pad_same"
    traits = traits_def(HoldsNumbers(("extents", "strides"), neutral=1))

    extents = prop_def(I64_ARRAY)
    strides = prop_def(I64_ARRAY)
    more_after = prop_def(BoolAttr)

    assembly_format = (
        "$x `extents` `=` $extents `strides` `=` $strides `more_after` `=` $more_after "
        "`value` `=` $value attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        x: SSAValue | Operation,
        extents: Sequence[int],
        strides: Sequence[int],
        more_after: bool = True,
        value: float | int = 0,
        result_type: Attribute | None = None,
    ) -> None:
        properties: dict[str, Attribute | None] = {
            "extents": i64_array(extents),
            "strides": i64_array(strides),
            "more_after": BoolAttr.from_bool(more_after),
            "value": value_property(x, value),
        }
        super().__init__(operands=[x], properties=properties, result_type=result_type)

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (pad_same_known,)

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        (x,) = shapes
        extents, strides = ints(self.extents), ints(self.strides)
        if not 1 <= len(extents) <= len(x):
            facts.fail("extents do not fit x", f"1 to {len(x)} sizes", list(extents))
        check_steps(len(extents), facts, extents=extents, strides=strides)
        self.check_value(facts)
        margins = self.margins(x)
        return [tuple(d + a + b for d, (a, b) in zip(x, margins, strict=True))]

    def margins(self, shape: Shape) -> list[tuple[Dim, Dim]]:
        """The number of elements before and after an x of this shape, in each dimension."""
        steps = list(zip(ints(self.extents), ints(self.strides), strict=True))
        first, found = len(shape) - len(steps), list[tuple[Dim, Dim]]()
        for axis, size in enumerate(shape):
            total = same_padding(size, *steps[axis - first]) if axis >= first else Dim.of(0)
            half = total.floordiv(2)
            found.append((half, total - half) if self.is_more_after else (total - half, half))
        return found

    @property
    def is_more_after(self) -> bool:
        """Whether the larger half of the padding is after x."""
        return bool(self.more_after.value.data)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        x = dense_array(arrays[0])
        margins = self.margins(tuple(map(Dim.of, x.shape)))
        return (self.padded(x, [(low.value, high.value) for low, high in margins]),)

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        names = [f"n{axis}" for axis in range(len(index))]
        extents = {name: nest.extent(self.x, axis) for axis, name in enumerate(names)}
        starts: dict[int, AffineExpr] = {}
        for axis, (low, high) in enumerate(self.margins(tuple(map(Dim.symbol, names)))):
            if (low, high) != (0, 0):
                # A start follows from one size: there is no product of two.
                start = affine_size(low, extents.__getitem__, lambda a, _: a)
                starts[axis] = nest.index(nest.value(start))
        return self.padded_at(nest, index, starts)


@rule("pad_same(x) == pad(x, low, high, number)  where sizes are known", EXACT)
def pad_same_known(op: PadSameOp) -> Mapping[str, object] | None:
    sizes, count = tensor_type(op.x).get_shape(), len(ints(op.extents))
    if any(size < 0 for size in sizes[len(sizes) - count :]):
        return None
    margins = op.margins(tuple(Dim.of(max(size, 0)) for size in sizes))
    low, high = ([end.value for end in ends] for ends in zip(*margins, strict=True))
    return {"low": low, "high": high, "number": op.number}
