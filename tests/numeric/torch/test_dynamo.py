"""Models compiled by `torch.compile` with this backend, beside torch itself."""

from __future__ import annotations

import logging
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from stepwell.dynamo import stepwell

from ...harness import import_level, package
from .compared import TOLERANCE, torch

nn = torch.nn
FLAGS = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def compiled_by_torch(model: Any, calls: Sequence[Sequence[Any]], **options: Any) -> Any:
    """Compare a model with torch for several sizes; all but the first use the same graphs."""
    level = {"opt_level": import_level()}
    fast = torch.compile(model.eval(), backend=stepwell, options=level, **options)
    with torch.no_grad(), torch._dynamo.config.patch(**FLAGS):
        agree(fast, model, calls[0])
        with torch.compiler.set_stance("fail_on_recompile"):
            for args in calls[1:]:
                agree(fast, model, args)
    return fast


def agree(fast: Any, model: Any, args: Sequence[Any]) -> None:
    torch.testing.assert_close(fast(*args), model(*args), rtol=TOLERANCE, atol=TOLERANCE)


def mlp() -> Any:
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.BatchNorm1d(5), nn.Linear(5, 3))


def messages(log: pytest.LogCaptureFixture) -> str:
    found = [r.getMessage() for r in log.records if r.name == "stepwell.torch"]
    return "\n".join(found)


@pytest.mark.slow  # convolutions and gradients have quick ones
def test_mlp(caplog: pytest.LogCaptureFixture) -> None:
    compiled_by_torch(mlp(), [[torch.randn(n, 6)] for n in (7, 4)], dynamic=True)
    assert not messages(caplog)


def test_changed_weights_are_seen(caplog: pytest.LogCaptureFixture) -> None:
    model, x = nn.Linear(6, 3), torch.randn(4, 6)
    fast = compiled_by_torch(model, [[x]])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(x).sum().backward()
    with torch.no_grad():
        optimizer.step()
        agree(fast, model, [x])
        model.load_state_dict(nn.Linear(6, 3).state_dict())
        agree(fast, model, [x])
        with torch.inference_mode():
            model.bias.add_(1)
        agree(fast, model, [x])
        assert not messages(caplog)
        model.weight.data = torch.randn(3, 6)
        agree(fast, model, [x])
        model.bias.data.add_(1)  # weights that have changed often are inputs
        agree(fast, model, [x])
    assert "weights have changed 4 times and become inputs" in messages(caplog)


def test_cnn_for_any_number_of_images(caplog: pytest.LogCaptureFixture) -> None:
    conv, norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    model = nn.Sequential(conv, norm, nn.ReLU(), nn.MaxPool2d(2), head)
    calls = [[torch.randn(n, 3, 9, 8)] for n in (2, 5)]
    torch._dynamo.mark_dynamic(calls[0][0], 0)
    compiled_by_torch(model, calls)
    assert not messages(caplog)


OTHERS = ["GCN", "SAGE", "GAT", "PNA"]
LAYERS = ["GIN", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]


AGGREGATORS = ["mean", "min", "max", "std"]
SCALERS = ["identity", "amplification", "attenuation"]


@pytest.mark.parametrize("name", LAYERS)
def test_layer_of_a_graph_network(name: str, caplog: pytest.LogCaptureFixture) -> None:
    pyg = package("torch_geometric.nn", "torch-geometric")
    layer = {
        "GCN": lambda: pyg.GCNConv(8, 4),
        "SAGE": lambda: pyg.SAGEConv(8, 4),
        "GIN": lambda: pyg.GINConv(nn.Linear(8, 4)),
        "GAT": lambda: pyg.GATConv(8, 4, heads=2),
        "PNA": lambda: pyg.PNAConv(8, 4, AGGREGATORS, SCALERS, torch.tensor([0, 3, 2, 1])),
    }[name]()
    edges = torch.tensor([[0, 1, 2, 3, 3, 3, 5, 2, 2, 6], [1, 2, 0, 3, 3, 4, 1, 2, 0, 6]])
    calls = [[torch.randn(7, 8), edges]]
    calls += [[torch.randn(n, 8), torch.randint(0, n, (2, e))] for n, e in ((9, 30), (20, 5))]
    compiled_by_torch(layer, calls, dynamic=True, fullgraph=True)
    assert not messages(caplog)


