"""Places of maxima in windows of one element along an axis."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from .compared import Functions, as_torch, close_to_torch, compiled, torch

functional = torch.nn.functional

WINDOWS = [(2, 1), (1, 2), (1, 1), (3, 1), (1, 3)]


def images(*shape: int) -> Any:
    """Few values, so that some maxima are at several places, and a NaN."""
    x = torch.randint(0, 4, shape, generator=torch.Generator().manual_seed(1)).float()
    x.view(-1)[3] = float("nan")
    return x


def test_windows_of_one_element(all_tests: bool) -> None:
    functions = {
        f"{window} by {stride}": functools.partial(
            functional.max_pool2d, kernel_size=window, stride=stride, return_indices=True
        )
        for window in WINDOWS
        for stride in (None, 1)
    }
    functions["dilated"] = lambda x: functional.max_pool2d(
        x, (2, 1), dilation=(2, 1), padding=(1, 0), ceil_mode=True, return_indices=True
    )
    functions["adaptive"] = lambda x: functional.adaptive_max_pool2d(x, (3, 5), True)
    as_torch(Functions(functions), (images(2, 3, 6, 5),), compiles=all_tests)


@pytest.mark.parametrize("window", [(2, 1, 1), (1, 2, 1), (1, 1, 2), (1, 1, 1)])
def test_windows_of_volumes(window: tuple[int, ...], all_tests: bool) -> None:
    pool = {"y": lambda x: functional.max_pool3d(x, window, return_indices=True)}
    compiles = all_tests or window == (1, 2, 1)
    as_torch(Functions(pool), (images(1, 2, 4, 3, 4),), compiles=compiles)


def test_images_of_any_number() -> None:
    pool = {"y": lambda x: functional.max_pool2d(x, (2, 1), return_indices=True)}
    shapes = {"tensors": ({0: torch.export.Dim.DYNAMIC},)}
    exe = compiled(Functions(pool), (images(2, 3, 6, 5),), shapes)
    for n in (1, 3, 0):
        x = images(n, 3, 6, 5) if n else torch.zeros(0, 3, 6, 5)
        close_to_torch(exe(x.numpy()), functional.max_pool2d(x, (2, 1), return_indices=True))


def test_images_of_any_size() -> None:
    pool = {
        "y": lambda x: functional.max_pool2d(x, 3, 2, 1, return_indices=True),
        "z": lambda x: functional.max_pool2d(x, (2, 1), dilation=2, return_indices=True),
    }
    sizes = dict.fromkeys((0, 2, 3), torch.export.Dim.DYNAMIC)
    others = [(images(1, 3, 7, 4),), (images(2, 3, 3, 9),)]
    as_torch(Functions(pool), (images(2, 3, 6, 5),), {"tensors": (sizes,)}, others, compiles=False)
