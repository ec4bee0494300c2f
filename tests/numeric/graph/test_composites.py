"""Composite operators: as one operator, as their bodies, and as their references."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_array
from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def

import stepwell as sw
from stepwell.core.dtypes import ELEMENT_TYPES, dtype_of, element_type_of
from stepwell.core.registry import own_dialects
from stepwell.dialects.graph import ops as graph
from stepwell.dialects.graph.attrs import FLOAT_TENSOR
from stepwell.dialects.graph.composite import CompositeOp, composite
from stepwell.dialects.graph.interfaces import FusionKind, GraphOp
from stepwell.dialects.graph.op_builder import OpBuilder, V, parameters_of
from stepwell.dialects.graph.ops.elementwise.activations import ActivationOp

from ...harness import cases, results


@composite(alpha=0.5)
class SnakeOp(CompositeOp):
    """x + sin(alpha * x) ** 2 / alpha + shift: an operator of a package of its own."""

    name = "outside.snake"

    x = operand_def(FLOAT_TENSOR)
    shift = operand_def(FLOAT_TENSOR)
    alpha = prop_def(FloatAttr.constr(f64))
    result = result_def(FLOAT_TENSOR)

    def body(self, b: OpBuilder[V], x: V, shift: V) -> V:
        wave = b.sin(b.mul(x, self.alpha.value.data))
        return b.add(b.add(x, b.div(b.mul(wave, wave), self.alpha.value.data)), shift)


@composite()
class SameOp(ActivationOp):
    name = "outside.same"

    def body(self, b: OpBuilder[V], x: V) -> V:
        return x


COMPOSITES = [op for op in own_dialects()["graph"]().operations if issubclass(op, CompositeOp)]
GRAPH = [op for op in COMPOSITES if op.FUSION == FusionKind.ELEMENTWISE and op.BROADCASTS]
SETTINGS: dict[type[GraphOp], list[dict[str, Any]]] = {
    graph.ClipOp: [{"minimum": -1.0, "maximum": 0.75}, {"minimum": -0.0}],
    graph.GeluOp: [{"approximate": "none"}, {"approximate": "tanh"}],
    graph.EluOp: [{}, {"alpha": -0.3}],
    SnakeOp: [{}, {"alpha": 3.0}],
}
ALIKE = (
    *(graph.SoftplusOp, graph.MishOp, graph.SiluOp, graph.SoftsignOp),
    *(graph.SeluOp, graph.CeluOp, graph.HardSwishOp),
)
"""Composites that are evaluated as others are that override no more: their tests are slow."""
CASES = [
    pytest.param(
        op,
        settings,
        id="-".join([op.name, *map(str, settings.values())]),
        marks=[pytest.mark.slow] if op in ALIKE or (op is graph.EluOp and not settings) else [],
    )
    for op in [*GRAPH, SnakeOp, SameOp]
    for settings in SETTINGS.get(op, [{}])
]
DTYPES = ["f16", "bf16", "f32", "f64"]
OF_ALL_TYPES = (graph.GeluOp, SnakeOp)
"""Composites that are compiled in all element types with quick tests, others in two of them: one
that is computed as it is, and one that is cast to it."""


def module_of(op: type[GraphOp], settings: dict[str, Any], *dtypes: str) -> sw.Module:
    """One operator of two dimensions for each type, whose operands after the first are vectors."""
    b, names = sw.Builder("main"), parameters_of(op).operands
    shapes = [("n", 7), *[(7,)] * (len(names) - 1)]
    for dtype in dtypes:
        given = zip(names, shapes, strict=True)
        operands = [b.input(f"{name}_{dtype}", shape, dtype) for name, shape in given]
        b.output(b.apply(op, *operands, **settings), name=f"y_{dtype}")
    return b.module()


def inputs_of(op: type[GraphOp], dtype: str) -> list[np.ndarray]:
    kind = dtype_of(ELEMENT_TYPES[dtype])
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e4, -1e4, 88.0, -88.0, 1, -1, 3]
    x = np.concatenate([special, np.linspace(-9, 9, 49)]).reshape(-1, 7)
    others = [np.linspace(-0.5, 2, 7)] * (len(parameters_of(op).operands) - 1)
    with np.errstate(all="ignore"):
        return [array.astype(kind) for array in (x, *others)]


def closed(module: sw.Module, op: type[GraphOp]) -> sw.Executable:
    """Compiled as one operator: a table has a rule for it, which never applies."""
    if op.name.startswith("outside."):  # no table may name it
        exe = sw.compile(module, threads=1, opt_level=0)
    else:
        rules = {op.name: lambda op, target: None}
        exe = sw.compile(module, threads=1, rounding="kept", legalize=rules)
    assert op.name in exe.ir("optimized") or op is graph.DropoutOp
    return exe


@pytest.mark.parametrize(("op", "settings"), CASES)
def test_composites_agree(
    op: type[CompositeOp],
    settings: dict[str, Any],
    all_tests: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Opened and closed they are equal, and closed they agree with the reference."""
    dtypes = DTYPES if all_tests or op in OF_ALL_TYPES else ["f16", "f32"]
    module = module_of(op, settings, *dtypes)
    arrays = [inputs_of(op, dtype) for dtype in dtypes]
    inputs = [array for given in arrays for array in given]
    exe, expected = closed(module, op), module.run_reference(*inputs)
    whole = exe(*inputs)
    empty = exe(*(array for x, *others in arrays for array in (x[:0], *others)))
    monkeypatch.setattr(op, "opens", lambda *_: True)
    opened = sw.compile(module, threads=1, rounding="kept")
    # The rule "max is clip" makes a clip of the body again.
    assert op.name not in opened.ir("optimized") or op is graph.ClipOp
    found = opened(*inputs)
    for number, dtype in enumerate(dtypes):
        assert found[number].dtype == whole[number].dtype
        close(whole[number], expected[number], dtype)
        assert empty[number].shape == (0, 7)
        if op is graph.GeluOp and settings["approximate"] == "none":
            # As one operator its error function is approximate: see `GeluOp.value_at`.
            close(found[number], whole[number], dtype)
        else:
            np.testing.assert_array_equal(bits(found[number]), bits(whole[number]), dtype)


