"""Kernels in both orders of their independent iterations: random ones, and scheduled ones changed.

Kernels load, store and accumulate at random places, also over their input. What the verifier
accepts has one result: that of a direct interpretation, forwards and backwards; and so has what
each step makes of it, or the step is refused. Numbers are small integers, so that sums are exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from stepwell.backends.reference import loop as reference
from stepwell.backends.reference.machine import run_kernel
from stepwell.core.algebra.affine import normalized
from stepwell.core.errors import CompileError
from stepwell.core.registry import make_context
from stepwell.core.target import named
from stepwell.dialects.loop.attrs import LoopKind, LoopKindAttr
from stepwell.dialects.loop.nests import ScheduleError, loop_names
from stepwell.dialects.loop.ops import ForOp, KernelOp, StoreOp
from stepwell.dialects.loop.trace import trace_of
from stepwell.passes.loop.schedule import schedule_kernel
from stepwell.passes.loop.scheduler.replay import replay

SIZE = 12
"""The elements of each buffer."""
VECTOR = f"memref<{SIZE}xf32>"
JOINS = {"add": np.add, "max": np.maximum, "min": np.minimum}


@dataclass(frozen=True)
class Place:
    """An element: factors of the loop variables around, and an offset; of a ring if `wraps`."""

    factors: tuple[int, ...]
    offset: int

    def text(self, names: Sequence[str]) -> str:
        terms = " + ".join(f"d{n} * {f}" for n, f in enumerate(self.factors))
        dims = ", ".join(f"d{n}" for n in range(len(names)))
        variables = ", ".join(f"%{name}" for name in names)
        return f"({dims}) -> (({terms} + {self.offset}) mod {SIZE})({variables})"

    def at(self, variables: Sequence[int]) -> int:
        return (sum(map(int.__mul__, self.factors, variables)) + self.offset) % SIZE


@dataclass(frozen=True)
class Statement:
    """``to[there] = combine(to[there], of[here] + 1)``, without a combiner ``of[here] + 1``."""

    to: str
    there: Place
    of: str
    here: Place
    combine: str | None


@dataclass(frozen=True)
class Nest:
    """Loops, one inside of the other, with statements in the innermost one."""

    extents: tuple[int, ...]
    kinds: tuple[str, ...]
    body: tuple[Statement, ...]

    def names(self, number: int) -> list[str]:
        return [f"{letter}{number}_" for letter in "ijk"[: len(self.extents)]]


@dataclass(frozen=True)
class Program:
    """Nests inside of a loop, after one that fills `h`; `y` is written over `x`, `z` is not."""

    nests: tuple[Nest, ...]
    outer: tuple[int, str]

    @property
    def text(self) -> str:
        lines = [
            f"loop.kernel @k(%x: {VECTOR}) -> (%y: {VECTOR} {{loop.in_place = [0]}}, %z: {VECTOR})",
            "{ %one = arith.constant 1.0 : f32",
            f'loop.for "a" %a to {SIZE} {{ %v = loop.load %x (d0) -> (d0)(%a) : {VECTOR}, f32',
            f"loop.store %v, %z (d0) -> (d0)(%a) : f32, {VECTOR}",
            "%w = arith.addf %v, %one : f32",
            f"loop.store %w, %y (d0) -> (d0)(%a) : f32, {VECTOR} }}",
            f'loop.for "o" %o to {self.outer[0]} {self.outer[1]} {{',
            f"%h = loop.local : {VECTOR}",
            f'loop.for "b" %b to {SIZE} {{ loop.store %one, %h (d0) -> (d0)(%b)',
            f": f32, {VECTOR} }}",
        ]
        for number, nest in enumerate(self.nests):
            names = nest.names(number)
            for name, extent, kind in zip(names, nest.extents, nest.kinds, strict=True):
                lines.append(f'loop.for "{name}" %{name} to {extent} {kind} {{')
            for place, one in enumerate(nest.body):
                inside = ["o", *names]
                lines += [
                    f"%p{place} = loop.load %{one.of} {one.here.text(inside)} : {VECTOR}, f32",
                    f"%q{place} = arith.addf %p{place}, %one : f32",
                    f"loop.store {one.combine or ''} %q{place}, %{one.to}",
                    f"{one.there.text(inside)} : f32, {VECTOR}",
                ]
            lines.append("}" * len(names))
        return "\n".join([*lines, "} }"])

    def results(self, x: np.ndarray) -> list[np.ndarray]:
        """`y` and `z`, interpreted in the order of the text."""
        x = x.copy()
        buffers = {"x": x, "y": x, "z": x.copy()}
        x += 1
        for o in range(self.outer[0]):
            buffers["h"] = np.ones_like(x)
            for nest in self.nests:
                for rest in itertools.product(*map(range, nest.extents)):
                    for one in nest.body:
                        value = buffers[one.of][one.here.at((o, *rest))] + 1
                        buffer, place = buffers[one.to], one.there.at((o, *rest))
                        join = JOINS.get(one.combine or "")
                        buffer[place] = value if join is None else join(buffer[place], value)
        return [buffers["y"], buffers["z"]]


FACTORS = st.sampled_from([0, 1, 1, 2, 3, 4, 6, -1])


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    depth = draw(st.integers(1, 2))
    extents = tuple(draw(st.integers(1, 4)) for _ in range(depth))
    kinds = tuple(draw(st.sampled_from(["", "", "serial"])) for _ in range(depth))

    def place() -> Place:
        # Half of the places are those of a row-major array, of which each iteration has its own.
        if draw(st.booleans()):
            inner = extents[1] if depth > 1 else 1
            return Place((0, inner, 1)[: depth + 1], 0)
        return Place(tuple(draw(FACTORS) for _ in range(depth + 1)), draw(st.integers(0, 5)))

    def statement() -> Statement:
        return Statement(
            draw(st.sampled_from("yzh")),
            place(),
            draw(st.sampled_from("xyzh")),
            place(),
            draw(st.sampled_from([None, *JOINS])),
        )

    return Nest(extents, kinds, tuple(statement() for _ in range(draw(st.integers(1, 2)))))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    outer = draw(st.integers(1, 3)), draw(st.sampled_from(["serial", "serial", ""]))
    return Program(tuple(draw(nests()) for _ in range(draw(st.integers(1, 2)))), outer)


@st.composite
def steps(draw: st.DrawFn, program: Program) -> list[str]:
    """Steps that name loops of the program, some of which will be refused."""
    loops = ["a", "o", "b", *(n for i, nest in enumerate(program.nests) for n in nest.names(i))]
    inner = st.sampled_from([*loops, *(f"{loop}{end}" for loop in loops for end in "01")])
    loop, other = draw(inner), draw(inner)
    first = program.nests[0].names(0)
    texts = [
        f"split({loop}, {draw(st.integers(2, 4))}, tail={draw(st.sampled_from(['peel', 'mask']))})",
        f"vectorize({loop})",
        f"vectorize({first[-1]})",
        f"reorder({', '.join(reversed(first))})",
        f"fuse({', '.join(first) if len(first) > 1 else f'{loop}, {other}'})",
        f"compute_at({loop}, {other})",
        f"compute_at(b, {first[0]})",
        f"merge({loop}, {other})",
        f"sink({loop})",
        f"stage({draw(st.integers(0, 2))}, {loop})",
        f"distribute(o, {draw(st.sampled_from(['b', first[0]]))})",
        f"hoist({loop})",
        f"tiles({loop})",
        f"unroll({loop}, {draw(st.integers(1, 4))})",
        f"split_border({loop}, 1, {draw(st.integers(0, 1))})",
        "drop_unit_loops()",
    ]
    return draw(st.lists(st.sampled_from(texts), min_size=1, max_size=3))


def parsed(text: str) -> KernelOp:
    module = Parser(make_context(), text).parse_module()
    kernel = module.body.block.first_op
    assert isinstance(kernel, KernelOp)
    return kernel


def verified(kernel: KernelOp) -> KernelOp:
    module = kernel.parent_op()
    (module if isinstance(module, ModuleOp) else ModuleOp([kernel])).verify()
    return kernel


def in_both_orders(kernel: KernelOp, arrays: Sequence[np.ndarray]) -> Iterator[list[np.ndarray]]:
    """Copies of the arguments after a run, for both orders of independent iterations.

    Arguments that are the same array are the same copy.
    """
    for order in (reversed, list):
        copies = {id(array): array.copy() for array in arrays}
        given = [copies[id(array)] for array in arrays]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reference, "reversed", order, raising=False)
            run_kernel(kernel, given)
        yield given


@settings(deadline=None, max_examples=settings().max_examples * 50 // 100)
@given(program=programs(), data=st.data())
def test_what_is_accepted_has_one_result(program: Program, data: st.DataObject) -> None:
    kernel = parsed(program.text)
    try:
        verified(kernel)
    except VerifyException as error:
        assume("may depend on one another" not in str(error))
        raise
    x = np.arange(SIZE, dtype=np.float32) * 5 % 7
    arrays, expected = [x, x, np.full_like(x, 77)], program.results(x)
    for got in in_both_orders(kernel, arrays):
        np.testing.assert_array_equal(got[1:], expected)
    for step in data.draw(steps(program)):
        before = str(kernel)
        try:
            kernel = replay(kernel, step)
        except ScheduleError:
            assert str(kernel) == before
            continue
        verified(kernel)
        for got in in_both_orders(kernel, arrays):
            np.testing.assert_array_equal(got[1:], expected, f"after {step}")


COLUMNS = """
loop.kernel @columns(%x: memref<?x37xf32>) -> (%y: memref<37xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %m = memref.dim %x, %c0 : memref<?x37xf32>
  loop.for "z" %z to 37 { loop.store %one, %y (d0) -> (d0)(%z) : f32, memref<37xf32> }
  loop.for "i" %i to %m serial {
    loop.for "j" %j to 37 {
      %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<?x37xf32>, f32
      %w = loop.load %y (d0) -> (d0)(%j) : memref<37xf32>, f32
      %s = math.fma %w, %v, %v : f32
      loop.store %s, %y (d0) -> (d0)(%j) : f32, memref<37xf32>
    }
  }
}"""

SCHEDULED: dict[str, tuple[Callable[[Any], str], tuple[tuple[int, ...], ...]]] = {
    "columns": (lambda k: COLUMNS, ((4, 37), (37,))),
    "dense": (lambda k: k.dense(None, 20, 9), ((7, 9), (20, 9), (20,), (7, 20))),
    "softmax": (lambda k: k.softmax(3, None), ((3, 21), (3, 21))),
    "blurred": (lambda k: k.blurred(2, 19), ((2, 21), (1,), (2, 19))),
    "centred": (lambda k: k.centred(3, 9, 5), ((3, 5), (9, 5), (9,), (3, 9))),
    "padded": (lambda k: k.padded(4, 9, 1, 2), ((4, 9), (7, 12))),
    "sparse": (lambda k: k.spmm(8), ((6, 8), (8,), (5, 8))),
    "rows": (lambda k: k.spmm(8, 5), ((6, 8), (8,), (8, 5), (5, 5))),
}


def changed(kernel: KernelOp) -> Iterator[KernelOp]:
    """Copies of a kernel, each without the order of a loop, or with a store that stays in place."""
    for number, op in enumerate(kernel.walk()):
        for axis in range(len(op.map.data.results) if isinstance(op, StoreOp) else 1):
            clone = kernel.clone()
            copy = list(clone.walk())[number]
            if isinstance(copy, ForOp) and copy.kind.data == LoopKind.SERIAL and copy.is_plain:
                copy.kind = LoopKindAttr(LoopKind.PARALLEL)
                yield clone
            elif isinstance(copy, StoreOp) and copy.indices:
                copy.map = AffineMapAttr(_without_dims(copy.map.data, axis))
                yield clone


def _without_dims(map: AffineMap, axis: int) -> AffineMap:
    """A map with 0 for the dimensions in one of its results."""
    zeros = [AffineExpr.constant(0)] * map.num_dims
    symbols = [AffineExpr.symbol(number) for number in range(map.num_symbols)]
    results = list(map.results)
    results[axis] = normalized(results[axis], zeros, symbols)
    return AffineMap(map.num_dims, map.num_symbols, tuple(results))


@pytest.mark.parametrize("name", SCHEDULED)
def test_a_scheduled_kernel_that_was_changed(kernels, csr, normal, name: str) -> None:
    """It is refused, or has the same results in both orders; or an index is out of bounds."""
    text, shapes = SCHEDULED[name]
    kernel = parsed(text(kernels))
    kernel.detach()
    kernel = schedule_kernel(kernel, named("x86-64-v3"))[0].kernel
    assert trace_of(kernel)
    verified(kernel)
    arrays = [*(csr([2, 0, 3, 6, 1], 6) if "e" in loop_names(kernel) else ()), *shapes]
    inputs = [normal(*a) if isinstance(a, tuple) else a for a in arrays]
    refused = 0
    for copy in changed(kernel):
        try:
            verified(copy)
        except VerifyException:
            refused += 1
            continue
        try:
            first, last = in_both_orders(copy, inputs)
        except CompileError:
            continue
        np.testing.assert_array_equal(first[-1], last[-1])
    assert refused
