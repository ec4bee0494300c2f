"""`Builder`: inputs, constants, operators as methods and as signs, and what it refuses."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from xdsl.dialects.builtin import DenseResourceAttr

from stepwell.core.boundary.specs import SparseSpec, TensorSpec
from stepwell.core.errors import InputError
from stepwell.core.ir.module import Module
from stepwell.dialects.graph.dialect import Graph
from stepwell.dialects.graph.interfaces import GraphOp
from stepwell.dialects.graph.ops import ConstantOp
from stepwell.dialects.graph.traits import AddedByPasses
from stepwell.frontends.builder import Builder, Value
from stepwell.frontends.mlir import from_mlir

from ..harness import floats


def run(build: Callable[[Builder, Value], Value], x: np.ndarray) -> Any:
    """Build a program of one input like `x`, and run it on `x`."""
    b = Builder()
    dtypes = {"float32": "f32", "float64": "f64", "int64": "i64", "int8": "i8"}
    b.output(build(b, b.input("x", x.shape, dtypes[str(x.dtype)])))
    return b.module().run_reference(x)


def constants(module: Module) -> list[ConstantOp]:
    return [op for op in module.op.walk() if isinstance(op, ConstantOp)]


def test_the_program_of_the_documentation() -> None:
    w, bias, x = floats(128, 784), floats(128), floats(5, 784)
    b = Builder("main")
    value = b.input("x", ("batch", 784), "f32")
    b.output(b.relu(b.dense(value, w, bias=bias)) * 2 + 1, name="y")
    module = b.module()
    assert [str(v) for v in module.inputs] == ["x: batchx784xf32"]
    assert [str(v) for v in module.outputs] == ["y: batchx128xf32"]
    np.testing.assert_allclose(
        module.run_reference(x), np.maximum(x @ w.T + bias, 0) * 2 + 1, rtol=1e-4, atol=1e-4
    )
    assert list(module.weights) == ["dense_w", "dense_bias"]


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
}


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("other", [2, 2.5, np.float64(0.5), np.array([1.0, 2, 3], np.float32)])
def test_signs_on_either_side(sign: str, other: Any) -> None:
    x = np.abs(floats(2, 3)) + 0.5
    wanted = np.asarray(other, dtype=np.float32)
    left = run(lambda b, v: SIGNS[sign](v, other), x)
    right = run(lambda b, v: SIGNS[sign](other, v), x)
    np.testing.assert_allclose(left, SIGNS[sign](x, wanted), rtol=1e-6)
    np.testing.assert_allclose(right, SIGNS[sign](wanted, x), rtol=1e-6)
    assert left.dtype == right.dtype == np.float32


COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@pytest.mark.parametrize("sign", COMPARED)
@pytest.mark.parametrize("other", [1, np.float64(1.0), np.array([0.0, 1, 2], np.float32)])
def test_comparisons_on_either_side(sign: str, other: Any) -> None:
    x = np.array([[0, 1, 2], [2, 1, 0]], np.float32)
    compare = COMPARED[sign]
    np.testing.assert_array_equal(run(lambda b, v: compare(v, other), x), compare(x, other))
    np.testing.assert_array_equal(run(lambda b, v: compare(other, v), x), compare(other, x))


def test_negation_and_products() -> None:
    x, right, left = floats(3, 4), floats(4, 2), floats(2, 3)
    np.testing.assert_array_equal(run(lambda b, v: -v, x), -x)
    np.testing.assert_allclose(run(lambda b, v: v @ right, x), x @ right, rtol=1e-5)
    np.testing.assert_allclose(run(lambda b, v: left @ v, x), left @ x, rtol=1e-5)
    a = sp.csr_array(np.eye(3, dtype=np.float32))
    np.testing.assert_array_equal(run(lambda b, v: b.constant(a) @ v, x), x)


def test_a_number_takes_the_type_of_the_other_side() -> None:
    x = np.array([1, -2, 3])
    np.testing.assert_array_equal(run(lambda b, v: 10 - v * 3 + 1, x), 10 - x * 3 + 1)
    assert run(lambda b, v: v + 0.1, np.zeros(1))[0] == 0.1
    assert run(lambda b, v: v + True, np.zeros(2, np.int8)).dtype == np.int8


def test_constants() -> None:
    b = Builder()
    w = floats(4, 5)
    kept = w.copy()
    values = [
        b.constant(w, "w"),
        b.constant(w, "same"),
        b.constant(2.5),
        b.constant(3),
        b.constant([1, 2], dtype="i8"),
        b.constant(np.ones((2, 2), bool)),
        b.constant(w.astype(">f8").T),
        b.constant(
            sp.coo_array(([1.0, 2.0, 3.0], ([1, 1, 0], [0, 0, 1])), shape=(2, 2)), dtype="f32"
        ),
        b.constant(np.zeros((0, 3), np.float32)),
    ]
    assert [v.dtype for v in values] == [
        "f32",
        "f32",
        "f32",
        "i64",
        "i8",
        "i1",
        "f64",
        "f32",
        "f32",
    ]
    for value in values[:-2]:
        b.output(value)
    module = b.module()
    assert [c.key for c in constants(module)][:5] == ["w", "w", None, None, "constant"]
    w[:] = 0
    np.testing.assert_array_equal(module.run_reference()[0], kept)
    np.testing.assert_array_equal(module.run_reference()[6], kept.T)
    sparse = constants(module)[7]
    assert sparse.nnz is not None
    assert sparse.nnz.value.data == 3
    assert sparse.key is not None
    stored = module.weights[sparse.key]
    assert isinstance(stored, sp.csr_array)
    np.testing.assert_array_equal(stored.toarray(), [[0, 3], [3, 0]])


def test_an_array_changed_between_two_uses_is_two_weights() -> None:
    b, w = Builder(), floats(3)
    first = b.constant(w)
    w[0] = 100
    second = b.constant(w)
    b.output(first)
    b.output(second)
    one, two = b.module().run_reference()
    assert one[0] != two[0] == 100


def test_inputs() -> None:
    b = Builder()
    b.input("a", (2, None, "n"))
    b.input("b", TensorSpec((), "f16"))
    a = b.input("c d", SparseSpec(("n", "n"), "f64", nnz=7))
    b.input("e", SparseSpec((3, 4)))
    b.output(b.spmm(a, np.ones((4, 2))), "y")
    assert [str(v) for v in b.module().inputs] == [
        "a: 2xa.1xnxf32",
        "b: f16",
        "c d: nxnxf64, csr, nnz=7",
        "e: 3x4xf32, csr, nnz=e.nnz",
    ]


def test_every_operator_is_a_method() -> None:
    b = Builder()
    for op in Graph.operations:
        if issubclass(op, GraphOp) and not op.has_trait(AddedByPasses):
            mnemonic = op.name.partition(".")[2]
            assert callable(getattr(b, mnemonic))
            assert mnemonic in dir(b)
    assert b.softmax.__doc__
    with pytest.raises(AttributeError, match='no operator "soft_max"; nearest: softmax'):
        _ = b.soft_max  # type: ignore[attr-defined]


def test_operators_of_dialects_by_their_names() -> None:
    b = Builder()
    x = b.input("x", (2, 3))
    assert repr(b.op.graph.relu(x, name="act")) == repr(b.relu(x))
    assert "graph" in dir(b.op)
    assert "relu" in dir(b.op.graph)
    with pytest.raises(AttributeError, match='no dialect "grahp"; nearest: graph'):
        _ = b.op.grahp
    with pytest.raises(AttributeError, match='dialect "loop": no operator "for"'):
        _ = b.op.loop.__getattr__("for")


def test_methods_have_signatures() -> None:
    signature = inspect.signature(Builder().leaky_relu)
    assert str(signature) == "(x, alpha=0.01, *, name=None)"
    assert "result_type" not in inspect.signature(Builder().conv).parameters


def test_operators_with_lists_enumerations_and_types() -> None:
    x = floats(2, 3)
    np.testing.assert_allclose(
        run(lambda b, v: b.reduce(v, "max", axes=[1], keepdims=True), x), x.max(1, keepdims=True)
    )
    np.testing.assert_array_equal(
        run(lambda b, v: b.concat([v, np.ones((1, 3)), v], axis=0), x),
        np.concatenate([x, np.ones((1, 3)), x]),
    )
    assert run(lambda b, v: b.cast(v, "f16"), x).dtype == np.float16
    table = floats(5, 2)
    np.testing.assert_array_equal(
        run(lambda b, v: b.gather(table, v, axis=0), np.array([4, 0])), table[[4, 0]]
    )
    np.testing.assert_array_equal(
        run(lambda b, v: b.gather(v, np.array([1, 0]), axis=1), x), x[:, [1, 0]]
    )


@pytest.mark.parametrize("names", [("é", "è"), ("a b", "a_b"), ("1", "_1"), ("x", "y")])
def test_sizes_without_a_name_are_not_those_of_other_inputs(names: tuple[str, str]) -> None:
    b = Builder()
    for name in names:
        b.output(b.relu(b.input(name, (None, 2))))
    shapes = [spec.shape for spec in b.module().clone().inputs]
    assert shapes[0] != shapes[1]
    assert [shape[1] for shape in shapes] == [2, 2]


def test_locations_are_names_or_lines_of_the_program() -> None:
    b = Builder()
    x = b.input("x", (2,))
    b.output(b.exp(b.relu(x, name="act")))
    text = b.module().text(locations=True)
    assert 'loc("act")' in text
    assert '"test_builder.py":' in text


NAMES = {"neg": "outer", "relu": "inner", "tanh": "own", "exp": "outer", "abs": "test_builder.py"}
"""Operators and the nodes that they belong to."""


def test_operators_of_a_node_have_its_name() -> None:
    b = Builder("main")
    x = b.input("x", (3,))
    with b.node("outer"):
        y = -x
        with b.node("inner"):
            y = b.relu(y)
        y = b.exp(b.tanh(y, name="own"))
    b.output(b.abs(y))
    lines = b.module().text(locations=True).splitlines()
    found = {op: next(line for line in lines if f"graph.{op}" in line) for op in NAMES}
    for op, name in NAMES.items():
        assert f'loc("{name}' in found[op]


def test_the_builder_goes_on_after_a_module() -> None:
    b = Builder()
    x = b.input("x", (2,))
    b.output(x + 1)
    first = b.module()
    b.output(x * 3)
    assert len(first.outputs) == 1
    assert len(b.module().outputs) == 2
    assert str(first) == str(from_mlir(str(first)))


def test_weights_are_named_in_the_text() -> None:
    b = Builder()
    b.output(b.constant(floats(3), "layer/0 weight"))
    (constant,) = constants(b.module())
    assert isinstance(constant.value, DenseResourceAttr)
    assert constant.key == "layer_0_weight"
    assert "dense_resource<layer_0_weight>" in str(b.module())


def program() -> tuple[Builder, Value, Value]:
    b = Builder()
    return b, b.input("x", (2, 3)), b.input("i", (3,), "i64")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b, x, i: i + 1.5, "add_rhs: the element types do not agree, expected i64, got 1.5"),
        (lambda b, x, i: i + np.ones(3), "expected i64, got float64"),
        (lambda b, x, i: b.cast(i, "i8") + 300, "an integer does not fit, expected i8, got 300"),
        (lambda b, x, i: x + 2j, "add_rhs: unknown dtype"),
        (lambda b, x, i: x + "one", "add_rhs: unknown dtype"),
        (lambda b, x, i: x + None, "graph.add: rhs is None"),
        (lambda b, x, i: x + i, "graph.add: element types differ, expected f32, got i64 .node"),
        (lambda b, x, i: x @ x, "graph.matmul: .*expected 3, got 2"),
        (lambda b, x, i: b.add(x, np.ones(4), name="sum"), r'do not broadcast.*\(node "sum"\)'),
        (lambda b, x, i: b.relu(), "graph.relu: missing a required argument: 'x'"),
        (lambda b, x, i: b.relu(x, 1, 2), "graph.relu: too many positional arguments"),
        (lambda b, x, i: b.softmax(x, axis=7), "graph.softmax: axis out of range"),
        (lambda b, x, i: b.reduce(x, "median", axes=[0]), "expected sum, mean, .*, got median"),
        (lambda b, x, i: b.relu(Builder().input("y", (2,))), "belongs to another builder"),
        (
            lambda b, x, i: b.output(3),
            r"output: not a value of a builder, expected what .* returned, got int",
        ),
        (lambda b, x, i: (b.output(x, "y"), b.output(x, "y")), "output name is taken, got 'y'"),
        (lambda b, x, i: b.module(), "the program has no output"),
        (lambda b, x, i: b.input("x", (2,)), "input name is taken or empty, got 'x'"),
        (lambda b, x, i: b.input("", (2,)), "input name is taken or empty"),
        (lambda b, x, i: b.input("z", (-1,)), 'input "z": bad size, expected a count'),
        (lambda b, x, i: b.input("z", (2.5,)), "bad size, .*got 2.5"),
        (lambda b, x, i: b.input("z", (2**70,)), "bad size"),
        (
            lambda b, x, i: b.input("z", SparseSpec((3, 3), indptr_dtype="i16")),
            'input "z": unknown indptr_dtype, expected i32 or i64',
        ),
        (lambda b, x, i: b.input("z", ("a b",)), "bad size, .*got 'a b'"),
        (lambda b, x, i: b.input("z", 3), 'input "z": the shape is not a sequence'),
        (lambda b, x, i: b.input("z", (2,), "float"), 'input "z": unknown dtype, expected f16'),
        (lambda b, x, i: b.input("z", SparseSpec((2,))), "a CSR matrix has two dimensions"),
        (lambda b, x, i: b.constant(np.array(["a"])), "constant: unknown dtype"),
        (lambda b, x, i: b.constant([[1], [1, 2]]), "constant: unknown dtype"),
        (lambda b, x, i: b.constant(1.5, dtype="i32"), "expected i32, got 1.5"),
        (lambda b, x, i: b.constant(1, dtype="i1"), "expected i1, got 1"),
        (lambda b, x, i: b.constant(sp.csr_array(np.eye(2, dtype=int))), "has floats"),
        (lambda b, x, i: b.pad(i, [1], [1], value=np.inf), "graph.pad: cannot convert float inf"),
        (lambda b, x, i: b.pad(x, [1, 1], [1, 1], value=10**400), "graph.pad: int too large"),
        (lambda b, x, i: b.spmm(x, x), "graph.spmm: "),
        (lambda b, x, i: Builder("a b"), "Builder: bad function name"),
    ],
)
def test_a_mistake_is_one_error(call: Callable[..., object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        call(*program())
    assert "\n" not in str(caught.value)


def test_csr_of_f16_is_refused() -> None:
    matrix = sp.csr_array(np.eye(3))
    matrix.data = matrix.data.astype(np.float16)  # type: ignore[assignment]
    message = "constant: unknown dtype, expected f32 or f64, got float16"
    with pytest.raises(InputError, match=message):
        Builder().constant(matrix)


def test_inconsistent_csr_is_refused() -> None:
    matrix = sp.csr_array(np.eye(3))
    matrix.indices = np.array([0, 1, 99], dtype=np.int32)
    with pytest.raises(InputError, match="constant: the matrix is inconsistent"):
        Builder().constant(matrix)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda b, x: b.softmax(x, axis="1"), "wrong axis, expected an integer, got '1'"),
        (lambda b, x: b.softmax(x, axis=[1]), r"wrong axis, expected an integer, got \[1\]"),
        (lambda b, x: b.reshape(x, [2.0, 3]), "wrong shape, expected a sequence of integers"),
        (lambda b, x: b.leaky_relu(x, alpha="a"), "wrong alpha, expected a number, got 'a'"),
        (lambda b, x: b.pad(b.cast(x, "i8"), [0, 0], [1, 0], value=np.inf), "pad: cannot .* inf"),
        (lambda b, x: b.cast(x, np.float32), r'wrong target, expected a dtype such as "f32", got'),
        (lambda b, x: b.where(x == 0, 1.0, x), r"Value: == compares no elements; Builder\.equal"),
        (lambda b, x: b.exp(x) if x else x, r"Value: its elements are known in a call only; "),
        (lambda _, x: x == np.zeros(3), "Value: == compares no elements"),
        (lambda _, x: x[0], r"Value: it takes no index in brackets; Builder\.slice takes"),
        (
            lambda b, x: b.input("y", (3,), np.float32),
            'unknown dtype, .*float32.*; did you .* "f32"',
        ),
        (lambda b, x: b.input("y", (3,), "float31"), "unknown dtype, .* got 'float31'$"),
        (lambda *_: Builder(None), "bad function name, expected letters, digits and _, got None"),
    ],
)
def test_arguments_of_another_kind(wrong: Callable[[Any, Any], object], message: str) -> None:
    b = Builder()
    x = b.input("x", (2, 3))
    with pytest.raises(InputError, match=message):
        wrong(b, x)
    assert x == x
    assert x != b.relu(x)
    assert x in [b.relu(x), x]