NORMS: dict[type[CompositeOp], list[dict[str, Any]]] = {
    graph.BatchNormOp: [{"axis": 1}],
    graph.BatchNormTrainingOp: [{"axis": 1}],
    graph.LayerNormOp: [{"axis": -1}, {"axis": 1}],
    graph.InstanceNormOp: [{"axis": 1}, {"axis": 3}],
    graph.GroupNormOp: [{"groups": 2, "axis": 1}, {"groups": 2, "axis": 3}],
    graph.RmsNormOp: [{"axis": -1}],
    graph.L2NormalizeOp: [{"axes": (1, 2)}],
}
ALSO_OF_16_BITS = (graph.LayerNormOp, graph.BatchNormTrainingOp)
"""Norms of one result and of several that are compiled in bf16, too, with quick tests."""


def norm_module(
    op: type[CompositeOp], settings: dict[str, Any], dtypes: Sequence[str], given: bool
) -> tuple[sw.Module, list[np.ndarray]]:
    """A normalisation of four dimensions for each type, with vectors of its channels."""
    b, names, optional = sw.Builder("main"), parameters_of(op).operands, parameters_of(op).optional
    sizes, rng, inputs = (2, 4, 3, 6), np.random.default_rng(5), list[np.ndarray]()
    channels = settings["axis"] if "axis" in settings and op is not graph.LayerNormOp else -1
    for dtype in dtypes:
        kind = dtype_of(ELEMENT_TYPES[dtype])
        inputs.append((rng.standard_normal(sizes) * 2 + 3).astype(kind))
        operands = {names[0]: b.input(f"{names[0]}_{dtype}", ("n", 4, "h", 6), dtype)}
        for name in names[1:]:
            if given or name not in optional:
                operands[name] = b.input(f"{name}_{dtype}", (sizes[channels],), dtype)
                inputs.append(rng.uniform(0.5, 2, sizes[channels]).astype(kind))
            else:
                operands[name] = None
        results = b.apply(op, **operands, **settings)
        for number, result in enumerate(results if isinstance(results, tuple) else [results]):
            b.output(result, name=f"y{number}_{dtype}")
    return b.module(), inputs


