"""Random kernels of the loop level with random schedules, interpreted and compiled."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from stepwell.backends.reference.machine import run_kernel
from stepwell.core.distances import distance
from stepwell.core.ir.weights import WeightStore
from stepwell.core.pipelines.staircase import pipeline
from stepwell.core.registry import make_context
from stepwell.core.target import named
from stepwell.dialects.loop.ops import KernelOp

from ..numeric.loop.conftest import Kernels, parse, run_compiled
from ..numeric.loop.test_random_loops import FLOATS, INTEGERS, Nest
from .choices import Choices
from .documented import arguments, documented
from .outcomes import Counts, DifferenceError, Outcome
from .schedules import lowering, schedule, schedule_whole

Arrays = list[np.ndarray]
COMPILED = 0.3
"""How often a kernel becomes machine code, which takes most of the time."""
MOST_ULP = 200
"""Sums of at most 60 terms, exponentials and quotients of them, in another order."""


class Texts:
    """Texts of kernels with arguments; the last one is what they write."""

    def __init__(self, choices: Choices) -> None:
        self.choices, self.kernels = choices, Kernels()
        self.random = np.random.default_rng(choices.getrandbits(32))

    def any(self) -> tuple[str, Arrays]:
        """One of them."""
        ways = (self.dense, self.matmul, self.softmax, self.spmm, self.blurred, self.centred)
        return self.choices.among(*ways, self.padded, self.carried, self.carried, self.moved)()

    def size(self) -> int:
        """A size that is not 0."""
        return max(1, self.choices.size())

    def open(self, size: int) -> int | None:
        """A size as it is in a type: itself, or unknown."""
        return size if self.choices.chance(0.5) else None

    def numbers(self, *shape: int, kind: str = "f32") -> np.ndarray:
        """Normal numbers, or small whole ones."""
        if kind.startswith("i"):
            return self.random.integers(-4, 5, shape).astype(kind.replace("i", "int"))
        return self.random.standard_normal(shape).astype(kind.replace("f", "float"))

    def dense(self) -> tuple[str, Arrays]:
        m, n, k = self.size(), self.size(), self.size()
        kind, numbers = self.choices.among("f32", "f64"), self.numbers
        shapes = ((m, k), (n, k), (n,), (m, n))
        text = self.kernels.dense(self.open(m), self.open(n), self.open(k), kind)
        return text, [numbers(*shape, kind=kind) for shape in shapes]

    def matmul(self) -> tuple[str, Arrays]:
        batch, m, n, k = self.choices.randint(1, 2), self.size(), self.size(), self.size()
        kind = self.choices.among("f32", "f64", "i32", "i64")
        shapes = ((batch, m, k), (k, n), (batch, m, n))
        text = self.kernels.matmul(batch, self.open(m), self.open(n), self.open(k), kind)
        return text, [self.numbers(*shape, kind=kind) for shape in shapes]

    def softmax(self) -> tuple[str, Arrays]:
        m, n = self.size(), self.size()
        text = self.kernels.softmax(self.open(m), self.open(n))
        return text, [self.numbers(m, n) for _ in range(2)]

    def spmm(self) -> tuple[str, Arrays]:
        rows, columns, features = self.size(), self.size(), self.size()
        lengths = self.random.integers(0, columns + 1, rows)
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        inside = [np.sort(self.random.choice(columns, n, replace=False)) for n in lengths]
        indices = np.concatenate([*inside, []]).astype(np.int32)
        numbers = self.numbers
        arrays = [indptr, indices, numbers(len(indices)), numbers(columns, features)]
        hidden = self.choices.among(None, self.size())
        arrays += [numbers(features)]
        if hidden:
            arrays += [numbers(features, hidden)]
        known = features if hidden else self.open(features)
        return self.kernels.spmm(known, hidden), [*arrays, numbers(rows, hidden or features)]

    def blurred(self) -> tuple[str, Arrays]:
        rows, columns, width = self.size(), self.size(), self.choices.randint(1, 4)
        text = self.kernels.blurred(rows, columns, width)
        shapes = ((rows, columns + width - 1), (1,), (rows, columns))
        return text, [self.numbers(*shape) for shape in shapes]

    def centred(self) -> tuple[str, Arrays]:
        m, n, k = self.size(), self.size(), self.size()
        text = self.kernels.centred(self.open(m), n, (self.open(k) and k) or k)
        return text, [self.numbers(*shape) for shape in ((m, k), (n, k), (n,), (m, n))]

    def padded(self) -> tuple[str, Arrays]:
        rows, columns = self.size(), self.size()
        low, high = self.choices.randint(0, 3), self.choices.randint(0, 3)
        shapes = ((rows, columns), (rows + low + high, columns + low + high))
        text = self.kernels.padded(rows, columns, low, high)
        return text, [self.numbers(*shape) for shape in shapes]

    def carried(self) -> tuple[str, Arrays]:
        """Several values carried by loops in loops, each with a combiner."""
        choices, integers = self.choices, self.choices.chance(0.4)
        names = choices.some(sorted(INTEGERS if integers else FLOATS), 3)
        outer, inner = (
            choices.among("", "tiles", "serial"),
            choices.among("", "serial", "reduction"),
        )
        nest = Nest(
            integers, tuple(names), choices.randint(1, 9), choices.randint(1, 20), outer, inner
        )
        kind = np.int32 if integers else np.float32
        return nest.text, [nest.numbers(), np.zeros((nest.rows, len(names)), kind)]

    def moved(self) -> tuple[str, Arrays]:
        """Elements of two buffers, each read in an order of its own and moved by an offset."""
        choices, rank = self.choices, self.choices.randint(1, 3)
        names, sizes = "ijk"[:rank], [self.size() for _ in range(rank)]
        kind = choices.among("f32", "f64", "i32", "i64", "f16")
        unknown = [choices.chance(0.4) for _ in names]
        out = _buffer(sizes, unknown, kind)
        dims, given = _listed("d", range(rank)), _listed("%", names)
        heads, body, arrays = list[str](), list[str](), list[np.ndarray]()
        for n in range(2):
            order = choices.sample(range(rank), choices.randint(1, rank))
            moved = {d: choices.among(0, 0, 1, 2) for d in order}
            shape = [sizes[d] + by for d, by in moved.items()]
            buffer = _buffer(shape, [False] * len(shape), kind)
            place = ", ".join(f"d{d} + {by}" if by else f"d{d}" for d, by in moved.items())
            heads.append(f"%x{n}: {buffer}")
            access = f"%x{n} ({dims}) -> ({place})({given})"
            body.append(f"%v{n} = loop.load {access} : {buffer}, {kind}")
            arrays.append(self.numbers(*shape, kind=kind))
        own = "addf" if kind.startswith("f") else "muli"
        body.append(f"%r = arith.{own} %v0, %v1 : {kind}")
        body.append(f"loop.store %r, %y ({dims}) -> ({dims})({given}) : {kind}, {out}")
        begins = [f"%c{d} = arith.constant {d} : index" for d in range(rank)]
        begins += [f"%n{d} = memref.dim %y, %c{d} : {out}" for d in range(rank)]
        loops = [
            f'loop.for "{name}" %{name} to {f"%n{d}" if unknown[d] else sizes[d]} '
            f"{choices.among('', '', 'serial', '' if d else 'tiles')} {{"
            for d, name in enumerate(names)
        ]
        lines = "\n".join([*begins, *loops, *body, "}" * rank])
        text = f"loop.kernel @moved({', '.join(heads)}) -> (%y: {out}) {{\n{lines}\n}}"
        return text, [*arrays, self.numbers(*sizes, kind=kind)]


def _listed(prefix: str, names: Iterable[object]) -> str:
    return ", ".join(f"{prefix}{name}" for name in names)


def _buffer(sizes: Sequence[int], unknown: Sequence[bool], kind: str) -> str:
    texts = ["?" if open_ else str(n) for n, open_ in zip(sizes, unknown, strict=True)]
    return f"memref<{'x'.join([*texts, kind])}>"


def check_nest(seed: int) -> Outcome:
    """Compare a kernel with itself after random primitives, interpreted and at times compiled.

    Raises:
        DifferenceError: if results differ, or the kernel is refused.
    """
    choices, counts = Choices(f"loop {seed}"), Counts()
    text, arrays, first = _chosen(choices, seed)
    kernel = parse(text)
    arrays = arrays or arguments(kernel, np.random.default_rng(seed))
    counts.occur(kernel)
    expected = _ran(kernel, arrays, run_kernel)
    module = kernel.parent_op()
    assert isinstance(module, ModuleOp), "the parser makes one"
    steps: list[str] = []
    try:
        ctx = make_context(WeightStore(), named("host"))
        ctx.hooks.append(counts)
        module, steps = schedule(choices, ctx, module, choices.randint(0, 6), first)
        if choices.chance(0.4):
            module = schedule_whole(choices, ctx, module, steps)
        after = next(op for op in module.ops if isinstance(op, KernelOp))
        _compare(run_kernel, after, arrays, expected)
        if choices.chance(COMPILED):
            texts = lowering(choices, pipeline())
            steps.append(texts["llvm"])
            run = functools.partial(run_compiled, texts=texts, hooks=[counts])
            _compare(run, after, arrays, expected)
    except Exception as error:
        raise DifferenceError(f"{steps}: {type(error).__name__}: {error}\n{text}") from error
    return Outcome("same", counts.passes, counts.operations)


def _chosen(choices: Choices, seed: int) -> tuple[str, Arrays, str]:
    """The text of a kernel, arguments if there are special ones, and the first primitive if any.

    Every second seed has a kernel of the documentation, each of them in turn.
    """
    number, rest = divmod(seed, 2)
    if rest:
        return *Texts(choices).any(), ""
    text, first = documented()[number % len(documented())]
    return text, [], first if choices.chance(0.8) else ""


def _compare(run: Any, kernel: KernelOp, arrays: Arrays, expected: np.ndarray) -> None:
    got = _ran(kernel, arrays, run)
    far = distance(got, expected)[0]
    if far > (MOST_ULP if got.dtype.kind == "f" else 0):
        name = "machine code" if run is not run_kernel else "interpreted"
        raise DifferenceError(f"{name}: {far:.3g} ulp")


def _ran(kernel: KernelOp, arrays: Arrays, run: Any) -> np.ndarray:
    copies = [array.copy() for array in arrays]
    copies[-1].fill(77)  # what is not written shows
    run(kernel, copies)
    return copies[-1]
