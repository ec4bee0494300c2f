"""bf16 in memory: conversions of every value, and programs that take, keep and give it."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import stepwell as sw
from stepwell.core.ir.weights import WeightStore
from stepwell.frontends.builder import Value

from ..harness import as_reference, close, floats

BF16 = np.dtype(ml_dtypes.bfloat16)


def cast(source: str, target: str) -> sw.Module:
    b = sw.Builder("main")
    b.output(b.cast(b.input("x", ("n",), source), target), name="y")
    return b.module()


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.itemsize}")


@pytest.mark.parametrize("level", [0, 3])
def test_every_bf16_as_f32(level: int) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(BF16)
    module = cast("bf16", "f32")
    expected = every.astype(np.float32)
    for found in (
        sw.compile(module, threads=1, opt_level=level)(every),
        module.run_reference(every),
    ):
        np.testing.assert_array_equal(bits(found), bits(expected))


@pytest.mark.parametrize("level", [0, 3])
def test_f32_rounds_to_nearest_even(level: int) -> None:
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    # Ties, their neighbours, and what is close to no bf16 at all.
    lower = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    x = (upper[:, None] | lower).ravel().view(np.float32)
    found = sw.compile(cast("f32", "bf16"), threads=1, opt_level=level)(x)
    with np.errstate(invalid="ignore"):
        expected = x.astype(BF16)
    assert found.dtype == BF16
    number = ~np.isnan(x)
    np.testing.assert_array_equal(bits(found)[number], bits(expected)[number])
    assert np.isnan(found[~number].astype(np.float32)).all()


SLOW_ROWS = ((1, 0), (1, 3), (7, 3), ("n", 0))


@pytest.mark.parametrize(
    ("rows", "level"),
    [(7, 0), ("n", 3), *(pytest.param(*c, marks=pytest.mark.slow) for c in SLOW_ROWS)],
)
def test_programs_on_bf16(rows: int | str, level: int) -> None:
    array = functools.partial(floats, dtype=BF16)
    b = sw.Builder("main")
    x = b.input("x", (rows, 33), "bf16")
    h = b.relu(b.dense(x, array(17, 33), array(17)))
    h = b.max(b.mul(h, b.constant(np.full((), 0.5, BF16))), array(17))
    b.output(b.dense(h, array(40, 17)), name="h")
    b.output(b.softmax(b.cast(h, "f32"), axis=-1), name="y")
    b.output(b.reduce(h, "sum", axes=[1]), name="s")
    b.output(b.pad(h, [0, 1], [0, 2], value=-1.0), name="p")
    module = b.module()
    inputs = array(5 if rows == "n" else int(rows), 33)
    exe = sw.compile(module, threads=1, opt_level=level)
    # A fused kernel rounds once at its end, the reference after each of four operators.
    close(exe(inputs), module.run_reference(inputs), 2**-6, 2**-6 * 20)


def test_wrong_dtype_is_refused() -> None:
    exe = sw.compile(cast("bf16", "f32"), threads=1)
    with pytest.raises(
        sw.InputError, match='input "x": wrong dtype, expected bfloat16, got float32'
    ):
        exe(np.ones(3, np.float32))


def test_weights_on_disk(tmp_path: Path) -> None:
    store = WeightStore()
    array = np.array([1.5, -np.inf, np.nan, 3e38], BF16)
    store.add("w", array)
    store.save(tmp_path / "w.safetensors")
    loaded: Any = WeightStore.load(tmp_path / "w.safetensors")["w"]
    assert loaded.dtype == BF16
    np.testing.assert_array_equal(bits(loaded), bits(array))


def test_literals() -> None:
    b = sw.Builder("main")
    x = b.input("x", (2,), "bf16")
    b.output(b.add(x, b.constant(np.array([1.5, -2.0], BF16))), name="y")
    module = b.module()
    x = np.array([1.0, 2.0], BF16)
    for found in (sw.compile(module, threads=1)(x), module.run_reference(x)):
        assert found.dtype == BF16
        assert found.astype(np.float32).tolist() == [2.5, 0.0]


def rounded(b: sw.Builder, x: Value, dtype: str) -> Value:
    return b.cast(b.cast(x, dtype), "f32")


def test_functions_that_differ_in_an_inner_type_stay_apart() -> None:
    b = sw.Builder("main")
    x, y = b.input("x", (9,)), b.input("y", (9,))
    b.output(rounded(b, x, "f16"), name="of_f16")
    b.output(rounded(b, y, "bf16"), name="of_bf16")
    as_reference(b.module(), *[100 * floats(9)] * 2, rtol=0, threads=1)


def test_reductions_that_differ_in_an_inner_type_stay_apart() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n", 9))
    sums = [b.reduce(rounded(b, x, kind), "sum", axes=[1]) for kind in ("f16", "bf16")]
    b.output(b.sub(*sums), name="y")
    module, x = b.module(), floats(4, 9)
    # Sums of nine numbers may be added in another order.
    close(sw.compile(module, threads=1)(x), module.run_reference(x), 0, 4e-6)


def test_a_constant_of_onnx_that_is_computed_at_import() -> None:
    from onnx import TensorProto
    from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
    from onnx.numpy_helper import from_array

    infos = [make_tensor_value_info(name, TensorProto.BFLOAT16, (2,)) for name in "xy"]
    nodes = [
        make_node("Cast", ["c"], ["b"], to=TensorProto.BFLOAT16),
        make_node("Add", ["x", "b"], ["y"]),
    ]
    weight = from_array(np.array([1.5, -2.0], np.float32), "c")
    graph = make_graph(nodes, "g", infos[:1], infos[1:], [weight])
    module = sw.from_onnx(make_model(graph, opset_imports=[make_opsetid("", 20)]))
    y = module.run_reference(np.ones(2, BF16))
    np.testing.assert_array_equal(np.asarray(y, np.float32), [2.5, -1.0])
