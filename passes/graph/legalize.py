"""Replace operators by forms that suit the target better, from tables: `graph-legalize`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ...core.errors import StepwellError, explain
from ...core.ir.context import decide, known_to, target_of
from ...core.ir.provenance import fuse
from ...core.ir.refusal import refused
from ...core.ir.symbols import free_symbol, symbol_of
from ...core.ir.typed import function_around
from ...core.ir.undo import all_or_nothing
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import SUMS
from ...core.pipelines.exactness import Exactness
from ...core.plugins import legalizations
from ...core.target import Target
from ...dialects.graph.dialect import Graph
from ...dialects.graph.interfaces import GraphOp, tensor_type
from ...dialects.graph.nests.kernels import Kernel
from ...dialects.graph.ops import CallDpsOp, ConstantOp
from ...dialects.graph.sizes.shapes import SymbolicShapes
from ...dialects.loop.ops import KernelOp
from .rules import legalization
from .rules.permission import Permission

Rule = Callable[[GraphOp, Target], Any]
"""Returns the replacement of an operator: an operation, a value, a sequence of values, or None
to keep it. New operations that are in no block yet are inserted before the operator."""

STEP = "graph-legalize"
MOST_STEPS = 100
"""More replacements than this for one operator mean that the rules do not terminate."""


def tables(ctx: Context) -> list[Mapping[str, Any]]:
    """The tables in order of precedence: the user's, the target's, those of other packages, and
    the built-in one."""
    own = known_to(ctx).legalize
    others = [{name: load() for name, load in table.items()} for table in legalizations()]
    return [own, target_of(ctx).legalize, *others, legalization.TABLE]


def _check(ctx: Context, table: Mapping[str, Any]) -> None:
    """Raise if a table names an unknown operator, or holds something other than a rule."""
    for name, rule in table.items():
        found = ctx.get_optional_op(name) if isinstance(name, str) else None
        if found is None or not issubclass(found, GraphOp):
            known = [op.name for op in Graph.operations]
            near = ", ".join(difflib.get_close_matches(str(name), known, 3))
            hint = f"nearest: {near}" if near else None
            fact = f'the table names the unknown operator "{name}"'
            raise PassFailedException(explain(STEP, fact, hint=hint))
        if not isinstance(rule, Kernel) and not callable(rule):
            fact, expected = f'the table has no rule for "{name}"', "a function or stepwell.kernel"
            got = type(rule).__name__
            raise PassFailedException(explain(STEP, fact, expected=expected, got=got))


@dataclass
class Legalizer:
    """Replaces the operators of one module."""

    ctx: Context
    module: ModuleOp
    rules: dict[str, list[Rule | Kernel]]
    permission: Permission
    kernels: dict[tuple[Any, ...], KernelOp] = field(default_factory=dict)
    used: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    """The operators that were replaced, each with the `id` of the rule."""

    def run(self) -> None:
        """Replace operators that rules apply to, and their replacements, until no rule applies."""
        for op in [op for op in self.module.walk() if isinstance(op, GraphOp)]:
            waiting, steps = [op], 0
            while waiting:
                current = waiting.pop()
                made = self._replace(current)
                if made is None:
                    continue
                rule, new = made
                waiting += [inner for inner in new if isinstance(inner, GraphOp)]
                steps += 1
                if steps > MOST_STEPS:
                    fact = f"more than {MOST_STEPS} replacements for one operator"
                    hint = "the rules replace their own results"
                    raise self._error(rule, current, fact, hint=hint)

    def _replace(self, op: GraphOp) -> tuple[Rule | Kernel, list[Operation]] | None:
        """Apply the first rule that matches; return it with the new operations."""
        for rule in self.rules.get(op.name, ()):
            if not self.permission.allows(Exactness.of(rule), op):
                continue
            if not allowed(f"rule {_name(rule)}", op):
                return None
            if isinstance(rule, Kernel):
                new = self._call(rule, op)
                what, why = f"computed by kernel {rule.name}", "the table has a kernel for it"
            else:
                new = self._apply(rule, op)
                what, why = f"replaced by rule {_name(rule)}", "the table has a rule for it"
            if new is not None:
                self.used.add((op.name, id(rule)))
                decide(self.ctx, op, f"{op.name} is {what}", why)
                return rule, new
        return None

    def _apply(self, rule: Rule, op: GraphOp) -> list[Operation] | None:
        try:
            given = rule(op, target_of(self.ctx))
        except StepwellError:
            raise
        except Exception as error:
            # Third-party code may raise anything.
            text = str(error).partition("\n\n")[0]
            fact = " ".join(f"raised {type(error).__name__}: {text}".split())
            raise self._error(rule, op, fact) from error
        if given is None:
            return None
        values = self._values(rule, op, given)
        new = _unplaced(values)
        try:
            for made in new:
                made.location = op.location
                Rewriter.insert_op(made, InsertPoint.before(op))
                made.verify()
        except VerifyException as error:
            text = " ".join(str(error).partition("\n\n")[0].split())
            raise self._error(rule, op, text) from error
        for old, value in zip(op.results, values, strict=True):
            if value.name_hint is None:
                value.name_hint = old.name_hint
        Rewriter.replace_op(op, [], values)
        return new

    def _values(self, rule: Rule, op: GraphOp, given: Any) -> list[SSAValue]:
        """The values that a rule returns, one for each result of the operator."""
        parts = [given] if isinstance(given, (Operation, SSAValue)) else given
        if not isinstance(parts, Sequence):
            got = type(given).__name__
            raise self._error(rule, op, "returned no operation", "operations, values or None", got)
        values: list[SSAValue] = []
        for part in parts:
            if not isinstance(part, (Operation, SSAValue)):
                got = type(part).__name__
                raise self._error(rule, op, "returned no operation", "operations or values", got)
            values += [part] if isinstance(part, SSAValue) else part.results
        expected, got = list(op.result_types), [value.type for value in values]
        if expected != got:
            texts = [", ".join(map(str, types)) for types in (expected, got)]
            raise self._error(rule, op, "returned values of the wrong types", *texts)
        if any(value in op.results for value in values):
            raise self._error(rule, op, "returned the operator itself", "None to keep it")
        return values

    def _call(self, rule: Kernel, op: GraphOp) -> list[Operation] | None:
        """Replace an operator by a call of its kernel, which equal operators share."""
        types = (tuple(v.type for v in op.operands), tuple(op.result_types))
        key = (rule, op.name, types, tuple(sorted(op.properties.items(), key=lambda p: p[0])))
        if key not in self.kernels:
            taken = {name for inner in self.module.ops if (name := symbol_of(inner)) is not None}
            kernel = rule.of_operator(op, free_symbol(rule.name, taken))
            if kernel is None:
                return None
            self.module.body.block.add_op(kernel)
            self.kernels[key] = kernel
        for inner in self.kernels[key].walk():
            inner.location = fuse([inner, op])
        call = CallDpsOp(
            self.kernels[key].sym_name.data, list(op.operands), op.result_types, _dims(op)
        )
        call.location = op.location
        Rewriter.replace_op(op, call)
        return [call]

    def _error(
        self,
        rule: Rule | Kernel,
        op: Operation,
        fact: str,
        expected: object = None,
        got: object = None,
        hint: str | None = None,
    ) -> PassFailedException:
        subject = f'{STEP}: rule "{_name(rule)}" for {op.name}'
        return refused(op, fact, subject=subject, expected=expected, got=got, hint=hint)


def _name(rule: Rule | Kernel) -> str:
    return rule.name if isinstance(rule, Kernel) else getattr(rule, "__name__", "rule")


def _unplaced(values: Sequence[SSAValue]) -> list[Operation]:
    """The producers of values that are in no block yet, in order of their uses."""
    found: dict[Operation, None] = {}

    def visit(value: SSAValue) -> None:
        op = value.owner
        if isinstance(op, Block) or op.parent is not None or op in found:
            return
        for operand in op.operands:
            visit(operand)
        found[op] = None

    for value in values:
        visit(value)
    return list(found)


def _dims(op: GraphOp) -> list[list[str]] | None:
    """The sizes of the results in the symbols of the function; None if all are static."""
    kinds = [tensor_type(result) for result in op.results]
    function = function_around(op)
    if function is None or all(kind.has_static_shape() for kind in kinds):
        return None
    shapes = SymbolicShapes(function)
    return [
        [
            str(dim) if n == DYNAMIC_INDEX else ""
            for dim, n in zip(shapes.shape(result), kind.get_shape(), strict=True)
        ]
        for result, kind in zip(op.results, kinds, strict=True)
    ]


class GraphLegalizePass(ModulePass):
    """Replace operators by forms that suit the target better, or by the user's kernels.

    Replacements come from tables that map names of operators to rules or kernels: those of the
    compilation, the target and other packages, and a built-in one.

    Before:

    ```mlir
    func.func @main(%x: tensor<?xi32>) -> tensor<?xi32> {
      %n = graph.constant dense<5> : tensor<i32>
      %y = graph.pow %x, %n : (tensor<?xi32>, tensor<i32>) -> tensor<?xi32>
      func.return %y : tensor<?xi32>
    }
    ```

    After:

    ```mlir
    func.func @main(%x: tensor<?xi32>) -> tensor<?xi32> {
      %0 = graph.mul %x, %x : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
      %1 = graph.mul %0, %0 : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
      %y = graph.mul %x, %1 : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32>
      func.return %y : tensor<?xi32>
    }
    ```

    Requires: nothing.
    Order: after `graph-simplify` and `graph-alter-op-layout`, which match operators: some are
        replaced by kernels.
    Leaves: no operator that a rule replaces, so that a second run finds nothing to do. On an
        error the module is unchanged.
    """

    name = "graph-legalize"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = tables(ctx)
        for table in known:
            _check(ctx, table)
        rules: dict[str, list[Rule | Kernel]] = {}
        for table in known:
            for name, rule in table.items():
                rules.setdefault(name, []).append(rule)
        found = {inner.name for inner in op.walk()}
        legalizer = Legalizer(ctx, op, rules, Permission(op))
        if not found.isdisjoint(rules):
            with all_or_nothing(op):
                legalizer.run()
            for constant in [inner for inner in op.walk() if isinstance(inner, ConstantOp)]:
                if constant.result.first_use is None:
                    Rewriter.erase_op(constant)
        gone = "no such operator is left by the passes before"
        for name, rule in known[0].items():
            if (name, id(rule)) not in legalizer.used:
                why = "it applies to none" if name in found else gone
                decide(ctx, name, f"rule {_name(rule)} is not used", why, kind="missed")
