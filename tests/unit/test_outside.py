"""Accesses that are certainly outside of their buffers, compared with all iterations."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.parser import Parser

from stepwell.core.registry import make_context
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.proofs.outside import outside


def kernel(body: str, shape: str = "4x6") -> KernelOp:
    text = f"loop.kernel @k(%n: index, %x: memref<{shape}xf32>) -> () {{ {body} }}"
    module = Parser(make_context(), text).parse_module()
    return next(op for op in module.walk() if isinstance(op, KernelOp))


def found(body: str, shape: str = "4x6") -> list[tuple[int, int]]:
    return [(one.dimension, one.index) for one in outside(kernel(body, shape).body.block)]


FACTORS = st.tuples(*[st.integers(-2, 3)] * 3)


@settings(max_examples=40, deadline=None)
@given(FACTORS, FACTORS, st.tuples(st.integers(0, 3), st.integers(0, 4)))
def test_sums_of_loop_variables_are_decided(
    row: tuple[int, int, int], column: tuple[int, int, int], sizes: tuple[int, int]
) -> None:
    places = ", ".join(f"d0 * {a} + d1 * {b} + {c}" for a, b, c in (row, column))
    body = f"""
  loop.for "i" %i to {sizes[0]} {{
    loop.for "j" %j to {sizes[1]} {{
      %v = loop.load %x (d0, d1) -> ({places})(%i, %j) : memref<4x6xf32>, f32
    }}
  }}"""
    wrong = {
        dimension
        for i, j in itertools.product(*map(range, sizes))
        for dimension, ((a, b, c), size) in enumerate(zip((row, column), (4, 6), strict=True))
        if not 0 <= a * i + b * j + c < size
    }
    assert {dimension for dimension, _ in found(body)} == wrong


@pytest.mark.parametrize(
    ("bound", "map", "shape"),
    [
        ("%n", "(d0) -> (d0 + 9, 0)(%i)", "4x6"),
        ("%n", "() -> (9, 0)()", "4x6"),
        ("0", "() -> (9, 0)()", "4x6"),
        ("4", "(d0) -> (d0 + 9, 0)(%i)", "?x6"),
        ("4", "(d0) -> (d0 + 9, 0)(%i)", "4x0"),
        ("8", "(d0, d1) -> (d0 - d1, 0)(%i, %i)", "4x6"),
        ("8", "(d0) -> ((d0 * 4) mod 8, 0)(%i)", "5x6"),
        ("8", "(d0, d1) -> (d0 + d1 + 9, 0)(%i, %n)", "4x6"),
    ],
)
def test_what_need_not_be_outside_is_left_alone(bound: str, map: str, shape: str) -> None:
    load = f"%v = loop.load %x {map} : memref<{shape}xf32>, f32"
    assert not found(f'loop.for "i" %i to {bound} {{ {load} }}', shape)


def test_the_index_and_the_dimension_are_reported() -> None:
    load = "%v = loop.load %x (d0, d1) -> (d0 - 1, d1)(%i, %c) : memref<?x6xf32>, f32"
    body = f'%c = arith.constant 6 : index loop.for "i" %i to 2 {{ {load} }}'
    assert found(body, "?x6") == [(0, -1), (1, 6)]
