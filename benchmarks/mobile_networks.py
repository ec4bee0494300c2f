"""Networks of inverted residuals, as torch exports them to ONNX: random weights.

Each function makes one network; channels are divided by `narrower`. (Those of torchvision are the
same, but a build of it for another torch breaks `torch.onnx`.)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from exported_models import Exported, export
from torch import nn

Kind = type[nn.Module]


class Block(NamedTuple):
    """An inverted residual, a wider depthwise convolution between two of 1 x 1.

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
    activation: Kind


def convolution(
    inputs: int, outputs: int, window: int, stride: int, kind: Kind, groups: int = 1
) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, window, stride, window // 2, groups=groups, bias=False)
    nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), kind())


class Residual(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + super().forward(x)


class Gate(nn.Sequential):
    """Scales channels by a function of their means: Hu et al., 2018."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * super().forward(x)


def inverted(inputs: int, block: Block, gates: Sequence[Kind]) -> nn.Module:
    """An inverted residual: Sandler et al., 2018."""
    inner, outputs, window, stride, squeezed, kind = block
    layers = list[nn.Module]()
    if inner != inputs:
        layers.append(convolution(inputs, inner, 1, 1, kind))
    layers.append(convolution(inner, inner, window, stride, kind, groups=inner))
    if squeezed:
        first, last = nn.Conv2d(inner, squeezed, 1), nn.Conv2d(squeezed, inner, 1)
        layers.append(Gate(nn.AdaptiveAvgPool2d(1), first, gates[0](), last, gates[1]()))
    layers.append(convolution(inner, outputs, 1, 1, nn.Identity))
    return (Residual if stride == 1 and inputs == outputs else nn.Sequential)(*layers)


def exported(
    size: int,
    narrower: int,
    first: int,
    blocks: Sequence[Block],
    widths: Sequence[int],
    activation: Kind,
    gates: Sequence[Kind] = (),
) -> Exported:
    """A network for one image of `size` x `size`.

    `first` are the channels of the first convolution, `widths` those of the last one and of linear
    layers after it, and `gates` the activations within gates.
    """
    less = [
        b._replace(**{n: getattr(b, n) // narrower for n in ("inner", "outputs", "squeezed")})
        for b in blocks
    ]
    ends = [width // narrower for width in widths]
    channels = [first // narrower, *(block.outputs for block in less)]

    def make() -> nn.Module:
        layers = [
            convolution(3, channels[0], 3, 2, activation),
            *(inverted(n, block, gates) for n, block in zip(channels, less, strict=False)),
            convolution(channels[-1], ends[0], 1, 1, activation),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        ]
        for pair in pairwise(ends):
            layers += [nn.Linear(*pair), activation()]
        return nn.Sequential(*layers, nn.Linear(ends[-1], 1000))

    image = torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(1))
    return export(make, [image])


def stages(
    rows: Sequence[tuple[int, int, int, int, int]], activation: Kind, is_gated: bool
) -> list[Block]:
    """Blocks from rows: how much wider their convolutions are within, channels, the number of
    blocks, the stride of the first one, and the size of windows."""
    blocks, inputs = list[Block](), 32
    for factor, outputs, count, stride, window in rows:
        for step in [stride, *[1] * (count - 1)]:
            squeezed = inputs // 4 if is_gated else 0
            blocks.append(Block(factor * inputs, outputs, window, step, squeezed, activation))
            inputs = outputs
    return blocks


def mobile_net_v2(size: int = 224, narrower: int = 1) -> Exported:
    """MobileNetV2: Sandler et al., 2018."""
    rows = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3)]
    rows += [(6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)]
    blocks = stages(rows, nn.ReLU6, is_gated=False)
    return exported(size, narrower, 32, blocks, [1280], nn.ReLU6)


def mobile_net_v3(size: int = 224, narrower: int = 1) -> Exported:
    """MobileNetV3 large: Howard et al., 2019."""
    rows = [(16, 16, 3, 1, 0), (64, 24, 3, 2, 0), (72, 24, 3, 1, 0), (72, 40, 5, 2, 24)]
    blocks = [Block(*row, nn.ReLU) for row in [*rows, *[(120, 40, 5, 1, 32)] * 2]]
    rows = [(240, 80, 3, 2, 0), (200, 80, 3, 1, 0), *[(184, 80, 3, 1, 0)] * 2]
    rows += [(480, 112, 3, 1, 120), (672, 112, 3, 1, 168), (672, 160, 5, 2, 168)]
    blocks += [Block(*row, nn.Hardswish) for row in [*rows, *[(960, 160, 5, 1, 240)] * 2]]
    gates = nn.ReLU, nn.Hardsigmoid
    return exported(size, narrower, 16, blocks, [960, 1280], nn.Hardswish, gates)


def efficient_net(size: int = 224, narrower: int = 1) -> Exported:
    """EfficientNet-B0: Tan and Le, 2019."""
    rows = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3)]
    rows += [(6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]
    blocks = stages(rows, nn.SiLU, is_gated=True)
    return exported(size, narrower, 32, blocks, [1280], nn.SiLU, (nn.SiLU, nn.Sigmoid))
