"""Whole models of torch, compiled, beside torch itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stepwell.core.errors import InputError

from .compared import as_torch, close_to_torch, compiled, torch

nn, Dim = torch.nn, torch.export.Dim
BATCH = ({0: Dim("batch")},)


def seeded(make: Any) -> Any:
    torch.manual_seed(0)
    return make().eval()


def test_mlp() -> None:
    model = seeded(lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 3)))
    exe = as_torch(model, [torch.randn(4, 8)], BATCH, [[torch.randn(n, 8)] for n in (1, 7)])
    assert exe.inputs[0].shape == ("batch", 8)
    x = torch.randn(8, 5, requires_grad=True).t()
    close_to_torch(exe(x), model(x))
    with pytest.raises(InputError, match=r'input "input": wrong shape, expected \[batch, 8\], got'):
        exe(torch.zeros(2, 9))
    with pytest.raises(InputError, match=r'input "input": wrong dtype, expected float32, got'):
        exe(torch.zeros(2, 8, dtype=torch.float64))
    with pytest.raises(InputError, match=r'input "input": wrong rank, expected 2'):
        exe(torch.zeros(8))


def test_cnn() -> None:
    model = seeded(
        lambda: nn.Sequential(
            *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(8, 8, 3, groups=8, bias=False), nn.AdaptiveAvgPool2d(1)),
            *(nn.Flatten(), nn.Dropout(), nn.Linear(8, 5)),
        )
    )
    as_torch(model, [torch.randn(2, 3, 8, 8)], BATCH, [[torch.randn(1, 3, 8, 8)]])


@pytest.mark.slow
def test_transformer_encoder() -> None:
    def encoder() -> Any:
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
        return nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    shapes = ({0: Dim("batch"), 1: Dim("time")},)
    args, other = [torch.randn(2, 5, 16)], [torch.randn(3, 7, 16)]
    as_torch(seeded(encoder), args, shapes, [other])


def test_sizes_that_must_agree() -> None:
    class Sum(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x + y

    exe = compiled(Sum(), [torch.zeros(3, 2), torch.zeros(3, 2)], ({0: Dim("n")}, {0: Dim("n")}))
    with pytest.raises(InputError, match=r'input "y": dimension "n" differs from that of "x"'):
        exe(np.zeros((3, 2), np.float32), np.zeros((4, 2), np.float32))


def test_tensors_for_results() -> None:
    """Results are written to tensors, or become tensors, without a copy."""
    model = torch.nn.Linear(4, 3).eval()
    x, other = torch.randn(5, 4), torch.zeros(5, 3)
    exe = compiled(model, [x])
    assert exe(x, out=other) is other
    torch.testing.assert_close(other, model(x))
    y = exe(x)
    tensor = torch.from_dlpack(y)
    assert tensor.data_ptr() == y.ctypes.data
    torch.testing.assert_close(tensor, model(x))
    with pytest.raises(InputError, match=r'output "[^"]*": not contiguous'):
        exe(x, out=torch.zeros(3, 5).t())
