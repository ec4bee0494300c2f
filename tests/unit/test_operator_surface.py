"""What operators and kernels write loops with, beyond what tests of kernels show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import TensorType, f32, f64
from xdsl.irdl import irdl_op_definition

import stepwell as sw
from stepwell.core.errors import UnsupportedError
from stepwell.dialects.graph.interfaces import FusionKind
from stepwell.dialects.graph.nests.recording import Recorder

from .unary import Unary


@irdl_op_definition
class SurfaceOp(Unary):
    name = "surface.wrong"
    FUSION: ClassVar[FusionKind] = FusionKind.NEST
    DOES: ClassVar[Callable[..., None]]

    def write(self, k: Any, x: Any, result: Any) -> None:
        type(self).DOES(k, x, result)


def half(k: Any) -> Any:
    """A scalar of another type."""
    return k.scalar(0.5, f64)


def assign(buffer: Any, index: Any, value: Any) -> None:
    buffer[index] = value


@pytest.mark.parametrize(
    ("does", "message"),
    [
        (lambda k, x, y: assign(x, (0, 0), 1.0), "writes to an operand, expected to a result"),
        (lambda k, x, y: x.fill(1.0), "fills an operand, expected a result"),
        (lambda k, x, y: y[0, 0], "reads a result, expected an operand, or a local buffer"),
        (lambda k, x, y: k.fma(x[0, 0], half(k), 1), "k.fma of different types, expected f"),
        (lambda k, x, y: x[0, 0] & 1, "a float has no bits, expected integers or conditions"),
        (lambda k, x, y: x[0], "wrong number of indices of .*, expected 2, got 1"),
        (lambda k, x, y: assign(y, (0, 0), half(k)), "wrong type of a value stored in"),
    ],
)
def test_wrong_uses_name_the_operator(does: Callable[..., None], message: str) -> None:
    matrix = TensorType(f32, [2, 3])
    op = SurfaceOp(operands=[test.TestOp(result_types=[matrix]).results[0]])
    SurfaceOp.DOES = does
    with pytest.raises(UnsupportedError, match=f"^surface.wrong: {message}"):
        Recorder().recording(op)


@sw.kernel
def chosen(k: Any, x: Any, y: Any) -> None:
    """x * 3 + 1 where bit 1 of the column is set and the row is not above it, else -1."""
    y.fill(-1.0)
    with k.serial(x.shape) as index:
        row, column = index
        bit = (k.cast(column, "i64") >> 1) & 1
        with k.only_if(k.equal(bit ^ 0, 1) & (row <= column)):
            y[index] = k.fma(x[index], 3.0, 1.0)


def test_kernels_have_it_too() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n", 6), "f32")
    b.output(b.call_kernel(chosen, x, results=sw.TensorSpec(("n", 6), "f32")), name="y")
    exe = sw.compile(b.module(), threads=1)
    given = np.arange(24, dtype=np.float32).reshape(4, 6)
    rows, columns = np.indices(given.shape)
    want = np.where(((columns >> 1) & 1 == 1) & (rows <= columns), given * 3 + 1, -1)
    np.testing.assert_array_equal(exe(given), want)
