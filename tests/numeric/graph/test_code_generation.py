"""Mistakes of code generation: each is blamed on it, and on the kernel that it is in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i32
from xdsl.ir import Operation

import stepwell as sw
from stepwell.backends.llvm import operations


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape[0]).standard_normal(shape).astype(np.float32)


def mlp() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", ("n", 20))
    h = b.tanh(b.dense(x, weights(8, 20), bias=weights(8)))
    b.output(b.softmax(b.dense(h, weights(5, 8))))
    return b.module()


def layer() -> sw.Module:
    """One kernel, which takes little time to be interpreted at late stages."""
    b = sw.Builder("main")
    b.output(b.tanh(b.dense(b.input("x", ("n", 5)), weights(3, 5))))
    return b.module()


def leaky() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", ("n", 5))
    b.output(b.leaky_relu(b.dense(x, weights(3, 5)), 0.1))
    return b.module()


def convolution() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (1, 3, 7, 7))
    y = b.relu(b.conv(x, weights(8, 3, 3, 3)))
    b.output(b.add(b.pool(y, "mean", [2, 2]), b.pool(y, "max", [2, 2])))
    return b.module()


def wrong_instruction(patch: pytest.MonkeyPatch) -> None:
    whole = operations.convert_op

    def convert(op: Operation, *rest: Any) -> Any:
        if isinstance(op, llvm.FMulOp):
            builder, values = rest[0], rest[1]
            values[op.res] = builder.fadd(values[op.lhs], values[op.rhs])
            return None
        return whole(op, *rest)

    patch.setattr(operations, "convert_op", convert)


def wrong_predicate(patch: pytest.MonkeyPatch) -> None:
    emit = operations._EMIT["llvm.fcmp"]

    def wrong(op: Operation, *rest: Any) -> Any:
        changed = op.clone()
        changed.operands = op.operands
        changed.properties["predicate"] = IntegerAttr(8, 64)  # uno: one is NaN
        return emit(changed, *rest)

    patch.setitem(operations._EMIT, "llvm.fcmp", wrong)


def wrong_choice(patch: pytest.MonkeyPatch) -> None:
    """Between numbers only: a wrong size or address would end the process."""
    emit = operations._EMIT["llvm.select"]

    def wrong(op: Operation, *rest: Any) -> Any:
        if "f32" not in str(op.results[0].type):
            return emit(op, *rest)
        changed = op.clone()
        changed.operands = [op.operands[0], op.operands[2], op.operands[1]]
        return emit(changed, *rest)

    patch.setitem(operations._EMIT, "llvm.select", wrong)


def same_lane(patch: pytest.MonkeyPatch) -> None:
    emit = operations._EMIT["llvm.shufflevector"]

    def wrong(op: Operation, *rest: Any) -> Any:
        changed = op.clone()
        changed.operands = op.operands
        assert isinstance(changed, llvm.ShuffleVectorOp)
        changed.mask = DenseArrayBase.from_list(i32, [0] * len(changed.mask.get_values()))
        return emit(changed, *rest)

    patch.setitem(operations._EMIT, "llvm.shufflevector", wrong)


def wrong_intrinsic(patch: pytest.MonkeyPatch) -> None:
    whole = operations._call_intrinsic

    def call(builder: Any, name: str, *rest: Any) -> Any:
        return whole(builder, name.replace("llvm.maximum.", "llvm.minimum."), *rest)

    patch.setattr(operations, "_call_intrinsic", call)


@pytest.mark.parametrize(
    ("program", "mistake", "function"),
    [
        (layer, wrong_instruction, "fused_dense_tanh"),
        (leaky, wrong_predicate, "fused_dense_leaky_relu"),
        (leaky, wrong_choice, "fused_dense_leaky_relu"),
        pytest.param(mlp, wrong_instruction, "fused_dense_tanh", marks=pytest.mark.slow),
        pytest.param(mlp, wrong_choice, "fused", marks=pytest.mark.slow),
        pytest.param(mlp, same_lane, "fused", marks=pytest.mark.slow),
        pytest.param(convolution, wrong_intrinsic, "fused_conv_relu", marks=pytest.mark.slow),
        pytest.param(convolution, wrong_instruction, "fused_pool", marks=pytest.mark.slow),
    ],
)
def test_planted_errors_of_code_generation(
    program: Callable[[], sw.Module],
    mistake: Callable[[pytest.MonkeyPatch], None],
    function: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mistake(monkeypatch)
    with pytest.raises(sw.MiscompilationError) as caught:
        sw.compile(program(), threads=1, check=True)
    error = caught.value
    assert (error.stage, error.pass_name) == ("asm", "code generation")
    assert error.function is not None
    assert error.function.startswith(function)
    assert error.nodes
