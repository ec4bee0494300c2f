"""Residual blocks through the default pipeline: one kernel for each convolution."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends.builder import Value

from ..harness import RNG, as_reference, cases, close, floats

SIZE = 14


def filters(channels: int, count: int, window: int) -> np.ndarray:
    """Filters that keep the scale of what they are applied to."""
    return floats(count, channels, window, window) / np.float32(window * channels**0.5)


def statistics(count: int) -> tuple[np.ndarray, ...]:
    """Scale, bias, mean and variance of a batch norm."""
    positive = RNG.uniform(0.5, 2, (2, count)).astype(np.float32)
    return positive[0], floats(count), floats(count), positive[1]


class Blocks:
    """Residual blocks (He et al., 2016) with a builder."""

    def __init__(self, images: int | str, channels: int) -> None:
        self.builder = sw.Builder("main")
        self.x = self.builder.input("x", (images, channels, SIZE, SIZE))

    def layer(self, x: Value, count: int, window: int, stride: int) -> Value:
        b, border = self.builder, window // 2
        channels = x.shape[1]
        assert isinstance(channels, int)
        if border:
            x = b.pad(x, [0, 0, border, border], [0, 0, border, border])
        y = b.conv(x, filters(channels, count, window), strides=[stride, stride])
        return b.batch_norm(y, *statistics(count), axis=1)

    def block(self, x: Value, count: int, stride: int) -> Value:
        y = self.builder.relu(self.layer(x, count, 3, stride))
        y = self.layer(y, count, 3, 1)
        changes = stride != 1 or x.shape[1] != count
        return self.builder.relu(y + (self.layer(x, count, 1, stride) if changes else x))

    def module(self, y: Value) -> sw.Module:
        self.builder.output(y, name="y")
        return self.builder.module()


class OnnxBlocks:
    """The same as nodes of an ONNX model."""

    def __init__(self, images: int | str, channels: int) -> None:
        self.images, self.channels = images, channels
        self.nodes: list[object] = []
        self.weights: list[TensorProto] = []

    def weight(self, array: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(array, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def layer(self, x: str, channels: int, count: int, window: int, stride: int) -> str:
        steps = {"strides": [stride] * 2, "pads": [window // 2] * 4}
        y = self.node("Conv", x, self.weight(filters(channels, count, window)), **steps)
        return self.node("BatchNormalization", y, *map(self.weight, statistics(count)))

    def block(self, x: str, channels: int, count: int, stride: int) -> str:
        y = self.node("Relu", self.layer(x, channels, count, 3, stride))
        y = self.layer(y, count, count, 3, 1)
        if stride != 1 or channels != count:
            x = self.layer(x, channels, count, 1, stride)
        return self.node("Relu", self.node("Add", y, x))

    def model(self, y: str, shape: list[int | str]) -> ModelProto:
        x = helper.make_tensor_value_info("x", 1, [self.images, self.channels, SIZE, SIZE])
        out = helper.make_tensor_value_info(y, 1, shape)
        graph = helper.make_graph(self.nodes, "blocks", [x], [out], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def built(images: int | str, stride: int) -> sw.Module:
    blocks = Blocks(images, 32)
    return blocks.module(blocks.block(blocks.x, 32 * stride, stride))


def imported(images: int | str, stride: int) -> sw.Module:
    blocks = OnnxBlocks(images, 32)
    y = blocks.block("x", 32, 32 * stride, stride)
    size = SIZE // stride
    return sw.from_onnx(blocks.model(y, [images, 32 * stride, size, size]))


def kernels(text: str) -> list[list[str]]:
    """The operators of each kernel that is called."""
    bodies = {
        name: re.findall(r"graph\.(\w+) %", body)
        for name, body in re.findall(r"func\.func private @(\w+)(.*?)\n  }", text, re.DOTALL)
    }
    return [bodies[name] for name in re.findall(r"func\.call @(\w+)", text)]


MOVES = {"pad", "reshape", "transpose"}


BLOCKS = list(itertools.product([built, imported], [1, 3, "n"], [1, 2]))
USUAL = [(built, "n", 2), (imported, 1, 1)]


@pytest.mark.parametrize("case", cases(BLOCKS, USUAL))
def test_one_kernel_for_each_convolution(
    case: tuple[Callable[[int | str, int], sw.Module], int | str, int], all_tests: bool
) -> None:
    make, images, stride = case
    module = make(images, stride)
    texts, compilation = dict[str, str](), Compilation.of(Request(module, threads=1))
    work, ctx = compilation.begin()
    for stage in compilation.descend(work, ctx):
        texts[stage] = work.text()
        if stage == "scheduled":
            break
    assert "graph.batch_norm" not in texts["optimized"]
    called = kernels(texts["fused"])
    products = [[op for op in ops if op not in MOVES] for ops in called]
    epilogues = [ops for ops in products if ops]
    if stride == 1:
        expected = [["winograd_conv", "relu"], ["winograd_conv", "add", "relu"]]
    else:  # The shortcut is a convolution, into which the sum is fused.
        expected = [["blocked_conv", "relu"], ["winograd_conv"], ["blocked_conv", "add", "relu"]]
    assert sorted(epilogues) == sorted(expected)
    # Beside them there are only copies: a border of zeros, and layouts at both ends.
    for kernel in texts["scheduled"].split("loop.kernel")[1:]:
        assert "blocked_conv" not in kernel or re.search(
            r"carry\(%\w+ = %\w+ : vector<\d+x", kernel
        )
    if make is built and not all_tests:
        return  # The blocks below give what the reference gives.
    exe = sw.compile(module, threads=1)
    for count in (1, 3) if images == "n" else (int(images),):
        x = floats(count, 32, SIZE, SIZE)
        close(exe(x), module.run_reference(x), 2e-5, atol=5e-5)


def test_blocks_hand_blocks_of_channels_to_each_other() -> None:
    blocks = Blocks("n", 32)
    y = blocks.block(blocks.block(blocks.x, 32, 1), 64, 2)
    module = blocks.module(blocks.builder.reduce(y, "mean", [2, 3]))
    exe = sw.compile(module, threads=1)
    text = exe.ir("optimized")
    # The input with a border and, for the first sum, without one: nothing in between or after.
    assert text.count("graph.transpose") == 2
    assert text.count("graph.blocked_conv") == 2
    assert text.count("graph.winograd_conv") == 3
    assert "graph.conv" not in text
    for images in (1, 2):
        x = floats(images, 32, SIZE, SIZE)
        close(exe(x), module.run_reference(x), 2e-5, atol=5e-5)


@pytest.mark.parametrize("layout", [False, True])
def test_every_convolution_has_a_register_tile(layout: bool) -> None:
    """A residual, in whatever layout it comes, does not keep a sum out of registers."""
    b = sw.Builder("main")
    x, r = (
        b.input("x", (1, 32, 6, 7, 16)),
        b.input("r", (1, 2, 16, 6, 7) if layout else (1, 2, 6, 7, 16)),
    )
    residual = b.transpose(r, [0, 1, 3, 4, 2]) if layout else r
    w = filters(512, 32, 1)
    b.output(b.relu(b.blocked_conv(x, w, floats(32), block=16) + residual))
    module = b.module()
    inputs = floats(1, 32, 6, 7, 16), floats(*((1, 2, 16, 6, 7) if layout else (1, 2, 6, 7, 16)))
    exe = as_reference(module, *inputs, rtol=2e-5, atol=5e-5, threads=1)
    assert "register tile of" in exe.explain()
