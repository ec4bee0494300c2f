"""Kernels of models by NVIDIA's assembler: it accepts them, and they stay within budgets."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stepwell as sw
from stepwell.backends.llvm.device import device_code
from stepwell.backends.ptx import assembler
from stepwell.core.target import named
from stepwell.frontends import gnn

from ..harness import floats

needs_ptxas = pytest.mark.skipif(
    assembler.assembler() is None, reason="needs ptxas: pip install nvidia-cuda-nvcc"
)
PROCESSORS = ("sm_80", "sm_90", "sm_100", "sm_120")
MOST_REGISTERS = 168
"""With these, a multiprocessor, which has 65,536, takes three blocks of 128 threads at a time."""
STACK_BYTES = 256
"""The most local memory of a thread: a few words."""

KERNEL = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 x)
{
    .reg .f32 %f<3>;
    .reg .b64 %rd<3>;
    .shared .align 4 .b8 tile[64];
    ld.param.u64 %rd1, [x];
    ld.shared.f32 %f1, [tile];
    st.global.f32 [%rd1], %f1;
    ret;
}
"""


def built(make: Callable[..., Any], *shapes: tuple[int | None, ...]) -> sw.Module:
    b = sw.Builder("main")
    inputs = [b.input(f"x{n}", shape, "f32") for n, shape in enumerate(shapes)]
    b.output(make(b, *inputs), name="y")
    return b.module()


def network(*layers: Any) -> sw.Module:
    features = sw.TensorSpec((None, 64), "f32")
    return gnn.Sequential(*layers).to_module(gnn.GraphSpec(), features=features)


def perceptron(b: sw.Builder, x: Any) -> Any:
    hidden = b.relu(b.dense(x, floats(128, 784), bias=floats(128)))
    return b.softmax(b.dense(hidden, floats(10, 128)))


def convolutions(b: sw.Builder, x: Any) -> Any:
    hidden = b.relu(b.conv(x, floats(16, 3, 3, 3), bias=floats(16)))
    hidden = b.pool(hidden, "max", [2, 2], strides=[2, 2])
    return b.relu(b.conv(hidden, floats(8, 16, 3, 3)))


MODELS: dict[str, Callable[[], sw.Module]] = {
    "perceptron": lambda: built(perceptron, (None, 784)),
    "convolutions": lambda: built(convolutions, (1, 3, 32, 32)),
    "attention": lambda: built(lambda b, *qkv: b.attention(*qkv), *[(1, 4, 64, 32)] * 3),
    "layer_norm": lambda: built(
        lambda b, x: b.gelu(b.layer_norm(x, floats(256), floats(256))), (64, 256)
    ),
    "gcn": lambda: network(
        gnn.GCNConv(floats(64, 16), floats(16)), gnn.ReLU(), gnn.GCNConv(floats(16, 7), floats(7))
    ),
    "gat": lambda: network(gnn.GATConv(floats(64, 64), floats(2, 32), floats(2, 32), floats(64))),
    "softmax": lambda: built(lambda b, x: b.softmax(x), (64, 2000)),
    "sage": lambda: network(gnn.SAGEConv(floats(16, 64), floats(16), floats(16, 64))),
}


FOR_ALL = ("attention", "softmax")
"""Models that quick tests assemble for all processors, others for one."""


@needs_ptxas
@pytest.mark.parametrize("model", MODELS)
def test_kernels_of_models_stay_within_budgets(model: str, all_tests: bool) -> None:
    lowered = sw.from_mlir(sw.compile(MODELS[model](), target="cuda:sm_90,emulated").ir("llvm"))
    for processor in PROCESSORS if all_tests or model in FOR_ALL else ("sm_90",):
        text = device_code(lowered.op, named(f"cuda:{processor},emulated")).text
        made = sw.assemble(text, processor)
        assert len(made.kernels) == text.count(".entry")
        assert made.messages == ()
        for kernel in made.kernels:
            spilled = kernel.spilled_bytes, kernel.reloaded_bytes
            assert spilled == (0, 0), str(kernel)
            assert 0 < kernel.registers <= MOST_REGISTERS, str(kernel)
            assert kernel.stack_bytes <= STACK_BYTES, str(kernel)


