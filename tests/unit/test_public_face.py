"""What users rely on is what the files in `tests/public/` say: names, signatures, options.

A change of any of it is a decision, for which `docs/stability.md` has the rules. Once it is taken,
`make public` writes the files again, and the change is reviewed as their difference.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import enum
import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
import typer
from xdsl.irdl import OptionalDef, VariadicDef

import stepwell as sw
from stepwell.core import registry, universe
from stepwell.core.files import versions
from stepwell.core.pipelines.stages import STAGES
from stepwell.frontends import gnn
from stepwell.tools import main as command
from stepwell.tools.driver_arguments import DriverArguments

FOLDER = Path(__file__).resolve().parents[1] / "public"
RENEW = "make public"

LONGEST = 100

GIVEN = (
    *("core.pipelines.decisions.Decision", "runtime.fate.Fate", "frontends.builder.Value"),
    *("dialects.graph.nests.builder.KernelBuilder", "core.patterns.pattern.Match"),
    *("runtime.executable.Executable", "runtime.profile.Profile", "runtime.profile.Row"),
    *("distributed.out_of_core.OutOfCore", "distributed.partition.Part"),
    *("distributed.partition.Partition", "tuning.kernel_schedule.KernelSchedule"),
    "tuning.kernel_schedule.ScheduleTime",
    *("api.exporting.Exported", "runtime.artefacts.verifying.Verification"),
    *("backends.ptx.counters.Emulation", "backends.ptx.counters.LineCounters"),
)
"""Classes whose objects users are given, and do not make."""

BESIDE = (
    "backends.ptx.counters.LineCounters",
    "core.ir.context.Change",
    "core.pipelines.decisions.Decision",
    "runtime.fate.Fate",
    "distributed.out_of_core.OutOfCore",
    "distributed.partition.Part",
    "api.exporting.Exported",
    "tuning.kernel_schedule.KernelSchedule",
    "tuning.kernel_schedule.ScheduleTime",
    "dialects.graph.nests.builder.KernelBuilder",
    "frontends.builder.Value",
    "runtime.artefacts.verifying.Verification",
    "runtime.profile.Profile",
    "runtime.profile.Row",
)
"""Classes that are not in the package itself, but whose objects users are given."""

PLUGINS = (
    "dialects.graph.axes.CanonicalPropertiesInterface",
    "dialects.graph.composite.CompositeOp",
    "dialects.graph.composite.composite",
    "dialects.graph.demands.DemandInterface",
    "dialects.graph.demands.IndexBound",
    "dialects.graph.demands.OffsetBound",
    "dialects.graph.demands.ReadOperand",
    "dialects.graph.demands.SizeBound",
    "dialects.graph.demands.SizeOperand",
    "dialects.graph.demands.SizeResult",
    "dialects.graph.interfaces.FusionKind",
    "dialects.graph.interfaces.GraphOp",
    "dialects.graph.nests.nest.Nest",
    "dialects.graph.kinds.Precision",
    "dialects.graph.nests.nest.Scalars",
    "dialects.graph.interfaces.ShapeFacts",
    "dialects.graph.interfaces.Sizes",
    "dialects.graph.interfaces.SparseResultInterface",
    "dialects.graph.partitions.PartitionInterface",
    "dialects.graph.rearranging.AliasInterface",
    "dialects.graph.rearranging.BatchInterface",
    "dialects.graph.rearranging.ReshapeInterface",
    "dialects.graph.remapped_axes.BlockableInterface",
    "dialects.graph.remapped_axes.HoldsAxes",
    "dialects.graph.remapped_axes.HoldsAxis",
    "dialects.graph.remapped_axes.HoldsNumbers",
    "dialects.graph.remapped_axes.TransposableInterface",
    "dialects.graph.traits.Discontinuous",
    "dialects.graph.traits.Homogeneous",
    "dialects.graph.traits.KeepsNonnegative",
    "dialects.graph.traits.HalfPrecision",
    "dialects.graph.traits.NeverNegative",
    "dialects.graph.traits.OrderStatisticInterface",
    "dialects.graph.traits.ReadsPattern",
    "dialects.graph.traits.RecomputeCost",
    "dialects.graph.traits.SignInterface",
    "dialects.graph.traits.TakesEntries",
    "dialects.loop.handles.Parts",
    "frontends.onnx.nodes.Node",
    "frontends.onnx.registry.converts",
    "frontends.onnx.registry.evaluates",
    "frontends.torch.registry.converts",
    "passes.loop.scheduler.schedule.Schedule",
)
"""What plug-ins are written against, beside the package itself."""

SPECIAL = (
    *("__call__", "__contains__", "__getitem__", "__iter__", "__len__"),
    *("__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__matmul__"),
    *("__neg__", "__invert__", "__lt__", "__le__", "__gt__", "__ge__", "__radd__", "__rsub__"),
    *("__rmul__", "__rtruediv__", "__rfloordiv__", "__rmod__", "__rmatmul__"),
)


def found(place: str) -> tuple[str, Any]:
    module, _, name = place.rpartition(".")
    return f"stepwell.{place}", getattr(importlib.import_module(f"stepwell.{module}"), name)


# Python


def described(name: str, value: Any) -> Iterator[str]:
    """A name of the package, and what it stands for, in lines."""
    if isinstance(value, ModuleType):
        yield name
        for inner in sorted(value.__all__):
            yield from indented(described(inner, getattr(value, inner)))
    elif isinstance(value, type) and issubclass(value, enum.Enum):
        yield f"{name}: {', '.join(value.__members__)}"
    elif isinstance(value, type):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
        made = maker(value)
        title = f"{name} is {bases}" if bases else name
        yield from [title] if made is None else called(title, made)
        yield from indented(members(value))
    else:
        yield from called(name, value)


def called(name: str, function: Any) -> list[str]:
    """How a function is called: in one line, or one for each parameter."""
    signature = inspect.signature(function)
    parameters = list(with_marks([p for n, p in signature.parameters.items() if n != "self"]))
    result = signature.return_annotation
    end = ")" if result in (inspect.Signature.empty, None, "None") else f") -> {result}"
    line = f"{name}({', '.join(parameters)}{end}"
    if len(line) <= LONGEST:
        return [line]
    return [f"{name}(", *indented(parameters), end]


def with_marks(parameters: Sequence[inspect.Parameter]) -> Iterator[str]:
    """Parameters in text, with the star after which they are given by name."""
    starred = False
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            yield "*"
        starred |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        bare = parameter.replace(annotation=parameter.empty, default=parameter.empty)
        kind = "" if parameter.annotation is parameter.empty else f": {parameter.annotation}"
        yield f"{bare}{kind}{preset(parameter.default)}"


def preset(value: Any) -> str:
    """What a parameter has by default; a function has no text that stays the same."""
    if value is inspect.Parameter.empty:
        return ""
    return " = ..." if isinstance(value, FunctionType) else f" = {value!r}"


def indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)


def maker(kind: type) -> Any:
    """The method that makes objects of a class, where users do and the class is ours."""
    if f"{kind.__module__}.{kind.__qualname__}".removeprefix("stepwell.") in GIVEN:
        return None
    own = [base for base in kind.__mro__ if is_own(base) and "__init__" in vars(base)]
    protocol = "Protocol" in {base.__name__ for base in kind.__mro__}
    return own[0].__init__ if own and not protocol else None


def is_own(kind: type) -> bool:
    return kind.__module__.startswith("stepwell.")


def members(kind: type) -> Iterator[str]:
    """The public attributes and methods of a class that the package defines."""
    names = {name for base in kind.__mro__ if is_own(base) for name in stated(base)}
    made = maker(kind)
    if dataclasses.is_dataclass(kind) and made is not None:
        names -= {*inspect.signature(made).parameters}  # they are shown there
    for name in sorted(names):
        value = inspect.getattr_static(kind, name, None)
        if isinstance(value, (property, functools.cached_property)):
            getter: Any = value.fget if isinstance(value, property) else value.func
            yield f".{name}: {getter.__annotations__['return']}"
        elif isinstance(value, (staticmethod, classmethod)):
            yield from called(f"{kind.__name__}.{name}", value.__func__)
        elif isinstance(value, FunctionType):
            yield from called(f".{name}", value)
        else:
            types = [vars(base).get("__annotations__", {}).get(name) for base in kind.__mro__]
            known = next((one for one in types if one), None)
            yield f".{name}" if known is None else f".{name}: {known}"


def stated(kind: type) -> list[str]:
    """The names of a class that do not begin with an underscore, and of its operators."""
    names = {*vars(kind), *vars(kind).get("__annotations__", {})}
    return [n for n in names if n in SPECIAL or not n.startswith("_")]


def python() -> Iterator[str]:
    for name in sorted(sw.__all__):
        yield from described(f"stepwell.{name}", getattr(sw, name))
    for name in sorted(gnn.__all__):
        yield from described(f"stepwell.frontends.gnn.{name}", getattr(gnn, name))
    for place in BESIDE:
        yield from described(*found(place))


def plugins() -> Iterator[str]:
    yield f"plug-in interface {universe.INTERFACE}"
    for place in PLUGINS:
        yield from described(*found(place))


# Commands


def commands() -> Iterator[str]:
    group: Any = typer.main.get_command(command.app)
    for name, inner in [("stepwell", group), *sorted(group.commands.items())]:
        yield name if inner is group else f"stepwell {name}"
        for parameter in inner.params:
            shown = "/".join([*parameter.opts, *parameter.secondary_opts])
            more = " required" if parameter.required else ""
            more += " repeatable" if getattr(parameter, "multiple", False) else ""
            yield f"    {shown}{more}{default(parameter.default)}"
    yield "stepwell-opt"
    parser = argparse.ArgumentParser()
    DriverArguments([]).register_all_arguments(parser)
    for action in sorted(parser._actions, key=lambda action: action.option_strings):
        shown = "/".join(action.option_strings) or action.dest
        choices = f": {', '.join(map(str, action.choices))}" if is_short(action.choices) else ""
        yield f"    {shown}{choices}{default(action.default)}"


def is_short(choices: Any) -> bool:
    return choices is not None and len(list(choices)) < 20


def default(value: Any) -> str:
    plain = (str, int, float, bool)
    return f" = {value!r}" if isinstance(value, plain) and value != argparse.SUPPRESS else ""


# Passes and IR


def passes() -> Iterator[str]:
    yield f"stages: {', '.join(STAGES)}"
    for name, load in sorted(registry.own_passes().items()):
        yield name
        for option in dataclasses.fields(load()):  # type: ignore[arg-type]
            if option.name != "name" and option.init:
                yield f"    {option.name}: {option.type}{default(option.default)}"


def operations() -> Iterator[str]:
    yield f"IR text {versions.IR_TEXT.version}"
    for load in registry.own_dialects().values():
        dialect = load()
        for attribute in sorted(dialect.attributes, key=lambda a: a.name):
            yield attribute.name
        for op in sorted(dialect.operations, key=lambda op: op.name):
            yield from operation(op)


def operation(op: Any) -> Iterator[str]:
    definition = op.get_irdl_definition()
    yield f"{op.name}{written(definition.operands)} -> {written(definition.results)}"
    properties = [(n, d) for n, d in definition.properties.items()]
    if properties:
        yield f"    {written(properties)}"
    if definition.regions:
        yield f"    regions {written(definition.regions)}"


def written(parts: Any) -> str:
    return f"({', '.join(f'{name}{arity(part)}' for name, part in parts)})"


def arity(part: Any) -> str:
    if isinstance(part, OptionalDef):
        return "?"
    return "*" if isinstance(part, VariadicDef) else ""


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "python": python,
    "plugins": plugins,
    "commands": commands,
    "passes": passes,
    "operations": operations,
}


@pytest.mark.parametrize("page", PAGES)
def test_what_users_rely_on_is_as_it_was(page: str, pytestconfig: pytest.Config) -> None:
    path = FOLDER / f"{page}.txt"
    now = "".join(f"{line}\n" for line in PAGES[page]())
    if pytestconfig.getoption("--renew-public"):
        path.write_text(now)
    before = path.read_text()
    changes = "".join(
        difflib.unified_diff(
            before.splitlines(True), now.splitlines(True), f"public/{path.name}", "now", n=1
        )
    )
    advice = f"see docs/stability.md; {RENEW} writes the file again"
    assert now == before, f"the public face differs ({advice}):\n{changes}"


def test_no_other_page_lies_there() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(PAGES)
