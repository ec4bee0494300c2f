"""Passes that run on each function alone: what they may do, and where it goes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects import arith, func, test
from xdsl.dialects.builtin import ModuleOp, StringAttr, i32
from xdsl.passes import ModulePass

import stepwell as sw
from stepwell.core.ir.parsing import MlirParser
from stepwell.core.pipelines.nested import NestedPass
from stepwell.core.pipelines.pass_manager import run_steps
from stepwell.core.registry import make_context

TEXT = """
func.func private @callee(%x: i32) -> i32 {
  func.return %x : i32
}
func.func private @main(%x: i32) -> i32 {
  %y = func.call @callee(%x) : (i32) -> i32
  func.return %y : i32
}
"""


@dataclass(frozen=True)
class Sees(ModulePass):
    """Keeps the text of each module that it gets, and then does something to it."""

    name = "sees"
    seen: list[str]
    does: str = "nothing"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.seen.append(str(op))
        *_, last = op.ops
        match self.does:
            case "beside":
                op.body.block.add_op(test.TestOp())
            case "gone":
                last.detach()
                last.erase()
            case "callee":
                for inner in list(op.ops)[:-1]:
                    inner.properties["sym_name"] = StringAttr("other")
            case "another":
                assert isinstance(last, func.FuncOp)
                name, type = last.sym_name.data, last.function_type
                region = last.detach_region(last.body)
                last.detach()
                op.body.block.add_op(func.FuncOp(name, type, region))


def run(step: ModulePass, *anchors: str, text: str = TEXT) -> str:
    ctx = make_context()
    module = MlirParser(ctx, text, "m.mlir").parse_module()
    run_steps(ctx, module, [NestedPass(anchors, step)])
    return str(module)


def test_each_function_is_alone_with_what_it_calls() -> None:
    seen: list[str] = []
    before = str(MlirParser(make_context(), TEXT, "m.mlir").parse_module())
    assert run(Sees(seen), "func.func") == before
    first, second = seen
    assert "func.func public @callee(%x: i32)" in first
    assert "@main" not in first
    assert "func.func private @callee(i32) -> i32\n" in second, "without its body"
    assert "func.func public @main" in second, "public, so that a pass leaves it"


def test_another_operation_of_the_same_name_takes_its_place() -> None:
    text = run(Sees([], "another"), "func.func")
    assert text.index("@callee") < text.index("@main")
    assert text.count("func.func private") == 2, "private again"


@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("beside", "func.func(sees): @callee: the pass puts test.op beside it; run sees on the"),
        ("gone", "func.func(sees): @callee: the pass replaces it by nothing; run sees on"),
        ("callee", "func.func(sees): @main: the pass changes @other, which it refers to; run"),
    ],
)
def test_what_goes_beyond_the_function_is_refused(does: str, message: str) -> None:
    with pytest.raises(sw.CompileError) as caught:
        run(Sees([], does), "func.func")
    assert str(caught.value).startswith(message)


def test_values_from_outside_are_refused() -> None:
    ctx = make_context()
    module = ModuleOp([])
    number = arith.ConstantOp.from_int_and_width(1, i32)
    inner = ModuleOp([test.TestOp([number.result])])
    module.body.block.add_ops([number, inner])
    ctx.verify = "never"
    message = r"builtin.module\(sees\): builtin.module: it uses values from outside of it"
    with pytest.raises(sw.CompileError, match=message):
        run_steps(ctx, module, [NestedPass(("builtin.module",), Sees([]))])


def test_anchors_are_nested_in_each_other() -> None:
    seen: list[str] = []
    text = (
        "builtin.module { func.func @inner() { func.return } }\nfunc.func @outer() { func.return }"
    )
    run(Sees(seen), "builtin.module", "func.func", text=text)
    assert len(seen) == 1
    assert "@inner" in seen[0]
