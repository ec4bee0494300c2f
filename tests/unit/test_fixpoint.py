"""Passes end: on IR that is not valid, and with patterns that undo each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import HasCanonicalizationPatternsTrait

from stepwell.core.errors import CompileError
from stepwell.core.ir.provenance import names
from stepwell.core.pipelines.pass_manager import run_steps
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.dialects.graph import ops as graph
from stepwell.tools import stepwell_opt

EARLY = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %z : (tensor<4xf32>) -> tensor<4xf32>
  %z = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
OWN_OPERAND = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.call_packed "env.f"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
SUM = """\
func.func @main(%a: i32, %b: i32) -> i32 {
  %c = arith.addi %a, %b : i32
  func.return %c : i32
}
"""


class SwapOperands(RewritePattern):
    """a + b == b + a  (exact), which never ends."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if isinstance(op, arith.AddiOp):
            rewriter.replace(op, arith.AddiOp(op.rhs, op.lhs))


class SwapPass(ModulePass):
    """A pass whose pattern undoes itself."""

    name = "test-swap"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(SwapOperands()).rewrite_module(op)


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


@pytest.mark.parametrize("name", ["graph-fuse-ops", "graph-simplify", "canonicalize"])
@pytest.mark.parametrize("text", [EARLY, OWN_OPERAND], ids=["early", "own operand"])
def test_uses_before_definitions_are_refused(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(text)
    with pytest.raises(SystemExit) as stop:
        stepwell_opt.main([str(path), "-p", name])
    assert stop.value.code == 1
    message = capsys.readouterr().err
    assert f"{path}:2:3: graph." in message
    assert "operand 0 is used before it is defined" in message


def test_uses_before_definitions_are_diagnostics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, expected = tmp_path / "m.mlir", "  // expected-error @below {{before it is defined}}\n"
    path.write_text(EARLY.replace("  %y = ", expected + "  %y = "))
    stepwell_opt.main([str(path), "-p", "graph-cse", "--verify-diagnostics"])
    assert capsys.readouterr().err == ""


def test_a_pass_that_leaves_an_early_use_is_named() -> None:
    class MovePass(ModulePass):
        name = "test-move"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            exp = next(inner for inner in op.walk() if isinstance(inner, graph.ExpOp))
            relu = next(inner for inner in op.walk() if isinstance(inner, graph.ReluOp))
            exp.detach()
            Rewriter.insert_op(exp, InsertPoint.after(relu))

    lines = EARLY.splitlines()
    module = parse("\n".join([lines[0], lines[2], lines[1], *lines[3:]]))
    ctx, message = make_context(), "test-move: result does not verify: graph.relu: operand 0"
    ctx.verify = "pass"
    with pytest.raises(CompileError, match=message):
        run_steps(ctx, module, [MovePass()])


def test_operations_in_a_circle_are_named() -> None:
    message = "graph-defuse: graph.call_packed depends on its own result"
    with pytest.raises(CompileError, match=message):
        run_passes(make_context(), parse(OWN_OPERAND), "graph-defuse")


def test_a_pattern_that_undoes_itself_is_named() -> None:
    message = (
        'test-swap: "SwapOperands" is still being applied to arith.addi after 1000 rewrites, '
        "expected an end; patterns undo each other"
    )
    with pytest.raises(CompileError, match=message):
        run_steps(make_context(), parse(SUM), [SwapPass()])


def test_a_canonicalization_that_undoes_itself_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns of others run in xDSL's own pass."""
    (trait,) = arith.AddiOp.get_traits_of_type(HasCanonicalizationPatternsTrait)
    patterns = lambda *_: (SwapOperands(),)  # noqa: E731
    monkeypatch.setattr(type(trait), "get_patterns", patterns)
    with pytest.raises(CompileError, match='canonicalize: "SwapOperands" is still being applied'):
        run_passes(make_context(), parse(SUM), "canonicalize")


TWICE = """\
pdl.pattern @twice : benefit(1) {
  %type = pdl.type
  %x = pdl.operand
  %sum = pdl.operation "arith.addi" (%x, %x : !pdl.value, !pdl.value) -> (%type : !pdl.type)
  pdl.rewrite %sum {
    %flags = pdl.attribute = #arith.overflow<none>
    %one = pdl.operation "arith.ori" (%x, %x : !pdl.value, !pdl.value) -> (%type : !pdl.type)
    %a = pdl.result 0 of %one
    %two = pdl.operation "arith.muli" (%a, %x : !pdl.value, !pdl.value)
        {"overflowFlags" = %flags} -> (%type : !pdl.type)
    pdl.replace %sum with %two
  }
}
func.func @main(%a: i32) -> i32 {
  %c = arith.addi %a, %a : i32 loc("node")
  func.return %c : i32
}
"""


def test_what_a_pattern_of_others_inserts_is_where_it_was_applied() -> None:
    module = parse(TWICE)
    run_passes(make_context(), module, "apply-pdl")
    made = [one for one in module.walk() if one.name in ("arith.ori", "arith.muli")]
    assert [names(one) for one in made] == [("node",), ("node",)]
