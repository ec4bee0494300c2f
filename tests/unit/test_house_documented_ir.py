"""The IR in the documentation of passes is true: every Before, run, gives its After.

A pass documents itself by ```mlir blocks under the lines `Before:` and `After:`; a line
`Options: max-ops=1` between them says with which options the pass runs, and a line
`Weights: w = tensor<4x8xf32>` which arrays lie beside the module.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.parser import Parser

from stepwell.core.dtypes import dtype_of
from stepwell.core.ir.context import CompilerContext
from stepwell.core.ir.weights import WeightStore
from stepwell.core.pipelines.staircase import parse_passes, run_passes
from stepwell.core.registry import make_context, own_passes
from stepwell.dialects.stages import STAGE

LONGEST = 12
EXAMPLE = re.compile(
    r"^Before:\n+```mlir\n(?P<before>.*?)```\n+"
    r"(?:Options: `?(?P<options>[^`\n]+)`?\n+)?"
    r"(?:Weights: `(?P<weight>\w+) = (?P<type>[^`\n]+)`\n+)?"
    r"After:\n+```mlir\n(?P<after>.*?)```",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Example:
    """One pair of blocks in the documentation of a pass."""

    name: str
    before: str
    options: str | None
    weights: WeightStore
    after: str

    def context(self) -> CompilerContext:
        return make_context(self.weights.copy())


def documentation(name: str) -> str:
    loaded = own_passes()[name]()
    return inspect.getdoc(loaded) or ""


def examples(name: str) -> list[Example]:
    found = EXAMPLE.finditer(documentation(name))
    return [
        Example(name, m["before"], m["options"], stored(m["weight"], m["type"]), m["after"])
        for m in found
    ]


def stored(name: str | None, type: str | None) -> WeightStore:
    """An array of zeros of a type under a name; none without a name."""
    weights = WeightStore()
    if name is not None and type is not None:
        kind = Parser(make_context(), type).parse_type()
        assert isinstance(kind, TensorType)
        weights.add(name, np.zeros(kind.get_shape(), dtype_of(kind.element_type)))
    return weights


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


def printed(module: ModuleOp) -> str:
    """The text of a module with its values numbered: their names are for the reader."""
    for op in module.walk():
        for value in (*op.results, *(arg for r in op.regions for b in r.blocks for arg in b.args)):
            value.name_hint = None
    return str(module)


@pytest.mark.parametrize("name", own_passes())
def test_pass_documents_itself(name: str) -> None:
    text = documentation(name)
    assert text.partition("\n")[0], f"{name} has no docstring"
    for word in ("Requires", "Leaves"):
        assert re.search(rf"^{word}: ", text, re.MULTILINE), f"{name} does not say what it {word}"
    found = examples(name)
    assert found, f"{name} shows no Before and After"
    assert len(found) == text.count("Before:") == text.count("After:")
    for example in found:
        for block in (example.before, example.after):
            assert len(block.splitlines()) <= LONGEST, f"{name}: more than {LONGEST} lines of IR"


@pytest.mark.parametrize("name", own_passes())
def test_before_becomes_after(name: str) -> None:
    for example in examples(name):
        spec = f"{name}{{{example.options}}}" if example.options else name
        ctx = example.context()
        module = Parser(ctx, example.before).parse_module()
        module.verify()
        (step,) = parse_passes(spec, own_passes())
        step.apply(ctx, module)
        module.verify()
        # Examples show functions, not the module around them.
        module.attributes.pop(STAGE, None)
        expected = parse(example.after)
        expected.verify()
        given, documented = printed(module), printed(expected)
        assert given == documented, f"{spec}: Before gives\n{given}\nand After says\n{documented}"


@pytest.mark.parametrize("name", [n for n in own_passes() if n.startswith(("graph-", "loop-"))])
def test_pass_tells_what_it_decided(name: str) -> None:
    for example in examples(name):
        ctx = example.context()
        module = Parser(ctx, example.before).parse_module()
        run_passes(ctx, module, f"{name}{{{example.options}}}" if example.options else name)
        assert ctx.decisions, f"{name} changes its example and records no decision"
        assert {decision.pass_name for decision in ctx.decisions} == {name}