@pytest.mark.parametrize("given", cases([True, False], [True]))
@pytest.mark.parametrize(
    "dtypes", cases([["bf16", "f32"], ["f16", "f64"]], [["bf16", "f32"]]), ids=str
)
@pytest.mark.parametrize(
    ("op", "settings"),
    [
        pytest.param(
            op,
            s,
            id=f"{op.name}-{s}",
            marks=[pytest.mark.slow] if op is graph.InstanceNormOp and s["axis"] == 3 else [],
        )
        for op in NORMS
        for s in NORMS[op]
    ],
)
def test_opened_and_closed_norms_are_equal(
    op: type[CompositeOp],
    settings: dict[str, Any],
    dtypes: Sequence[str],
    given: bool,
    all_tests: bool,
) -> None:
    dtypes = dtypes if all_tests or op in ALSO_OF_16_BITS else dtypes[1:]
    module, inputs = norm_module(op, settings, dtypes, given)
    whole = closed(module, op)(*inputs)
    exe = sw.compile(module, threads=1, rounding="kept")
    assert op.name not in exe.ir("optimized")
    expected, found = module.run_reference(*inputs), exe(*inputs)
    names = {str(dtype_of(ELEMENT_TYPES[dtype])): dtype for dtype in dtypes}
    for one, other, reference in zip(found, whole, expected, strict=True):
        np.testing.assert_array_equal(bits(one), bits(other))
        close(one, reference, names[str(reference.dtype)])


PRODUCTS: dict[type[CompositeOp], tuple[tuple[int, ...], tuple[int, ...]]] = {
    graph.QuantizedDenseOp: ((2, 3), (4, 3)),
    graph.QuantizedMatmulOp: ((2, 3), (3, 4)),
    graph.QuantizedConvOp: ((2, 3, 6), (4, 3, 2)),
}
"""The sizes of x and of w, with four channels of the result."""


BOTH = (True, False)
WAYS = [
    *((op, both, both) for op in (graph.QuantizedMatmulOp, graph.QuantizedConvOp) for both in BOTH),
    *((graph.QuantizedDenseOp, one, not one) for one in BOTH),
]


def named(way: Sequence[Any]) -> str:
    return "-".join(getattr(part, "__name__", str(part)) for part in way)


@pytest.mark.parametrize("way", cases([*itertools.product(PRODUCTS, BOTH, BOTH)], WAYS), ids=named)
def test_opened_and_closed_products_are_equal(way: tuple[type[CompositeOp], bool, bool]) -> None:
    op, of_channels, constant = way
    (x, w), rng, b = PRODUCTS[op], np.random.default_rng(6), sw.Builder("main")
    channels = (4,) if of_channels else ()
    operands: dict[str, Any] = {
        "x_scale": rng.uniform(0.1, 1, ()).astype(np.float32),
        "x_zero_point": np.uint8(131),
        "w": rng.integers(-128, 128, w).astype(np.int8),
        "w_scale": rng.uniform(0.1, 1, channels).astype(np.float32),
        "w_zero_point": np.full(channels, -3, np.int8),
        "y_scale": np.float32(30),
        "y_zero_point": np.int8(7),
        "bias": rng.integers(-9000, 9000, 4).astype(np.int32),
    }
    inputs, given = [rng.integers(0, 256, x).astype(np.uint8)], operands
    value = b.input("x", ("n", *x[1:]), "ui8")
    if not constant:
        inputs += operands.values()
        given = {n: b.input(n, a.shape, str(element_type_of(a.dtype))) for n, a in operands.items()}
    b.output(b.apply(op, value, **given), name="y")
    module = b.module()
    exe = sw.compile(module, threads=1, rounding="kept")
    assert "graph.quantized" not in exe.ir("optimized")
    expected = module.run_reference(*inputs)
    assert len(np.unique(expected)) > 3
    for compiled in (exe, closed(module, op)):
        np.testing.assert_array_equal(compiled(*inputs), expected)


SCALED: dict[type[CompositeOp], tuple[str, str]] = {
    graph.QuantizeOp: ("f32", "ui8"),
    graph.DequantizeOp: ("i8", "i8"),
    graph.RequantizeOp: ("i32", "i16"),
}
"""The element types of x and of the zero point."""