@needs_ptxas
@pytest.mark.parametrize(
    "product", [lambda b, x: b.dense(x, floats(256, 16)), lambda b, x: b.matmul(x, floats(16, 256))]
)
def test_two_tiles_of_a_product_fit_a_multiprocessor(
    product: Callable[..., Any],
) -> None:
    """Of 256 threads each; together they have 65,536 registers."""
    exe = sw.compile(built(product, (256, 16)), target="cuda:sm_90,emulated")
    (kernel,) = sw.assemble(exe.ir("ptx"), "sm_90").kernels
    assert ".reqntid 256" in exe.ir("ptx")
    assert 2 * 256 * kernel.registers <= 1 << 16, str(kernel)


@needs_ptxas
def test_resources_are_those_of_the_kernel() -> None:
    made = sw.assemble(KERNEL, "sm_90")
    (kernel,) = made.kernels
    assert (made.processor, kernel.kernel) == ("sm_90", "k")
    assert (kernel.shared_bytes, kernel.stack_bytes, kernel.spilled_bytes) == (64, 0, 0)
    assert made.code.startswith(b"\x7fELF")
    assert str(made) == (
        f"k: {kernel.registers} registers, 0 bytes spilled, 0 bytes of stack, 64 of shared memory"
    )


@needs_ptxas
def test_spills_and_warnings_are_reported() -> None:
    """Where the text bounds the registers, values are kept in memory."""
    loads = "\n".join(f"ld.global.f32 %f{n}, [%rd1+{4 * n}];" for n in range(200))
    sums = "\n".join(f"fma.rn.f32 %f0, %f0, %f{n}, %f{199 - n};" for n in range(200))
    body = KERNEL.replace("%f<3>", "%f<200>").replace("ld.shared.f32 %f1, [tile];", loads + sums)
    bound = body.replace("(.param .u64 x)", "(.param .u64 x) .maxnreg 24")
    made = sw.assemble(bound.replace(", %f1;", ", %f0;"), "sm_90")
    assert made.kernels[0].spilled_bytes > 0
    assert made.kernels[0].reloaded_bytes > 0
    warned = sw.assemble(KERNEL.replace("x)", "x) .minnctapersm 4"), "sm_90")
    (message,) = warned.messages
    assert message.startswith("warning: .minnctapersm is ignored when neither .maxntid")
    assert message.endswith("(line 14)")
    assert str(warned).endswith(message)


@needs_ptxas
@pytest.mark.parametrize(
    ("text", "processor", "says"),
    [
        (
            KERNEL.replace("ret;", "foo.f32 %f1;"),
            "sm_90",
            r"ptxas for sm_90: Not a name of any known instruction: 'foo' \(line 13\)",
        ),
        ("hello", "sm_90", "ptxas for sm_90: Missing .version directive"),
        (KERNEL, "sm_75", "ptxas for sm_75: SM version specified by .target is higher"),
        (
            KERNEL,
            "sm_1",
            r"^ptxas for sm_1: it does not know this processor, expected sm_\d+, .*sm_90, .*sm_120",
        ),
    ],
)
def test_texts_that_are_refused(text: str, processor: str, says: str) -> None:
    with pytest.raises(sw.InputError, match=says) as caught:
        sw.assemble(text, processor)
    assert "\n" not in str(caught.value)


def test_an_assembler_that_does_not_list_its_processors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "ptxas"
    fatal = "Value 'sm_1' is not defined for option 'gpu-name'"
    program.write_text(f'#!/bin/sh\necho "ptxas fatal   : {fatal}" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setattr(assembler, "assembler", lambda: str(program))
    with pytest.raises(sw.InputError, match=r"^ptxas for sm_1: it does not know this processor$"):
        sw.assemble(KERNEL, "sm_1")


def test_no_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembler, "assembler", lambda: None)
    with pytest.raises(sw.StepwellError, match=r"not installed; pip install 'stepwell\[cuda\]'$"):
        sw.assemble(KERNEL, "sm_90")


def test_an_assembler_that_cannot_be_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One of the path, where the package is not installed."""
    program = tmp_path / "ptxas"
    program.write_text("no program")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(assembler.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(sw.StepwellError, match="ptxas cannot be run: "):
        sw.assemble(KERNEL, "sm_90")
