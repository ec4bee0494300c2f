"""What other packages register: used like our own, and named where they are broken."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from xdsl.ir import Dialect
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.universe import Universe

import stepwell as sw
from stepwell.core import plugins, registry
from stepwell.core import universe as interface
from stepwell.core.pipelines import staircase as pipelines
from stepwell.core.target import named
from stepwell.dialects.graph.ops import ReluOp
from stepwell.frontends import gnn
from stepwell.tools import stepwell_opt


@dataclass(frozen=True)
class Distribution:
    name: str = "acme"


@dataclass(frozen=True)
class EntryPoint:
    """An entry point as `importlib.metadata` gives it."""

    load: Callable[[], object]
    name: str = "point"
    value: str = "acme:UNIVERSE"
    dist: Distribution | None = Distribution()


def broken() -> object:
    raise ModuleNotFoundError("No module named 'acme.missing'\nand more")


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A function that puts entry points beside those that are installed."""
    real = importlib.metadata.entry_points

    def install(*points: EntryPoint) -> None:
        def entry_points(group: str) -> Any:
            own = points if group == "xdsl.universe" else ()
            return (*real(group=group), *own)

        monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
        forget()

    yield install
    forget()


def forget() -> None:
    plugins.plugins.cache_clear()


def test_dialects_and_passes_of_others(register: Callable[..., None]) -> None:
    acme = Dialect("acme", [], [])
    universe = Universe(
        all_dialects={"acme": lambda: acme}, all_passes={"acme-tidy": lambda: CanonicalizePass}
    )
    register(EntryPoint(lambda: universe))
    assert registry.dialects()["acme"]() is acme
    assert registry.passes()["acme-tidy"]() is CanonicalizePass
    assert "graph" in registry.dialects()


def test_a_package_that_was_installed_late(register: Callable[..., None]) -> None:
    """After plug-ins were looked up: the error says that a new process finds it."""
    register()
    found = plugins.plugins()
    register(EntryPoint(lambda: Universe(all_dialects={}, all_passes={})))
    late = 'the package "acme" was installed after this process had begun: start it again'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plugins, "plugins", lambda: found)
        with pytest.raises(sw.CompileError, match=f'unknown pass "acme-tidy"; {late}$'):
            sw.run_passes(sw.from_mlir(TEXT), "acme-tidy")
        with pytest.raises(sw.ImportModelError, match=f"acme.op is not registered; {late}$"):
            sw.from_mlir('"acme.op"() : () -> ()\n')


TEXT = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  func.return %x : tensor<4xf32>\n}"
BROKEN = (
    'package "acme": cannot be loaded: ModuleNotFoundError: '
    "No module named 'acme.missing'; repair or uninstall it"
)


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (EntryPoint(broken), BROKEN),
        (EntryPoint(broken, name="nameless", dist=None), 'package "nameless": cannot be loaded'),
        (
            EntryPoint(lambda: 3),
            (
                'package "acme": entry point "point" is not a universe, '
                "expected xdsl.universe.Universe"
            ),
        ),
        (
            EntryPoint(lambda: Universe(all_dialects={"graph": broken}, all_passes={})),
            'package "acme": registers the dialect "graph", which is Stepwell\'s own',
        ),
    ],
)
def test_packages_that_are_broken(
    register: Callable[..., None],
    point: EntryPoint,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    register(point)
    with pytest.raises(sw.StepwellError, match=re.escape(message)):
        registry.dialects()
    with pytest.raises(sw.StepwellError, match=re.escape(message)):
        sw.from_mlir(TEXT)
    with pytest.raises(SystemExit):
        stepwell_opt.main(["-p", "canonicalize"])
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"stepwell-opt: error: {message}")


def test_a_pass_or_a_dialect_that_cannot_be_loaded(register: Callable[..., None]) -> None:
    register(
        EntryPoint(lambda: Universe(all_dialects={"acme": broken}, all_passes={"acme-x": broken}))
    )
    assert sw.from_mlir(TEXT).inputs, "what is not used may be broken"
    with pytest.raises(sw.StepwellError, match=re.escape(BROKEN)):
        pipelines.parse_passes("acme-x", registry.passes())
    with pytest.raises(sw.ImportModelError, match=re.escape(BROKEN)):
        sw.from_mlir("acme.op\n")


class SwishOp(ReluOp):
    """An operator of another package."""

    name = "acme.swish"


def load_swish() -> Dialect:
    return Dialect("acme", [SwishOp], [])


INTERFACE = 'package "acme": is written for another version of the plug-in interface, expected '


@pytest.mark.parametrize(
    ("stated", "hint"),
    [
        (3, "2, got 3; install a newer Stepwell"),
        (1, "2, got 1; install a newer version of the package"),
        ("2", "2, got 2; install a newer version of the package"),
    ],
)
def test_a_package_for_another_interface(
    register: Callable[..., None], stated: int, hint: str
) -> None:
    register(EntryPoint(lambda: sw.Universe(interface=stated)))
    with pytest.raises(sw.StepwellError, match=re.escape(INTERFACE + hint)):
        registry.dialects()


def test_a_package_for_this_interface(register: Callable[..., None]) -> None:
    register(EntryPoint(lambda: sw.Universe(interface=2, all_dialects={"acme": load_swish})))
    assert registry.dialects()["acme"]().name == "acme"