@pytest.mark.parametrize(
    "way",
    cases([*itertools.product((None, 0, 1), ("f16", "f32"))], [(None, "f16"), (0, "f32")]),
    ids=named,
)
@pytest.mark.parametrize("op", SCALED)
def test_opened_and_closed_quantisations_are_equal(
    op: type[CompositeOp], way: tuple[int | None, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    axis, scale = way
    (kind, of_zero), rng, b = SCALED[op], np.random.default_rng(8), sw.Builder("main")
    x = (rng.standard_normal((5, 7)) * 90).astype(dtype_of(ELEMENT_TYPES[kind]))
    if kind == "f32":
        x[:, :6] = np.inf, -np.inf, np.nan, -0.0, 1e30, 0.75
    size = () if axis is None else x.shape[axis : axis + 1]
    scales = rng.uniform(0.4, 0.6, size).astype(dtype_of(ELEMENT_TYPES[scale]))
    zeros = rng.integers(0, 99, size).astype(dtype_of(ELEMENT_TYPES[of_zero]))
    given = [
        b.input("x", ("n", 7), kind),
        b.input("scale", scales.shape, scale),
        b.input("zero_point", zeros.shape, of_zero),
    ]
    b.output(b.apply(op, *given, axis=axis), name="y")
    module, inputs = b.module(), (x, scales, zeros)
    whole = sw.compile(module, threads=1, rounding="kept")
    assert op.name in whole.ir("optimized")
    monkeypatch.setattr(op, "opens", lambda *_: True)
    opened = sw.compile(module, threads=1, rounding="kept")
    assert op.name not in opened.ir("optimized")
    expected = module.run_reference(*inputs)
    assert len(np.unique(expected)) > 3
    for compiled in (whole, opened):
        np.testing.assert_array_equal(bits(compiled(*inputs)), bits(expected))


SOFTMAXES: list[type[CompositeOp]] = [graph.SoftmaxOp, graph.LogSoftmaxOp]


@pytest.mark.parametrize(
    "rows",
    cases([*itertools.product(DTYPES, (1, 7, 40, "m"))], [("f16", 7), ("f32", "m")]),
    ids=named,
)
@pytest.mark.parametrize("op", SOFTMAXES)
def test_opened_and_closed_softmaxes_are_equal(
    op: type[CompositeOp], rows: tuple[str, int | str]
) -> None:
    dtype, size = rows
    b = sw.Builder("main")
    b.output(b.apply(op, b.input("x", ("n", size), dtype), axis=-1), name="y")
    module, length = b.module(), 19 if isinstance(size, str) else size
    wide = np.random.default_rng(7).standard_normal((9, length)) * 3
    wide += np.array([0, 50, 61, -70, 2e4, -2e4, 0, 0, 0])[:, None]
    wide[6:, -1] = np.inf, np.nan, -np.inf
    wide[5, :3] = -np.inf
    with np.errstate(all="ignore"):
        x = wide.astype(dtype_of(ELEMENT_TYPES[dtype]))
    exe = sw.compile(module, threads=1, rounding="kept")
    assert op.name not in exe.ir("optimized")
    assert f"@fused_{op.name.partition('.')[2]}(" in exe.ir("fused")
    found = exe(x)
    np.testing.assert_array_equal(bits(found), bits(closed(module, op)(x)))
    close(found, module.run_reference(x), dtype)


@pytest.mark.parametrize("op", SOFTMAXES)
def test_softmaxes_along_other_axes_stay_closed(op: type[CompositeOp]) -> None:
    b = sw.Builder("main")
    b.output(b.apply(op, b.input("x", (5, "n", 3), "f32"), axis=1), name="y")
    module, x = b.module(), np.random.default_rng(7).standard_normal((5, 4, 3), np.float32)
    exe = sw.compile(module, threads=1)
    assert op.name in exe.ir("optimized")
    close(exe(x), module.run_reference(x), "f32")


def test_the_kernel_of_a_body_has_the_name_of_its_composite() -> None:
    b = sw.Builder("main")
    x = b.dense(b.input("x", ("n", 8), "f32"), np.ones((4, 8), np.float32), name="fc1")
    once = b.softmax(x, axis=-1, name="first")
    b.output(b.softmax(once, axis=-1, name="second"), name="y")
    exe = sw.compile(b.module(), threads=1)
    assert "@fused_dense_softmax_softmax(" in exe.ir("fused")
    said = "one kernel for graph.dense, graph.softmax, graph.softmax, because"
    assert f'@fused_dense_softmax_softmax ("fc1", "first", "second"): {said}' in exe.explain()


@pytest.mark.parametrize(
    "way",
    cases(
        [*itertools.product(("f16", "f32", "i1", "ui8", "i64"), (0, 1, -1))],
        [("f32", 0), ("f32", 1), ("f32", -1), ("i1", 0)],
    ),
    ids=named,
)
def test_opened_and_closed_one_hot_vectors_are_equal(way: tuple[str, int]) -> None:
    dtype, axis = way
    b, kind = sw.Builder("main"), dtype_of(ELEMENT_TYPES[dtype])
    i, values = b.input("i", ("n", "m"), "i32"), b.input("values", (2,), dtype)
    b.output(b.one_hot(i, values, depth=4, axis=axis), name="y")
    module, given = b.module(), np.array([0, 1]).astype(kind)
    i32 = np.iinfo(np.int32)
    inputs = [np.array([[0, 3, -1, i32.max], [-4, 2, 4, i32.min], [-5, 1, -2, 0]], np.int32), given]
    expected = module.run_reference(*inputs)
    assert expected.sum() == 8
    exe = sw.compile(module, threads=1, rounding="kept")
    assert "graph.one_hot" not in exe.ir("optimized")
    for compiled in (exe, closed(module, graph.OneHotOp)):
        np.testing.assert_array_equal(bits(compiled(*inputs)), bits(expected))


def test_the_number_of_values_of_one_hot_vectors_may_be_symbolic() -> None:
    b = sw.Builder("main")
    b.output(b.one_hot(b.input("i", ("n",), "i32"), b.input("values", ("m",)), depth=3, axis=-1))
    module, expected = b.module(), [[2, 5, 2], [2, 2, 5]]
    inputs = np.array([1, -1], np.int32), np.array([2, 5], np.float32)
    assert module.run_reference(*inputs).tolist() == expected
    for exe in (sw.compile(module, threads=1), closed(module, graph.OneHotOp)):
        assert exe(*inputs).tolist() == expected
        with pytest.raises(sw.InputError, match=r"dimensions .* must agree"):
            exe(inputs[0], np.zeros(3, np.float32))


MATRICES: list[type[CompositeOp]] = [graph.DegreeOp, graph.SpmmOp]


@pytest.mark.parametrize(
    "way",
    cases(
        [*itertools.product(MATRICES, ("f32", "f64"))],
        [(graph.DegreeOp, "f32"), (graph.SpmmOp, "f32"), (graph.SpmmOp, "f64")],
    ),
    ids=named,
)
def test_opened_and_closed_operators_on_matrices_are_equal(
    way: tuple[type[CompositeOp], str], monkeypatch: pytest.MonkeyPatch, all_tests: bool
) -> None:
    op, dtype = way
    b, kind, rng = sw.Builder("main"), dtype_of(ELEMENT_TYPES[dtype]), np.random.default_rng(9)
    a = b.input("a", sw.SparseSpec(("n", "n"), dtype, "e"))
    x, e = b.input("x", ("n", 3), dtype), b.input("e", ("e",), dtype)
    if op is graph.SpmmOp:
        b.output(b.spmm(a, x), name="y")
    else:
        ways = itertools.product((1.0, -1.0, -0.5, 1.5), (False, True), (None, e))
        for number, (power, loops, values) in enumerate(ways):
            # Each pair of choices is in one of those that `make test` compiles.
            if all_tests or number.bit_count() % 2 == 0:
                b.output(b.degree(a, loops, power, values))
        b.output(b.reduce(x, "sum", axes=[1]), name="y")
    # A row without entries, one whose sum is 0, negative sums, self loops that are stored twice.
    indptr, indices = [0, 0, 2, 5, 8, 9], [0, 3, 2, 2, 4, 1, 3, 0, 4]
    data = np.array([2, -2, 0.3, 0.7, 1, -4, 1, 0.1, np.inf]).astype(kind)
    matrix = csr_array((data, np.array(indices, np.int32), np.array(indptr, np.int32)), (5, 5))
    inputs = matrix, rng.standard_normal((5, 3)).astype(kind), rng.standard_normal(9).astype(kind)
    module = b.module()
    whole = sw.compile(module, threads=1, rounding="kept")
    assert op.name in whole.ir("optimized")
    monkeypatch.setattr(op, "opens", lambda *_: True)
    opened = sw.compile(module, threads=1, rounding="kept")
    assert op.name not in opened.ir("optimized")
    expected, found = results(module.run_reference(*inputs)), results(opened(*inputs))
    for one, other, reference in zip(results(whole(*inputs)), found, expected, strict=True):
        np.testing.assert_array_equal(bits(one), bits(other))
        close(one, reference, dtype)


def test_overridden_products_agree_with_derived_ones() -> None:
    matrix = csr_array(np.array([[0, 2, 0], [0, 0, 0], [-1, 0.5, 3]], np.float32))
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    b = sw.Builder("main")
    op = b.spmm(b.input("a", sw.SparseSpec((3, 3))), b.input("x", (3, 2))).ssa.owner
    assert isinstance(op, graph.SpmmOp)
    (own,), (derived,) = op.reference(matrix, x), CompositeOp.reference(op, matrix, x)
    np.testing.assert_array_equal(own, derived)


def test_every_composite_is_compared() -> None:
    compared = {*GRAPH, *NORMS, *PRODUCTS, *SCALED, *SOFTMAXES, *MATRICES, graph.OneHotOp}
    assert compared == set(COMPOSITES)


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.itemsize}")


def close(found: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    """Equal but for some roundings of what is computed, and one of the result."""
    rtol = {"f16": 2**-10, "bf16": 2**-7, "f32": 1e-5, "f64": 1e-12}[dtype]
    atol = {"f16": 2**-14, "bf16": 1e-6, "f32": 1e-6, "f64": 1e-14}[dtype]
    found, expected = (array.astype(np.float64) for array in (found, expected))
    np.testing.assert_allclose(found, expected, rtol, atol, equal_nan=True, err_msg=dtype)


@pytest.mark.parametrize("dtype", ["i8", "ui8", "i64", "ui64"])
def test_integers(dtype: str) -> None:
    module, kind = module_of(graph.PreluOp, {}, dtype), dtype_of(ELEMENT_TYPES[dtype])
    limits = np.iinfo(kind)
    x = np.array([[0, 1, limits.max, limits.min, limits.max - 3, 7, limits.max // 2 + 1]], kind)
    slope = np.array([0, 1, 2, 3, limits.max, 5, 6], kind)
    expected = module.run_reference(x, slope)
    for exe in (closed(module, graph.PreluOp), sw.compile(module, threads=1)):
        np.testing.assert_array_equal(exe(x, slope), expected)


def test_overridden_references_agree_with_derived_ones() -> None:
    x = np.linspace(-3, 6, 91)
    b = sw.Builder("main")
    for approximate in ("none", "tanh"):
        op = b.gelu(b.input(approximate, (91,), "f64"), approximate=approximate).ssa.owner
        assert isinstance(op, graph.GeluOp)
        (own,), (derived,) = op.reference(x), CompositeOp.reference(op, x)
        np.testing.assert_allclose(own, derived, rtol=1e-12)
    # The derived one cancels below: nothing is left of it where the normal distribution is small.
    op = b.gelu(b.input("far", (1,), "f64")).ssa.owner
    assert isinstance(op, graph.GeluOp)
    far = np.array([-12.0])
    assert CompositeOp.reference(op, far)[0] == 0 > op.reference(far)[0]


def test_a_composite_of_a_package_is_an_operator() -> None:
    module = module_of(SnakeOp, {}, "f32")
    assert "outside.snake %x_f32, %shift_f32 alpha = 5.000000e-01 : " in module.text()
    b = sw.Builder("main")
    x = b.input("x", (3, 2), "f32")
    with pytest.raises(sw.StepwellError, match=r"outside\.snake: element types differ"):
        b.apply(SnakeOp, x, b.input("shift", (2,), "f64"))
    opened = sw.compile(module, threads=1, rounding="kept").ir("optimized")
    assert opened.count("graph.sin") == 1


def test_a_kernel_for_a_composite_gets_it_whole() -> None:
    def twice(op: graph.SiluOp, target: object) -> GraphOp:
        return graph.AddOp(op.x, op.x)

    module = module_of(graph.SiluOp, {}, "f32")
    exe = sw.compile(module, threads=1, legalize={"graph.silu": twice})
    x = np.linspace(-2, 2, 14, dtype=np.float32).reshape(2, 7)
    np.testing.assert_array_equal(exe(x), x + x)


def test_wrong_declarations_of_composites() -> None:
    class Shifted(CompositeOp):
        name = "test.shifted"
        x = operand_def(FLOAT_TENSOR)
        by = prop_def(FloatAttr.constr(f64))
        result = result_def(FLOAT_TENSOR)

        def body(self, b: OpBuilder[V], x: V) -> V:
            return b.add(x, self.by.value.data)

    with pytest.raises(TypeError, match=r"Shifted: expected defaults of \['by'\], got \['to'\]"):
        composite(to=1.0)(Shifted)

    class Summed(CompositeOp):
        name = "test.summed"
        x = operand_def(FLOAT_TENSOR)
        y = opt_operand_def(FLOAT_TENSOR)
        result = result_def(FLOAT_TENSOR)

        def body(self, b: OpBuilder[V], x: V, y: V) -> V:
            return b.add(x, y)

    with pytest.raises(TypeError, match="Summed: an operand of a composite is optional or a list"):
        composite()(Summed)


def with_body(
    body: Callable[..., Any], fusion: FusionKind = FusionKind.ELEMENTWISE
) -> type[CompositeOp]:
    class TestedOp(CompositeOp):
        """An operator of one operand."""

        name = "graph.tested"
        FUSION: ClassVar[FusionKind] = fusion
        x = operand_def(FLOAT_TENSOR)
        result = result_def(FLOAT_TENSOR)

        def body(self, b: OpBuilder[Any], x: Any) -> Any:
            return body(b, x)

    return composite()(TestedOp)


REDUCES = FusionKind.REDUCTION
WRONG_BODIES: dict[str, tuple[type[CompositeOp], str]] = {
    "it reduces": (
        with_body(lambda b, x: b.mul(x, b.reduce(x, "sum", [-1], True))),
        "its body does not compute single elements, but its FUSION is elementwise, got graph",
    ),
    "it broadcasts": (
        with_body(lambda b, x: b.reshape(x, [])),
        "its body is not elementwise, but its FUSION is, expected elementwise operators, got graph",
    ),
    "a number": (
        with_body(lambda b, x: 1.0),
        "its body returns something else, expected a value, got float",
    ),
    "nothing": (
        with_body(lambda b, x: None, REDUCES),
        "its body returns something else, expected a value, got NoneType",
    ),
    "two values": (
        with_body(lambda b, x: (x, x)),
        "its body returns something else, expected a value, got 2",
    ),
    "arithmetic": (with_body(lambda b, x: x * 2), "raised TypeError: unsupported operand"),
    "an exception": (with_body(lambda b, x: 1 / 0, REDUCES), "raised ZeroDivisionError: division"),
    "no operator": (
        with_body(lambda b, x: b.trelu(x)),
        'raised AttributeError: .* no operator "trelu"; nearest: relu',
    ),
    "operands that do not fit": (
        with_body(lambda b, x: b.reduce(x, "sum", [2]), REDUCES),
        "graph.reduce: axis out of range, expected -2 <= axis < 2, got 2",
    ),
}


def compiled_at(level: int, operator: type[CompositeOp]) -> sw.Executable:
    b = sw.Builder()
    b.output(b.apply(operator, b.input("x", ("n", 4))))
    return sw.compile(b.module(), opt_level=level, threads=1)


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", WRONG_BODIES)
def test_what_a_body_does_wrong_names_the_operator(name: str, level: int) -> None:
    operator, message = WRONG_BODIES[name]
    with pytest.raises(sw.StepwellError, match=rf"^graph\.tested: {message}"):
        compiled_at(level, operator)


def test_loops_of_an_operator_in_a_body_need_it_opened() -> None:
    operator = with_body(lambda b, x: b.cumulative(x, "sum", 1), REDUCES)
    assert compiled_at(3, operator)(np.ones((1, 4), np.float32)).tolist() == [[1, 2, 3, 4]]
    with pytest.raises(sw.UnsupportedError, match="no value at an index; it has loops of its own"):
        compiled_at(0, operator)
