"""Comparisons of tests notice differences; one that notices none would hide mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import stepwell as sw

from .. import harness
from ..harness import as_onnx, as_reference, cases, close, floats, results, same

ONE = np.float32([1, np.nan, -0.0])
IMPORTED = floats(3)


def test_arrays_begin_anew_for_each_file_and_test() -> None:
    np.testing.assert_array_equal(floats(3), IMPORTED)
    assert not np.array_equal(floats(3), IMPORTED)


@given(st.booleans())
def test_arrays_begin_anew_for_each_example(example: bool) -> None:
    first = floats(3)
    harness.restart()
    np.testing.assert_array_equal(floats(3), first)


@pytest.mark.parametrize("compare", [same, close])
@pytest.mark.parametrize(
    "other",
    [
        np.float32([1, np.nan, -0.5]),
        np.float32([1, 1, -0.0]),
        np.float32([np.nan, np.nan, -0.0]),
        np.float64([1, np.nan, -0.0]),
        np.float32([[1, np.nan, -0.0]]),
        np.float32(1),
        (ONE, ONE),
        (),
    ],
)
def test_what_differs(compare: Callable[[Any, Any], None], other: object) -> None:
    compare(ONE, ONE)
    compare(ONE, [ONE])
    with pytest.raises((AssertionError, ValueError)):
        compare(ONE, other)
    with pytest.raises((AssertionError, ValueError)):
        compare(other, ONE)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ml_dtypes.bfloat16])
def test_bits_differ_where_numbers_are_close(dtype: object) -> None:
    one = np.ones(2, dtype)  # type: ignore[call-overload]
    near = np.nextafter(one, 2 * one)
    close(one, near, 1e-2)
    for other in near, -one, one - one:
        with pytest.raises(AssertionError):
            same(one, other)
    with pytest.raises(AssertionError):
        same(one - one, -(one - one))


def test_integers_are_never_close() -> None:
    with pytest.raises(AssertionError):
        close(np.int64([1000]), np.int64([1001]), 0.1)


def test_the_scale_is_that_of_the_largest_finite_number() -> None:
    want = np.float32([1000, 0, np.inf])
    got = want + np.float32([0, 0.01, 0])
    close(got, want, 1e-4, scaled=True)
    with pytest.raises(AssertionError):
        close(got, want, 1e-4)
    with pytest.raises(AssertionError):
        close(got, want, 1e-6, scaled=True)


def test_one_result_or_several() -> None:
    assert results(1) == results((1,)) == results([1]) == (1,)


def test_cases() -> None:
    one, two = cases("ab", "a")
    assert one == "a"
    assert [mark.name for mark in two.marks] == ["slow"]
    with pytest.raises(AssertionError):
        cases("ab", "c")


@pytest.mark.parametrize("ways", [("reference",), ("compiled",)])
def test_an_import_is_compared_with_onnx(ways: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    info = helper.make_tensor_value_info
    node = helper.make_node("Sqrt", ["x"], ["y"])
    x, y = (info(name, TensorProto.FLOAT, [3]) for name in "xy")
    proto = helper.make_model(helper.make_graph([node], "g", [x], [y]))
    as_onnx(proto, np.float32([4, 2, -1]), ways=ways)
    monkeypatch.setattr(harness, "onnx_results", lambda *_: [np.float32([2, 1, 0])])
    with pytest.raises(AssertionError, match=ways[0]):
        as_onnx(proto, np.float32([4, 2, -1]), ways=ways)


def test_compiled_code_is_compared_with_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (3,))))
    module = b.module()
    as_reference(module, ONE, rtol=0, threads=1)
    monkeypatch.setattr(sw.Module, "run_reference", lambda self, x: x - 1)
    with pytest.raises(AssertionError):
        as_reference(module, ONE, threads=1)


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        (harness.needs_package("no_such_package"), "needs no_such_package: pip install"),
        (harness.needs_tool("no-such-tool", "some-tools"), "apt install some-tools"),
    ],
)
def test_a_skip_says_what_to_install(mark: pytest.MarkDecorator, said: str) -> None:
    assert mark.args == (True,)
    assert said in mark.kwargs["reason"]


def test_a_skip_within_a_test_says_what_to_install() -> None:
    with pytest.raises(pytest.skip.Exception, match=r"needs no_such\.part: pip install 'other'"):
        harness.package("no_such.part", "other")
    with pytest.raises(pytest.skip.Exception, match="needs no-such: apt install tools"):
        harness.tool("no-such", "tools")
    assert harness.package("numpy") is np
