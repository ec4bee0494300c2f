"""Random numbers, as a function of seeds and places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, f32, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, result_def, traits_def

from .....core.algebra.dims import Shape
from .....core.ir.typed import dense_array
from ...attrs import I64_TENSOR, TensorConstraint
from ...constructors import operator
from ...interfaces import FusionKind, GraphOp, Indices, Nest, ShapeFacts, rank, tensor_type
from ...kinds import Precision
from ...nests import scalars
from ...positions import linearize
from ...traits import HalfPrecision, NeverNegative
from .threefry import FLOAT_BITS, first_word, first_word_of

if TYPE_CHECKING:
    from ...interfaces import Array
    from ...nests.nest import Scalars


@operator()
class RandomUniformOp(GraphOp):
    """Uniform random numbers in [0, 1): element i in row-major order is number i for its seed.

    They are the upper 24 bits of the first word of Threefry-2x32 (`threefry.py`), of which the seed
    is the key and i the counter. So equal seeds give equal numbers, in each call.

    %y = graph.random_uniform %seeds : (tensor<4x3xi64>) -> tensor<4x3xf32>
    """

    name = "graph.random_uniform"
    # An element depends on its index: rewrites that move elementwise operators must not move it.
    FUSION: ClassVar[FusionKind] = FusionKind.INJECTIVE
    traits = traits_def(HalfPrecision(Precision.NEVER), NeverNegative())

    seeds = operand_def(I64_TENSOR)
    result = result_def(TensorConstraint((f32,), "dense"))

    assembly_format = "$seeds attr-dict `:` functional-type(operands, results)"

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        return [shapes[0]]

    def infer_element_types(self) -> list[Attribute]:
        return [f32]

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        seeds = dense_array(arrays[0])
        places = np.arange(math.prod(seeds.shape)).reshape(seeds.shape)
        word = np.asarray(first_word_of(seeds, places) >> (32 - FLOAT_BITS))
        # The product of a scalar is no array.
        return self.stored(word.astype(np.float32) * np.float32(2**-FLOAT_BITS))

    def value_at(self, nest: Nest, index: Indices, result: int = 0) -> SSAValue:
        words = _ScalarWords(nest)
        key = words.halves(nest.at(self.seeds, index))
        word = first_word(key, self._counter(nest, index, words), words)
        digits = nest.insert(arith.ShRUIOp(word, words.number(32 - FLOAT_BITS)))
        scale = nest.constant(2.0**-FLOAT_BITS, f32)
        return scalars.mul(nest, nest.insert(arith.SIToFPOp(digits, f32)), scale)

    def _counter(
        self, nest: Nest, index: Indices, words: _ScalarWords
    ) -> tuple[SSAValue, SSAValue]:
        sizes = [nest.extent(self.result, axis) for axis in range(rank(self.result))]
        place = nest.value(linearize(nest, index, sizes))
        shape = tensor_type(self.result).get_shape()
        if DYNAMIC_INDEX in shape or math.prod(shape) > 1 << 32:
            return words.halves(scalars.from_index(nest, place, i64))
        # Without integers of 64 bits a vector has more lanes.
        return nest.insert(arith.IndexCastOp(place, i32)), words.number(0)


class _ScalarWords:
    """Words as scalars of a nest."""

    def __init__(self, nest: Scalars) -> None:
        self.nest = nest

    def add(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return scalars.add(self.nest, a, b)

    def xor(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.nest.insert(arith.XOrIOp(a, b))

    def rotate(self, a: SSAValue, bits: int) -> SSAValue:
        high = self.nest.insert(arith.ShLIOp(a, self.number(bits)))
        low = self.nest.insert(arith.ShRUIOp(a, self.number(32 - bits)))
        return self.nest.insert(arith.OrIOp(high, low))

    def number(self, value: int) -> SSAValue:
        return self.nest.constant(value, i32)

    def halves(self, value: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The low and the high word of an i64."""
        upper = self.nest.insert(arith.ShRUIOp(value, self.nest.constant(32, i64)))
        low, high = (self.nest.insert(arith.TruncIOp(half, i32)) for half in (value, upper))
        return low, high
