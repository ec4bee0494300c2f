"""Layers of torch.nn beside torch: windows, interpolations, bags of embeddings, losses."""

from __future__ import annotations

from typing import Any

import pytest

from .compared import Functions, as_torch, normal, torch

nn, F = torch.nn, torch.nn.functional
ANY = torch.export.Dim.DYNAMIC


POOLS = {
    "indices": nn.MaxPool2d(3, 2, 1, return_indices=True),
    "indices_dilated": nn.MaxPool2d(2, 1, 1, dilation=2, return_indices=True),
    "indices_ceil": nn.MaxPool2d(2, ceil_mode=True, return_indices=True),
    "unpool": lambda x: nn.MaxUnpool2d(2)(*F.max_pool2d(x[..., :4], 2, return_indices=True)),
    "adaptive": nn.AdaptiveMaxPool2d((3, 2)),
    "adaptive_indices": nn.AdaptiveMaxPool2d((2, 4), return_indices=True),
    "adaptive_1d": lambda x: F.adaptive_max_pool1d(x[..., 0], 4),
    "norm": nn.LPPool2d(2, 2),
    "response": nn.LocalResponseNorm(2),
    "own_statistics": nn.BatchNorm2d(4, track_running_stats=False),
    "circular": nn.Conv2d(4, 2, 3, padding=1, padding_mode="circular"),
    "reflected": nn.Conv2d(4, 2, 3, padding=1, padding_mode="reflect"),
    "transposed": nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2, dilation=2),
    "fold": lambda x: F.fold(F.unfold(x, 2, stride=2), (6, 4), 2, stride=2),
    "rrelu": nn.RReLU(),
}


def test_windows(all_tests: bool) -> None:
    nn.Module.eval(POOLS["rrelu"])
    model = Functions(POOLS)
    others = [[normal(1, 4, 6, 5)]]
    as_torch(model, [normal(2, 4, 6, 5)], [({0: ANY},)], others, compiles=all_tests)


def resized(*modes: str, **options: Any) -> dict[str, Any]:
    text = "_".join(map(str, options.values()))
    return {
        f"{mode} {text}": lambda x, y, mode=mode: F.interpolate(x, mode=mode, **options)
        for mode in modes
    }


FACTORS = {
    **resized("nearest", "nearest-exact", "bilinear", "bicubic", "area", scale_factor=2),
    **resized("nearest", "nearest-exact", "bilinear", "bicubic", scale_factor=1.5),
    **resized("bilinear", "bicubic", "area", size=(7, 3)),
    **resized("bilinear", "bicubic", size=(7, 4), align_corners=True),
    **resized("bilinear", "bicubic", size=(3, 11), antialias=True),
    **resized("bilinear", scale_factor=1.3, recompute_scale_factor=True),
    "linear": lambda x, y: F.interpolate(x[..., 0], scale_factor=2, mode="linear"),
    "trilinear": lambda x, y: F.interpolate(x[None], size=(3, 4, 9), mode="trilinear"),
    "grid": lambda x, y: F.grid_sample(x, y.tanh(), align_corners=False),
    "grid_border": lambda x, y: F.grid_sample(
        x, y, mode="bicubic", padding_mode="border", align_corners=True
    ),
    "grid_nearest": lambda x, y: F.grid_sample(
        x, y, mode="nearest", padding_mode="reflection", align_corners=False
    ),
}


@pytest.mark.slow
def test_interpolations() -> None:
    as_torch(Functions(FACTORS), [normal(2, 3, 5, 6), normal(2, 4, 4, 2)])


LIKE = {
    "nearest": lambda x, y: F.interpolate(x, size=y.shape[2:]),
    "bilinear": lambda x, y: F.interpolate(x, size=y.shape[2:], mode="bilinear"),
    "twice": lambda x, y: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
    "twice_nearest": lambda x, y: F.interpolate(x, scale_factor=2),
    "twice_cubic": lambda x, y: F.interpolate(x, scale_factor=2.0, mode="bicubic"),
}


@pytest.mark.slow
def test_interpolations_of_any_size() -> None:
    images = {0: ANY, 2: ANY, 3: ANY}
    others = [[normal(1, 3, 4, 3), normal(2, 3, 8, 9)], [normal(1, 3, 1, 7), normal(2, 3, 3, 1)]]
    args = [normal(2, 3, 5, 6), normal(2, 3, 9, 8)]
    as_torch(Functions(LIKE), args, [(images, images)], others)


def put(z: Any, values: Any) -> Any:
    """Elements behind the first axis, by indices of neighbouring axes and of others."""
    z[:, torch.tensor([[0], [1]]), torch.tensor([1, -1])] = values[..., None]
    z[:, torch.tensor([1, 1]), :, torch.tensor([2, 0])] += values[:, 0]
    z[0, :, torch.tensor([3])] = 7.0
    return z


PAIRS = {
    "bilinear": nn.Bilinear(4, 5, 6),
    "put": lambda x, y: put(x[:, None, :, None].repeat(1, 2, 1, 3), y[:, :1, None]),
    "masked_select": lambda x, y: x[:, None].masked_select(y[..., None] > 0),
}


@pytest.mark.slow
def test_pairs() -> None:
    as_torch(Functions(PAIRS), [normal(3, 4), normal(3, 5)], [({0: ANY}, {0: ANY})])
