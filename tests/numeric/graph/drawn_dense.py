"""Random programs for rules of dense tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepwell.dialects.graph.composite import CompositeOp
from stepwell.dialects.graph.op_builder import graph_operators, parameters_of

from ...fuzz.operators import signature_of
from .drawn import WHOLE, Drawing, draws, width_of


@draws("CanonicalProperties")
def axes_from_the_back(d: Drawing) -> None:
    b, sizes = d.b, d.sizes(d.choices.among(2, 3))
    x, rank = d.input(d.kind(), *sizes), len(sizes)
    axis = d.choices.randrange(rank)
    axes = [n - rank for n in d.choices.some(range(rank), rank)]
    made = [
        lambda: b.concat([x, x], axis=axis - rank),
        lambda: b.reduce(x, d.choices.among("max", "min", "sum"), axes),
        lambda: b.cumulative(x, "max", axis - rank),
        lambda: b.gather(x, np.array([0, sizes[axis] - 1]), axis=axis - rank),
        lambda: b.arg_reduce(x, "max", axis - rank),
    ]
    b.output(d.choices.choice(made)())


@draws("BiasIsAnOperand")
def bias_after_a_layer(d: Drawing) -> None:
    _biased(d, False)


@draws("BiasesAreOne")
def bias_after_a_biased_layer(d: Drawing) -> None:
    _biased(d, True)


def _biased(d: Drawing, has_bias: bool) -> None:
    b, width, terms = d.b, *d.sizes(2)
    own = [d.constant("f32", width)] if has_bias else []
    if d.choices.chance(0.5):
        x = d.input("f32", *d.sizes(d.choices.among(1, 2)), terms)
        layer, after = b.dense(x, d.constant("f32", width, terms), *own), 0
    else:
        after = d.choices.among(1, 2)
        x = d.input("f32", 2, terms, *[4] * after)
        window = [d.choices.among(1, 2) for _ in range(after)]
        layer = b.conv(x, d.constant("f32", width, terms, *window), *own)
    before = [1] * d.choices.among(0, 1)
    shape = [*before, width, *[1] * after]
    computed = not has_bias and len(shape) == 1 and d.choices.chance(0.5)
    bias = (d.input if computed else d.constant)("f32", *shape)
    b.output(layer + bias if d.choices.chance(0.5) else bias + layer)


@draws("ConcatOfSlices")
def slices_side_by_side(d: Drawing) -> None:
    d.symbolic = False
    b, sizes = d.b, d.sizes(d.choices.among(1, 2, 3))
    axis = d.choices.randrange(len(sizes))
    sizes[axis] = d.choices.randint(2, 6)
    x, whole = d.input(d.kind(), *sizes), [0] * len(sizes)
    start, middle, end = sorted(d.choices.sample(range(sizes[axis] + 1), 3))
    parts = list[Any]()
    for low, high in ((start, middle), (middle, end)):
        starts, ends = list(whole), [WHOLE] * len(sizes)
        starts[axis], ends[axis] = low, high
        parts.append(b.slice(x, starts, ends))
    before, after = ([x] * d.choices.among(0, 1) for _ in range(2))
    b.output(b.concat([*before, *parts, *after], axis=axis))


@draws("GatherOfAll")
def gather_in_order(d: Drawing) -> None:
    d.symbolic = False
    sizes = d.sizes(d.choices.among(1, 2, 3))
    axis = d.choices.randrange(len(sizes))
    x = d.input(d.kind(), *sizes)
    d.b.output(d.b.gather(x, np.arange(sizes[axis]), axis=axis))


@draws("LargestOfLargest")
def extrema_of_extrema(d: Drawing) -> None:
    _reduced_twice(d, d.kind(), d.choices.among("max", "min"))


@draws("ReduceTwice")
def sums_of_sums(d: Drawing) -> None:
    _reduced_twice(d, "f32", d.choices.among("sum", "mean", "prod", "maxnum"))


def _reduced_twice(d: Drawing, kind: str, reduction: str) -> None:
    x = d.input(kind, *d.sizes(3))
    keepdims, first = d.choices.chance(0.5), d.choices.randrange(3)
    second = d.choices.randrange(3 if keepdims else 2)
    once = d.b.reduce(x, reduction, [first], keepdims)
    d.b.output(d.b.reduce(once, reduction, [second], keepdims))


@draws("PoolNothing")
def windows_of_one(d: Drawing) -> None:
    kinds = ("max", "min", "prod", "maxnum") if (kind := d.kind())[0] == "f" else ("max", "sum")
    spatial = d.choices.among(1, 2)
    ones = [1] * spatial
    x = d.input(kind, *d.sizes(2 + spatial))
    d.b.output(d.b.pool(x, d.choices.choice(kinds), ones, ones))


def _nonnegative(d: Drawing) -> Any:
    b, x = d.b, d.input(d.kind("f32", "f16"), *d.sizes(2))
    made = [b.exp, b.abs, b.relu, b.sigmoid, lambda x: x * x, lambda x: b.clip(x, 0.5, None)]
    return d.choices.choice(made)(x)


@draws("PowerIsRoot")
def power_of_nonnegative(d: Drawing) -> None:
    d.b.output(d.b.pow(_nonnegative(d), 0.5))


@draws("ReluOfNonnegative")
def relu_of_nonnegative(d: Drawing) -> None:
    d.b.output(d.b.relu(_nonnegative(d)))


@draws("SliceNothing")
def whole_slice(d: Drawing) -> None:
    d.symbolic = False
    sizes = d.sizes(d.choices.among(1, 2, 3))
    ends = [d.choices.among(WHOLE, size) for size in sizes]
    d.b.output(d.b.slice(d.input(d.kind(), *sizes), [0] * len(sizes), ends))


@draws("SliceTwice")
def slice_of_slice(d: Drawing) -> None:
    d.symbolic = False
    sizes = d.sizes(d.choices.among(1, 2))
    value = d.input(d.kind(), *sizes)
    for _ in range(2):
        bounds = [_bounds(d, size) for size in sizes]
        value = d.b.slice(value, *(list(part) for part in zip(*bounds, strict=True)))
        sizes = [len(range(*slice(*one).indices(n))) for one, n in zip(bounds, sizes, strict=True)]
    d.b.output(value)


def _bounds(d: Drawing, size: int) -> tuple[int, int, int]:
    """Start, end and step of a slice that has elements."""
    start = d.choices.randrange(size)
    if start and d.choices.chance(0.4):
        return start, d.choices.randrange(start), d.choices.among(-1, -2)
    if not start and d.choices.chance(0.5):
        return 0, WHOLE, 1
    return start, d.choices.randint(start + 1, size), d.choices.among(1, 1, 2)


def _of_one_operand() -> list[type[CompositeOp]]:
    """The composites that are made of one operand and nothing else."""
    found = list[type[CompositeOp]]()
    for kind in graph_operators().values():
        if not issubclass(kind, CompositeOp):
            continue
        required = [
            name
            for name, given in parameters_of(kind).signature.parameters.items()
            if given.default is given.empty and given.kind != given.VAR_KEYWORD
        ]
        first, *_ = signature_of(kind).operands
        if required == [first.name] and not all(one.sparse for one in first.kinds):
            found.append(kind)
    return found


@draws("CompositeIsItsBody")
def composite(d: Drawing) -> None:
    d.special = False
    x = d.input(d.kind("f32", "f16"), *d.sizes(3))
    made = d.b.apply(d.choices.choice(_of_one_operand()), x)
    for result in made if isinstance(made, tuple) else (made,):
        d.b.output(result)


@draws("ScaleOfProduct")
def scaled_product(d: Drawing) -> None:
    d.symbolic = False
    x = d.input("f32", 2, *d.sizes(1), 4)
    product, columns = _product(d, x)
    value = _between(d, product)
    d.b.output(value * d.b.constant(d.positive("f32", *d.choices.choice([(), columns]))))


@draws("ProductOfScaled")
def product_of_scaled(d: Drawing) -> None:
    d.symbolic = False
    x = d.input("f32", 2, 3, 4)
    is_conv = d.choices.chance(0.4)
    columns = (3, 1) if is_conv else (4,)
    scaled = x * d.b.constant(d.positive("f32", *d.choices.choice([(), columns])))
    if d.choices.chance(0.3):
        scaled = scaled + d.constant("f32", *columns)
    d.b.output(_product(d, _between(d, scaled), is_conv)[0])


def _between(d: Drawing, value: Any) -> Any:
    """A value, or one that scales with it."""
    made = [lambda x: x, lambda x: x, d.b.relu, lambda x: d.b.pad(x, [0, 0, 0], [1, 0, 0])]
    return d.choices.choice(made)(value)


def _product(d: Drawing, x: Any, is_conv: bool | None = None) -> tuple[Any, tuple[int, ...]]:
    """A product with constant weights, and the shape of a scale of its channels."""
    b, (width,) = d.b, d.sizes(1)
    bias = [d.constant("f32", width)] if d.choices.chance(0.5) else []
    if d.choices.chance(0.3) if is_conv is None else is_conv:
        channels = x.ssa.type.get_shape()[1]
        if channels > 0:
            return b.conv(x, d.constant("f32", width, channels, 2), *bias), (width, 1)
    terms = width_of(x)
    if d.choices.chance(0.5):
        return b.dense(x, d.constant("f32", width, terms), *bias), (width,)
    return b.matmul(x, d.constant("f32", terms, width)), (width,)


@draws("RaiseAttention")
def attention(d: Drawing) -> None:
    b, heads, width = d.b, d.choices.among(1, 2), d.choices.among(2, 4)
    before = [d.choices.among(1, 2)] * d.choices.among(0, 1)
    rows, columns = d.choices.among(16, 17, 20), d.choices.among(17, 24)
    q = d.input("f32", *before, heads, rows, width)
    k = d.input("f32", *before, heads, width, columns)
    v = d.input("f32", *before, heads, columns, d.choices.among(1, 3))
    scores = b.matmul(q, k)
    if d.choices.chance(0.6):
        scores = scores * d.choices.among(0.5, 0.125, 3.0)
    shape = d.choices.choice([(rows, columns), (columns,), (1, rows, columns)])
    match d.choices.among("none", "sum", "where"):
        case "sum":
            mask = d.input("f32", *shape)
            scores = scores + mask if d.choices.chance(0.5) else mask + scores
        case "where":
            kept = np.asarray(d.array("i1", rows, columns))
            kept[:, 0] = True
            scores = b.where(d.given(kept, "i1"), scores, d.choices.among(-np.inf, -1e38))
    b.output(b.matmul(b.softmax(scores, axis=-1), v))


@draws("power_by_squaring")
def whole_power(d: Drawing) -> None:
    kind = d.kind("f32", "i8", "ui8")
    exponent = d.choices.randint(3, 16 if kind == "f32" else 63)
    d.b.output(d.b.pow(d.input(kind, *d.sizes(2)), exponent))
