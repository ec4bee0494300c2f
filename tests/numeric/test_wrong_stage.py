"""Every pass on a module of every stage: it does its work, leaves it alone, or refuses it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import stepwell as sw
from stepwell.core.pipelines.pass_manager import run_steps
from stepwell.core.pipelines.stages import IR_STAGES
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context, own_passes
from stepwell.diagnosis.failures import is_defect
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request


@pytest.fixture(scope="module")
def modules() -> Mapping[str, ModuleOp]:
    b = sw.Builder("main")
    x, z = b.input("x", (3, 8)), b.input("z", ("n",))
    b.output(b.relu(b.dense(x, np.ones((5, 8), np.float32), name="fc")))
    b.output(b.silu(z))
    module = b.module()
    compilation = Compilation.of(Request(module, threads=2))
    work, ctx = compilation.begin()
    return {stage: work.op.clone() for stage in compilation.descend(work, ctx)}


def refusal(name: str, op: ModuleOp) -> sw.CompileError | None:
    """What a pass with its defaults says of a module, if that is not what it takes."""
    ctx = make_context()
    ctx.verify = "pass"
    try:
        run_steps(ctx, op, [own_passes()[name]()()])
    except sw.CompileError as error:
        return error
    return None


@pytest.mark.parametrize("name", own_passes())
def test_no_pass_breaks_on_a_module_of_another_stage(
    name: str, modules: Mapping[str, ModuleOp]
) -> None:
    for stage in IR_STAGES:
        error = refusal(name, modules[stage].clone())
        if error is not None:
            assert not is_defect(error), f"{stage}: {error}"
            assert str(error).count(f"{name}: ") == 1, "it says once which pass it was"


@pytest.mark.parametrize(
    ("name", "stage", "message"),
    [
        (
            "convert-to-llvm",
            "graph",
            "convert-to-llvm: func.func: a tensor has no place in memory, expected buffers",
        ),
        (
            "convert-graph-to-rt",
            "buffers",
            "convert-graph-to-rt: func.func: the function is on buffers already",
        ),
        (
            "convert-rt-to-llvm",
            "buffers",
            "convert-rt-to-llvm: loop.kernel: it is a loop nest still, expected a function",
        ),
    ],
)
def test_what_is_refused(
    name: str, stage: str, message: str, modules: Mapping[str, ModuleOp]
) -> None:
    with pytest.raises(sw.CompileError) as caught:
        run_passes(make_context(), modules[stage].clone(), name)
    assert str(caught.value).startswith(message)


def test_scalars_beside_tensors() -> None:
    """They go through, up to where the program gets its buffers."""
    text = """
    func.func private @twice(%x: i32) -> i32 {
      %y = arith.addi %x, %x : i32
      func.return %y : i32
    }
    func.func @main(%x: i32, %y: tensor<4x8xf32>) -> (i32, tensor<4x8xf32>) {
      %0 = func.call @twice(%x) : (i32) -> i32
      %1 = graph.relu %y : (tensor<4x8xf32>) -> tensor<4x8xf32>
      func.return %0, %1 : i32, tensor<4x8xf32>
    }
    """
    module = sw.from_mlir(text)
    run_passes(make_context(), module.op, "graph-fuse-ops,convert-graph-to-loop")
    assert "loop.kernel @fused_relu" in module.text()
    message = "an argument or a result is no tensor, expected tensors, got i32"
    with pytest.raises(sw.CompileError, match=message):
        run_passes(make_context(), module.op, "convert-graph-to-rt")
