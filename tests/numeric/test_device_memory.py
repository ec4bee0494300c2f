"""Copies between the host and a device: what is missing is found, and which pass left it out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stepwell as sw
from stepwell.backends.ptx.residence import Residence
from stepwell.conversions import convert_graph_to_rt
from stepwell.conversions.graph_to_rt.copies import place_copies
from stepwell.dialects.rt import ops as rt

from ..harness import floats
from .stand_in import StandIn

DEVICE = "cuda:sm_90,emulated"


@sw.register_function("test_device_memory.halved")
def halved(x: np.ndarray, y: np.ndarray) -> None:
    y[...] = x / 2


def on_both() -> sw.Module:
    """A function of the host between two kernels."""
    b = sw.Builder("main")
    x = b.exp(b.input("x", (6,), "f32"))
    halves = b.call_packed("test_device_memory.halved", x, results=sw.TensorSpec((6,), "f32"))
    b.output(b.relu(halves), name="y")
    return b.module()


def without(pattern: str) -> sw.Module:
    """The program at stage `buffers` without the first operation that matches."""
    text, count = re.subn(
        rf"\n *{pattern}.*", "", sw.compile(on_both(), target=DEVICE).ir("buffers"), count=1
    )
    assert count == 1
    return sw.from_mlir(text)


def test_the_copies_of_a_program() -> None:
    exe, x = sw.compile(on_both(), target=DEVICE), floats(6)
    assert re.findall(r"rt\.to_\w+", exe.ir("buffers")) == [
        *("rt.to_device", "rt.to_host"),
        *("rt.to_device", "rt.to_host"),
    ]
    for stage in ("buffers", "loops", "llvm", "ptx"):
        np.testing.assert_allclose(exe.run_at(stage, x), np.exp(x) / 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("rt.to_device %x", "rt.call: argument 0 of @.* was not copied to the device"),
        (r"rt.to_host %\d+", "rt.call_packed: the host reads what only the device has"),
        (r"rt.to_device %\d+", "rt.call: argument 0 of @.* was not copied to the device"),
        ("rt.to_host %result", "func.func: the host reads what only the device has"),
    ],
)
def test_a_copy_that_is_missing_is_an_error_of_the_interpreter(pattern: str, says: str) -> None:
    with pytest.raises(sw.CompileError, match=says):
        without(pattern).run(floats(6))


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("rt.to_device %x", r"argument \d \(memref<6xf32>\) was not copied to the device$"),
        ("rt.to_host %result", "call: only the device has result 0$"),
    ],
)
def test_a_copy_that_is_missing_is_an_error_of_the_emulator(pattern: str, says: str) -> None:
    exe = sw.compile(without(pattern), target=DEVICE)
    with pytest.raises(sw.EmulationError, match=says) as caught:
        exe(floats(6))
    assert caught.value.kind == "stale"


@pytest.mark.parametrize(
    ("left_out", "says"),
    [
        (rt.ToHostOp, "convert-graph-to-rt: .*the host reads what only the device has"),
        (rt.ToDeviceOp, "convert-graph-to-rt: .*was not copied to the device"),
    ],
)
def test_the_conversion_that_leaves_copies_out_is_blamed(
    left_out: type[Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def place(body: Any, inputs: Any, results: Any) -> int:
        count = place_copies(body, inputs, results)
        for op in [op for op in body.block.ops if isinstance(op, left_out)]:
            op.detach()
            op.erase()
        return count

    monkeypatch.setattr(convert_graph_to_rt, "place_copies", place)
    with pytest.raises(sw.MiscompilationError, match=says):
        sw.compile(on_both(), target=DEVICE, check=True)


STEPS: dict[str, Callable[[sw.Builder, Any, Any], Any]] = {
    "kernel": lambda b, x, y: b.relu(x - y),
    "function": lambda b, x, y: b.call_packed(
        "test_device_memory.halved", x, results=sw.TensorSpec((4, 6), "f32")
    ),
    "row": lambda b, x, y: x + b.slice(y, [1, 0], [2, 6]),
    "join": lambda b, x, y: b.reshape(
        b.slice(b.concat([x, b.exp(y)], axis=0), [2, 0], [6, 6]), (4, 6)
    ),
    "first": lambda b, x, y: y,
}


@settings(
    max_examples=settings().max_examples * 16 // 100,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=5), st.booleans())
def test_any_mixture_of_kernels_and_functions(
    driver: StandIn, steps: Sequence[str], both: bool
) -> None:
    """On a device with memory of its own, and so wherever a copy is missing, results differ."""
    b = sw.Builder("main")
    x, y = b.input("x", (4, 6), "f32"), b.input("y", (4, 6), "f32")
    first, second = x, y
    for name in steps:
        first, second = STEPS[name](b, first, second), first
    b.output(first, name="z")
    if both:
        b.output(second, name="other")
    module, inputs = b.module(), (floats(4, 6), floats(4, 6))
    exe, want = sw.compile(module, target="cuda:sm_90"), module.run_reference(*inputs)
    for _ in range(2):
        found = exe(*inputs)
        for one, other in zip(*((r if both else (r,)) for r in (found, want)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_where_the_newest_bytes_are() -> None:
    where = Residence()
    assert not where.is_on_device(100, 4)
    assert where.is_on_device(100, 0)
    where.copied(100, 10)
    where.copied(110, 10)
    assert where.is_on_device(105, 10), "two copies, beside each other"
    assert not where.is_on_device(105, 16)
    where.written_by_device(104, 4)
    assert where.is_stale(100, 5)
    assert not where.is_stale(100, 4)
    assert not where.is_stale(108, 4)
    where.written_by_host(106, 4)
    assert where.is_stale(104, 2)
    assert not where.is_stale(106, 2)
    assert not where.is_on_device(104, 4)
    where.copied(100, 20)
    assert not where.is_stale(100, 20)
