"""Operators on operands whose dimensions are permuted or in blocks give what they give without."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32, i64
from xdsl.ir import Attribute, Block, SSAValue

from stepwell.core import registry
from stepwell.core.dtypes import element_type_of
from stepwell.core.ir.typed import tensor_type
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.interfaces import GraphOp, set_result_types
from stepwell.dialects.graph.ops.moves.select import WHOLE_END
from stepwell.dialects.graph.remapped_axes import BlockableInterface, TransposableInterface

from ...harness import RNG, close, floats

SHAPE = (2, 6, 3, 4)


class AnyPoolOp(graph.PoolOp, TransposableInterface):
    """A pool that is transposed along with the dimensions of its windows."""


class AnySoftmaxOp(graph.SoftmaxOp, BlockableInterface):
    """A softmax along an axis that is in no blocks."""


def values(*shapes: Sequence[int]) -> Sequence[SSAValue]:
    return Block(arg_types=[TensorType(f32, shape) for shape in shapes]).args


def pads() -> Iterator[GraphOp]:
    for mode in ("constant", "edge", "reflect"):
        yield graph.PadOp(*values(SHAPE), [0, 0, 2, 1], [1, 0, 0, 3], 1.5, mode)
    yield graph.PadOp(*values(SHAPE), [1, 2, 0, 0], [0, 1, 0, 2])


def slices() -> Iterator[GraphOp]:
    yield graph.SliceOp(*values(SHAPE), [0, 2, 0, 3], [WHOLE_END, 4, 3, -1], [1, 1, 2, -2])
    yield graph.SliceOp(*values(SHAPE), [0, 0, 1, 0], [1, 5, 3, WHOLE_END])
    yield graph.SliceOp(*values(SHAPE), [0, 1, 1, 0], [2, 6, 3, 2], [1, 3, 1, 1])


def concats() -> Iterator[GraphOp]:
    for axis in range(-2, 4):
        other = list(SHAPE)
        other[axis] *= 2
        yield graph.ConcatOp(values(SHAPE, other, SHAPE), axis)


def reductions() -> Iterator[GraphOp]:
    for axes in ([], [0], [3], [-2], [2, 3], [1, 3], [0, 1, 2, 3]):
        for keepdims in (False, True):
            yield graph.ReduceOp(*values(SHAPE), "sum", axes, keepdims)
            yield graph.ReduceOp(*values(SHAPE), "max", axes, keepdims)


def softmaxes(kind: Callable[..., GraphOp]) -> Iterator[GraphOp]:
    return (kind(*values(SHAPE), axis) for axis in range(-1, 3))


def same_pads() -> Iterator[GraphOp]:
    yield graph.PadSameOp(*values(SHAPE), [3, 2], [2, 3])
    yield graph.PadSameOp(*values(SHAPE), [1, 3, 2], [1, 1, 2], more_after=False)


def pools(kind: Callable[..., GraphOp]) -> Iterator[GraphOp]:
    yield kind(*values(SHAPE), "max", [2, 3], [1, 2])
    yield kind(*values(SHAPE), "mean", [1, 2, 2], [1, 2, 1], [1, 1, 2])
    yield kind(*values(SHAPE), "sum", [3, 2, 2], [2, 1, 1])
    yield kind(*values(SHAPE), "min", [3, 1, 1])


def gathers() -> Iterator[GraphOp]:
    for axis in range(-1, 4):
        for shape in ((5,), (2, 3), ()):
            x, indices = Block(arg_types=[TensorType(f32, SHAPE), TensorType(i64, shape)]).args
            yield graph.GatherOp(x, indices, axis)


OPERATORS: dict[type[GraphOp], list[GraphOp]] = {
    graph.PadOp: [*pads()],
    graph.SliceOp: [*slices()],
    graph.ConcatOp: [*concats()],
    graph.ReduceOp: [*reductions()],
    graph.SoftmaxOp: [*softmaxes(graph.SoftmaxOp)],
    graph.LogSoftmaxOp: [*softmaxes(graph.LogSoftmaxOp)],
    graph.PadSameOp: [*same_pads()],
    graph.PoolOp: [*pools(graph.PoolOp)],
    graph.GatherOp: [*gathers()],
    AnyPoolOp: [*pools(AnyPoolOp)],
    AnySoftmaxOp: [*softmaxes(AnySoftmaxOp)],
}


def test_every_operator_that_says_so_is_here() -> None:
    own = {op for load in registry.own_dialects().values() for op in load().operations}
    kinds = TransposableInterface | BlockableInterface
    assert {op for op in own if issubclass(op, kinds)} == OPERATORS.keys() & own


def of_kind(kind: type) -> list[type[GraphOp]]:
    return [own for own in OPERATORS if issubclass(own, kind)]


def arrays_for(op: GraphOp) -> list[np.ndarray]:
    kinds = map(tensor_type, op.operands)
    return [
        RNG.integers(-2, 2, kind.get_shape())
        if kind.element_type == i64
        else floats(*kind.get_shape())
        for kind in kinds
    ]


def on_others(
    op: GraphOp, arrays: Sequence[np.ndarray], properties: dict[str, Attribute]
) -> np.ndarray:
    """The result of an operator with these properties on arrays, of the type that it infers."""
    copy = op.clone()
    kinds = [TensorType(element_type_of(array.dtype), array.shape) for array in arrays]
    copy.operands = Block(arg_types=kinds).args
    copy.properties |= properties
    set_result_types(copy, copy.infer_types())
    copy.verify()
    (result,) = copy.reference(*arrays)
    assert result.shape == tensor_type(copy.results[0]).get_shape()
    return np.asarray(result)


@pytest.mark.parametrize("kind", of_kind(TransposableInterface), ids=lambda kind: kind.__name__)
def test_on_transposed(kind: type[GraphOp]) -> None:
    moved = 0
    for op in OPERATORS[kind]:
        assert isinstance(op, TransposableInterface)
        arrays = arrays_for(op)
        (plain,) = op.reference(*arrays)
        for order in permutations(range(len(SHAPE))):
            found = op.on_transposed(order)
            if found is None:
                continue
            moved += list(order) != sorted(order)
            got = on_others(op, [array.transpose(order) for array in arrays], found)
            wanted = plain.transpose(order) if plain.ndim == len(order) else plain
            close(got, wanted)
    assert moved > 5


def in_blocks(array: np.ndarray, axis: int, size: int) -> np.ndarray:
    shape = array.shape
    split = array.reshape(*shape[:axis], shape[axis] // size, size, *shape[axis + 1 :])
    return np.moveaxis(split, axis + 1, -1)


@pytest.mark.parametrize("kind", of_kind(BlockableInterface), ids=lambda kind: kind.__name__)
def test_on_blocks(kind: type[GraphOp]) -> None:
    blocked = 0
    for op in OPERATORS[kind]:
        assert isinstance(op, BlockableInterface)
        arrays = arrays_for(op)
        (plain,) = op.reference(*arrays)
        for axis, size in ((axis, size) for axis in range(plain.ndim) for size in (1, 2, 3)):
            count = len(op.in_blocks)
            whole = [array.shape[axis : axis + 1] for array in (*arrays[:count], plain)]
            if any(sizes == () or sizes[0] % size for sizes in whole):
                continue
            found = op.on_blocks(axis, size)
            if found is None:
                continue
            blocked += size > 1
            laid_out = [in_blocks(array, axis, size) for array in arrays[:count]]
            got = on_others(op, [*laid_out, *arrays[count:]], found)
            close(got, in_blocks(plain, axis, size))
    assert blocked > 1


def test_what_cannot_be_transposed() -> None:
    (x,) = values(SHAPE)
    assert graph.ReduceOp(x, "sum", [3]).on_transposed([1, 0, 2, 3]) is None
    assert graph.ReduceOp(x, "sum", []).on_transposed([1, 0, 2, 3]) is None
    assert AnyPoolOp(x, "max", [2, 2]).on_transposed([0, 2, 1, 3]) is None
    assert AnyPoolOp(x, "max", [2, 2]).on_transposed([1, 0, 3, 2]) is not None


def test_what_cannot_be_in_blocks() -> None:
    (x,) = values(SHAPE)
    assert graph.PadOp(x, [0, 2, 0, 0], [0] * 4).on_blocks(1, 2) is None
    assert graph.PadOp(x, [0] * 4, [0, 1, 0, 0]).on_blocks(1, 2) is None
    assert graph.ReduceOp(x, "sum", [1]).on_blocks(1, 2) is None
    assert graph.ReduceOp(x, "sum", [0]).on_blocks(1, 2) is None
    assert graph.PoolOp(x, "max", [2, 1, 1]).on_blocks(1, 2) is None
    assert graph.PoolOp(x, "max", [1, 1, 1], [2, 1, 1]).on_blocks(1, 2) is None
    assert graph.PadSameOp(x, [2, 1, 1], [1, 1, 1]).on_blocks(1, 2) is None
    assert AnySoftmaxOp(x, 1).on_blocks(1, 2) is None
    (indices,) = Block(arg_types=[TensorType(i64, [5])]).args
    assert graph.GatherOp(x, indices, 1).on_blocks(1, 2) is None
    assert graph.GatherOp(x, indices, 0).on_blocks(1, 2) is None
    assert graph.SliceOp(x, [0, 1, 0, 0], [2, 5, 3, 4]).on_blocks(1, 2) is None
    assert graph.SliceOp(x, [0, 0, 0, 0], [2, 6, 3, 4], [1, 2, 1, 1]).on_blocks(1, 2) is None
