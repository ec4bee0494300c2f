"""Operators replaced by rules and by kernels from a table."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from xdsl.dialects.builtin import bf16

import stepwell as sw
from stepwell.core import plugins
from stepwell.core.dtypes import ELEMENT_TYPES, dtype_of
from stepwell.core.errors import CompileError
from stepwell.core.instructions import INSTRUCTIONS
from stepwell.core.pipelines.staircase import pipeline, pipeline_text, run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import Target, host, named
from stepwell.core.universe import Universe
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.interfaces import GraphOp
from stepwell.dialects.loop.ops import KernelOp
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request

from ..harness import RNG, as_reference, cases, close, floats, same

W, BIAS = floats(5, 7), floats(5)


@sw.kernel
def dense(k, x, w, bias, y):
    with k.loops(*y.shape) as (i, j):
        total = k.sum(x.shape[1], lambda t: x[i, t] * w[j, t])
        y[i, j] = total if bias is None else total + bias[j]


@sw.kernel
def softmax(k, x, y):
    rows, columns = x.shape
    with k.loops(rows) as i:
        top = k.max(columns, lambda t: x[i, t])
        total = k.sum(columns, lambda t: k.exp(x[i, t] - top))
        with k.loops(columns) as j:
            y[i, j] = k.exp(x[i, j] - top) / total


@sw.kernel
def spmm(k, a, x, y):
    with k.loops(*y.shape) as (i, j):
        y[i, j] = k.sum(a.row(i), lambda column, value: value * x[column, j])


@sw.kernel
def gather(k, x, indices, y):
    with k.loops(*y.shape) as (i, j):
        place = indices[i]
        y[i, j] = x[k.where(place < 0, place + k.cast(x.shape[0], "i64"), place), j]


@sw.kernel
def relu(k, x, y):
    if len(x.shape) != 2:
        return NotImplemented
    with k.loops(*y.shape) as (i, j):
        y[i, j] = k.where(x[i, j] > 0, x[i, j], 0)
    return None


def model() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", ("n", 7), "f32")
    h = b.relu(b.dense(b.exp(x), W, bias=BIAS))
    b.output(b.softmax(b.dense(h, W[:, :5])), name="y")
    return b.module()


def as_operators(exe: sw.Executable, module: sw.Module, *inputs: Any, rtol: float = 1e-5) -> None:
    close(exe(*inputs), module.run_reference(*inputs), rtol, 1e-6)


@pytest.mark.parametrize("level", cases([0, 1, 3], [0, 3]))
def test_kernels_of_a_table_compute_operators(level: int) -> None:
    module = model()
    table = {"graph.dense": dense, "graph.softmax": softmax, "graph.relu": relu}
    exe = sw.compile(module, threads=1, opt_level=level, legalize=table)
    for n in (1, 6, 0, 40):
        as_operators(exe, module, floats(n, 7))
    kernels = exe.ir("kernels")
    assert "graph.softmax" not in exe.ir("optimized")
    assert kernels.count("loop.kernel") == (5 if level == 0 else 3)
    if level:
        assert "loop.kernel @fused_dense_relu" in kernels  # merged with its neighbour
        assert "vector<" in exe.ir("scheduled")
    assert "is computed by kernel dense" in exe.explain()


def test_a_kernel_of_a_sparse_operator() -> None:
    b = sw.Builder("main")
    a = b.input("a", sw.SparseSpec(("n", "m"), "f32"))
    x = b.input("x", ("m", 3), "f32")
    b.output(b.relu(b.spmm(a, x)))
    module = b.module()
    exe = sw.compile(module, threads=1, legalize={"graph.spmm": spmm})
    assert exe.ir("kernels").count("loop.kernel") == 1
    for shape in ((6, 9), (1, 1), (4, 2)):
        matrix = csr_array(random_array(shape, density=0.4, rng=RNG, dtype=np.float32))
        as_operators(exe, module, matrix, floats(shape[1], 3))


def test_indices_are_checked_before_a_kernel_uses_them() -> None:
    b = sw.Builder("main")
    x, ids = b.input("x", ("n", 4), "f32"), b.input("ids", ("m",), "i64")
    b.output(b.gather(x, ids, axis=0))
    module = b.module()
    exe = sw.compile(module, threads=1, legalize={"graph.gather": gather})
    x = floats(5, 4)
    as_operators(exe, module, x, np.array([4, 0, 0], np.int64))
    with pytest.raises(sw.InputError, match="out of range"):
        exe(x, np.array([5], np.int64))


def test_half_precision_and_booleans() -> None:
    @sw.kernel
    def where(k, condition, x, y, result):
        with k.loops(*result.shape) as i:
            result[i] = k.where(condition[i], x[i] * 2 / 2, y[i])

    b = sw.Builder("main")
    c, x = b.input("c", ("n",), "i1"), b.input("x", ("n",), "f16")
    b.output(b.where(c, b.neg(x), x))
    module = b.module()
    exe = sw.compile(module, threads=1, legalize={"graph.where": where})
    x = floats(9, dtype=np.float16)
    as_operators(exe, module, RNG.integers(0, 2, 9).astype(bool), x, rtol=1e-3)


def test_a_kernel_that_declines_leaves_the_operator() -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", ("n",), "f32")))
    exe = sw.compile(b.module(), threads=1, legalize={"graph.relu": relu})
    assert "graph.relu" in exe.ir("optimized")


def square(op: graph.PowOp, target: sw.Target) -> graph.MulOp | None:
    return graph.MulOp(op.lhs, op.lhs) if graph.splat_of(op.rhs) == 2.5 else None


def powers(*exponents: float, dtype: str = "f32") -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", ("n",), dtype)
    for exponent in exponents:
        b.output(b.pow(x, exponent))
    return b.module()


def test_a_rule_of_the_table_comes_first() -> None:
    x = RNG.random(5, np.float32)
    exe = sw.compile(powers(2.5), threads=1, legalize={"graph.pow": square})
    np.testing.assert_allclose(exe(x), x * x, rtol=1e-6)
    # What it leaves is for the other tables.
    assert "graph.pow" not in sw.compile(powers(6), legalize={"graph.pow": square}).ir("optimized")


def test_a_target_has_a_table() -> None:
    target = dataclasses.replace(host(), legalize={"graph.pow": square})
    x = RNG.random(5, np.float32)
    np.testing.assert_allclose(sw.compile(powers(2.5), target=target)(x), x * x, rtol=1e-6)


def test_a_package_has_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    universe = Universe(interface=2, all_legalizations={"graph.pow": lambda: square})
    plugin = plugins.Plugin("acme", universe)
    known = (*plugins.plugins(), plugin)
    monkeypatch.setattr(plugins, "plugins", lambda: known)
    x = RNG.random(5, np.float32)
    np.testing.assert_allclose(sw.compile(powers(2.5))(x), x * x, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i64"])
def test_constant_powers(dtype: str) -> None:
    kind = {"f": "float", "i": "int"}[dtype[0]] + dtype[1:]
    module = powers(2, 3, 5, 6, 7, 10, 16, 31, dtype=dtype)
    x = (3 * floats(33, dtype="f8")).astype(kind)
    exe = sw.compile(module, threads=1, opt_level=0)
    tolerance = 1e-6 if dtype == "f32" else 1e-14  # each of at most 7 products rounds once
    close(exe(x), module.run_reference(x), tolerance, 0)


def test_powers_that_are_no_products() -> None:
    x, exponents = np.float32([0.5, -1, 1, 3, math.nan]), (math.inf, -math.inf, math.nan)
    got = sw.compile(powers(*exponents), threads=1)(x)
    same(got, [x ** np.float32(exponent) for exponent in exponents])


def test_integers_divided_by_a_constant() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n",), "i32")
    for divisor in (1, 2, 3, -7, -1, 0, 10):
        b.output(b.div(x, np.array(divisor, np.int32)))
    as_reference(b.module(), np.int32([-(2**31), 2**31 - 1, -7, 7, 0, -1, 5]), threads=1)


@pytest.mark.parametrize("name", cases(["x86-64", "x86-64-v2", "x86-64-v3"], ["x86-64"]))
def test_functions_are_as_exact_without_fused_multiply_add(name: str, all_tests: bool) -> None:
    if named(name).triple.split("-")[0] not in host().triple:
        pytest.skip("another architecture")
    functions, given = ("exp", "log", "tanh", "erf", "sigmoid"), floats(100) * 4
    for together in [[one] for one in functions] if all_tests else [functions]:
        b = sw.Builder("main")
        x, positive = b.input("x", ("n",), "f32"), b.input("positive", ("n",), "f32")
        for function in together:
            b.output(getattr(b, function)(positive if function == "log" else x))
        module = b.module()
        exe = sw.compile(module, target=name, threads=1)
        text = exe.ir("llvm")
        assert ("math.fma" in text or "llvm.intr.fma" in text) == named(name).has(
            INSTRUCTIONS["fma"]
        )
        as_operators(exe, module, given, abs(given) + np.float32(0.1), rtol=1e-6)


def legalized(module: sw.Module, table: Mapping[str, Any]) -> None:
    ctx = make_context(module.weights)
    ctx.legalize = table
    run_passes(ctx, module.op, "graph-legalize")


def test_twice_is_once() -> None:
    for module in (powers(7), powers(9, dtype="i64"), model()):
        table = {"graph.dense": dense, "graph.softmax": softmax}
        legalized(module, table)
        once = module.text()
        legalized(module, table)
        assert module.text() == once


def negate_twice(op: graph.NegOp, target: sw.Target) -> graph.NegOp:
    return graph.NegOp(graph.NegOp(graph.NegOp(op.x)))


def of_another_type(op: graph.NegOp, target: sw.Target) -> graph.CastOp:
    return graph.CastOp(op.x, graph.NegOp(op.x).result.type.element_type)


@sw.kernel
def writes_nothing(k, x, y):
    x[0, 0]


@sw.kernel
def stores_integers(k, x, y):
    with k.loops(*x.shape) as (i, j):
        y[i, j] = k.cast(i, "i32")


@sw.kernel
def of_another_rank(k, x, y):
    with k.loops(*x.shape) as (i, j):
        y[i, j] = x[i]


@sw.kernel
def branches(k, x, y):
    with k.loops(*x.shape) as (i, j):
        y[i, j] = max(x[i, j], 0.0)


@sw.kernel
def compares(k, x, y):
    with k.loops(*x.shape) as (i, j):
        y[i, j] = k.where(x[i, j] != 0.0, x[i, j], 1.0)


@sw.kernel
def exp_of_an_integer(k, x, y):
    with k.loops(*x.shape) as (i, j):
        y[i, j] = k.cast(k.exp(k.cast(i, "i32")), "f32")


@sw.kernel
def sums_numbers_of_python(k, x, y):
    with k.loops(*x.shape) as (i, j):
        y[i, j] = k.sum(3, lambda t: 1.0)


@sw.kernel
def raises(k, x, y):
    raise KeyError("boom")


@sw.kernel
def another_kernel(k, x, y):
    return KernelOp("f", [], [])


ERRORS = [
    (
        "graph.denze",
        dense,
        r'the table names the unknown operator "graph.denze"; nearest: graph.den',
    ),
    ("arith.addf", dense, r'the table names the unknown operator "arith.addf"'),
    ("graph.neg", 3, r'no rule for "graph.neg", expected a function or stepwell.kernel, got int'),
    ("graph.neg", negate_twice, r'rule "negate_twice" for graph.neg: more than 100 replacements'),
    ("graph.neg", lambda op, target: 1 / 0, r'rule "<lambda>" .*: raised ZeroDivisionError'),
    ("graph.neg", lambda op, target: 1, r"returned no operation, expected .* got int"),
    ("graph.neg", lambda op, target: op, r"returned the operator itself"),
    (
        "graph.neg",
        lambda op, target: graph.ReduceOp(op.x, "sum", [0]),
        r"returned values of the wrong types, expected tensor<\?x7xf32>, got tensor<7xf32>",
    ),
    ("graph.neg", writes_nothing, r'kernel "writes_nothing": nothing is written to "y"'),
    ("graph.neg", stores_integers, r'wrong type of a value stored in "y", expected f32, got i32'),
    ("graph.neg", of_another_rank, r'wrong number of indices of "x", expected 2, got 1'),
    ("graph.neg", branches, r"a scalar has no truth value .*, expected k.where, k.maximum or"),
    ("graph.neg", compares, r"a scalar is compared by == or !=, expected k.equal\(a, b\)"),
    (
        "graph.neg",
        exp_of_an_integer,
        r"exp of a value that is not a float, .* got i32",
    ),
    (
        "graph.neg",
        sums_numbers_of_python,
        r"a reduction of a value that is not a scalar, expected a scalar, got float",
    ),
    (
        "graph.neg",
        raises,
        r"kernel \"raises\": raised KeyError: 'boom' \(test_legalize.py:\d+, node \"n\"\)",
    ),
    ("graph.neg", another_kernel, r"the kernel does not fit what it is for, expected memref<"),
]


@pytest.mark.parametrize(("name", "rule", "message"), ERRORS)
def test_what_goes_wrong_in_a_table(name: str, rule: object, message: str) -> None:
    b = sw.Builder("main")
    b.output(b.neg(b.relu(b.input("x", ("n", 7), "f32")), name="n"))
    module = b.module()
    before = module.text()
    with pytest.raises(CompileError, match=message):
        sw.compile(module, legalize={"graph.relu": relu, name: rule})
    with pytest.raises(CompileError, match=message):
        legalized(module, {"graph.relu": relu, name: rule})
    assert module.text() == before


SOURCES = {
    "f32": np.array([0, -1, 2.5, -2.5, 300, 70000, 1e-8, 3e9, np.nan, 65519], np.float32),
    "f16": np.array([0, -1, 2.5, -7.75, 300, 6e-8, 65504, np.nan], np.float16),
    "i32": np.array([0, -1, 255, 256, 300, -129, 65541, 2**31 - 1, -(2**31)], np.int32),
    "ui32": np.array([0, 1, 255, 300, 2**31 + 5, 2**32 - 1], np.uint32),
    "i1": np.array([True, False]),
}


TARGETS = [name for name in ELEMENT_TYPES if name != "ui64"]
"""The types of scalars of a kernel, which refuses to compute with the other one."""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(n, marks=pytest.mark.slow if n in ("i1", "ui32", "f16") else ())
        for n in SOURCES
    ],
)
def test_casts_in_kernels_are_those_of_operators(source: str, all_tests: bool) -> None:
    """In quick tests operators are not compiled beside, and integers are cast at level 0."""
    array, b, operators = SOURCES[source], sw.Builder(), sw.Builder()
    x, z = (each.input("x", ("n",), source) for each in (b, operators))
    for target in TARGETS:
        wide = "f64" if "f" in target else "i64"

        @sw.kernel
        def casting(k, x, y, target=target, wide=wide):
            with k.loops(*y.shape) as i:
                y[i] = k.cast(k.cast(x[i], target), wide)

        b.output(b.call_kernel(casting, x, results=sw.TensorSpec(("n",), wide)))
        operators.output(operators.cast(operators.cast(z, target), wide))
    known = operators.module().run_reference(array)
    level = 3 if all_tests or source == "f32" else 0
    for module in (b.module(), operators.module()) if all_tests else (b.module(),):
        found = sw.compile(module, threads=1, opt_level=level)(array)
        for target, result, expected in zip(TARGETS, found, known, strict=True):
            np.testing.assert_array_equal(result, expected, target)


def test_casts_of_indices() -> None:
    @sw.kernel
    def numbers(k, x, y):
        with k.loops(*y.shape) as i:
            y[i] = k.cast(k.cast(i + 250, "ui8"), "i32") + k.cast(
                k.cast(i * 2 + 257, "bf16"), "i32"
            )

    b = sw.Builder()
    x = b.input("x", (20,))
    b.output(b.call_kernel(numbers, x, results=sw.TensorSpec((20,), "i32")))
    i = np.arange(20)
    bytes = (i + 250) % 256
    halves = (i * 2 + 257).astype(np.float32).astype(dtype_of(bf16)).astype(np.int32)
    got = sw.compile(b.module(), threads=1)(np.zeros(20, np.float32))
    np.testing.assert_array_equal(got, bytes + halves)


def test_an_unknown_type_in_a_cast() -> None:
    @sw.kernel
    def casting(k, x, y):
        with k.loops(*y.shape) as i:
            y[i] = k.cast(x[i], "ui7")

    b = sw.Builder()
    with pytest.raises(sw.StepwellError, match=r"unknown element type, expected f16, .* got ui7"):
        b.call_kernel(casting, b.input("x", (4,)), results=sw.TensorSpec((4,)))


def test_a_kernel_does_not_compute_with_ui64() -> None:
    @sw.kernel
    def casting(k, x, y):
        with k.loops(*y.shape) as i:
            y[i] = k.cast(x[i], "ui64")

    @sw.kernel
    def copying(k, x, y):
        with k.loops(*y.shape) as i:
            y[i] = x[i]

    b = sw.Builder()
    for kernel, dtype in ((casting, "i64"), (copying, "ui64")):
        message = r"elements cannot be computed with, expected i64, .* got ui64"
        with pytest.raises(sw.StepwellError, match=message):
            b.call_kernel(kernel, b.input(dtype, (4,), dtype), results=sw.TensorSpec((4,), "i64"))


def test_a_pipeline_that_does_not_use_the_table() -> None:
    b = sw.Builder("main")
    b.output(b.dense(b.input("x", ("n", 7), "f32"), W))
    module, texts = b.module(), pipeline()
    stages = {s: t.replace("graph-legalize,", "") for s, t in texts.items()}
    message = "compile: the pipeline does not use legalize, expected graph-legalize in it"
    for passes in (stages, pipeline_text(stages)):
        with pytest.raises(CompileError, match=message):
            sw.compile(module, pipeline=passes, legalize={"graph.dense": dense})
        assert sw.compile(module, pipeline=passes, legalize={}).outputs
    for passes in (texts, pipeline_text(texts)):
        exe = sw.compile(module, pipeline=passes, legalize={"graph.dense": dense})
        assert "is computed by kernel dense" in exe.explain()


def test_a_rule_that_replaces_nothing_is_reported() -> None:
    def never(op: GraphOp, target: Target) -> None:
        return None

    b = sw.Builder("main")
    b.output(b.relu(b.neg(b.neg(b.input("x", (3, 4))))))
    table = {"graph.relu": never, "graph.neg": never, "graph.softmax": softmax}
    exe = sw.compile(b.module(), threads=1, legalize=table)
    found = [d for d in exe.decisions if d.pass_name == "graph-legalize"]
    assert [(d.subject, d.what, d.kind) for d in found] == [
        ("graph.relu", "rule never is not used", "missed"),
        ("graph.neg", "rule never is not used", "missed"),
        ("graph.softmax", "rule softmax is not used", "missed"),
    ]
    gone = "no such operator is left by the passes before"
    assert [d.why for d in found] == ["it applies to none", gone, gone]
    exe = sw.compile(model(), threads=1, legalize={"graph.dense": dense})
    assert "not used" not in exe.explain()


def test_a_table_is_for_modules_of_operators() -> None:
    fused = Compilation.of(Request(model())).text("fused")
    module = sw.from_mlir(fused, weights=model().weights)
    with pytest.raises(CompileError, match='expected stage "graph", got stage "fused"'):
        sw.compile(module, legalize={"graph.dense": dense})
    with pytest.raises(CompileError, match=r"legalize is not a mapping, .* got list"):
        sw.compile(model(), legalize=[dense])  # type: ignore[arg-type]


def test_a_kernel_is_called_by_name() -> None:
    @sw.kernel
    def scale(k, x, y, z):
        with k.loops(*x.shape) as (i, j):
            y[i, j] = x[i, j] * 3
        with k.loops(x.shape[0]) as i:
            z[i] = k.sum(x.shape[1], lambda j: x[i, j])

    b = sw.Builder("main")
    x = b.input("x", ("n", "m"), "f32")
    specs = [sw.TensorSpec(("n", "m")), sw.TensorSpec(("n",))]
    results = b.call_kernel(scale, b.exp(x), results=specs)
    assert isinstance(results, tuple)
    y, z = results
    b.output(b.neg(y))
    b.output(z)
    module = b.module()
    x = floats(4, 6)
    for level in (0, 3):
        exe = sw.compile(module, threads=1, opt_level=level)
        close(exe(x), module.run_reference(x), atol=0)
    with pytest.raises(sw.InputError, match=r"call_kernel: not a kernel, .* got function"):
        b.call_kernel(lambda k: None, x, results=specs)  # type: ignore[arg-type]
