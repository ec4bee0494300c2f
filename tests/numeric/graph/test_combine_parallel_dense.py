"""Products of one operand: which are combined, and that they mean the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import stepwell as sw
from stepwell.frontends.builder import Builder, Value

from ...harness import floats

PASSES = "graph-combine-parallel-dense,graph-simplify,graph-fold-constant,canonicalize"


def layers(b: Builder, x: Value, *widths: int, bias: bool = True) -> list[Value]:
    return [b.dense(x, floats(n, 9), *([floats(n)] if bias else [])) for n in widths]


COMBINED: dict[str, tuple[Callable[[Builder, Value], Value], list[str]]] = {
    "put together again": (
        lambda b, x: b.concat(layers(b, x, 2, 1, 4), axis=1),
        ["dense"],
    ),
    "with epilogues": (
        lambda b, x: b.concat([b.relu(y * floats(2)) for y in layers(b, x, 2, 2)], axis=1),
        ["dense", "mul", "relu"],
    ),
    "matmul": (
        lambda b, x: b.concat([b.matmul(x, floats(9, 2)), b.matmul(x, floats(9, 3))], axis=1),
        ["matmul"],
    ),
    "read where they are": (
        lambda b, x: b.sigmoid((p := layers(b, x, 3, 3))[0]) * p[1],
        ["dense", "slice", "sigmoid", "slice", "mul"],
    ),
    "other functions after": (
        lambda b, x: b.tanh((p := layers(b, x, 3, 3, bias=False))[0]) * b.relu(p[1]),
        ["dense", "slice", "slice", "tanh", "relu", "mul"],
    ),
}

KEPT: dict[str, Callable[[Builder, Value], Value]] = {
    "different kinds": lambda b, x: b.dense(x, floats(3, 9)) + b.matmul(x, floats(9, 3)),
    "one without bias": lambda b, x: b.dense(x, floats(3, 9), floats(3)) + b.dense(x, floats(3, 9)),
    "different operands": lambda b, x: b.dense(x, floats(3, 9)) + b.dense(b.relu(x), floats(3, 9)),
    "computed weights": lambda b, x: (
        b.dense(x, b.reduce(x, "sum", [0], True)) + b.dense(x, floats(1, 9))
    ),
    "one after the other": lambda b, x: b.dense(b.dense(x, floats(9, 9)), floats(9, 9)),
}


def program(build: Callable[[Builder, Value], Value], rows: int | str) -> sw.Module:
    b = sw.Builder()
    b.output(build(b, b.input("x", (rows, 9))))
    return b.module()


def operators(module: sw.Module) -> list[str]:
    names = [op.name.removeprefix("graph.") for op in module.main.body.block.ops]
    return [name for name in names if name not in ("constant", "func.return")]


@pytest.mark.parametrize("rows", [3, 1, "n"])
@pytest.mark.parametrize("name", COMBINED)
def test_combined(name: str, rows: int | str, assert_same: Callable[..., sw.Module]) -> None:
    build, expected = COMBINED[name]
    x = floats(3 if rows == "n" else int(rows), 9)
    # The wide product may sum in another order.
    after = assert_same(program(build, rows), PASSES, x, tolerance=2e-6)
    assert sorted(operators(after)) == sorted(expected)


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str, assert_same: Callable[..., sw.Module]) -> None:
    module = program(KEPT[name], 3)
    after = assert_same(module, "graph-combine-parallel-dense", floats(3, 9), tolerance=0)
    assert operators(after) == operators(module)


def test_three_or_more(transformed: Callable) -> None:
    module = program(COMBINED["matmul"][0], 3)
    after, _ = transformed(module, "graph-combine-parallel-dense{min-products=3}")
    assert operators(after) == operators(module)


def test_it_says_what_it_decided_and_at_which_cost(transformed: Callable) -> None:
    b = sw.Builder()
    x = b.input("x", (3, 9))
    for name, n in (("q", 8), ("k", 8)):
        b.output(b.dense(x, floats(n, 9), name=name))
    _, ctx = transformed(b.module(), "graph-combine-parallel-dense")
    assert str(ctx.decisions[0]) == (
        'nodes "q", "k": keep the products separate, because slices would cost more '
        "[for each row 9 fewer elements to read, 32 to copy]"
    )
