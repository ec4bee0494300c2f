"""Networks of inverted residuals, as torch exports them to ONNX: random weights.

Each function makes one network; channels are divided by `narrower`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from exported_models import Exported, export
from torch import nn


class Block(NamedTuple):
    """An inverted residual.

    Attributes:
        inner: the channels of its depthwise convolution.
        outputs: those of its result.
        window: the size of the windows of the depthwise convolution.
        stride: its stride.
        squeezed: the channels between the layers of its gate; 0 for none.
        activation: what follows its first two convolutions.
    """

    inner: int
    outputs: int
    window: int
    stride: int
    squeezed: int
    activation: type[nn.Module]


def convolution(
    inputs: int, outputs: int, window: int, stride: int, kind: type[nn.Module], groups: int = 1
) -> nn.Sequential:
    """A convolution, a batch norm, and an activation."""
    conv = nn.Conv2d(inputs, outputs, window, stride, window // 2, groups=groups, bias=False)
    nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), kind())


class Gate(nn.Module):
    """Scales channels by a function of their means: Hu et al., 2018."""

    def __init__(
        self, width: int, squeezed: int, inner: type[nn.Module], outer: type[nn.Module]
    ) -> None:
        super().__init__()
        self.scale = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            *(nn.Conv2d(width, squeezed, 1), inner()),
            *(nn.Conv2d(squeezed, width, 1), outer()),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale(x)


class InvertedResidual(nn.Module):
    """A wider depthwise convolution between two of 1 x 1: Sandler et al., 2018."""

    def __init__(self, inputs: int, block: Block, gates: Sequence[type[nn.Module]]) -> None:
        super().__init__()
        inner, outputs, window, stride, squeezed, kind = block
        layers = list[nn.Module]()
        if inner != inputs:
            layers.append(convolution(inputs, inner, 1, 1, kind))
        layers.append(convolution(inner, inner, window, stride, kind, groups=inner))
        if squeezed:
            layers.append(Gate(inner, squeezed, *gates))
        layers.append(convolution(inner, outputs, 1, 1, nn.Identity))
        self.layers = nn.Sequential(*layers)
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.is_residual else self.layers(x)


class Classifier(nn.Module):
    """Inverted residuals between a convolution with stride 2 and one of 1 x 1, and scores.

    Args:
        first: the channels of the first convolution.
        blocks: the inverted residuals.
        widths: the channels of the last convolution, and of linear layers after it.
        activation: that of those layers.
        gates: the activations within gates.
        classes: the number of scores.
    """

    def __init__(
        self,
        first: int,
        blocks: Sequence[Block],
        widths: Sequence[int],
        activation: type[nn.Module],
        gates: Sequence[type[nn.Module]] = (),
        classes: int = 1000,
    ) -> None:
        super().__init__()
        channels = [first, *(block.outputs for block in blocks)]
        self.image = nn.Sequential(
            convolution(3, first, 3, 2, activation),
            *(InvertedResidual(n, b, gates) for n, b in zip(channels, blocks, strict=False)),
            convolution(channels[-1], widths[0], 1, 1, activation),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        )
        layers = list[nn.Module]()
        for inputs, outputs in itertools.pairwise(widths):
            layers += [nn.Linear(inputs, outputs), activation()]
        self.scores = nn.Sequential(*layers, nn.Linear(widths[-1], classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scores(self.image(x))


V3 = [
    Block(16, 16, 3, 1, 0, nn.ReLU),
    Block(64, 24, 3, 2, 0, nn.ReLU),
    Block(72, 24, 3, 1, 0, nn.ReLU),
    Block(72, 40, 5, 2, 24, nn.ReLU),
    *[Block(120, 40, 5, 1, 32, nn.ReLU)] * 2,
    Block(240, 80, 3, 2, 0, nn.Hardswish),
    Block(200, 80, 3, 1, 0, nn.Hardswish),
    *[Block(184, 80, 3, 1, 0, nn.Hardswish)] * 2,
    Block(480, 112, 3, 1, 120, nn.Hardswish),
    Block(672, 112, 3, 1, 168, nn.Hardswish),
    Block(672, 160, 5, 2, 168, nn.Hardswish),
    *[Block(960, 160, 5, 1, 240, nn.Hardswish)] * 2,
]
"""The blocks of MobileNetV3 large."""


def stages(
    first: int,
    rows: Sequence[tuple[int, int, int, int, int]],
    activation: type[nn.Module],
    is_gated: bool,
) -> list[Block]:
    """Blocks from rows: how much wider their convolutions are within, channels, the number of
    blocks, the stride of the first one, and the size of windows."""
    blocks, inputs = list[Block](), first
    for factor, outputs, count, stride, window in rows:
        for step in [stride, *[1] * (count - 1)]:
            squeezed = inputs // 4 if is_gated else 0
            blocks.append(Block(factor * inputs, outputs, window, step, squeezed, activation))
            inputs = outputs
    return blocks


def exported(
    first: int,
    blocks: Sequence[Block],
    widths: Sequence[int],
    activation: type[nn.Module],
    gates: Sequence[type[nn.Module]],
    size: int,
    narrower: int,
) -> Exported:
    """A network for one image of `size` x `size`."""
    less = [
        block._replace(
            inner=block.inner // narrower,
            outputs=block.outputs // narrower,
            squeezed=block.squeezed // narrower,
        )
        for block in blocks
    ]
    ends = [width // narrower for width in widths]
    image = torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(1))
    return export(lambda: Classifier(first // narrower, less, ends, activation, gates), [image])


def mobile_net_v2(size: int = 224, narrower: int = 1) -> Exported:
    """MobileNetV2: Sandler et al., 2018."""
    rows = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3)]
    rows += [(6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)]
    blocks = stages(32, rows, nn.ReLU6, is_gated=False)
    return exported(32, blocks, [1280], nn.ReLU6, (), size, narrower)


def mobile_net_v3(size: int = 224, narrower: int = 1) -> Exported:
    """MobileNetV3 large: Howard et al., 2019."""
    gates = nn.ReLU, nn.Hardsigmoid
    return exported(16, V3, [960, 1280], nn.Hardswish, gates, size, narrower)


def efficient_net(size: int = 224, narrower: int = 1) -> Exported:
    """EfficientNet-B0: Tan and Le, 2019."""
    rows = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3)]
    rows += [(6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]
    blocks = stages(32, rows, nn.SiLU, is_gated=True)
    return exported(32, blocks, [1280], nn.SiLU, (nn.SiLU, nn.Sigmoid), size, narrower)
