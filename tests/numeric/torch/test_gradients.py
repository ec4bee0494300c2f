"""Networks that are trained by `torch.compile` with this backend, beside torch itself."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stepwell.dynamo import stepwell

from ...harness import import_level
from .compared import TOLERANCE, torch

nn = torch.nn
functional: Any = nn.functional


@pytest.fixture(autouse=True)
def _fresh(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing stays with torch."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    messages = [r.getMessage() for r in caplog.get_records("call") if r.name == "stepwell.torch"]
    assert not messages, "\n".join(messages)


class Transformer(nn.Module):
    """Words, two layers of attention, one of them causal, and a head."""

    def __init__(self) -> None:
        super().__init__()
        options = {"dropout": 0.0, "batch_first": True}
        self.words = nn.Embedding(11, 8, padding_idx=0)
        self.first = nn.TransformerEncoderLayer(8, 2, 12, activation="gelu", **options)
        self.second = nn.TransformerEncoderLayer(8, 2, 12, norm_first=True, **options)
        self.head = nn.Linear(8, 3)

    def forward(self, words: Any) -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(words.shape[1])
        x = self.first(self.words(words))
        return self.head(self.second(x, src_mask=mask, is_causal=True)).mean(1)


def perceptron() -> Any:
    return nn.Sequential(
        *(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)),
    )


def images() -> Any:
    return nn.Sequential(
        *(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU()),
        *(nn.Conv2d(4, 6, (3, 2), dilation=(1, 2), groups=2, bias=False), nn.GroupNorm(3, 6)),
        *(nn.MaxPool2d(3, 2, 1), nn.Conv2d(6, 4, 1), nn.AdaptiveAvgPool2d((2, 3))),
        *(nn.Flatten(), nn.Linear(24, 3)),
    )


NETWORKS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "perceptron": (perceptron, lambda: torch.randn(5, 6)),
    "images": (images, lambda: torch.randn(3, 3, 13, 12)),
    "transformer": (Transformer, lambda: torch.randint(0, 11, (4, 5))),
}


@pytest.mark.parametrize(
    "name",
    ["perceptron", *(pytest.param(n, marks=pytest.mark.slow) for n in ("images", "transformer"))],
)
def test_steps_of_an_optimizer(name: str) -> None:
    """Losses, parameters, gradients and statistics of batches after several steps."""
    make, batch = NETWORKS[name]
    model = make()
    fast = copy.deepcopy(model)
    labels = torch.tensor([0, 2, 1, 1, 0])

    def loss(model: Any) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            return functional.cross_entropy(model(x), labels[: len(x)], label_smoothing=0.1)

        return function

    functions = [loss(model), torch.compile(loss(fast), backend=stepwell)]
    optimizers = [torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (model, fast)]
    for _ in range(3):
        x = batch()
        found = []
        for function, optimizer in zip(functions, optimizers, strict=True):
            optimizer.zero_grad()
            value = function(x)
            value.backward()
            optimizer.step()
            found.append(value.detach())
        torch.testing.assert_close(found[1], found[0], rtol=TOLERANCE, atol=TOLERANCE)
        gradients = [[p.grad for p in m.parameters()] for m in (fast, model)]
        torch.testing.assert_close(*gradients, rtol=TOLERANCE, atol=TOLERANCE)
    states = [dict(m.state_dict()) for m in (fast, model)]
    torch.testing.assert_close(*states, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.fixture(params=["f32", pytest.param("f64", marks=pytest.mark.slow)])
def both(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compares gradients with those of torch, and in f64 also with differences."""
    dtype = {"f32": torch.float32, "f64": torch.float64}[request.param]

    def check(make: Callable[[], Any], *shape: int) -> None:
        torch._dynamo.reset()
        model = make().to(dtype)
        fast = torch.compile(model, backend=stepwell, options={"opt_level": import_level()})
        x = torch.randn(shape, dtype=dtype, requires_grad=True)
        inputs = [x, *model.parameters()]
        with torch._functorch.config.patch(donated_buffer=False):  # gradients are taken twice
            got, wanted = fast(x), model(x)
            torch.testing.assert_close(got, wanted, rtol=TOLERANCE, atol=TOLERANCE)
            weights = torch.randn_like(wanted)
            gradients = [torch.autograd.grad(y, inputs, weights) for y in (got, wanted)]
            torch.testing.assert_close(*gradients, rtol=TOLERANCE, atol=TOLERANCE)
            if dtype == torch.float64:
                assert torch.autograd.gradcheck(fast, (x,), fast_mode=True)

    return check


class Several(nn.Module):
    """The results of modules for the same tensor, one after the other."""

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        self.parts = nn.ModuleList(modules)

    def forward(self, x: Any) -> Any:
        return torch.cat([part(x).flatten() for part in self.parts])


@pytest.mark.slow
def test_convolutions(both: Callable[..., None]) -> None:
    """Strides that leave elements, dilations, groups, and transposed ones."""
    both(
        lambda: Several(
            nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2),
            nn.Conv1d(4, 4, 2, stride=3, groups=4, bias=False),
            nn.Conv1d(4, 2, 1),
            nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
            nn.ConvTranspose1d(4, 3, 2, dilation=2, bias=False),
        ),
        *(2, 4, 9),
    )
    both(lambda: nn.Conv3d(2, 3, (1, 2, 3), stride=(1, 2, 1), padding=(0, 1, 1)), 1, 2, 2, 5, 4)


