"""The pages of `docs/reference/` are made from the code, and their examples run."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core import errors
from stepwell.core.registry import own_dialects
from stepwell.dialects.graph.interfaces import GraphOp
from stepwell.dialects.graph.nests import scalars
from stepwell.dialects.graph.nests.nest import WritingNest
from stepwell.dialects.graph.ops import (
    ClipOp,
    CumulativeOp,
    ExpOp,
    FmaOp,
    SigmoidOp,
    TopKOp,
)
from stepwell.tools.reference.constraints import property_type, value_type
from stepwell.tools.reference.documents import document_of
from stepwell.tools.reference.examples import (
    Example,
    ModuleExample,
    example_of,
    kernel_example_of,
    parsed,
)
from stepwell.tools.reference.markdown import page, table
from stepwell.tools.reference.pages import PAGES
from stepwell.tools.reference.programs import program_example_of
from stepwell.tools.reference.semantics import numpy_source

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "reference"
OPERATIONS = [op for name in ("graph", "loop", "rt") for op in own_dialects()[name]().operations]
CALLS = {"graph.call_dps", "graph.call_packed", "graph.yield"}
"""Operators whose examples are programs: they need a function, or a region around them."""


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_made_from_the_code(name: str, pytestconfig: pytest.Config) -> None:
    """`pytest --renew-public` writes it anew."""
    now = PAGES[name]()
    if pytestconfig.getoption("--renew-public"):
        (FOLDER / name).write_text(now, encoding="utf-8")
    assert (FOLDER / name).read_text(encoding="utf-8") == now, "`make public` writes it again"


def test_no_other_page_lies_there() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*PAGES, "errors.md", "index.md"}


def test_guides_name_what_nests_have() -> None:
    guides = [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "rationale"]
    offered = {"nest": WritingNest, "scalars": scalars}
    named = re.compile(r"\b(nest|scalars)\.([a-z]\w*)\b")
    found = [(path.name, *name) for path in guides for name in named.findall(path.read_text())]
    assert len(found) > 50
    assert [f for f in found if f[2] not in ("md", "py") and not hasattr(offered[f[1]], f[2])] == []


def kinds_of_errors() -> str:
    """A table of the errors that are raised on purpose, with what each of them is derived from."""
    rows = list[tuple[str, str, str]]()
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.StepwellError):
            bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
            rows.append((f"`{name}`", bases, inspect.getdoc(kind) or ""))
    return table(("error", "is a", "raised where"), rows)


def test_the_kinds_of_errors_are_listed(pytestconfig: pytest.Config) -> None:
    path, title = FOLDER / "errors.md", "## Kinds\n\n"
    before, _, listed = path.read_text(encoding="utf-8").partition(title)
    now = kinds_of_errors() + "\n"
    if pytestconfig.getoption("--renew-public"):
        path.write_text(before + title + now, encoding="utf-8")
        return
    assert listed == now


def test_explained_messages_exist() -> None:
    explained = re.findall(
        r"^\| `([^`]+)` \| [^`]", (FOLDER / "errors.md").read_text(), re.MULTILINE
    )
    rooms = [room for room in ROOT.iterdir() if (room / "__init__.py").is_file()]
    sources = [*ROOT.glob("*.py"), *(path for room in rooms for path in room.rglob("*.py"))]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert len(explained) > 8
    assert [message for message in explained if message not in text] == []


@pytest.mark.parametrize("op", OPERATIONS, ids=[op.name for op in OPERATIONS])
def test_each_operation_has_an_example(op: type) -> None:
    examples = [text for text in document_of(op).examples if not text.startswith("func.func ")]
    assert examples
    for example in examples:
        assert parsed(example)[0].name.partition(".")[0] == op.name.partition(".")[0]  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize(
    "op",
    [op for op in OPERATIONS if op.name.startswith("graph.") and op.name not in CALLS],
    ids=lambda op: op.name,
)
def test_examples_compile_to_what_the_page_shows(op: type[GraphOp]) -> None:
    """The page shows what the reference computes; the compiled program computes the same."""
    found = [example for ir in document_of(op).examples if (example := example_of(ir)) is not None]
    assert found
    for example in found:
        if any(hasattr(result, "toarray") for result in example.results.values()):
            with pytest.raises(sw.CompileError):  # no program returns a sparse matrix
                sw.compile(example.module, threads=1)
            continue
        results = sw.compile(example.module, threads=1)(*example.inputs.values())
        given = results if isinstance(results, tuple) else (results,)
        for ours, shown in zip(given, example.results.values(), strict=True):
            np.testing.assert_allclose(ours.astype("f8"), shown.astype("f8"), rtol=1e-5, atol=1e-6)


def test_an_example_shows_operands_and_results() -> None:
    example = example_of("%y = graph.neg %x : (tensor<2xf32>) -> tensor<2xf32>")
    assert example is not None
    assert example.shown() == "x = [ 1., -2.]\n\ny = [-1.,  2.]"
    ragged = example_of("%e = graph.entries %a : (tensor<?x?xf32, #csr>) -> tensor<?xf32>")
    assert ragged is not None
    assert ragged.shown().startswith("a = {(0, 1): 0.5, (0, 3): 2, (2, 0): 1, (3, 2): 1.5}\n")
    large = example_of("%y = graph.neg %x : (tensor<99xf32>) -> tensor<99xf32>")
    assert large is not None
    assert large.shown() == ""
    assert example_of("graph.yield %x : tensor<2xf32>") is None


def kernels() -> dict[str, Example]:
    """The examples that are kernels, by the names of these."""
    texts = [text for op in OPERATIONS for text in document_of(op).examples]
    texts = [text for text in texts if not text.startswith("func.func ")]
    found = {parsed(text)[0]: kernel_example_of(text) for text in texts}
    return {op.sym_name.data: e for op, e in found.items() if e is not None}  # type: ignore[attr-defined]


def test_kernels_of_the_page_run() -> None:
    """What they compute is that of NumPy, and all of their results is written."""
    found = kernels()
    expected: dict[str, Callable[..., Any]] = {
        "relu": lambda x: np.maximum(x, 0),
        "sums_of_rows": lambda x: x.sum(1, keepdims=True),
        "sum_and_maximum": lambda x: (x.sum(1), x.max(1)),
        "products_of_rows": lambda x: x.prod(1),
        "doubled": lambda x: x + x,
        "added_in_turn": lambda x: np.bincount(np.arange(6) % 4, x),
        "pairs": lambda x, w: (x.reshape(2, 1, 2) * w.reshape(4, 2)).sum(2),
        "histogram": lambda c: np.bincount(c, minlength=4),
        "first_lanes": lambda x: -x,
        "squares_backwards": lambda x: (x * x)[:, ::-1],
        "bounds": lambda indptr: [0, 1],
    }
    assert found.keys() == expected.keys()
    for name, example in found.items():
        want = expected[name](*example.inputs.values())
        several = want if isinstance(want, tuple) else (want,)
        for got, right in zip(example.results.values(), several, strict=True):
            np.testing.assert_allclose(got, right, err_msg=name)
        assert example.shown()
    assert kernel_example_of("%y = graph.neg %x : (tensor<2xf32>) -> tensor<2xf32>") is None


@functools.cache
def programs() -> dict[str, ModuleExample]:
    """The examples that are programs, by the operations that they show."""
    found = {
        op.name: [made for text in document_of(op).examples if (made := program_example_of(text))]  # type: ignore[attr-defined]
        for op in OPERATIONS
    }
    return {name: example for name, examples in found.items() for example in examples}


def test_programs_of_the_page_run() -> None:
    """What they compute, interpreted and compiled, is that of NumPy; checks that fail say so."""
    expected: dict[str, Callable[..., Any] | str] = {
        "graph.call_dps": lambda x: np.maximum(x, 0),
        "graph.call_packed": lambda x: 2 * x,
        "graph.yield": lambda x, positive: x if positive else -x,
        "rt.arena": lambda x: np.maximum(2 * x, 0),
        "rt.call": lambda x: np.maximum(x, 0),
        "rt.call_packed": lambda x: 2 * x,
        "rt.call_tiles": lambda x: -x,
        "rt.check": "InputError: x: too large, expected below 2, got 3",
        "rt.check_csr": "InputError: graph: column index out of range at entry 3, got 3",
        "rt.check_index": "InputError: ids: index out of range at position 0, "
        "expected -3 to 2, got 3",
        "rt.check_offsets": "InputError: parts: offsets decrease after position 0, got 3",
        "rt.clock": lambda: 1,
        "rt.copy_async": lambda x: x[1],
        "rt.constant": lambda x, w: x * w,
        "rt.iteration": "InputError: x: not positive; iteration 3 of graph.loop",
        "rt.parallel_tiles": lambda x: -x,
        "rt.record": lambda: 2,
        "rt.shuffle": lambda: np.arange(32)[::-1],
        "rt.slice": lambda x: np.maximum(x[1], 0),
        "rt.to_device": lambda x: np.maximum(x, 0),
        "rt.to_host": lambda x: 2 * np.maximum(x, 0),
        "rt.yield": lambda: np.arange(4) ** 2,
        "rt.barrier": lambda: np.arange(4)[::-1],
    }
    found = programs()
    assert found.keys() == expected.keys()
    assert {op.name for op in OPERATIONS if op.name.startswith("rt.")} <= found.keys()  # type: ignore[attr-defined]
    for name, example in found.items():
        want, arrays = expected[name], list(example.inputs.values())
        exe, count = sw.compile(example.module, threads=1), len(example.module.inputs)
        if isinstance(want, str):
            assert example.shown().endswith("\n\n" + want)
            with pytest.raises(sw.InputError, match=re.escape(want.removeprefix("InputError: "))):
                exe(*arrays[:count])
            continue
        (got,) = example.results.values()
        np.testing.assert_array_equal(got, want(*arrays), err_msg=name)
        np.testing.assert_array_equal(exe(*arrays[:count]), got, err_msg=name)


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("rt.check", (np.int64(1),)),
        ("rt.check_csr", (np.array([0, 5, 6, 6], "i4"), np.array([1, 2, 0, 2, 1, 2], "i4"))),
        ("rt.check_index", (np.array([-3, 1, 2, 0]),)),
        ("rt.check_offsets", (np.array([0, 1, 1, 3]),)),
        ("rt.iteration", (np.array([3, 1, 2, 1]),)),
    ],
)
def test_programs_whose_checks_fail_accept_others(name: str, good: tuple[Any, ...]) -> None:
    exe = sw.compile(programs()[name].module, threads=1)
    exe(*good)


def test_the_source_in_numpy() -> None:
    assert numpy_source(ExpOp) == "np.exp(x)"
    assert numpy_source(SigmoidOp).endswith("return one / (one + np.exp(-x))")
    assert numpy_source(FmaOp).startswith("def array(self, ")
    assert "def reference(" in numpy_source(TopKOp)


def test_types_in_words() -> None:
    exclusive = CumulativeOp.get_irdl_definition().properties
    assert property_type(exclusive["exclusive"]) == "true or false"
    assert property_type(exclusive["axis"]) == "integer"
    assert property_type(exclusive["kind"]) == "`sum`, `mean`, `max`, `maxnum`, `min`, `prod`"
    assert property_type(ClipOp.get_irdl_definition().properties["minimum"]).endswith("; optional")
    (operand,) = (kind for _, kind in ExpOp.get_irdl_definition().operands)
    assert value_type(operand) == "tensor of f16, bf16, f32, f64"


def test_tables() -> None:
    assert table(("a", "b"), [("1 | 2", "x\ny")]) == "| a | b |\n|---|---|\n| 1 \\| 2 | x y |"
    assert table(("a",), []) == ""
    assert page("# A", "", "text\n") == "# A\n\ntext\n"