class Mixed(nn.Module):
    """Parts with operators between them that have no conversion, or none for symbolic sizes."""

    def forward(self, x: Any, y: Any) -> tuple[Any, ...]:
        a = torch.special.bessel_j0(torch.relu(x) @ y)
        return (
            (a + 1).T,
            torch.cat([a, x[:, :2]], 1) * 2,
            nn.functional.interpolate(x[None, None], (3, 3), mode="bilinear", antialias=True),
        )


def test_unsupported_operators_stay_with_torch(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "stepwell.torch")
    compiled_by_torch(
        Mixed(), [[torch.randn(n, 6), torch.randn(6, 4)] for n in (5, 9)], dynamic=True
    )
    text = messages(caplog)
    assert "2 of " in text
    assert "antialias with sizes that differ" in text
    assert "aten.special_bessel_j0.default: no conversion" in text
    assert "test_dynamo.py" in text


def test_types_that_the_ir_lacks_stay_with_torch(caplog: pytest.LogCaptureFixture) -> None:
    class Spectrum(nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.fft.fft(x).abs() + x.relu()

    compiled_by_torch(Spectrum(), [[torch.randn(3, 8)]])
    assert "complex64" in messages(caplog)


def test_gradients() -> None:
    """The graph of the gradients is compiled like that of the results."""
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
    fast = torch.compile(model, backend=stepwell, dynamic=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for n in (7, 4):
        x = torch.randn(n, 6, requires_grad=True)
        wanted = torch.autograd.grad(model(x).square().sum(), [x, *model.parameters()])
        got = torch.autograd.grad(fast(x).square().sum(), [x, *model.parameters()])
        torch.testing.assert_close(got, wanted, rtol=TOLERANCE, atol=TOLERANCE)
        for parameter, gradient in zip(model.parameters(), got[1:], strict=True):
            parameter.grad = gradient
        optimizer.step()


def test_results_have_the_strides_and_types_of_torch() -> None:
    class Results(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return (x * 2).permute(2, 0, 1), y * y, x.sum(), (x > 0).long(), x.shape[0] * 2

    args = torch.randn(3, 4, 5), torch.randn(6).bfloat16()
    model = Results()
    fast = torch.compile(model, backend=stepwell, dynamic=True)
    with torch.no_grad():
        got, wanted = fast(*args), model(*args)
    torch.testing.assert_close(got, wanted, rtol=TOLERANCE, atol=TOLERANCE)
    assert got[0].stride() == wanted[0].stride()


def test_entry_point() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    group = "torch_dynamo_backends"
    ((name, place),) = tomllib.loads(text)["project"]["entry-points"][group].items()
    assert name == "stepwell"
    assert EntryPoint(name, place, group).load() is stepwell


def test_options_and_flags() -> None:
    before = {name: getattr(torch._dynamo.config, name) for name in FLAGS}
    x = torch.randn(3, 6)
    model = mlp().eval()
    with torch.no_grad():
        fast = torch.compile(model, backend=stepwell, options={"freezing": False, "threads": 1})
        agree(fast, model, [x])
        model[0].weight.data.mul_(2)
        agree(fast, model, [x])
    assert before == {name: getattr(torch._dynamo.config, name) for name in FLAGS}
    for given, text in (
        ({"options": {"fast": True}}, 'unknown option, expected threads, .*got "fast"'),
        ({"mode": "max-autotune"}, 'wrong mode, expected None, got "max-autotune"'),
    ):
        torch._dynamo.reset()
        with pytest.raises(Exception, match=text):
            torch.compile(model, backend=stepwell, **given)(x)