def test_pools(both: Callable[..., None], all_tests: bool) -> None:
    """Overlapping and dilated windows, padding, partial windows, and sizes that do not divide."""
    pools = [
        nn.MaxPool2d((2, 3), 1, (1, 0), dilation=(3, 2)),
        nn.AvgPool2d(3, 2, 1, ceil_mode=True),
        nn.AdaptiveAvgPool2d((2, 3)),
        nn.AdaptiveMaxPool2d((3, 4)),
    ]
    if all_tests:
        pools += [
            nn.MaxPool2d(2),
            nn.MaxPool2d(3, 2, 1, ceil_mode=True),
            nn.AvgPool2d(3, 2, 1, count_include_pad=False),
            nn.AvgPool2d((1, 2), divisor_override=3),
            nn.AdaptiveAvgPool2d(1),
        ]
    both(lambda: Several(*pools), 2, 2, 6, 7)
    if all_tests:
        both(lambda: Several(nn.MaxPool3d(2, 1), nn.AvgPool3d(2)), 1, 2, 4, 3, 5)


def test_places_of_maxima() -> None:
    """Of equal elements the first one, of NaNs the last one, and none in the padding."""
    inf, nan = torch.inf, torch.nan
    x = torch.tensor([[1.0, 1, -inf, -inf], [1, 0, -inf, -inf], [nan, 2, 3, nan], [4, nan, 3, 3]])
    x = torch.stack([x, x.flip(1), x.flip(0), torch.full((4, 4), -inf)])[None]
    for pool in (nn.MaxPool2d(2, 1, 1), nn.MaxPool2d(3, 2, 1), nn.AdaptiveMaxPool2d(3)):
        pool.return_indices = True
        torch._dynamo.reset()
        level = {"opt_level": import_level()}
        got, wanted = torch.compile(pool, backend=stepwell, options=level)(x), pool(x)
        torch.testing.assert_close(got, wanted, equal_nan=True)


ACTIVATIONS = [
    *(nn.ELU(), nn.CELU(0.7), nn.SELU(), nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Mish()),
    *(nn.ReLU6(), nn.LeakyReLU(0.2), nn.Hardtanh(), nn.Hardswish(), nn.Hardsigmoid()),
    *(nn.Softplus(), nn.Softshrink(), nn.Softsign(), nn.LogSigmoid(), nn.Tanhshrink()),
    *(nn.Sigmoid(), nn.Softmax(1), nn.LogSoftmax(1), nn.Threshold(0.1, 3), nn.GLU(1), nn.PReLU()),
]


def test_activations(both: Callable[..., None], all_tests: bool) -> None:
    both(lambda: Several(*ACTIVATIONS[:: 1 if all_tests else 3]), 4, 6)


def test_norms(both: Callable[..., None], all_tests: bool) -> None:
    """Those of a batch take and give running statistics, as in the perceptron."""

    def make() -> Any:
        norms = [nn.GroupNorm(2, 4), nn.RMSNorm(5)]
        if all_tests:
            norms += [
                nn.BatchNorm1d(4),
                nn.LayerNorm([4, 5]),
                nn.BatchNorm1d(4, affine=False, track_running_stats=False),
                nn.LayerNorm(5, elementwise_affine=False),
                nn.InstanceNorm1d(4, affine=True),
                nn.LocalResponseNorm(2),
            ]
        return Several(*norms)

    both(make, 3, 4, 5)


@pytest.mark.slow
def test_moves_of_elements(both: Callable[..., None]) -> None:
    """Gradients of pads, resized images, slices, gathers, sorts and cumulative sums."""

    class Moves(nn.Module):
        def forward(self, x: Any) -> Any:
            index = torch.tensor([[[[0, 2, 1]]]])
            results = [
                functional.pad(x, (1, 2, 0, 1), mode="reflect"),
                functional.pad(x, (1, 2, 0, 1), mode="replicate"),
                functional.interpolate(x, scale_factor=2.0),
                functional.interpolate(x, size=(7, 3), mode="bilinear"),
                functional.pixel_shuffle(x, 2),
                x[:, 1::2, :, [1, 0]],
                x.gather(3, index.expand(1, 4, 3, 3)),
                x.sort(-1).values.cumsum(-1),
                x.topk(2).values.prod(-1),
                functional.unfold(x, 2),
                x.roll(1, 2).flip(3).repeat(1, 1, 2, 1),
                torch.einsum("nchw,ncwk->nchk", x, x.transpose(2, 3)),
            ]
            return torch.cat([y.flatten() for y in results])

    both(Moves, 1, 4, 3, 4)


@pytest.mark.slow
def test_losses(both: Callable[..., None]) -> None:
    labels, target = torch.tensor([1, 0, 2]), torch.rand(3, 4, dtype=torch.float64)

    class Losses(nn.Module):
        def forward(self, x: Any) -> Any:
            y = target.to(x.dtype)
            losses = [
                functional.cross_entropy(x, labels, ignore_index=0, weight=y[0]),
                functional.cross_entropy(x, y.softmax(1)),
                functional.mse_loss(x, y),
                functional.l1_loss(x, y),
                functional.smooth_l1_loss(x, y),
                functional.huber_loss(x, y, delta=0.3),
                functional.binary_cross_entropy(x.sigmoid(), y),
                functional.binary_cross_entropy_with_logits(x, y),
                functional.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
                functional.cosine_similarity(x, y).sum(),
                functional.triplet_margin_loss(x, y, x * 0.5),
            ]
            return torch.stack(losses)

    both(Losses, 3, 4)
