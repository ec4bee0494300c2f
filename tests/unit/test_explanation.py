"""What `exe.explain()` makes of decisions, as text and as JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from xdsl.dialects import test

import stepwell as sw
from stepwell.core.ir import provenance
from stepwell.core.ir.context import CompilerContext, decide
from stepwell.core.pipelines import explanation
from stepwell.core.pipelines.decisions import Decision


def noted(*names: str) -> list[test.TestOp]:
    ops = [test.TestOp() for _ in names]
    for op, name in zip(ops, names, strict=True):
        op.location = provenance.named(name)
    return ops


def decisions() -> list[Decision]:
    ctx = CompilerContext(stage="optimized", pass_name="graph-x")
    for op in noted("a", "b"):
        decide(ctx, op, "fold", "it is constant", "8 bytes")
    decide(ctx, noted("c", "d"), "keep apart", "slices would cost more")
    ctx.pass_name = "graph-y"
    decide(ctx, "@kernel", "one kernel", "it is small")
    ctx.stage, ctx.pass_name = "fused", "graph-x"
    decide(ctx, noted("e")[0], "fold", "it is constant", "8 bytes")
    return ctx.decisions


def test_text_is_by_stage_and_pass_and_equal_decisions_are_one_line() -> None:
    assert explanation.as_text(decisions()).splitlines() == [
        "optimized",
        "  graph-x",
        '    node "a"; node "b": fold, because it is constant [8 bytes each]',
        '    nodes "c", "d": keep apart, because slices would cost more',
        "  graph-y",
        "    @kernel: one kernel, because it is small",
        "fused",
        "  graph-x",
        '    node "e": fold, because it is constant [8 bytes]',
    ]


def test_many_nodes_are_counted() -> None:
    ctx = CompilerContext(stage="optimized", pass_name="graph-x")
    for op in noted(*map(str, range(40))):
        decide(ctx, op, "fold", "it is constant")
    line = explanation.as_text(ctx.decisions).splitlines()[-1]
    assert line.startswith('    node "0"; node "1"; ')
    assert "; and 34 more: fold" in line


def test_a_kernel_is_told_with_its_nodes() -> None:
    decision = Decision("@k", "one kernel", "of that", None, tuple("abcdefgh"))
    assert '@k ("a", "b", "c", "d", "e", "f" and 2 more): one' in explanation.as_text([decision])


def test_json_has_each_decision() -> None:
    told = json.loads(explanation.as_json(decisions()))
    assert told["schema"] == 1
    assert len(told["decisions"]) == 5
    assert told["decisions"][0] == {
        "stage": "optimized",
        "pass": "graph-x",
        "kind": "passed",
        "subject": 'node "a"',
        "nodes": ["a"],
        "places": [],
        "what": "fold",
        "why": "it is constant",
        "cost": "8 bytes",
    }
    assert told["decisions"][2]["nodes"] == ["c", "d"]


def test_nothing_to_tell() -> None:
    assert explanation.as_text([]) == "no decisions were taken"
    assert json.loads(explanation.as_json([])) == {"schema": 1, "decisions": []}


def test_unknown_format() -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (2,), "f32")), name="y")
    exe = sw.compile(b.module(), threads=1)
    with pytest.raises(sw.InputError, match='explain: unknown format, expected "text" or "json"'):
        exe.explain("yaml")


def test_rules_and_folding_are_told_in_the_names_of_the_model() -> None:
    b = sw.Builder("main")
    x = b.input("x", (2, 4), "f32")
    h = b.max(x, b.sqrt(np.array([4.0, 9.0, 1.0, 0.0], np.float32), name="root"), name="limit")
    b.output(b.max(h, 0.0, name="act"), name="y")
    told = sw.compile(b.module(), threads=1).decisions
    folded = [d for d in told if d.pass_name == "graph-fold-constant"]
    assert ("root",) in [d.nodes for d in folded]
    rules = [d for d in told if d.pass_name == "graph-canonicalize-ops"]
    assert (("act",), 'rewrite graph.max by the rule "max is clip"') in [
        (d.nodes, d.what) for d in rules
    ]
