"""Programs in which a rule applies, made from the text of its identity."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern
from xdsl.utils.exceptions import VerifyException

import stepwell as sw
from stepwell.core.patterns.identity import CONSTANTS, names_in, side
from stepwell.core.registry import make_context
from stepwell.dialects.graph import identities
from stepwell.dialects.graph.nests.recording import Recorder
from stepwell.dialects.graph.op_builder import graph_operators
from stepwell.dialects.graph.plan.uses import Uses
from stepwell.dialects.graph.rules import IdentityRule
from stepwell.tools.rule_list import canonicalizations_of

Build = Callable[..., Any]

TYPES = {"f16": np.float16, "i8": np.int8, "ui8": np.uint8, "i1": np.bool_, "ui32": np.uint32}
TYPES |= {"f32": np.float32, "i32": np.int32, "i64": np.int64}

FLOATS = (2.0, -0.0, 0.0, 0.5, -0.25, 1.5, 3.0, 4.0, 2.0**13, np.inf, -np.inf, np.nan)
INTEGERS = (5, 0, 1, 100, -7, -128, 200)
"""The constants of instances; those that the type has not are left out."""


@dataclasses.dataclass(frozen=True)
class Proof:
    """A program in which a rule applies, and of what types its operands are."""

    build: Build
    operands: tuple[str, ...] = ("f16",)
    moves: bool = False
    """Whether the program only moves elements."""
    constants: tuple[float, ...] = ()
    """Further arguments of the program."""
    shape: tuple[int, ...] = (-1,)
    """The shape of each operand, where a rule is about rounding."""

    def values(self, b: sw.Builder, given: list[Any]) -> list[Any]:
        """The results of the program, from its inputs."""
        made = self.build(b, *given, *self.constants)
        return made if isinstance(made, list) else [made]


def special_array(choices: random.Random, kind: str, shape: Sequence[int]) -> np.ndarray:
    """Random elements of a type, special values among them."""
    floats = kind.startswith("f")
    values = [choices.choice(FLOATS if floats else INTEGERS) for _ in range(prod(shape))]
    with np.errstate(all="ignore"):
        array = np.array(values, np.float64 if floats else np.int64)
        return array.reshape(shape).astype(TYPES[kind])


def number(b: sw.Builder, x: Any, value: float) -> Any:
    """A constant of the type of a value."""
    return b.constant(np.asarray(value).astype(TYPES[str(x.dtype)]))


@dataclasses.dataclass(frozen=True)
class AsStated(RewritePattern):
    """An identity of scalar functions, of those operators that state it."""

    rule: IdentityRule

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        for pattern in canonicalizations_of(type(op)):
            if getattr(pattern, "name", None) == self.rule.name:
                pattern.match_and_rewrite(op, rewriter)


def usable(rule: IdentityRule, module: sw.Module) -> RewritePattern:
    """A rule as it is used in a module."""
    own = rule.condition.__module__ == identities.__name__
    if own:
        return AsStated(rule)
    ctx = make_context(module.weights)
    return rule.with_given(weights=module.weights, uses=Uses(Recorder()), ctx=ctx)


def instances(rule: IdentityRule, types: tuple[str, ...], **attributes: Any) -> Iterator[Proof]:
    """The left side of a rule, for each operator of its family, each type, and each constant.

    Args:
        rule: the rule.
        types: the types of its values.
        attributes: those names of its identity that are attributes.
    """
    left = rule.sides.left
    inside = {name for name in names_in(left) if f"{name} :=" in rule.identity}
    for operators, numbers in families_of(rule):
        fixed = {*inside, *attributes, *operators}
        names = [name for name in names_in(left) if name not in fixed]
        values = [name for name in names if name not in (*CONSTANTS, *numbers)]
        constants = [name for name in names if name in (*CONSTANTS, *numbers)]
        whole = side(left, {**graph_operators(), **operators})

        def build(
            b: sw.Builder,
            *given: Any,
            whole: Build = whole,
            values: list[str] = values,
            constants: list[str] = constants,
        ) -> Any:
            operands = dict(zip(values, given, strict=False))
            rest = zip(constants, given[len(values) :], strict=True)
            chosen = {name: number(b, given[0], value) for name, value in rest}
            return whole(b, **operands, **chosen, **attributes)

        for kind in types:
            known = FLOATS if kind.startswith("f") else INTEGERS
            fitting = [n for n in known if kind.startswith("f") or _holds(kind, n)]
            choices = [[numbers[name]] if name in numbers else fitting for name in constants]
            for several in itertools.product(*choices):
                proof = Proof(build, (kind,) * len(values), constants=several)
                if applies(rule, proof):
                    yield proof


def _holds(kind: str, value: float) -> bool:
    return np.asarray(value).astype(TYPES[kind]) == value


def families_of(rule: IdentityRule) -> Iterator[tuple[Mapping[str, Any], Mapping[str, float]]]:
    """The operators that the root of a rule stands for, and the numbers of other names."""
    root = rule.sides.root
    family = rule.families.get(root)
    if family is None:
        yield {}, rule.numbers
        return
    for kind in graph_operators().values():
        if rule.condition.__module__ == identities.__name__:
            for pattern in canonicalizations_of(kind):
                if isinstance(pattern, IdentityRule) and pattern.name == rule.name:
                    yield {root: kind}, pattern.numbers
        elif isinstance(family, tuple):
            if issubclass(kind, family[0]) and kind.has_trait(family[1]):
                yield {root: kind}, rule.numbers
        elif issubclass(kind, family):
            yield {root: kind}, rule.numbers


def applies(rule: IdentityRule, proof: Proof) -> bool:
    """Whether a program can be built, and a rule matches in it."""
    b = sw.Builder()
    try:
        given = [b.input(f"x{n}", (4, 4), kind) for n, kind in enumerate(proof.operands)]
        for value in proof.values(b, given):
            b.output(value)
        module = b.module()
    except (VerifyException, sw.StepwellError, TypeError):
        return False
    return rewrites(rule, module)


def rewrites(rule: IdentityRule, module: sw.Module) -> bool:
    """Whether a rule applies to a copy of a module."""
    copy = module.clone()
    pattern = usable(rule, copy)
    return PatternRewriteWalker(pattern, apply_recursively=False).rewrite_module(copy.op)
