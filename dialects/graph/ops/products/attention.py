"""Attention: `softmax(q k^T) v` by one pass over the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f64, i1, i64
from xdsl.irdl import (
    AttrSizedOperandSegments,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)

from .....core.algebra.dims import Dim, Shape, product
from .....core.ir.typed import dense_array
from ...attrs import DENSE_TENSOR, FLOAT_TENSOR, INDEX_TENSOR
from ...constructors import operator
from ...interfaces import FusionKind, GraphOp, ShapeFacts, Sizes, element_type, text, widened
from ...kinds import Precision
from ...nests.body import KernelBody
from ...nests.buffers import Buffer
from ...traits import HalfPrecision
from .attention_cuts import Attention
from .attention_tiles import write_attention
from .contraction import same_element_types

if TYPE_CHECKING:
    from ...interfaces import Array


@operator(scale=1.0, softcap=0.0, left=-1, right=-1, at_end=False, safe=False)
class AttentionOp(GraphOp):
    """softmax(scale * q k^T) v for each head, without a matrix of all scores.

    q has the shape [..., H, L, D], k [..., G, S, D] and v [..., G, S, E], where G divides H: heads
    of q that follow each other share one of k and v. The result has the shape [..., H, L, E].
    D and E are known, and so are H and G, or they are equal.

    A score s becomes softcap * tanh(s / softcap), unless softcap is 0. A mask, which broadcasts to
    [..., H, L, S], is added to the scores, or if it has truth values, leaves out the keys where it
    is false. Query i is at place i, or with `at_end` at place i + S - L, and is given the keys
    from `left` in front of its place up to `right` behind it; -1 stands for all of them. `lengths`,
    of shape [...], says how many of the S keys there are; `at_end` refers to these.

    A query whose scores are all -inf yields NaN, or with `safe` 0; one with a NaN or inf among its
    scores yields NaN; without any keys (S = 0) the result is 0. Elements of v are expected to be
    finite: where a key is left out, 0 times infinity is NaN or 0. Keys are read block by block, and
    sums are rescaled where the maximum has grown (Milakov and Gimelshein, 2018; Dao et al.,
    FlashAttention, 2022). f16 and bf16 are computed in f32, and exponentials below 2^-125 are 0.

    %y = graph.attention %q, %k, %v scale = 0.5 softcap = 0.0 left = -1 right = 0 at_end = false
        safe = true : (tensor<2x?x2xf32>, tensor<1x?x2xf32>, tensor<1x?x2xf32>)
        -> tensor<2x?x2xf32>
    """

    name = "graph.attention"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST
    traits = traits_def(HalfPrecision(Precision.ALWAYS))

    q = operand_def(FLOAT_TENSOR)
    k = operand_def(FLOAT_TENSOR)
    v = operand_def(FLOAT_TENSOR)
    mask = opt_operand_def(DENSE_TENSOR)
    lengths = opt_operand_def(INDEX_TENSOR)
    scale = prop_def(FloatAttr.constr(f64))
    softcap = prop_def(FloatAttr.constr(f64))
    left = prop_def(IntegerAttr.constr(i64))
    right = prop_def(IntegerAttr.constr(i64))
    at_end = prop_def(IntegerAttr.constr(i1))
    safe = prop_def(IntegerAttr.constr(i1))
    result = result_def(FLOAT_TENSOR)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$q `,` $k `,` $v (`mask` $mask^ `:` type($mask))? "
        "(`lengths` $lengths^ `:` type($lengths))? `scale` `=` $scale `softcap` `=` $softcap "
        "`left` `=` $left `right` `=` $right `at_end` `=` $at_end `safe` `=` $safe attr-dict "
        "`:` `(` type($q) `,` type($k) `,` type($v) `)` `->` type($result)"
    )

    @property
    def window(self) -> tuple[int, int]:
        """How many keys in front of its place and behind it a query is given; -1 for all."""
        return self.left.value.data, self.right.value.data

    def infer_shapes(self, shapes: Sequence[Shape], facts: ShapeFacts) -> list[Shape]:
        same_element_types(self, facts, [self.q, self.k, self.v])
        self._check_properties(facts)
        q, k, v, *others = shapes
        if len(q) < 3 or len({len(q), len(k), len(v)}) > 1:
            expected = "the same rank, 3 or more"
            facts.fail("wrong ranks of q, k and v", expected, f"{len(q)}, {len(k)} and {len(v)}")
        for number, dim in enumerate(q[:-3]):
            facts.equal(dim, k[number], "batches of q and k differ")
            facts.equal(dim, v[number], "batches of q and v differ")
        facts.equal(k[-3], v[-3], "heads of k and v differ")
        facts.equal(k[-2], v[-2], "lengths of k and v differ")
        facts.equal(q[-1], k[-1], "widths of q and k differ")
        for what, dim in (("q and k", q[-1]), ("v", v[-1])):
            if not dim.is_static:
                facts.fail(f"the width of {what} is not known", "a number", dim)
        if not (q[-3].is_static and k[-3].is_static):
            facts.equal(q[-3], k[-3], "heads of q and k differ")
        elif k[-3] == 0 or q[-3].value % k[-3].value:
            facts.fail("heads of k do not divide those of q", f"a divisor of {q[-3]}", k[-3])
        if self.mask is not None:
            mask, scores = others.pop(0), (*q[:-1], k[-2])
            fact = "the mask does not broadcast to the scores"
            if len(mask) > len(scores):
                facts.fail(fact, text(scores), text(mask))
            for size, own in zip(scores[len(scores) - len(mask) :], mask, strict=True):
                if own != 1:
                    facts.equal(size, own, fact)
        if self.lengths is not None:
            lengths, batch = others.pop(0), q[:-3]
            if len(lengths) != len(batch):
                facts.fail("wrong rank of the lengths", len(batch), len(lengths))
            for expected, got in zip(batch, lengths, strict=True):
                facts.equal(expected, got, "lengths are not those of the batch")
        return [(*q[:-1], v[-1])]

    def _check_properties(self, facts: ShapeFacts) -> None:
        for what, size in zip(("left", "right"), self.window, strict=True):
            if size < -1:
                facts.fail(f"wrong {what}", "-1 or more", size)
        softcap = self.softcap.value.data
        if not 0 <= softcap < np.inf:
            facts.fail("wrong softcap", "0, or a finite number above it", softcap)
        if self.mask is not None and element_type(self.mask) not in (i1, element_type(self.q)):
            expected = f"i1 or {element_type(self.q)}"
            facts.fail("wrong element type of the mask", expected, element_type(self.mask))

    def flops(self, sizes: Sizes) -> Dim:
        q, v = sizes.shape(self.q), sizes.shape(self.v)
        return product(q[:-1]) * v[-2] * (q[-1] + v[-1]) * 2

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        q, k, v, *others = (dense_array(array) for array in arrays)
        mask = others.pop(0) if self.mask is not None else None
        q, k, v = (widened(array) for array in (q, k, v))
        shared = q.shape[-3] // max(k.shape[-3], 1)
        k, v = (np.repeat(x, shared, axis=-3) for x in (k, v))
        with np.errstate(all="ignore"):
            scores = np.matmul(q * q.dtype.type(self.scale.value.data), np.swapaxes(k, -1, -2))
            if softcap := q.dtype.type(self.softcap.value.data):
                scores = np.tanh(scores / softcap) * softcap
            kept = self._kept(q.shape, k.shape, others[0] if others else None)
            if mask is not None and mask.dtype == bool:
                kept = kept & mask
            elif mask is not None:
                scores = scores + widened(mask)
            scores = np.where(kept, scores, q.dtype.type(-np.inf))
            return self.stored(np.matmul(self._softmax(scores), v))

    def _kept(self, q: Sequence[int], k: Sequence[int], lengths: np.ndarray | None) -> np.ndarray:
        """Which keys each query is given, in a shape that broadcasts to that of the scores."""
        queries, keys = np.arange(q[-2])[:, None], np.arange(k[-2])
        count = np.asarray(k[-2])
        if lengths is not None:
            count = np.clip(lengths, 0, k[-2])[..., None, None, None]
        place = queries + (count - q[-2] if self.at_end.value.data else 0)
        left, right = self.window
        kept = keys < count
        if left >= 0:
            kept = kept & (keys >= place - left)
        return kept & (keys <= place + right) if right >= 0 else kept

    def _softmax(self, scores: np.ndarray) -> np.ndarray:
        """The softmax of the last axis."""
        top = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
        e = np.exp(scores - np.where(np.isneginf(top), scores.dtype.type(0), top))
        total = e.sum(axis=-1, keepdims=True)
        if not self.safe.value.data:
            # A row without keys still has no sum: 0 times what it is divided by is NaN.
            return e / total if scores.shape[-1] else e
        return np.where(total == 0, scores.dtype.type(0), e / total)

    def write(
        self,
        k: KernelBody,
        q: Buffer,
        keys: Buffer,
        values: Buffer,
        mask: Buffer | None,
        lengths: Buffer | None,
        result: Buffer,
    ) -> None:
        parts = Attention(
            q,
            keys,
            values,
            mask,
            lengths,
            result,
            self.scale.value.data,
            self.softcap.value.data,
            self.window,
            bool(self.at_end.value.data),
            bool(self.safe.value.data),
        )
        write_attention(k, parts)
