"""Patterns over operators: match, explain why one does not match, rewrite, group.

    from stepwell import patterns as p

    @p.pattern
    def multiply_add(x, y, z):
        return p.add(p.mul(x, y), z)

    @p.rewrite(multiply_add)
    def fused(b, x, y, z):
        return b.fma(x, y, z)

    module = p.apply(module, [fused])

A pattern calls operators of the `graph` dialect by their mnemonics, with the arguments of their
constructors. See `docs/rewriting.md`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import RewritePattern

from .core.errors import CompileError, StepwellError, explain
from .core.ir.module import Module
from .core.ir.weights import WeightStore
from .core.patterns.pattern import Match, Pattern
from .core.patterns.terms import Term
from .core.pipelines.decisions import Decision
from .core.registry import make_context
from .frontends.builder import Builder, Value
from .passes.patterns import vocabulary
from .passes.patterns.grouping import group_module
from .passes.patterns.rewriting import Rule, rewrite_module
from .passes.patterns.vocabulary import constant, one_of, op, optional, value

__all__ = [
    "Match",
    "Pattern",
    "Rule",
    "apply",
    "constant",
    "group",
    "group_module",
    "one_of",
    "op",
    "optional",
    "pattern",
    "rewrite",
    "rewrite_module",
    "value",
]


def __getattr__(name: str) -> Callable[..., Term]:
    """The operator of the `graph` dialect with this mnemonic, for use in patterns."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return vocabulary.call(vocabulary.named(name))


def __dir__() -> list[str]:
    return sorted({*__all__, *vocabulary.OPERATORS})


@overload
def pattern(function: Callable[..., Any]) -> Pattern: ...
@overload
def pattern(
    *, when: Callable[[Match], bool] | None = None
) -> Callable[[Callable[..., Any]], Pattern]: ...
def pattern(
    function: Callable[..., Any] | None = None, *, when: Callable[[Match], bool] | None = None
) -> Pattern | Callable[[Callable[..., Any]], Pattern]:
    """Make a pattern of a function that calls operators and returns its result or results.

    Its parameters are wildcards; `value` or `constant` as an annotation or a default value
    constrains one. `when` receives a whole match and returns whether to accept it.

    Raises:
        CompileError: if the function is not a pattern.
    """
    if function is None:
        return lambda function: Pattern(function, when)
    return Pattern(function, when)


def rewrite(pattern: Pattern, *, name: str | None = None) -> Callable[[Callable[..., Any]], Rule]:
    """Make a rule of a pattern and a function that builds its replacement.

    The function receives a `Builder` and the parts of the pattern that its parameters name: values
    (as `Value`; None if absent), matched operators, and the whole `match`. It returns as many
    values as the pattern, of the same types.

    Raises:
        CompileError: if it has a parameter that the pattern lacks.
    """
    if not isinstance(pattern, Pattern):
        got = type(pattern).__name__
        raise CompileError(explain("rewrite", "not a pattern", expected="a pattern", got=got))

    def rule(function: Callable[..., Any]) -> Rule:
        label = name or getattr(function, "__name__", "rewrite")
        asked = list(inspect.signature(function).parameters)[1:]
        unknown = [a for a in asked if a not in pattern.named and a != "match"]
        if unknown:
            fact = f'pattern "{pattern.name}" has no "{unknown[0]}"'
            expected = ", ".join([*pattern.named, "match"])
            raise CompileError(explain(f'rewrite "{label}"', fact, expected=expected))

        def build(match: Match, store: WeightStore) -> tuple[list[Operation], list[SSAValue]]:
            return _build(function, asked, label, match, store)

        return Rule(pattern, build, label)

    return rule


def _build(
    function: Callable[..., Any],
    asked: Sequence[str],
    label: str,
    match: Match,
    store: WeightStore,
) -> tuple[list[Operation], list[SSAValue]]:
    """Call the function of a replacement; return the operators that it built, and its results."""
    builder = Builder(weights=store)
    arguments: dict[str, Any] = {"match": match, **match.bindings}
    for name, bound in match.bindings.items():
        if isinstance(bound, SSAValue):
            arguments[name] = Value(builder, bound)
    subject, where = f'rewrite "{label}"', match.origin
    try:
        returned = function(builder, **{name: arguments[name] for name in asked})
    except Exception as error:
        reason = str(error).partition("\n")[0]
        if not isinstance(error, StepwellError):
            reason = f"raised {type(error).__name__}: {reason}"
        raise CompileError(explain(subject, reason, origin=where)) from error
    results = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    for result in results:
        if not isinstance(result, Value) or result.builder is not builder:
            fact, expected = "wrong result", "values of its builder"
            got = type(result).__name__
            raise CompileError(explain(subject, fact, expected=expected, got=got, origin=where))
    return builder.take(), [result.ssa for result in results]


def apply(
    module: Module,
    rules: Sequence[RewritePattern],
    *,
    once: bool = False,
    limit: int | None = None,
    decisions: list[Decision] | None = None,
) -> Module:
    """The module after rewriting; the given one is not changed.

    Args:
        module: the module to rewrite.
        rules: rules, and xDSL's own patterns; the first that matches is applied.
        once: visit each operator once, instead of until nothing matches.
        limit: the maximum number of applications of a rule; by default ten times the number of
            operators.
        decisions: a list that receives the decisions, with nodes and reasons.

    Raises:
        CompileError: if a rule does not terminate, fails, or returns values of other types than
            those that it replaces.
    """
    return _changed(
        module,
        decisions,
        lambda ctx, op: rewrite_module(ctx, op, rules, once=once, limit=limit),
    )


def group(
    module: Module, table: Mapping[str, Pattern], *, decisions: list[Decision] | None = None
) -> Module:
    """The module with each match of a pattern as a primitive function, which becomes one kernel.

    Args:
        module: the module to group; it is not changed.
        table: patterns by the names of their functions, in order of priority.
        decisions: a list that receives the decisions, with nodes and reasons.

    Raises:
        CompileError: if a name is invalid, or a matched operator cannot be in a kernel.
    """
    return _changed(module, decisions, lambda ctx, op: group_module(ctx, op, table))


def _changed(
    module: Module,
    decisions: list[Decision] | None,
    change: Callable[[Context, ModuleOp], object],
) -> Module:
    """A changed copy of a module, after verification."""
    if not isinstance(module, Module):
        got = type(module).__name__
        hint = "in a pass, use rewrite_module or group_module"
        raise CompileError(
            explain("patterns", "not a module", expected="stepwell.Module", got=got, hint=hint)
        )
    work = module.clone()
    ctx = make_context(work.weights)
    change(ctx, work.op)
    try:
        work.verify()
    except CompileError as error:
        raise CompileError(f"patterns: the result does not verify: {error}") from error
    if decisions is not None:
        decisions += ctx.decisions
    return work
