"""Random programs of the `graph` level, and the oracle: a pass keeps what they compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st

from stepwell.core.context import CompilerContext
from stepwell.core.module import Module, SparseSpec
from stepwell.core.pipelines import run_passes
from stepwell.core.registry import make_context
from stepwell.frontends.builder import Builder, Value

TOLERANCE = 1e-4
"""Of the largest element: a dozen operators on f32, whose rewrites round in other places."""

ROWS = 5
"""What a symbolic size is at run time."""

Shape = tuple[int | str, ...]


@dataclass(frozen=True)
class Case:
    """A program and arguments for it."""

    module: Module
    inputs: tuple[Any, ...]


def run(module: Module, passes: str) -> tuple[Module, CompilerContext]:
    """A copy of the module after the passes, and the context with what they decided."""
    copy = module.clone()
    ctx = make_context(copy.weights)
    run_passes(ctx, copy.op, passes)
    after = Module(copy.op, ctx.weights)
    after.verify()
    return after, ctx


def results(module: Module, inputs: tuple[Any, ...]) -> tuple[np.ndarray, ...]:
    found = module.run_reference(*inputs)
    return found if isinstance(found, tuple) else (found,)


def compare(module: Module, passes: str, *inputs: Any, tolerance: float = TOLERANCE) -> Module:
    """Run the passes and demand results that are equal up to `tolerance` of their scale."""
    after, _ = run(module, passes)
    for want, have in zip(results(module, inputs), results(after, inputs), strict=True):
        assert want.dtype == have.dtype
        assert want.shape == have.shape
        scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0)))
        np.testing.assert_allclose(
            have, want, rtol=tolerance, atol=tolerance * scale, err_msg=str(after)
        )
    return after


class Programs:
    """Builds one random program: each step adds an operator to values made before."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 2**16)))
        self.b = Builder()
        self.values: list[tuple[Value, Shape]] = []
        self.inputs: list[Any] = []

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def array(self, *shape: int, scale: float = 1.0) -> np.ndarray:
        return (self.rng.standard_normal(shape) * scale).astype(np.float32)

    def positive(self, *shape: int) -> np.ndarray:
        return self.rng.uniform(0.5, 2.0, shape).astype(np.float32)

    def add_input(self, shape: Shape) -> None:
        name = f"x{len(self.inputs)}"
        self.values.append((self.b.input(name, shape), shape))
        self.inputs.append(self.array(*(ROWS if isinstance(n, str) else n for n in shape)))

    def csr(self, rows: int, columns: int) -> sp.csr_array:
        matrix = sp.random_array((rows, columns), density=0.4, rng=self.rng, dtype=np.float64)
        return sp.csr_array(matrix).astype(np.float32)

    def step(self) -> None:
        """Add one operator."""
        x, shape = self.pick(*self.values)
        kinds = [self.unary, self.scalar, self.binary, self.scaled, self.normalized]
        if shape and isinstance(shape[-1], int):
            kinds += [self.dense, self.dense, self.siblings, self.sliced, self.reduced]
        if len(shape) >= 2:
            kinds += [self.transposed, self.reshaped, self.concatenated]
        if len(shape) == 2 and all(isinstance(n, int) for n in shape):
            kinds += [self.sparse, self.broadcast]
        self.values.append(self.pick(*kinds)(x, shape))

    def unary(self, x: Value, shape: Shape) -> tuple[Value, Shape]:
        b = self.b
        made = {
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
            "wide": lambda: b.cast(b.cast(x, "f64"), "f32"),
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
        matrix = self.csr(rows, shape[0])
        if self.draw(st.booleans()):
            name = f"a{len(self.inputs)}"
            a = self.b.input(name, SparseSpec(matrix.shape, nnz=matrix.nnz))
            self.inputs.append(matrix)
        else:
            a = self.b.constant(matrix)
        return self.b.spmm(a, x), (rows, shape[1])

    def case(self, shapes: tuple[Shape, ...], steps: int) -> Case:
        for shape in shapes:
            self.add_input(self.pick(*shapes) if self.values else shape)
        for _ in range(steps):
            self.step()
        for value, _ in self.values[-self.draw(st.integers(1, 3)) :]:
            self.b.output(value)
        return Case(self.b.module(), tuple(self.inputs))


SHAPES: tuple[Shape, ...] = ((3, 4), ("n", 4), (2, 3, 4), (4,), (1, 1))


@st.composite
def cases(draw: st.DrawFn, steps: int = 10) -> Case:
    """A valid program of up to `steps` steps, with arguments."""
    return Programs(draw).case(SHAPES, draw(st.integers(1, steps)))


@pytest.fixture(scope="session")
def programs() -> st.SearchStrategy[Case]:
    """Random valid programs of dense and sparse operators, with arguments for them."""
    return cases()


@pytest.fixture(scope="session")
def transformed() -> Callable[[Module, str], tuple[Module, CompilerContext]]:
    """The function that runs passes on a copy of a module."""
    return run


@pytest.fixture(scope="session")
def assert_same() -> Callable[..., Module]:
    """The function that demands equal results before and after passes."""
    return compare
