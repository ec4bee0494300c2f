"""Random programs of the `graph` level, and the oracle: a pass keeps what they compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st

from stepwell.core.boundary.specs import SparseSpec
from stepwell.core.ir.context import CompilerContext
from stepwell.core.ir.module import Module
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.frontends.builder import Builder, Value

from ...harness import close

TOLERANCE = 1e-4
"""Of the largest element: a dozen operators on f32, whose rewrites round in other places."""

ROWS = 5
"""What a symbolic size is at run time."""

FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "ui8": np.uint8}

Shape = tuple[Any, ...]
"""Sizes, or the names of symbolic ones."""


TOLERANCE_OF_F16 = 5e-2
"""The same where an operator rounds to f16: a rewrite may turn a rounding the other way."""


@dataclass(frozen=True)
class Case:
    """A program, arguments for it, and how far its results may be from another order of sums."""

    module: Module
    inputs: tuple[Any, ...]
    tolerance: float = TOLERANCE


def run(module: Module, passes: str) -> tuple[Module, CompilerContext]:
    """A copy of the module after the passes, and the context with what they decided."""
    copy = module.clone()
    ctx = make_context(copy.weights)
    run_passes(ctx, copy.op, passes)
    after = Module(copy.op, ctx.weights)
    after.verify()
    return after, ctx


def compare(module: Module, passes: str, *inputs: Any, tolerance: float = TOLERANCE) -> Module:
    """Run the passes and demand results that are equal up to `tolerance` of their scale."""
    after, _ = run(module, passes)
    have, want = after.run_reference(*inputs), module.run_reference(*inputs)
    try:
        close(have, want, tolerance, scaled=True)
    except AssertionError as error:
        error.add_note(str(after))
        raise
    return after


class Programs:
    """Builds one random program: each step adds an operator to values made before."""

    def __init__(self, draw: st.DrawFn, favourite: str = "") -> None:
        """Every other step is the favourite one, where it can be; the first one always."""
        self.draw, self.favourite = draw, favourite
        self.rng = np.random.default_rng(draw(st.integers(0, 2**16)))
        self.b = Builder()
        self.dtype = self.pick("f32", "f32", "f32", "f64", "f16")
        self.rounds_to_f16 = self.dtype == "f16"
        self.values: list[tuple[Value, Shape]] = []
        """Floats of one type, the newest last."""
        self.exact: list[tuple[Value, Shape]] = []
        """Those that no rewrite rounds: only they are compared with, or made integers."""
        self.integers: list[Value] = []
        """Quantised values, which are exact as well."""
        self.inputs: list[Any] = []

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def array(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        return (self.rng.standard_normal(shape) * scale).astype(FLOATS[self.dtype])

    def positive(self, *shape: int) -> np.ndarray:
        return self.rng.uniform(0.5, 2.0, shape).astype(FLOATS[self.dtype])

    def input(self, spec: Shape | SparseSpec, array: Any, dtype: str) -> Value:
        """A new argument, with the array that is passed for it."""
        name = f"x{len(self.inputs)}"
        self.inputs.append(array)
        if isinstance(spec, SparseSpec):
            return self.b.input(name, spec)
        return self.b.input(name, spec, dtype)

    def add_input(self, shape: Shape) -> None:
        x = self.input(shape, self.array(*sizes(shape)), self.dtype)
        self.values.append((x, shape))
        self.exact.append((x, shape))

    def given(self, array: Any, dtype: str, constant: Sequence[bool] = (True, False)) -> Value:
        """An array as a constant or as an argument."""
        if self.pick(*constant):
            return self.b.constant(array)
        return self.input(array.shape, array, dtype)

    def matrix(self, rows: int, columns: int) -> Value:
        """A sparse matrix, as a constant or as an argument."""
        random = sp.random_array((rows, columns), density=0.4, rng=self.rng, dtype=np.float64)
        csr = sp.csr_array(random).astype(FLOATS[self.dtype])
        if self.draw(st.booleans()):
            return self.b.constant(csr)
        return self.input(SparseSpec(csr.shape, self.dtype, csr.nnz), csr, self.dtype)

    def step(self) -> None:
        """Add one operator, to the newest value every other time."""
        x, shape = self.values[-1] if self.draw(st.booleans()) else self.pick(*self.values)
        kinds = [self.unary, self.scalar, self.binary, self.scaled, self.normalized]
        kinds += [self.chosen, self.counted, self.frozen, self.padded]
        if shape and isinstance(shape[-1], int):
            kinds += [self.dense, self.dense, self.siblings, self.sliced, self.reduced]
        if len(shape) >= 2:
            kinds += [self.transposed, self.reshaped, self.concatenated, self.gathered]
        if shape and all(sizes(shape)):
            kinds += [self.cumulated, self.placed, self.picked, self.scattered]
        if len(shape) == 2 and all(isinstance(n, int) for n in shape):
            kinds += [self.broadcast]
            # SciPy has no sparse matrices of f16.
            kinds += [self.sparse, self.attention, self.attention] if self.dtype != "f16" else []
        if len(shape) >= 3 and all(isinstance(n, int) for n in shape[1:]):
            kinds += [self.standardized]
        if len(shape) >= 3 and all(isinstance(n, int) and n > 1 for n in shape[1:]):
            kinds += [*(self.convolution,) * 4, *(self.pooled,) * 2]
        if any(s and isinstance(s[-1], int) for _, s in self.exact):
            kinds += [self.quantized]
        liked = [kind for kind in kinds if kind.__name__ == self.favourite]
        if liked and (len(self.values) == len(self.exact) or self.draw(st.booleans())):
            kinds = liked
        self.values.append(self.pick(*kinds)(x, shape))

    def unary(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        b = self.b
        made: dict[str, Callable[[], Value]] = {
            "relu": lambda: b.relu(x),
            "neg": lambda: b.neg(x),
            "tanh": lambda: b.tanh(x),
            "sigmoid": lambda: b.sigmoid(x),
            "exp": lambda: b.exp(b.clip(x, -2.0, 2.0)),
            "clip": lambda: b.clip(x, *self.pick((0.0, 6.0), (None, 1.0), (-1.0, None))),
            "leaky": lambda: b.leaky_relu(x, 0.1),
            "gelu": lambda: b.gelu(x),
            "root": lambda: b.sqrt(b.relu(x)),
            "inverse": lambda: b.div(1.0, b.sqrt(b.exp(b.clip(x, -2.0, 2.0)))),
            "dropout": lambda: b.dropout(x, 0.5),
            "wide": lambda: b.cast(b.cast(x, "f64"), self.dtype),
            "narrow": lambda: self.through_f16(x),
            "abs": lambda: b.abs(x),
            "square": lambda: b.mul(x, x),
        }
        return made[self.pick(*made)](), shape

    def scalar(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        number = self.pick(-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0)
        name = self.pick("add", "sub", "mul", "max", "min", "div")
        if name == "div":
            number = number or 4.0
        swap = self.draw(st.booleans()) and name != "div"
        return getattr(self.b, name)(*((number, x) if swap else (x, number))), shape

    def binary(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        others = [v for v, s in self.values if s == shape]
        y = self.pick(*others)
        return getattr(self.b, self.pick("add", "sub", "mul", "max", "min"))(x, y), shape

    def scaled(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        """Scale or shift along one axis by a constant vector."""
        static = [i for i, n in enumerate(shape) if isinstance(n, int)]
        if not static:
            return self.scalar(x, shape)
        axis = self.pick(*static)
        sizes = [1] * (len(shape) - axis)
        sizes[0] = shape[axis]
        vector = self.pick(self.positive, self.array)(*sizes)
        return getattr(self.b, self.pick("mul", "mul", "add", "sub"))(x, vector), shape

    def normalized(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        static = [i for i, n in enumerate(shape) if isinstance(n, int)]
        if not static:
            return self.b.tanh(x), shape
        axis = self.pick(*static)
        kind = self.pick("softmax", "batch_norm", "batch_norm", "layer_norm", "rms_norm", "length")
        if kind == "softmax":
            return self.b.softmax(x, axis), shape
        n = shape[axis]
        if kind in ("layer_norm", "rms_norm"):
            rest = [m for m in shape[axis:] if isinstance(m, int)]
            vectors = [self.array(*rest)] if len(rest) == len(shape) - axis else []
            return getattr(self.b, kind)(x, *vectors, axis=axis, epsilon=1e-3), shape
        if kind == "length":
            return self.b.l2_normalize(x, axes=[axis], epsilon=1e-3), shape
        parameters = (self.array(n), self.array(n), self.array(n), self.positive(n))
        return self.b.batch_norm(x, *parameters, epsilon=1e-3, axis=axis), shape

    def standardized(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        """Normalise each channel, or groups of them, with or without scale and bias."""
        b, channels = self.b, shape[1]
        kind = self.pick("instance_norm", "group_norm", "training")
        vectors = [self.given(self.array(channels), self.dtype) for _ in range(self.pick(0, 1, 2))]
        if kind == "group_norm":
            groups = self.pick(*(n for n in range(1, channels + 1) if channels % n == 0))
            return b.group_norm(x, groups, *vectors, epsilon=1e-3), shape
        if kind == "instance_norm":
            return b.instance_norm(x, *vectors, epsilon=1e-3), shape
        y, mean, variance = b.batch_norm_training(x, *vectors, epsilon=1e-3)
        statistics = b.reshape(self.pick(mean, variance), [1, channels, *[1] * (len(shape) - 2)])
        return b.add(y, statistics) if self.draw(st.booleans()) else y, shape

    def quantized(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        """Quantise what no rewrite rounds, compute in integers, and come back to floats.

        The bits of quantised operators are kept by all passes, so that this is exact.
        """
        b, fitting = self.b, [(v, s) for v, s in self.exact if s and isinstance(s[-1], int)]
        x, shape = self.pick(*fitting)
        axis = self.pick(None, None, None, len(shape) - 1)
        scale, zero = self.scaling(None if axis is None else shape[axis])
        if self.dtype == "f64":
            x = b.cast(x, "f32")
        elif self.dtype == "f16" and self.draw(st.booleans()):
            scale = b.cast(scale, "f16")
        q = b.quantize(x, scale, zero, axis=axis)
        for _ in range(self.pick(1, 1, 2, 0) if axis is None and zero.dtype != "i16" else 0):
            q, shape, scale, zero = self.product_of_bytes(q, shape, scale, zero)
        if self.draw(st.booleans()):
            order = list(reversed(range(len(shape))))
            q = b.transpose(b.transpose(q, order), order)
        self.integers.append(q)
        y = b.dequantize(q, scale, zero, axis=axis)
        return b.cast(y, self.dtype), shape

    def scaling(self, count: int | None = None) -> tuple[Value, Value]:
        """A scale and a zero point, for all elements or `count` of them."""
        dtype = self.pick("i8", "i8", "ui8", "ui8", "i16")
        return self.scale(count), self.zero_point(dtype, count)

    def scale(self, count: int | None = None) -> Value:
        size = () if count is None else (count,)
        return self.usual(np.asarray(self.rng.uniform(0.01, 0.1, size), np.float32), "f32")

    def zero_point(self, dtype: str, count: int | None = None) -> Value:
        size = () if count is None else (count,)
        low = 0 if dtype.startswith("u") else -5
        return self.usual(np.asarray(self.rng.integers(low, 9, size), INTEGERS[dtype]), dtype)

    def usual(self, array: Any, dtype: str) -> Value:
        """A parameter of a quantised operator: a constant, but for one in six."""
        return self.given(array, dtype, (True,) * 5 + (False,))

    def product_of_bytes(
        self, x: Value, shape: Shape, scale: Value, zero: Value
    ) -> tuple[Value, Shape, Value, Value]:
        """A quantised product, with scale and zero point of its result."""
        b, space = self.b, shape[2:]
        n, k = self.pick(1, 3, 4), shape[-1]
        dtype = self.pick("i8", "ui8")
        kinds = ["dense", "matmul"] if len(shape) > 1 else ["dense"]
        if len(shape) >= 3 and all(isinstance(m, int) and m > 1 for m in shape[1:]):
            kinds += ["conv"] * 2
        kind = self.pick(*kinds)
        window = [self.pick(1, 2) for _ in space]
        form = {"dense": (n, k), "matmul": (k, n), "conv": (n, *shape[1:2], *window)}[kind]
        limits = np.iinfo(INTEGERS[dtype])
        w = self.usual(self.rng.integers(limits.min, limits.max, form, INTEGERS[dtype]), dtype)
        channels = self.pick(None, n)
        y_scale = self.scale()
        y_zero = self.zero_point(self.pick("i8", "ui8"))
        bias = []
        if self.draw(st.booleans()):
            bias = [self.usual(self.rng.integers(-900, 900, n, np.int32), "i32")]
        operands = (x, scale, zero, w, self.scale(channels), self.zero_point(dtype, channels))
        if kind == "conv":
            stride = [self.pick(1, 2) for _ in space]
            y = b.quantized_conv(*operands, y_scale, y_zero, *bias, strides=stride)
            return y, (*shape[:1], n, *windows(space, window, stride)), y_scale, y_zero
        y = getattr(b, f"quantized_{kind}")(*operands, y_scale, y_zero, *bias)
        return y, (*shape[:-1], n), y_scale, y_zero

    def dense(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        k, n = shape[-1], self.pick(1, 3, 4)
        w = self.array(n, k, scale=0.5)
        kind = self.pick("dense", "bias", "matmul", "transposed")
        if len(shape) == 1 and kind in ("matmul", "transposed"):
            kind = "dense"
        b = self.b
        made = {
            "dense": lambda: b.dense(x, w),
            "bias": lambda: b.dense(x, w, self.array(n)),
            "matmul": lambda: b.matmul(x, np.ascontiguousarray(w.T)),
            "transposed": lambda: b.matmul(x, b.transpose(b.constant(w), [1, 0])),
        }
        return made[kind](), (*shape[:-1], n)

    def siblings(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        """Products of one operand, put together again."""
        k, b = shape[-1], self.b
        widths = [self.pick(2, 3) for _ in range(self.pick(2, 3))]
        parts = [b.dense(x, self.array(n, k, scale=0.5), self.array(n)) for n in widths]
        if self.draw(st.booleans()):
            parts = [b.relu(part) for part in parts]
        axis = len(shape) - 1
        return b.concat(parts, axis=axis), (*shape[:-1], sum(widths))

    def sliced(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        axis = len(shape) - 1
        n = shape[axis]
        start = self.draw(st.integers(0, n - 1))
        end = self.draw(st.integers(start + 1, n))
        step = self.pick(1, 1, 2)
        whole = (1 << 63) - 1
        starts, ends, steps = [0] * len(shape), [], [1] * len(shape)
        ends = [m if isinstance(m, int) else whole for m in shape]
        starts[axis], ends[axis], steps[axis] = start, end, step
        size = len(range(start, end, step))
        return self.b.slice(x, starts, ends, steps), (*shape[:-1], size)

    def reduced(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        axis = len(shape) - 1
        kind, keep = self.pick("sum", "mean", "max", "min"), self.draw(st.booleans())
        result = self.b.reduce(x, kind, axes=[axis], keepdims=keep)
        return result, (*shape[:-1], 1) if keep else shape[:-1]

    def transposed(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        order = self.draw(st.permutations(range(len(shape))))
        return self.b.transpose(x, order), tuple(shape[i] for i in order)

    def reshaped(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        """Put the last two dimensions together, or split one off."""
        if isinstance(shape[-1], int) and isinstance(shape[-2], int):
            merged = shape[-2] * shape[-1]
            return self.b.reshape(x, [0] * (len(shape) - 2) + [merged]), (*shape[:-2], merged)
        if isinstance(shape[-1], int):
            target = [0] * (len(shape) - 1) + [1, shape[-1]]
            return self.b.reshape(x, target), (*shape[:-1], 1, shape[-1])
        return self.b.neg(x), shape

    def concatenated(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        if not isinstance(shape[-1], int):
            return self.b.relu(x), shape
        others = [(v, s) for v, s in self.values if s[:-1] == shape[:-1] and len(s) == len(shape)]
        others = [(v, s) for v, s in others if isinstance(s[-1], int)]
        y, other = self.pick(*others)
        axis = len(shape) - 1
        return self.b.concat([x, y], axis=axis), (*shape[:-1], shape[-1] + other[-1])

    def broadcast(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        row = self.b.broadcast_to(self.b.constant(self.array(1, shape[1])), list(shape))
        return self.b.add(x, row), shape

    def sparse(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        rows = self.pick(1, 4, shape[0])
        return self.b.spmm(self.matrix(rows, shape[0]), x), (rows, shape[1])

    def attention(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        """Scores of edges, a softmax over those of a row, and what they weigh."""
        b, a = self.b, self.matrix(shape[0], shape[0])
        if self.draw(st.booleans()):
            a = b.normalize(a, self.pick("symmetric", "row"))
            return b.spmm(a, x), shape
        scores = b.sddmm(a, b.tanh(x), b.tanh(x), "dot")
        scores = self.pick(scores, b.edge_softmax(a, scores), b.entries(a))
        return b.aggregate(a, x, scores, self.pick("sum", "mean", "max", "min")), shape

    def through_f16(self, x: Value) -> Value:
        self.rounds_to_f16 = True
        return self.b.cast(self.b.cast(self.b.tanh(x), "f16"), self.dtype)

    def frozen(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        """Add what only constants go into."""
        b, columns = self.b, sizes(shape)[-1:]
        c = b.sqrt(b.exp(self.b.constant(self.array(*columns))))
        return self.b.sub(x, c) if columns == shape[-1:] else self.b.add(x, 1.0), shape

    def padded(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        low = [self.pick(0, 0, 1) if isinstance(n, int) else 0 for n in shape]
        high = [self.pick(0, 1, 2) if isinstance(n, int) else 0 for n in shape]
        static = all(isinstance(n, int) and n for n in shape)
        mode = self.pick("constant", "edge") if static else "constant"
        value = self.pick(0.0, -1.5) if mode == "constant" else 0.0
        padded = self.b.pad(x, low, high, value, mode)
        margins = [a + z for a, z in zip(low, high, strict=True)]
        return padded, tuple(n + m if m else n for n, m in zip(shape, margins, strict=True))

    def condition(self, shape: Shape) -> Value:
        """Truth values that broadcast to a shape, from what is exact."""
        b = self.b
        fitting = [v for v, s in self.exact if s == shape]
        if fitting and self.draw(st.booleans()):
            compare = self.pick("less", "greater_equal", "less_equal", "greater", "equal")
            truth = getattr(b, compare)(self.pick(*fitting), self.pick(0.0, 0.5))
            return b.logical_not(truth) if self.draw(st.booleans()) else truth
        columns = [n if isinstance(n, int) else 1 for n in shape[-1:]]
        return self.given(self.rng.integers(0, 2, columns).astype(np.bool_), "i1")

    def chosen(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        others = [v for v, s in self.values if s == shape]
        return self.b.where(self.condition(shape), x, self.pick(*others)), shape

    def counted(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        """Add integers, which overflow as they do in C."""
        b, dtype = self.b, self.pick("i8", "i32", "i64", "ui8")
        columns = [n if isinstance(n, int) else 1 for n in shape[-1:]]
        n = self.given(self.rng.integers(0, 100, columns).astype(INTEGERS[dtype]), dtype)
        number = self.pick(2, 3)
        n = getattr(b, self.pick("add", "mul", "sub", "max", "div"))(n, number)
        if self.draw(st.booleans()):
            n = b.cast(b.clip(n, 0, 7), self.pick("i32", "i64"))
        return b.add(x, b.mul(b.cast(n, self.dtype), 0.01)), shape

    def gathered(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        axis = self.pick(*range(len(shape)))
        size = sizes(shape)[axis]
        if not size:
            return self.b.tanh(x), shape
        count = self.pick(1, 3)
        places = self.rng.integers(-size, size, count).astype(np.int64)
        indices = self.given(places, "i64")
        return self.b.gather(x, indices, axis=axis), (*shape[:axis], count, *shape[axis + 1 :])

    def cumulated(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        axis, kind = self.pick(*range(len(shape))), self.pick("sum", "prod", "max", "min")
        # The exclusive maximum of nothing is an infinity, and a product may become one.
        exclusive = kind in ("sum", "prod") and self.draw(st.booleans())
        x = self.b.clip(x, -1.5, 1.5) if kind == "prod" else x
        return self.b.cumulative(x, kind, axis, exclusive, self.draw(st.booleans())), shape

    def placed(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        """The place of an extremum of what is exact: that of what is rounded may be another."""
        x, shape = self.pick(*self.exact)
        axis, keep = self.pick(*range(len(shape))), self.draw(st.booleans())
        kind, last = self.pick("max", "min"), self.draw(st.booleans())
        place = self.b.arg_reduce(x, kind, axis, keep, last)
        one = (1,) if keep else ()
        return self.b.cast(place, self.dtype), (*shape[:axis], *one, *shape[axis + 1 :])

    def places(self, size: int, shape: Shape) -> Value:
        """Indices in a dimension of a size, negative ones too."""
        indices = self.rng.integers(-size, size, sizes(shape))
        if all(isinstance(n, int) for n in shape):
            return self.given(indices, "i64")
        return self.input(shape, indices, "i64")

    def picked(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        if self.draw(st.booleans()):
            count, given = self.pick(*range(1, len(shape) + 1)), (self.pick(1, 3),)
            indices = [self.places(size, given) for size in sizes(shape)[:count]]
            return self.b.gather_nd(x, indices), (*given, *shape[count:])
        axis = self.pick(*range(len(shape)))
        given = (*shape[:axis], self.pick(1, 3), *shape[axis + 1 :])
        indices = self.places(sizes(shape)[axis], given)
        return self.b.gather_elements(x, indices, axis=axis), given

    def scattered(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        """Put slices or elements of another value of the shape, or of x itself, into x."""
        axis, kind = self.pick(*range(len(shape))), self.pick("none", "add", "mul", "max", "min")
        updates = self.pick(*(v for v, s in self.values if s == shape))
        if axis:
            places = self.places(sizes(shape)[axis], shape)
            return self.b.scatter_elements(x, places, updates, axis=axis, kind=kind), shape
        places = self.places(sizes(shape)[0], shape[:1])
        return self.b.scatter_nd(x, updates, [places], kind=kind), shape

    def convolution(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        b, channels, space = self.b, shape[1], shape[2:]
        groups = self.pick(1, channels)
        wide = groups * self.pick(1, 2)
        window = [self.pick(1, 2) for _ in space]
        stride = [self.pick(1, 1, 2) for _ in space]
        w = self.array(wide, channels // groups, *window, scale=0.5)
        bias = [self.array(wide)] if self.draw(st.booleans()) else []
        y = b.conv(x, w, *bias, strides=stride, groups=groups)
        return y, (shape[0], wide, *windows(space, window, stride))

    def pooled(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        window = [self.pick(1, 2) for _ in shape[2:]]
        y = self.b.pool(x, self.pick("max", "mean", "sum", "min"), window, strides=window)
        return y, (*shape[:2], *windows(shape[2:], window, window))

    def case(self, shapes: tuple[Shape, ...], steps: int) -> Case:
        for shape in shapes:
            self.add_input(self.pick(*shapes) if self.values else shape)
        for _ in range(steps):
            self.step()
        for value, _ in self.values[-self.draw(st.integers(1, 3)) :]:
            self.b.output(value)
        if self.integers and self.draw(st.booleans()):
            self.b.output(self.integers[-1])
        tolerance = TOLERANCE_OF_F16 if self.rounds_to_f16 else TOLERANCE
        return Case(self.b.module(), tuple(self.inputs), tolerance)


def sizes(shape: Shape) -> list[int]:
    """A shape as it is at run time."""
    return [ROWS if isinstance(n, str) else n for n in shape]


def windows(space: Sequence[Any], window: Sequence[int], stride: Sequence[int]) -> list[int]:
    """How often a window fits into each dimension."""
    return [(n - k) // s + 1 for n, k, s in zip(space, window, stride, strict=True)]


SHAPES: tuple[Shape, ...] = ((3, 4), ("n", 4), (2, 3, 4), (4,), (1, 1), ("n", 2, 4, 3))

IMAGES: tuple[Shape, ...] = (("n", 2, 4, 3), (2, 3, 4), (3, 4, 2, 2))


@st.composite
def cases(draw: st.DrawFn, steps: int = 10, favourite: str = "") -> Case:
    """A valid program of up to `steps` steps, with arguments."""
    shapes = IMAGES if favourite == "standardized" else SHAPES
    return Programs(draw, favourite).case(shapes, draw(st.integers(1, steps)))


@pytest.fixture(scope="session")
def programs() -> st.SearchStrategy[Case]:
    """Random valid programs of dense and sparse operators, with arguments for them."""
    return cases()


@pytest.fixture(scope="session")
def programs_with() -> Callable[[str], st.SearchStrategy[Case]]:
    """The function that gives random short programs with much of one kind of steps."""
    return lambda kind: cases(4, kind)


@pytest.fixture(scope="session")
def transformed() -> Callable[[Module, str], tuple[Module, CompilerContext]]:
    """The function that runs passes on a copy of a module."""
    return run


@pytest.fixture(scope="session")
def assert_same() -> Callable[..., Module]:
    """The function that demands equal results before and after passes."""
    return compare
