"""Editors and type checkers know the operators of a `Builder` and the steps of a schedule.

They read `dialects/graph/{op_builder,ops,ops_functions}.pyi`, `passes/loop/scheduler/steps.pyi` and
`tuning/steps.pyi`.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from xdsl.irdl import VariadicDef

from stepwell.dialects.graph import op_builder, ops
from stepwell.dialects.graph.dialect import Graph
from stepwell.dialects.graph.interfaces import GraphOp
from stepwell.dialects.graph.op_builder import operators_of, parameters_of, signature_of
from stepwell.dialects.graph.ops.elementwise import functions as ops_functions
from stepwell.passes.loop.scheduler import steps as scheduler_steps
from stepwell.passes.loop.scheduler.primitives import PRIMITIVES
from stepwell.passes.primitive import Primitive
from stepwell.tuning import steps

from ..harness import package

ROOT = Path(__file__).resolve().parents[2]
STUB = Path(op_builder.__file__).with_suffix(".pyi")
OPERATORS = Path(ops.__file__).with_suffix(".pyi")
FUNCTIONS = Path(ops_functions.__file__).with_suffix(".pyi")
STEPS = Path(steps.__file__).with_suffix(".pyi")
SCHEDULER = Path(scheduler_steps.__file__).with_suffix(".pyi")

HEAD = '''\
"""The operators of a builder; `make public` writes this file."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from xdsl.builder import Builder
from xdsl.ir import Attribute, Dialect, Operation, SSAValue

from ...core.ir.weights import WeightStore
from .interfaces import GraphOp

Operand = Any
V = TypeVar("V")

