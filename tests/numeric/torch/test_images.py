"""Networks of torch on images whose height and width only a call decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stepwell as sw

from ...harness import import_level, package

torch = package("torch")
nn, F = torch.nn, torch.nn.functional

SIZES = [(2, 3, 32, 48), (1, 3, 18, 22), (3, 3, 33, 47)]


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 16, 7, 2, 3), nn.BatchNorm2d(16)
        self.same = nn.Conv2d(16, 16, 3, padding=1)
        self.less, self.short = nn.Conv2d(16, 32, 3, 2, 1), nn.Conv2d(16, 32, 1, 2)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1)
        x = F.relu(self.same(x) + x)
        x = F.relu(self.less(x) + self.short(x))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Pools(nn.Module):
    def forward(self, x: Any) -> Any:
        return (
            F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.max_pool2d(x, 2, ceil_mode=True),
            F.lp_pool2d(x, 2, 3, 2),
            F.adaptive_avg_pool2d(x, (3, 2)),
            F.adaptive_max_pool2d(x, (5, 1)),
        )


class Views(nn.Module):
    """Sizes after windows are read, multiplied and restored."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.less = nn.Conv2d(3, 16, 4, 4), nn.Conv2d(3, 16, 3, 2, 1)
        self.again, self.linear = nn.Conv2d(16, 16, 3, 2, 1), nn.Linear(16, 8)

    def forward(self, x: Any) -> Any:
        patches = self.patches(x).flatten(2).transpose(1, 2)
        half = self.less(x)
        n, c, h, w = half.shape
        weights = half.view(n, c, h * w).softmax(-1).view(n, c, h, w)
        coarse = self.again(half)
        wide = F.interpolate(coarse, size=half.shape[-2:], mode="nearest")
        large = F.interpolate(coarse, size=x.shape[-2:], mode="bilinear")
        return self.linear(patches), weights, F.pixel_shuffle(half, 2), half + wide, large


class Halves(nn.Module):
    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.up = nn.ConvTranspose2d(16, 16, 2, 2)
        self.c = nn.Conv2d(24, 4, 3, padding=1)

    def forward(self, x: Any) -> Any:
        a = F.relu(self.a(x))
        b = F.relu(self.b(F.max_pool2d(a, 2)))
        up = self.up(b) if self.way == "up" else F.interpolate(b, scale_factor=2, mode=self.way)
        return self.c(torch.cat([a, up], 1))


def imported(model: Any) -> Any:
    """The program of a model, for all sizes of a batch of images."""
    auto = torch.export.Dim.AUTO
    x = torch.zeros(*SIZES[0])
    return sw.from_torch(model.eval(), (x,), dynamic_shapes=({0: auto, 2: auto, 3: auto},))


@pytest.mark.parametrize(
    "model",
    [Residual(), *(pytest.param(m, marks=pytest.mark.slow) for m in (Pools(), Views()))],
    ids=lambda m: type(m).__name__,
)
def test_one_program_for_all_sizes(model: Any, all_tests: bool) -> None:
    module = imported(model)
    run = sw.compile(module, threads=1) if all_tests else module.run_reference
    for size in SIZES:
        x = torch.randn(*size)
        with torch.no_grad():
            wanted = model(x)
        found = run(x)
        wanted, found = (y if isinstance(y, tuple) else (y,) for y in (wanted, found))
        for want, got in zip(wanted, found, strict=True):
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "way", ["up", *(pytest.param(w, marks=pytest.mark.slow) for w in ("nearest", "bilinear"))]
)
def test_halves_that_are_joined_with_the_whole(way: str) -> None:
    model = Halves(way)
    module = imported(model)
    run = sw.compile(module, threads=1, opt_level=import_level())
    for size in SIZES[:2]:
        x = torch.randn(*size)
        with torch.no_grad():
            np.testing.assert_allclose(run(x), model(x).numpy(), rtol=1e-4, atol=1e-4)
    with pytest.raises(sw.InputError, match="size x_2 is not divisible, expected a multiple of 2"):
        run(torch.randn(*SIZES[2]))


@pytest.mark.slow
def test_compiled_by_torch() -> None:
    from stepwell.dynamo import stepwell

    model = Residual().eval()
    torch._dynamo.reset()
    fast = torch.compile(model, backend=stepwell, dynamic=True, fullgraph=True)
    with torch.no_grad():
        for size in SIZES:
            x = torch.randn(*size)
            torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-4)