def test_a_package_for_the_last_interface(
    register: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works for one release more, with a warning of the line that uses Stepwell."""
    monkeypatch.setattr(interface, "INTERFACE", 3)
    register(EntryPoint(lambda: sw.Universe(interface=2, all_dialects={"acme": load_swish})))
    message = (
        'package "acme": is written for version 2 of the plug-in interface, which the next '
        "release refuses; version 3 takes its place"
    )
    with pytest.warns(DeprecationWarning, match=f"^{re.escape(message)}$") as told:
        assert sw.from_mlir(TEXT).inputs
    assert [warning.filename for warning in told] == [__file__]


def test_a_package_that_states_no_interface(register: Callable[..., None]) -> None:
    """It need not where it uses nothing of Stepwell."""
    plain, ours = Dialect("plain", [], []), {"acme": load_swish}
    register(EntryPoint(lambda: Universe(all_dialects={"plain": lambda: plain, **ours})))
    assert registry.dialects()["plain"]() is plain
    message = (
        'package "acme": its dialect "acme" uses Stepwell and states no version of the plug-in '
        "interface, which the next release refuses; register stepwell.Universe(interface=2, ...)"
    )
    with pytest.warns(DeprecationWarning, match=re.escape(message)) as told:
        assert registry.dialects()["acme"]().name == "acme"
    assert [warning.filename for warning in told] == [__file__]
    register(EntryPoint(lambda: sw.Universe(all_legalizations={"graph.pow": broken})))
    with pytest.warns(DeprecationWarning, match="its table of graph-legalize uses Stepwell and "):
        registry.dialects()


def tidy() -> type[CanonicalizePass]:
    return CanonicalizePass


PLACED: dict[str, str] = {
    "after graph-cse": f"graph-cse,acme-tidy,graph-dce,{pipelines.LATE},graph-canonicalize-cast",
    "before graph-fuse-ops": "acme-tidy,graph-fuse-ops",
    "after loop-schedule": "loop-align-rows,loop-schedule,acme-tidy",
}


@pytest.mark.parametrize("place", PLACED)
def test_a_pass_in_each_compilation(register: Callable[..., None], place: str) -> None:
    universe = sw.Universe(
        interface=2, all_passes={"acme-tidy": tidy}, placements={"acme-tidy": place}
    )
    register(EntryPoint(lambda: universe))
    texts = pipelines.pipeline(3)
    assert [text for text in texts.values() if text.endswith(PLACED[place])]
    assert str(sw.pipeline(threads=1)).count("acme-tidy") == 1
    at_zero = str(sw.pipeline(threads=1, opt_level=0))
    assert ("acme-tidy" in at_zero) is (place == "before graph-fuse-ops")
    assert "acme-tidy" not in str(pipelines.own_pipeline(3))


@pytest.mark.parametrize(
    ("universe", "use", "message"),
    [
        (
            {"all_passes": {"acme-tidy": tidy}, "placements": {"acme-tidy": "behind cse"}},
            pipelines.pipeline,
            'wrong place of acme-tidy, expected "after <pass>" or "before <pass>", got "behind c',
        ),
        (
            {"placements": {"acme-tidy": "after graph-cse"}},
            pipelines.pipeline,
            "gives a place to acme-tidy, which is not one of its passes",
        ),
        (
            {"all_passes": {"acme-tidy": tidy}, "placements": {"acme-tidy": "after graph-ces"}},
            pipelines.pipeline,
            "places acme-tidy after an unknown pass, expected one of `stepwell pipeline`, got",
        ),
        (
            {"all_importers": {"keras": broken}},
            lambda: plugins.load_importers("onnx"),
            "registers conversions of no frontend, expected onnx or torch, got keras",
        ),
        (
            {"all_importers": {"onnx": broken}},
            lambda: plugins.load_importers("onnx"),
            "cannot be loaded: ModuleNotFoundError: No module named 'acme.missing'",
        ),
        (
            {"all_processors": {"box": lambda: 3}},
            lambda: named("box"),
            'wrong target "box", expected a stepwell.Target with name="box", got int',
        ),
        (
            {"all_processors": {"box": lambda: named("x86-64")}},
            lambda: named("box"),
            'wrong target "box", expected a stepwell.Target with name="box", got x86-64',
        ),
        ({"all_layers": {"X": broken}}, lambda: getattr(gnn, "X"), "cannot be loaded: "),  # noqa: B009
        (
            {"all_schedule_rules": {"bad": lambda: lambda schedule, nest: 1 / 0}},
            lambda: sw.compile(relu(), threads=1),
            'schedule rule "bad" raised ZeroDivisionError: division by zero',
        ),
    ],
)
def test_what_does_not_fit_is_named(
    register: Callable[..., None], universe: Any, use: Callable[[], object], message: str
) -> None:
    register(EntryPoint(lambda: sw.Universe(interface=2, **universe)))
    with pytest.raises(sw.StepwellError) as caught:
        use()
    assert f'package "acme": {message}' in str(caught.value)
    assert "\n" not in str(caught.value)


def relu() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (64,), "f32")), name="y")
    return b.module()


def test_a_rule_comes_before_the_default_ones(register: Callable[..., None]) -> None:
    def pairs(schedule: Any, nest: str) -> str | None:
        schedule.split(nest, 2)
        return "two by two"

    def declines(schedule: Any, nest: str) -> None:
        schedule.split(nest, 4)

    rules = {"declines": lambda: declines, "pairs": lambda: pairs}
    register(EntryPoint(lambda: sw.Universe(interface=2, all_schedule_rules=rules)))
    exe = sw.compile(relu(), threads=1)
    (decision,) = [d for d in exe.decisions if d.pass_name == "loop-schedule"]
    assert (decision.what, decision.why) == ("split(i, 2, tail=peel)", "two by two")