class OperatorParameters(NamedTuple):
    """The parameters of the constructor of an operator, and those that are operands."""

    signature: inspect.Signature
    operands: tuple[str, ...]
    optional: frozenset[str]
    variadic: frozenset[str]
    own_types: Mapping[str, Attribute]

    def bind(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments: ...
    def bind_term(
        self, args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> inspect.BoundArguments: ...

def parameters_of(operator: type[GraphOp]) -> OperatorParameters: ...
def operators_of(dialect: Dialect) -> dict[str, type[GraphOp]]: ...
def signature_of(operator: type[GraphOp]) -> inspect.Signature: ...
def graph_operators() -> Mapping[str, type[GraphOp]]: ...

class Arguments:
    """The arguments of the constructor of an operator, whose operands are not IR values yet."""

    def __init__(
        self, operator: type[GraphOp], args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> None: ...
    @property
    def operands(self) -> list[Any]: ...
    @property
    def typed(self) -> list[Any]: ...
    @property
    def attributes(self) -> dict[str, Any]: ...
    def convert(self, function: Callable[[Any, str, Attribute | None], Any]) -> None: ...
    def build(self, value_of: Callable[[Any], SSAValue]) -> GraphOp: ...

class DialectOperators:
    """The dialects that are installed, each with its operators as functions."""

    def __getattr__(self, name: str) -> OperatorsOf: ...

class OperatorsOf:
    """The operators of a dialect that a builder can apply."""

    def __getattr__(self, name: str) -> Callable[..., Any]: ...

class InsertingBuilder(OpBuilder[SSAValue]):
    """Inserts operators into IR, such as those that a rewrite replaces others by."""

    def __init__(
        self,
        builder: Builder,
        sources: Iterable[Operation],
        weights: WeightStore | None = None,
    ) -> None: ...
    def apply(
        self, operator: type[GraphOp], *args: Any, name: str | None = None, **kwargs: Any
    ) -> Any: ...
    def insert(self, op: GraphOp, sources: Iterable[Operation] | None = None) -> SSAValue: ...
    def constant(self, array: np.ndarray, name: str = "constant") -> SSAValue: ...

class OpBuilder(ABC, Generic[V]):
    """Adds operators where they are needed."""

    @abstractmethod
    def apply(
        self, operator: type[GraphOp], *args: Any, name: str | None = None, **kwargs: Any
    ) -> Any:
        """Add an operator, such as one of a plug-in, with the arguments of its constructor."""

    @property
    def op(self) -> DialectOperators:
        """The operators of other dialects: ``b.op.row.normalize(x)`` is `row.normalize`."""
'''

TYPES = {
    "Attribute": "str | Attribute",
    "bool": "bool",
    "float": "float",
    "float | int": "float",
    "float | int | None": "float | None",
    "int": "int",
    "int | None": "int | None",
    "Sequence[int]": "Sequence[int]",
    "Sequence[int] | None": "Sequence[int] | None",
    "str": "str",
    "str | None": "str | None",
}
"""The types of attributes of operators, as arguments of methods."""

WITHOUT = {"call_dps", "call_packed", "constant"}
"""Operators that have a method of their own, or are written by passes alone."""


def method(name: str, operator: type[GraphOp]) -> Iterator[str]:
    """The lines that declare a method."""
    constructor, operands, *_ = parameters_of(operator)
    parameters = []
    for parameter in signature_of(operator).parameters.values():
        if parameter.name in operands:
            is_list = "Sequence" in constructor.parameters[parameter.name].annotation
            kind = "Sequence[Operand]" if is_list else "Operand"
        elif parameter.name == "name":
            parameters.append("*")
            kind = "str | None"
        else:
            kind = TYPES[constructor.parameters[parameter.name].annotation]
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parameters.append(f"{parameter.name}: {kind}{default}")
    yield f"def {name}({', '.join(['self', *parameters])}) -> {returned(operator)}:"
    yield textwrap.indent(f'"""{inspect.getdoc(operator)}\n"""', "    ")


def returned(operator: type[GraphOp]) -> str:
    results = [kind for _, kind in operator.get_irdl_definition().results]
    if any(isinstance(kind, VariadicDef) for kind in results):
        return "Any"
    return "V" if len(results) == 1 else f"tuple[{', '.join(['V'] * len(results))}]"


OPERATORS_HEAD = '''\
"""All operators of the `graph` dialect; `make public` writes this file."""

from collections.abc import Sequence
from types import ModuleType

from xdsl.ir import Attribute, Operation, SSAValue

{}

def modules() -> list[ModuleType]: ...
def operators() -> dict[str, type]: ...

'''

FUNCTIONS_HEAD = '''\
"""The operators of scalar functions, made from a table; `make public` writes this file."""

import numpy as np
from xdsl.ir import SSAValue

from ...interfaces import Nest
from .bases import FloatUnaryOp, UnaryOp
from .binary import BinaryOp, ComparisonOp

class _Made:
    def scalar(self, nest: Nest, *operands: SSAValue) -> SSAValue: ...
    def array(self, *arrays: np.ndarray) -> np.ndarray: ...

'''


STEPS_HEAD = '''\
"""The primitives of schedules as methods; `make public` writes this file."""

from typing import Self

from ..dialects.loop.trace_text import Step

class Steps:
    """Each primitive as a method, which takes a step on the kernel: ``split("i", 8)``."""

    def take(self, step: str | Step) -> Self:
        """Take a step."""
'''

SCHEDULER_HEAD = '''\
"""The primitives as methods of a schedule; `make public` writes this file."""

import inspect
from collections.abc import Sequence
from typing import Any

from ....dialects.loop.handles import Parts
from ...primitive import Primitive

class StepMethods:
    """Each primitive as a method, which returns handles to the loops that it makes."""

    def _take(self, step: Primitive, given: inspect.BoundArguments) -> Any:
        """Take a step with these arguments; return its handles."""
'''


def step(primitive: Primitive, result: str, documentation: str) -> Iterator[str]:
    """The lines that declare the method of a primitive."""
    parameters = ["self"]
    for parameter in primitive.signature.parameters.values():
        several = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parameters.append(f"{several}{parameter.name}: {parameter.annotation}{default}")
    yield f"def {primitive.name}({', '.join(parameters)}) -> {result}:"
    yield textwrap.indent(f'"""{documentation}"""', "    ")


def formatted(head: str, methods: Iterable[Iterator[str]], path: Path) -> str:
    texts = (textwrap.indent("\n".join(lines), "    ") for lines in methods)
    text = head + "".join(f"\n{text}\n" for text in texts)
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(path), "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


def operators_stub() -> str:
    named = sorted(operators_of(Graph).items())
    return formatted(HEAD, (method(n, kind) for n, kind in named if n not in WITHOUT), STUB)


def exports_stub() -> str:
    prefix = f"{ops.__name__}."
    exported = {**ops.operators(), "splat_of": ops.splat_of, "yielded": ops.yielded}
    names = sorted(
        (value.__module__.removeprefix(prefix), name.islower(), name.lower(), name)
        for name, value in exported.items()
    )
    derived = [name for *_, name in names if hasattr(exported[name].__init__, "__signature__")]
    lines = (
        f"from .{origin} import {name} as {f'_{name}' if name in derived else name}"
        for origin, *_, name in names
    )
    classes = (f"class {name}(_{name}):\n    {constructor_of(name)}\n" for name in derived)
    text = OPERATORS_HEAD.format("\n".join(lines)) + "\n".join(classes)
    return formatted(text, (), OPERATORS)


def constructor_of(name: str) -> str:
    """The declaration of a constructor that is derived."""
    parameters = []
    for parameter in inspect.signature(ops.operators()[name].__init__).parameters.values():
        kind = "" if parameter.name == "self" else f": {parameter.annotation}"
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parameters.append(f"{parameter.name}{kind}{default}")
    return f"def __init__({', '.join(parameters)}) -> None: ..."


def functions_stub() -> str:
    place = ops_functions.__name__
    made = [kind for kind in ops.operators().values() if kind.__module__ == place]
    lines = (f"class {kind.__name__}(_Made, {kind.__bases__[0].__name__}): ..." for kind in made)
    return formatted(FUNCTIONS_HEAD + "\n".join(lines), (), FUNCTIONS)


def steps_stub() -> str:
    methods = (
        step(kind, "Self", f"{inspect.getdoc(kind.function)}\n") for kind in PRIMITIVES.values()
    )
    return formatted(STEPS_HEAD, methods, STEPS)


def scheduler_stub() -> str:
    methods = (
        step(kind, kind.result, (inspect.getdoc(kind.function) or "").partition("\n")[0])
        for kind in PRIMITIVES.values()
    )
    return formatted(SCHEDULER_HEAD, methods, SCHEDULER)


STUBS = [
    (STUB, operators_stub),
    (OPERATORS, exports_stub),
    (FUNCTIONS, functions_stub),
    (STEPS, steps_stub),
    (SCHEDULER, scheduler_stub),
]


@pytest.mark.parametrize(("path", "stub"), STUBS)
def test_the_stubs_declare_all(
    path: Path, stub: Callable[[], str], pytestconfig: pytest.Config
) -> None:
    if pytestconfig.getoption("--renew-public"):
        path.write_text(stub())
    assert path.read_text() == stub(), "`make public` writes it again"


USE = """
from typing import assert_type

import numpy as np

import stepwell as sw
from stepwell.dialects.loop.handles import Parts
from stepwell.frontends import gnn
from stepwell.frontends.builder import Value
from stepwell.passes.loop.scheduler.schedule import Schedule

b = sw.Builder("main")
x = b.input("x", ("batch", 8), "f32")
h = b.relu(b.dense(x, np.ones((4, 8), np.float32)), name="act")
assert_type(h, Value)
assert_type(b.top_k(h, 2), tuple[Value, Value])
b.output(b.reduce(h * 2, "sum", axes=[1]), name="y")
module = b.module()
assert_type(module, sw.Module)
exe = sw.compile(module, pipeline=sw.pipeline(threads=1))
assert_type(exe.inputs[0].name, str)
assert_type(sw.schedule(module, "fused_dense_relu").split("i", 8).trace, str)


def rule(schedule: Schedule, nest: str) -> None:
    assert_type(schedule.split(nest, 8, tail="mask"), Parts)
    assert_type(schedule.own(nest, 4), tuple[str, str])
    schedule.vectorize("i", "j")


class Scaled(gnn.MessagePassing):
    def message(
        self,
        b: sw.Builder,
        x_i: Value,
        x_j: Value,
        edge_attr: Value | None,
        edge_weight: Value | None = None,
    ) -> Value:
        return x_j if edge_weight is None else x_j * b.reshape(edge_weight, [-1, 1])


convolution = gnn.GCNConv(np.ones((8, 4), np.float32), add_self_loops=False)
assert_type(gnn.GATv2Conv.from_state_dict({}, "conv1.", heads=2), gnn.GATv2Conv)
network = gnn.Sequential(convolution, gnn.ReLU(), Scaled("mean"))
assert_type(network.to_module(gnn.EdgeListSpec(weighted=True), sw.TensorSpec((None, 8))), sw.Module)
"""

WRONG = """
import stepwell as sw
from stepwell.frontends import gnn
from stepwell.passes.loop.scheduler.schedule import Schedule

b = sw.Builder("main")
x = b.input("x", (4, 8))
b.softmaxx(x)
b.reduce(x, "sum")
b.transpose(x, permutation="10")
sw.schedule(b.module(), "k").split("i", "8")
Schedule.splitt
gnn.GCNConvv(None)
gnn.Sequential("GCNConv")
gnn.EdgeListSpec(weights=True)
"""

CHECKERS = [
    pytest.param(("pyright",), id="pyright"),
    pytest.param(("mypy", "--ignore-missing-imports"), id="mypy", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checkers_know_them(checker: tuple[str, ...], tmp_path: Path) -> None:
    package(checker[0])
    (tmp_path / "use.py").write_text(USE)
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "stepwell").symlink_to(ROOT)

    run = [sys.executable, "-m", *checker, "use.py", "wrong.py"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if "error:" in line]
    errors = {name: [line for line in lines if name in line] for name in ("use.py", "wrong.py")}
    assert errors["use.py"] == []
    places = [int(line.partition("wrong.py:")[2].partition(":")[0]) for line in errors["wrong.py"]]
    assert places == [*range(8, 16)]
