"""A kernel in Python that is wrong: one sentence, at the line of its author."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import stepwell as sw
from stepwell.dialects.graph.nests.body import NAMES
from stepwell.dialects.graph.nests.builder import KernelBuilder
from stepwell.dialects.graph.nests.scalars import FUNCTIONS

ROOT = Path(__file__).resolve().parents[2]


def call(function: Callable[..., Any], *inputs: str, sparse: bool = False) -> None:
    b = sw.Builder("main")
    names = inputs or ("x",)
    given = [b.input(name, (4, 3), "f32") for name in names]
    if sparse:
        matrix = sp.csr_array(np.eye(4, 3, dtype=np.float32))
        given = [b.constant(matrix)]
    b.call_kernel(sw.kernel(function), *given, results=sw.TensorSpec((4, 3), "f32"))


WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "maximum": (
        lambda k, x, i, j: k.max(x[i, j], 0.0),
        (
            "k.max is over a range, expected a number of iterations, or a.row(i), got Scalar "
            "(HERE); of two values it is k.maximum(a, b)"
        ),
    ),
    "sum": (
        lambda k, x, i, j: k.sum(3, x[i, 0]),
        (
            "k.sum of no function, expected k.sum(n, lambda i: ..), got Scalar (HERE); of two "
            "values it is a + b"
        ),
    ),
    "min": (
        lambda k, x, i, j: k.min(x[i, j], 0.0),
        "there is no k.min (HERE); nearest: k.sin, k.minimum",
    ),
    "unknown": (
        lambda k, x, i, j: k.gelu(x[i, j]),
        f"there is no k.gelu (HERE); there are {', '.join(f'k.{name}' for name in NAMES)}",
    ),
    "number": (
        lambda k, x, i, j: k.exp(2.0),
        "k.exp of something that is not a scalar, expected a scalar, got float (HERE)",
    ),
    "index": (
        lambda k, x, i, j: k.maximum(i, 2),
        (
            "k.maximum of something that is not a scalar, expected a scalar, got Index (HERE); "
            'k.cast(index, "f32") makes a scalar of an index'
        ),
    ),
    "index beside a scalar": (
        lambda k, x, i, j: i * x[i, j],
        (
            "wrong index, expected an index or an integer, got Scalar (HERE); "
            'k.cast(index, "f32") makes a scalar of an index'
        ),
    ),
    "scalar beside an index": (
        lambda k, x, i, j: x[i, j] * i,
        (
            "wrong value, expected a scalar or a number, got Index (HERE); "
            'k.cast(index, "f32") makes a scalar of an index'
        ),
    ),
    "buffer": (
        lambda k, x, i, j: k.cast(x, "f64"),
        (
            "k.cast of something that is not a scalar, expected a scalar, got Buffer (HERE); "
            "an element of a buffer is one, x[i, j]"
        ),
    ),
    "types": (
        lambda k, x, i, j: k.minimum(x[i, j], k.cast(i, "i32")),
        "k.minimum of different types, expected f32, got i32 (HERE)",
    ),
    "iterated": (
        lambda k, x, i, j: sum(x),
        '"x0" cannot be iterated over, expected `with k.loops(..)` or k.reduce (HERE)',
    ),
    "truth": (
        lambda k, x, i, j: x[i, j] if x[i, j] > 0 else 0,
        (
            "a scalar has no truth value before the kernel runs, expected k.where, k.maximum or "
            "k.minimum (HERE)"
        ),
    ),
    "python": (
        lambda k, x, i, j: np.linalg.norm(1, 2, 3, 4, 5),
        "raised TypeError: ",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_misuse_is_one_sentence_at_the_line(case: str) -> None:
    value, message = WRONG[case]

    def wrong(k: Any, x: Any, y: Any) -> None:
        with k.loops(4, 3) as (i, j):
            y[i, j] = value(k, x, i, j)

    line = f"{Path(__file__).name}:{value.__code__.co_firstlineno}"
    with pytest.raises(sw.CompileError) as caught:
        call(wrong)
    said = str(caught.value).replace('"x"', '"x0"')
    assert said.startswith(f'kernel "wrong": {message.replace("HERE", line)}')
    assert line in said
    assert "\n" not in said


def test_an_element_of_a_sparse_operand() -> None:
    def wrong(k: Any, a: Any, y: Any) -> None:
        with k.loops(4, 3) as (i, j):
            y[i, j] = a[i, j]

    message = r'"a" is sparse, and has no element at an index, expected k.sum\(a.row\(i\), lambda'
    with pytest.raises(sw.CompileError, match=message):
        call(wrong, sparse=True)


def test_an_operator_is_named_as_well() -> None:
    @sw.kernel
    def relu(k: Any, x: Any, y: Any) -> None:
        raise KeyError("why")

    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (4,), "f32"), name="act"), name="y")
    line = r"test_kernel_errors.py:\d+"
    with pytest.raises(sw.CompileError, match=rf"raised KeyError: 'why' \({line}, node \"act\"\)"):
        sw.compile(b.module(), legalize={"graph.relu": relu})


def test_all_of_a_kernel_is_documented() -> None:
    """The page lists what there is, with the parameters it has."""
    page = (ROOT / "docs" / "kernels-and-functions.md").read_text()
    table = page.partition("### What a kernel can use")[2].partition("\n\nA buffer has")[0]
    listed: dict[str, list[str]] = {}
    for row in table.splitlines():
        cell = row.removeprefix("| ").partition(" | ")[0]
        for name, parameters in re.findall(r"`k\.(\w+)(?:\((.*?)\))?`", cell):
            listed[name] = [p for p in parameters.split(", ") if p]
    assert sorted(listed) == list(NAMES)
    for name, parameters in listed.items():
        if name in FUNCTIONS:
            assert parameters == ["x"]
        elif name != "op":
            taken = list(inspect.signature(getattr(KernelBuilder, name)).parameters.values())[1:]
            stars = {inspect.Parameter.VAR_POSITIONAL: "*"}
            assert parameters == [f"{stars.get(p.kind, '')}{p.name}" for p in taken]
