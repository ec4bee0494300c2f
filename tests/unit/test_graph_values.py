"""The value at an index that every operator gives is that of its NumPy reference.

The nest here computes at once what an operator inserts, so that the rules are tested without
the conversion that builds loops from them.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import erf
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    Float16Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    TensorType,
    f32,
    i1,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from stepwell.core.dtypes import dtype_of, element_type_of
from stepwell.core.errors import UnsupportedError
from stepwell.dialects import sparse_tensor
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.interfaces import (
    FusionKind,
    GraphOp,
    element_type,
    tensor_type,
)
from stepwell.dialects.graph.nests.nest import Indices, Nest, PlaceSteps, Step, Steps
from stepwell.dialects.graph.nests.recording import Recorder, Recording
from stepwell.dialects.graph.plan.uses import Uses
from stepwell.dialects.loop.attrs import Combine
from stepwell.dialects.sparse_tensor import is_sparse

from ..harness import RNG, cases, close

Array = np.ndarray | csr_array


def dtype(type: Attribute) -> np.dtype:
    return np.dtype(np.int64) if isinstance(type, IndexType) else dtype_of(type)


def _divsi(a: Any, b: Any) -> Any:
    assert b != 0, "a division traps"
    assert not (b == -1 and a == np.iinfo(a.dtype).min), "a division traps"
    return a.dtype.type(abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1))


def _fptosi(a: Any) -> int:
    assert math.isfinite(a), "a conversion of what is no integer"
    return int(a)


def _bitcast(a: Any) -> Any:
    """The bits of an f64 as an i64, or of an i64 as an f64."""
    if isinstance(a, float):
        return np.float64(a).view(np.int64)
    return np.int64(a).view(np.float64)


COMPARISONS = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "oeq": operator.eq,
    "une": operator.ne,
    "ogt": operator.gt,
    "olt": operator.lt,
    "ole": operator.le,
    "oge": operator.ge,
}
FORMULAS: dict[str, Callable[..., Any]] = {
    "arith.addf": operator.add,
    "arith.addi": operator.add,
    "arith.subf": operator.sub,
    "arith.subi": operator.sub,
    "arith.mulf": operator.mul,
    "arith.muli": operator.mul,
    "arith.divf": operator.truediv,
    "arith.divsi": _divsi,
    "arith.divui": operator.floordiv,
    "arith.remui": operator.mod,
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
    "arith.negf": operator.neg,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": np.maximum,
    "arith.select": lambda c, a, b: a if c else b,
    "arith.sitofp": lambda a: a,
    "arith.uitofp": lambda a: a,
    "arith.fptosi": _fptosi,
    "arith.extf": lambda a: a,
    "arith.truncf": lambda a: a,
    "arith.extsi": lambda a: a,
    "arith.extui": lambda a: a,
    "arith.trunci": lambda a: a,
    "arith.index_cast": lambda a: a,
    "arith.bitcast": _bitcast,
    "arith.shli": lambda a, b: np.left_shift(np.int64(a), np.int64(b)),
    "math.fma": lambda a, b, c: a * b + c,
    "math.exp": np.exp,
    "math.log": np.log,
    "math.sqrt": np.sqrt,
    "math.rsqrt": lambda a: 1 / np.sqrt(a),
    "math.tanh": np.tanh,
    "math.erf": erf,
    "math.powf": np.power,
    "math.absf": np.abs,
    "math.ceil": np.ceil,
    "math.floor": np.floor,
    "math.roundeven": np.round,
    "math.sin": np.sin,
    "math.cos": np.cos,
}


NOWHERE = Block()
"""The block of values that were not computed here."""
VERIFIED: set[Hashable] = set()
"""The forms of operations that are verified: nothing else enters the verification of a scalar."""


class EagerNest(Nest):
    """Computes scalars when they are inserted."""

    def __init__(self, arrays: dict[SSAValue, Array]) -> None:
        self.arrays = arrays
        self.reads: set[tuple[SSAValue, tuple[int, ...]]] = set()
        self.scalars: dict[SSAValue, Any] = {}
        self.dims: list[int] = []

    def known(self, value: Any, type: Attribute) -> SSAValue:
        """What was not computed here, such as an element of an operand."""
        return self.result(BlockArgument(type, NOWHERE, 0), value)

    def result(self, value: SSAValue, number: Any) -> SSAValue:
        self.scalars[value] = np.asarray(number).astype(dtype(value.type))[()]
        return value

    def evaluate(self, expr: AffineExpr) -> int:
        return expr.eval(self.dims, [])

    def at(self, value: SSAValue, index: Indices) -> SSAValue:
        array = self.arrays[value]
        assert isinstance(array, np.ndarray)
        position = tuple(self.evaluate(i) for i in index)
        assert len(position) == array.ndim
        assert all(0 <= i < n for i, n in zip(position, array.shape, strict=True)), (
            f"read at {position} outside of {array.shape}"
        )
        self.reads.add((value, position))
        type = self.compute_type(element_type_of(array.dtype))
        return self.known(array[position], type)

    def extent(self, value: SSAValue, dim: int) -> AffineExpr:
        size = tensor_type(value).get_shape()[dim]
        if size >= 0:
            return AffineExpr.constant(size)
        return self.dim(self.arrays[value].shape[dim])

    def dim(self, number: int) -> AffineExpr:
        self.dims.append(int(number))
        return AffineExpr.dimension(len(self.dims) - 1)

    def reduce(
        self, extents: Sequence[AffineExpr], combine: str, init: SSAValue, step: Step
    ) -> SSAValue:
        assert Combine(combine) is not Combine.CUSTOM
        for position in np.ndindex(*[self.evaluate(e) for e in extents]):
            init = step(tuple(self.dim(i) for i in position), init)
        return init

    def reduce_several(
        self,
        extents: Sequence[AffineExpr],
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: Steps,
    ) -> Sequence[SSAValue]:
        assert len(combines) == len(inits)
        for position in np.ndindex(*[self.evaluate(e) for e in extents]):
            inits = step(tuple(self.dim(i) for i in position), inits)
        return inits

    def pattern_several(
        self,
        matrix: SSAValue,
        row: AffineExpr,
        combines: Sequence[str],
        inits: Sequence[SSAValue],
        step: PlaceSteps,
    ) -> Sequence[SSAValue]:
        assert len(combines) == len(inits)
        assert Combine.CUSTOM not in map(Combine, combines)
        a, i = self.matrix(matrix), self.evaluate(row)
        for p in range(a.indptr[i], a.indptr[i + 1]):
            inits = step(self.dim(p), self.dim(a.indices[p]), inits)
        return inits

    def matrix(self, value: SSAValue) -> csr_array:
        array = self.arrays[value]
        assert isinstance(array, csr_array)
        return array

    def entry(self, matrix: SSAValue, position: AffineExpr) -> tuple[AffineExpr, AffineExpr]:
        a, p = self.matrix(matrix), self.evaluate(position)
        assert 0 <= p < a.nnz
        row = int(np.searchsorted(a.indptr, p, side="right")) - 1
        return self.dim(row), self.dim(a.indices[p])

    def stored_entry(self, matrix: SSAValue, position: AffineExpr) -> SSAValue:
        a, p = self.matrix(matrix), self.evaluate(position)
        assert 0 <= p < a.nnz
        return self.known(a.data[p], self.compute_type(element_type_of(a.dtype)))

    def count(self, matrix: SSAValue, row: AffineExpr) -> AffineExpr:
        a, i = self.matrix(matrix), self.evaluate(row)
        return self.dim(a.indptr[i + 1] - a.indptr[i])

    def constant(self, value: float | int | bool, type: Attribute) -> SSAValue:
        real = isinstance(type, Float16Type) or dtype(type).kind == "f"
        attr = FloatAttr(float(value), type) if real else IntegerAttr(int(value), type)
        return self.result(arith.ConstantOp(attr).result, value)

    def insert(self, op: Operation) -> SSAValue:
        operands = [self.scalars[v] for v in op.operands]
        form = type(op), op.operand_types, op.result_types, tuple(op.properties.items())
        if form not in VERIFIED:
            op.verify()
            VERIFIED.add(form)
        if isinstance(op, arith.CmpiOp | arith.CmpfOp):
            return self.result(op.results[0], self.compare(op, *operands))
        with np.errstate(all="ignore"):
            return self.result(op.results[0], FORMULAS[op.name](*operands))

    def compare(self, op: arith.CmpiOp | arith.CmpfOp, a: Any, b: Any) -> Any:
        names = arith.CMPI_COMPARISON_OPERATIONS
        if isinstance(op, arith.CmpfOp):
            names = arith.CMPF_COMPARISON_OPERATIONS
        name = names[op.predicate.value.data]
        if name == "ult":
            return int(a) % (1 << 64) < int(b) % (1 << 64)
        return COMPARISONS[name](a, b)

    def index(self, value: SSAValue) -> AffineExpr:
        return self.dim(self.scalars[value])

    def value(self, expr: AffineExpr) -> SSAValue:
        return self.known(self.evaluate(expr), IndexType())


def value_of(array: Array, symbolic: bool) -> SSAValue:
    """A block argument for an array; all sizes are `?` where it is symbolic."""
    element = element_type_of(array.dtype)
    encoding = {} if isinstance(array, np.ndarray) else {"encoding": sparse_tensor.csr()}
    shape = [-(1 << 63) if symbolic and n != 1 else n for n in array.shape]
    return Block(arg_types=[TensorType(element, shape, **encoding)]).args[0]


def compare(op: GraphOp, arrays: Sequence[Array], symbolic: bool) -> None:
    """Compare the value of the result at each index with the reference."""
    (expected,) = op.reference(*arrays)
    assert isinstance(expected, np.ndarray)
    assert expected.dtype == dtype_of(element_type(op.results[0]))
    known = dict(zip(op.operands, arrays, strict=True))
    recording = Recorder().recording(op)
    found = np.empty_like(expected)
    for position in np.ndindex(*expected.shape):
        nest = EagerNest({**known, op.results[0]: expected})
        index = tuple(nest.dim(i) if symbolic else AffineConstantExpr(i) for i in position)
        scalar = nest.scalars[op.value_at(nest, index)]
        compute = nest.compute_type(element_type(op.results[0]))
        assert scalar.dtype == dtype_of(compute)
        with np.errstate(over="ignore"):
            found[position] = scalar.astype(expected.dtype)
        recorded = recorded_reads(op, recording, position)
        assert recorded is None or recorded == nest.reads
    # f16 is rounded when it is stored; sums of f32 differ in order, f16 in its last bit.
    tolerance = {"float16": 2e-3, "float32": 2e-5}.get(expected.dtype.name, 1e-12)
    close(found, expected, tolerance)
    compare_with_recording(op)


def recorded_reads(
    op: GraphOp, recording: Recording, position: Sequence[int]
) -> set[tuple[SSAValue, tuple[int, ...]]] | None:
    """The reads of one element by what is recorded; None where it takes what is not constant."""
    found: set[tuple[SSAValue, tuple[int, ...]]] = set()
    for read in recording.reads:
        ranges: list[Sequence[int]] = [[i] for i in position]
        for atom in recording.atoms[recording.rank :]:
            extent = None if atom.loop is None else recording.loops[atom.loop].extent
            if not isinstance(extent, AffineConstantExpr):
                return None
            ranges.append(range(extent.value) if atom.loop in read.around else [0])
        if not is_sparse((operand := op.operands[read.operand]).type):
            points = itertools.product(*ranges)
            found |= {(operand, tuple(e.eval(list(p), []) for e in read.index)) for p in points}
    return found


def compare_with_recording(op: GraphOp) -> None:
    """Compare the kind of fusion that an operator states with what it does."""
    recording, uses = Recorder().recording(op), Uses(Recorder())
    shapes = {operand: tensor_type(operand).get_shape() for operand in op.operands}
    whole = [v for v, shape in shapes.items() if shape == tensor_type(op.results[0]).get_shape()]
    match op.fusion:
        case FusionKind.ELEMENTWISE:
            assert not recording.reduces
            assert all(uses.at_own_index(op, operand) for operand in whole)
        case FusionKind.BROADCAST | FusionKind.INJECTIVE:
            assert not recording.reduces
        case FusionKind.REDUCTION | FusionKind.CONTRACTION:
            # A reduction over no axes is none.
            assert recording.reduces or getattr(op, "axes_from_front", None) == ()


@pytest.fixture(params=[False, True], ids=["static", "symbolic"])
def symbolic(request: pytest.FixtureRequest) -> bool:
    return request.param


SPECIAL = np.array([0.0, -0.0, 1.0, -1.5, 700.0, -700.0, np.inf, -np.inf, np.nan])
FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64"]


def sample(shape: Sequence[int], kind: str) -> np.ndarray:
    """Random elements; integers from the whole range, the smallest ones among them."""
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        return RNG.normal(size=shape).astype(dtype)
    if dtype.kind == "b":
        return RNG.integers(0, 2, shape).astype(dtype)
    limits = np.iinfo(dtype)
    values = RNG.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    small = RNG.integers(-3, 4, shape).astype(dtype)
    return np.where(RNG.random(shape) < 0.5, values, small)


BINARY = [
    graph.AddOp,
    graph.SubOp,
    graph.MulOp,
    graph.DivOp,
    graph.MaxOp,
    graph.MinOp,
    graph.PowOp,
]


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("make", BINARY)
def test_binary(make: type[graph.BinaryOp], kind: str, symbolic: bool) -> None:
    a, b = sample((3, 1, 2), kind), sample((2, 1), kind)
    op = make(value_of(a, symbolic), value_of(b, symbolic))
    compare(op, [a, b], symbolic)


@pytest.mark.parametrize("kind", cases(INTEGERS, ["int8", "int64"]))
@pytest.mark.parametrize("make", [graph.DivOp, graph.PowOp])
def test_integers_at_their_limits(make: type[graph.BinaryOp], kind: str, all_tests: bool) -> None:
    limits = np.iinfo(kind)
    numbers = np.array([limits.min, limits.max, -1, 3, -2, 0, 1], kind)
    if not all_tests and kind != "int8":
        numbers = numbers[:4]  # powers are multiplied for each bit
    a, b = numbers.reshape(-1, 1), numbers.reshape(1, -1)
    compare(make(value_of(a, False), value_of(b, False)), [a, b], False)


COMPARISONS_OF_TENSORS = [
    graph.EqualOp,
    graph.LessOp,
    graph.LessEqualOp,
    graph.GreaterOp,
    graph.GreaterEqualOp,
]


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("make", COMPARISONS_OF_TENSORS)
def test_comparison(make: type[graph.ComparisonOp], kind: str, symbolic: bool) -> None:
    numbers = np.array([-3, -2, 0, 2, 3], kind)
    if np.dtype(kind).kind == "f":
        numbers = np.array([-np.inf, -0.0, 0.0, 2.5, np.nan], kind)
    a, b = numbers.reshape(-1, 1), numbers.reshape(1, -1)
    compare(make(value_of(a, symbolic), value_of(b, symbolic)), [a, b], symbolic)


@pytest.mark.parametrize(
    "make", [graph.LogicalAndOp, graph.LogicalOrOp, graph.LogicalXorOp, graph.EqualOp]
)
def test_logic(make: type[graph.BinaryOp], symbolic: bool) -> None:
    a, b = np.array([[False], [True]]), np.array([[False, True]])
    compare(make(value_of(a, symbolic), value_of(b, symbolic)), [a, b], symbolic)
    compare(graph.LogicalNotOp(value_of(b, symbolic)), [b], symbolic)


@pytest.mark.parametrize("kind", [*FLOATS, "int8", "int64", "bool"])
@pytest.mark.parametrize("shapes", [((4, 1), (4, 3), (3,)), ((3,), (), (2, 1)), ((2,), (1,), ())])
def test_where(shapes: tuple[tuple[int, ...], ...], kind: str, symbolic: bool) -> None:
    kinds = ["bool", kind, kind]
    arrays = [sample(shape, k) for shape, k in zip(shapes, kinds, strict=True)]
    compare(graph.WhereOp(*[value_of(a, symbolic) for a in arrays]), arrays, symbolic)


UNARY: list[tuple[str, Callable[[SSAValue], GraphOp]]] = [
    ("neg", graph.NegOp),
    ("exp", graph.ExpOp),
    ("log", graph.LogOp),
    ("sqrt", graph.SqrtOp),
    ("rsqrt", graph.RsqrtOp),
    ("tanh", graph.TanhOp),
    ("sigmoid", graph.SigmoidOp),
    ("relu", graph.ReluOp),
    ("leaky_relu", lambda x: graph.LeakyReluOp(x, 0.3)),
    ("gelu", graph.GeluOp),
    ("gelu_tanh", lambda x: graph.GeluOp(x, "tanh")),
    ("erf", graph.ErfOp),
    ("abs", graph.AbsOp),
    ("sign", graph.SignOp),
    ("ceil", graph.CeilOp),
    ("floor", graph.FloorOp),
    ("round", graph.RoundOp),
    ("sin", graph.SinOp),
    ("cos", graph.CosOp),
    ("clip", lambda x: graph.ClipOp(x, -1.0, 0.5)),
    ("clip_crossed", lambda x: graph.ClipOp(x, 2, -2)),
    ("clip_below", lambda x: graph.ClipOp(x, minimum=-math.inf)),
    ("dropout", graph.DropoutOp),
    ("softmax_of_one", lambda x: graph.SoftmaxOp(x, 0)),
]


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize(("name", "make"), UNARY, ids=[name for name, _ in UNARY])
def test_unary(name: str, make: Callable[[SSAValue], GraphOp], kind: str) -> None:
    with np.errstate(over="ignore"):
        x = np.concatenate([SPECIAL, RNG.normal(size=6)]).astype(kind)
    compare(make(value_of(x, False)), [x], False)


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize(
    "make",
    [
        graph.NegOp,
        graph.ReluOp,
        graph.AbsOp,
        graph.SignOp,
        lambda x: graph.ClipOp(x, -2, 5),
        lambda x: graph.ClipOp(x, -1e30, math.inf),
        lambda x: graph.ClipOp(x, maximum=-1000.0),
    ],
)
def test_unary_of_integers(make: Callable[[SSAValue], GraphOp], kind: str) -> None:
    x = np.append(sample((9,), kind), np.array(np.iinfo(kind).min, kind))
    compare(make(value_of(x, True)), [x], True)


@pytest.mark.parametrize("target", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, "bool"])
def test_cast(source: str, target: str) -> None:
    if np.dtype(source).kind == "f":
        with np.errstate(over="ignore"):
            extra = [300.7, -300.7, 3e9, -3e9, 1e19, -1e19, 2.0**31, -(2.0**31), -(2.0**63)]
            x = np.append(SPECIAL, extra).astype(source)
    else:
        x = sample((20,), source)
    compare(graph.CastOp(value_of(x, False), element_type_of(np.dtype(target))), [x], False)


def summed(kind: str) -> str:
    """The type of a sum of products: integers of few bits are summed up in i32."""
    return "int32" if kind in ("int8", "int16") else kind


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("bias", [False, True])
def test_dense(kind: str, bias: bool, symbolic: bool) -> None:
    arrays = [sample((2, 3, 5), kind), sample((4, 5), kind), sample((4,), summed(kind))][: 2 + bias]
    values = [value_of(array, symbolic) for array in arrays]
    compare(graph.DenseOp(*values), arrays, symbolic)


def test_dense_without_columns() -> None:
    arrays = [np.zeros((2, 0), "f"), np.zeros((3, 0), "f"), sample((3,), "float32")]
    compare(graph.DenseOp(*[value_of(a, True) for a in arrays]), arrays, True)


@pytest.mark.parametrize("kind", ["float16", "float64", "int8"])
@pytest.mark.parametrize("shapes", [((3, 5), (5, 2)), ((2, 1, 3, 5), (4, 5, 2)), ((1, 1), (1, 1))])
def test_matmul(shapes: tuple[tuple[int, ...], ...], kind: str, symbolic: bool) -> None:
    a, b = (sample(shape, kind) for shape in shapes)
    compare(graph.MatmulOp(value_of(a, symbolic), value_of(b, symbolic)), [a, b], symbolic)


@pytest.mark.parametrize(
    "kind", cases([*FLOATS, *INTEGERS], ["float16", "float32", "int8", "int64"])
)
@pytest.mark.parametrize("reduction", ["sum", "mean", "max", "maxnum", "min", "prod"])
@pytest.mark.parametrize("axes", [[1], [0, -1], [], [2, 1, 0]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduce(kind: str, reduction: str, axes: list[int], keepdims: bool) -> None:
    x = sample((2, 3, 4), kind)
    compare(graph.ReduceOp(value_of(x, True), reduction, axes, keepdims), [x], True)


@pytest.mark.parametrize("kind", ["float32", "int32"])
@pytest.mark.parametrize("reduction", ["sum", "mean", "max", "maxnum", "min", "prod"])
def test_reduce_of_nothing(kind: str, reduction: str) -> None:
    x = np.zeros((2, 0), kind)
    compare(graph.ReduceOp(value_of(x, True), reduction, [1]), [x], True)


CONVOLUTIONS: list[tuple[list[tuple[int, ...]], dict[str, Any]]] = [
    ([(2, 3, 4, 5), (2, 3, 3, 2), (2,)], {}),
    ([(1, 4, 6, 5), (6, 2, 2, 2)], {"strides": [2, 3], "dilations": [2, 1], "groups": 2}),
    ([(2, 3, 4, 4), (3, 1, 2, 2), (3,)], {"groups": 3}),
    ([(1, 2, 7), (3, 2, 3)], {"strides": [2]}),
    ([(1, 2, 3, 3, 4), (2, 2, 2, 1, 3)], {"dilations": [2, 1, 1]}),
    ([(0, 2, 3), (2, 2, 3)], {}),
    ([(2, 0, 3), (2, 0, 3), (2,)], {}),
]


def with_sizes_of_batch(array: np.ndarray, symbolic: bool) -> SSAValue:
    """A block argument whose first two sizes are `?`, for what needs the others."""
    shape = [-(1 << 63) if symbolic and i < 2 else n for i, n in enumerate(array.shape)]
    return Block(arg_types=[TensorType(element_type_of(array.dtype), shape)]).args[0]


@pytest.mark.parametrize(
    "kind", cases(["float16", "float32", "float64", "int8"], ["float16", "float32", "int8"])
)
@pytest.mark.parametrize(("shapes", "attributes"), CONVOLUTIONS)
def test_conv(
    shapes: list[tuple[int, ...]], attributes: dict[str, Any], kind: str, symbolic: bool
) -> None:
    kinds = kind, kind, summed(kind)
    arrays = [sample(shape, kind) for shape, kind in zip(shapes, kinds, strict=False)]
    x = with_sizes_of_batch(arrays[0], symbolic)
    others = [value_of(array, False) for array in arrays[1:]]
    compare(graph.ConvOp(x, *others, **attributes), arrays, symbolic)


def test_conv_with_symbolic_channels(symbolic: bool) -> None:
    arrays = [sample((2, 6, 4), "float32"), sample((4, 3, 2), "float32")]
    x = value_of(arrays[0], False)
    w = Block(arg_types=[TensorType(f32, [4, -(1 << 63), 2])]).args[0]
    compare(graph.ConvOp(x, w, groups=2), arrays, symbolic)


POOLS = list(
    itertools.product([*FLOATS, "int8", "int64"], ["sum", "mean", "max", "maxnum", "min", "prod"])
)
USUAL_POOLS = [pool for pool in POOLS if pool[0] == "float32"]
USUAL_POOLS += [("float16", "mean"), ("int8", "sum"), ("int8", "mean"), ("int8", "min")]


@pytest.mark.parametrize("pool", cases(POOLS, USUAL_POOLS), ids="-".join)
@pytest.mark.parametrize(
    ("window", "strides", "dilations"),
    [([2, 3], [1, 1], [1, 1]), ([3], [2], [2]), ([1, 2, 2], [2, 1, 3], [1, 3, 1])],
)
def test_pool(
    window: list[int],
    strides: list[int],
    dilations: list[int],
    pool: tuple[str, str],
    symbolic: bool,
) -> None:
    kind, reduction = pool
    x = sample((2, 3, 4, 7), kind)
    value = with_sizes_of_batch(x, symbolic and len(window) < 3)
    compare(graph.PoolOp(value, reduction, window, strides, dilations), [x], symbolic)


@pytest.mark.parametrize("kind", cases([*FLOATS, "int8", "bool"], ["float16", "int8", "bool"]))
@pytest.mark.parametrize(
    ("shape", "low", "high"),
    [
        ((3, 4), [1, 2], [0, 3]),
        ((3, 4), [0, 0], [0, 1]),
        ((3,), [0], [0]),
        ((0, 2), [1, 0], [1, 1]),
        ((1, 2, 2), [0, 1, 1], [2, 0, 1]),
        ((), [], []),
    ],
)
def test_pad(
    shape: tuple[int, ...],
    low: list[int],
    high: list[int],
    kind: str,
    symbolic: bool,
    all_tests: bool,
) -> None:
    x = sample(shape, kind)
    numbers = (0, 1) if kind in ("bool", "int8") else (-0.0, 2.5, -math.inf, 1e5)
    for number in numbers if all_tests else numbers[symbolic::2]:
        compare(graph.PadOp(value_of(x, symbolic), low, high, number), [x], symbolic)


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize(("low", "high"), [([2, 0, 1], [1, 0, 3]), ([0, 0, 3], [2, 0, 0])])
def test_pad_with_what_is_there(mode: str, low: list[int], high: list[int]) -> None:
    x = sample((3, 2, 4), "float32")
    compare(graph.PadOp(value_of(x, False), low, high, mode=mode), [x], True)
    x = sample((3, 2, 4), "bool")
    compare(graph.PadOp(value_of(x, False), low, high, mode=mode), [x], False)


@pytest.mark.parametrize("kind", cases(["float32", "bool"], ["float32"]))
@pytest.mark.parametrize("shape", [(5,), (2, 6), (2, 0, 3), (3, 1, 4), (1, 7, 4)])
@pytest.mark.parametrize(("extent", "stride"), [(3, 2), (2, 5), (4, 1)])
def test_pad_for_windows(
    shape: tuple[int, ...], extent: int, stride: int, kind: str, symbolic: bool, all_tests: bool
) -> None:
    x = sample(shape, kind)
    count = max(1, len(shape) - 1)
    for more_after in (False, True) if all_tests or symbolic else (stride == 2,):
        op = graph.PadSameOp(
            value_of(x, symbolic), [extent] * count, [stride] * count, more_after, 1
        )
        compare(op, [x], symbolic)


@pytest.mark.parametrize("mode", ["edge", "wrap"])
def test_pad_with_more_than_there_is(mode: str) -> None:
    x = sample((3,), "int16")
    compare(graph.PadOp(value_of(x, False), [7], [8], mode=mode), [x], True)


@pytest.mark.parametrize("make", [graph.SoftmaxOp, graph.LogSoftmaxOp])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(make: Callable[..., GraphOp], axis: int, symbolic: bool) -> None:
    x = sample((3, 4, 2), "float32") * 50
    x[0, 0] = -np.inf
    x[1, 1, 0] = np.inf
    x[2, 2, 1] = np.nan
    compare(make(value_of(x, symbolic), axis), [x], symbolic)


def test_softmax_of_half() -> None:
    x = sample((3, 4), "float16") * np.float16(100)
    compare(graph.SoftmaxOp(value_of(x, False)), [x], False)


@pytest.mark.parametrize("permutation", [[0, 1, 2], [2, 0, 1], [1, 0, 2]])
def test_transpose(permutation: list[int], symbolic: bool) -> None:
    x = sample((2, 3, 4), "int64")
    compare(graph.TransposeOp(value_of(x, symbolic), permutation), [x], symbolic)


RESHAPES = [
    ((2, 3, 4), [6, 4]),
    ((2, 3, 4), [0, -1]),
    ((2, 3, 4), [-1]),
    ((2, 3, 4), [4, 3, 2]),
    ((2, 3, 4), [0, 2, 6]),
    ((2, 3, 4), [0, 2, -1, 3]),
    ((6, 4), [0, 2, 2]),
    ((6, 4), [3, 2, 4]),
    ((6, 4), [3, -1, 0 + 4]),
    ((1, 6, 1), [6]),
    ((6,), [1, 6, 1]),
    ((1, 1), []),
    ((), [1, 1]),
]


@pytest.mark.parametrize(("shape", "target"), RESHAPES)
def test_reshape(shape: tuple[int, ...], target: list[int], symbolic: bool) -> None:
    x = sample(shape, "int32")
    compare(graph.ReshapeOp(value_of(x, symbolic), target), [x], symbolic)


def test_reshape_keeps_the_batch_out_of_the_arithmetic() -> None:
    x = Block(arg_types=[TensorType(f32, [-(1 << 63), 28, 28])]).args[0]
    assert graph.ReshapeOp(x, [0, -1]).groups() == [([0], [0]), ([1, 2], [1])]
    assert graph.ReshapeOp(x, [-1, 7, 4, 28]).groups() == [([0], [0]), ([1], [1, 2]), ([2], [3])]
    assert graph.ReshapeOp(x, [-1, 14]).groups() == [([0, 1, 2], [0, 1])]


@pytest.mark.parametrize(
    ("shape", "target"), [((3,), [2, 3]), ((3, 1), [2, -1, 4]), ((1,), [5]), ((), [2, 2])]
)
def test_broadcast_to(shape: tuple[int, ...], target: list[int], symbolic: bool) -> None:
    x = sample(shape, "float32")
    compare(graph.BroadcastToOp(value_of(x, symbolic), target), [x], symbolic)


@pytest.mark.parametrize(
    ("starts", "ends", "steps"),
    [
        ([0, 0], [4, 10], [1, 1]),
        ([1, 9], [4, -1], [2, -3]),
        ([4, 0], [4, 1], [1, 7]),
        ([3, 8], [0, 3], [-2, -1]),
        ([0, 2], [(1 << 63) - 1, 3], [1, 1]),
    ],
)
def test_slice(starts: list[int], ends: list[int], steps: list[int]) -> None:
    x = sample((4, 10), "int16")
    compare(graph.SliceOp(value_of(x, False), starts, ends, steps), [x], False)


@pytest.mark.parametrize("kind", ["float32", "int8", "bool", "float16"])
@pytest.mark.parametrize("sizes", [[2, 3, 1], [0, 2], [2, 0, 1], [3]])
def test_concat(kind: str, sizes: list[int], symbolic: bool) -> None:
    arrays = [sample((2, n, 2), kind) for n in sizes]
    values = [value_of(array, symbolic) for array in arrays]
    compare(graph.ConcatOp(values, 1), arrays, symbolic)


def test_concat_keeps_negative_zero_and_nan() -> None:
    arrays = [np.array([-0.0, np.nan, -np.inf], "f"), np.array([0.0, -0.0], "f")]
    op = graph.ConcatOp([value_of(array, True) for array in arrays], 0)
    compare(op, arrays, True)


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather(axis: int, kind: str, symbolic: bool) -> None:
    x, i = sample((3, 4, 3), "float32"), np.array([[0, 2], [-1, -3]], kind)
    compare(graph.GatherOp(value_of(x, symbolic), value_of(i, symbolic), axis), [x, i], symbolic)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_batch_norm(axis: int, symbolic: bool) -> None:
    x = sample((2, 3, 4), "float32")
    vectors = [sample((x.shape[axis],), "float32") for _ in range(3)]
    vectors.append(np.abs(sample((x.shape[axis],), "float32")))
    values = [value_of(array, symbolic) for array in (x, *vectors)]
    compare(graph.BatchNormOp(*values, epsilon=1e-3, axis=axis), [x, *vectors], symbolic)


def matrix(rows: int, columns: int, kind: str = "float32") -> csr_array:
    stored = RNG.random((rows, columns)) < 0.4
    result = csr_array(np.where(stored, RNG.normal(size=stored.shape), 0).astype(np.float32))
    if rows == columns and rows:
        dense = result.toarray()
        dense[0] = 0
        dense[-1, -1] = 2.5
        result = csr_array(dense)
    data = result.data.astype(kind)
    return csr_array((data, result.indices, result.indptr), shape=result.shape)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (3, 4)])
def test_spmm(shape: tuple[int, int], kind: str, symbolic: bool) -> None:
    a, x = matrix(*shape, kind), sample((shape[1], 3), kind)
    compare(graph.SpmmOp(value_of(a, symbolic), value_of(x, symbolic)), [a, x], symbolic)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("power", [1.0, -0.5, -1.0, 0.5])
def test_degree(loops: bool, power: float, kind: str) -> None:
    a = abs(matrix(6, 6, "float64"))
    a = csr_array((a.data.astype(kind), a.indices, a.indptr), shape=a.shape)
    compare(graph.DegreeOp(value_of(a, True), loops, power), [a], True)


def test_missing_self_loops() -> None:
    a = matrix(6, 6)
    compare(graph.MissingSelfLoopsOp(value_of(a, False)), [a], False)


@pytest.mark.parametrize("kind", cases(["float32", "float64", "float16"], ["float32", "float16"]))
@pytest.mark.parametrize("reduction", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("weighted", [False, True])
def test_aggregate(reduction: str, kind: str, weighted: bool, symbolic: bool) -> None:
    check_aggregate(reduction, kind, weighted, symbolic)


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
def test_aggregate_by_softmax(kind: str, symbolic: bool) -> None:
    check_aggregate("softmax", kind, True, symbolic)


def check_aggregate(reduction: str, kind: str, weighted: bool, symbolic: bool) -> None:
    a = matrix(6, 4, kind)
    arrays: list[Array] = [a, sample((4, 2, 3), kind)]
    if weighted:
        arrays.append(sample((a.nnz, 2), kind))
    values = [value_of(v, symbolic) for v in arrays]
    compare(graph.AggregateOp(*values, kind=reduction), arrays, symbolic)


@pytest.mark.parametrize("kind", ["dot", "add", "sub", "mul"])
def test_sddmm(kind: str, symbolic: bool) -> None:
    arrays = [matrix(6, 4), sample((6, 2, 3), "float32"), sample((4, 2, 3), "float32")]
    op = graph.SddmmOp(*(value_of(v, symbolic) for v in arrays), kind=kind)
    compare(op, arrays, symbolic)


@pytest.mark.parametrize("kind", cases(["float32", "float64", "float16"], ["float16"]))
def test_softmax_over_entries(kind: str, symbolic: bool) -> None:
    for columns in (4, 6):
        a = matrix(6, columns, kind)
        arrays = [a, sample((a.nnz, 2), kind), sample((6, 2), kind)]
        values = [value_of(v, symbolic) for v in arrays]
        compare(graph.EdgeSoftmaxOp(*values[:2]), arrays[:2], symbolic)
    # A score of one's own is that of a self loop: the graph is square.
    compare(graph.EdgeSoftmaxOp(*values), arrays, symbolic)
    compare(graph.OwnSoftmaxOp(*values), arrays, symbolic)


def test_entries() -> None:
    a = matrix(6, 4)
    compare(graph.EntriesOp(value_of(a, True)), [a], True)


@pytest.mark.parametrize("number", [np.float32(-0.0), np.int8(-3), np.bool_(True), np.float16(2)])
def test_splat_constant(number: np.generic) -> None:
    op = graph.ConstantOp.literal(np.full((2, 3), number))
    assert op.fusion is FusionKind.BROADCAST
    compare(op, [], False)


def test_constant_with_several_values_is_opaque() -> None:
    op = graph.ConstantOp.literal(np.arange(3))
    assert op.fusion is FusionKind.OPAQUE
    message = r"graph\.constant: has no value at an index; it is opaque"
    with pytest.raises(UnsupportedError, match=message):
        op.value_at(EagerNest({}), (AffineConstantExpr(0),))


def test_i1_arrives_as_i1() -> None:
    x = np.array([True, False])
    nest = EagerNest({})
    op = graph.TransposeOp(value_of(x, False), [0])
    nest.arrays[op.x] = x
    assert op.value_at(nest, (AffineConstantExpr(1),)).type == i1
