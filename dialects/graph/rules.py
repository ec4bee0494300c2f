"""Rewrite rules of operators, each an identity that is read as it is written.

    @rule("x * -1 == -x", EXACT)
    def multiply_minus_one(x: SSAValue) -> bool:
        return not is_constant(x)

The identity says what is replaced by what, and its exactness what may differ: see
`core/patterns/identity.py` and `core/exactness.py`. The names `c` and `d` are constants, a number
is a constant of that number everywhere, and ``(t := x * c)`` names the value of an operator.
Operands of commutative operators match in either order, those of a family only if all in it are
commutative. Operands that are not written must be absent; attributes may be anything.

The function is the condition of the rule. Its parameters are names of the identity, `op`, which is
the operator that is replaced, and `weights`, the store of large constants. It returns whether the
rule holds, or further names of the right side with their values. A function without parameters
has no condition. One that takes the builder `b` returns the replacement, of which the right side
is then a description; None if the rule does not hold.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import numpy as np
from xdsl.builder import Builder
from xdsl.ir import Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint
from xdsl.traits import Commutative, OpTrait

from ...core.exactness import Exactness
from ...core.patterns.compiled import Find, compiled
from ...core.patterns.identity import CONSTANTS, Identity, side
from ...core.patterns.terms import Captured, Constraint, Operator, Term, Wildcard
from ...core.weights import WeightStore
from .interfaces import GraphOp
from .op_builder import InsertingBuilder, graph_operators, parameters_of

Condition = Callable[..., "bool | Mapping[str, object] | SSAValue | None"]
Family = type[Operation] | tuple[type[Operation], type[OpTrait]]
"""The operators that a name stands for: those of a class, which may need a trait."""


def rule(
    text: str, exactness: Exactness, **families: Family
) -> Callable[[Condition], IdentityRule]:
    """Make a rule of the function that is its condition, and gives it its name.

    Args:
        text: the identity.
        exactness: what may differ between its two sides.
        families: the operators that names stand for in the place of a function.

    Raises:
        CompileError: if the text is no identity.
    """
    return lambda condition: IdentityRule(Identity(text), exactness, condition, families)


class IdentityRule(RewritePattern):
    """Replaces the left side of an identity by its right side, of the same type."""

    def __init__(
        self,
        identity: Identity,
        exactness: Exactness,
        condition: Condition,
        families: Mapping[str, Family],
    ) -> None:
        self.sides, self.exactness = identity, exactness
        self.identity = identity.text
        self.name = "".join(word.capitalize() for word in condition.__name__.split("_"))
        """As classes of rules are called: `MaxIsClip` is the rule "max is clip"."""
        self.condition = condition
        self.families = families
        self.numbers: Mapping[str, float] = {}
        self.weights = WeightStore()
        self._asked = tuple(inspect.signature(condition).parameters)
        self._finders: dict[type[Operation], _Finder | None] = {}

    def of(self, **numbers: float) -> IdentityRule:
        """The rule in which names stand for these numbers."""
        new = copy.copy(self)
        new.numbers, new._finders = numbers, {}
        return new

    def with_weights(self, weights: WeightStore) -> IdentityRule:
        """The rule with constants in this store."""
        new = copy.copy(self)
        new.weights = weights
        return new

    @property
    def roots(self) -> tuple[type[Operation], ...]:
        """The classes of operators that it may replace."""
        family = self.families.get(self.sides.root)
        if family is None:
            return (graph_operators()[self.sides.root],)
        return (family[0],) if isinstance(family, tuple) else (family,)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        kind = type(op)
        try:
            finder = self._finders[kind]
        except KeyError:
            finder = self._finders[kind] = self.finder_of(kind)
        if finder is not None:
            finder.find(op, self._accept, rewriter)

    def finder_of(self, kind: type[Operation]) -> _Finder | None:
        if not issubclass(kind, self.roots):
            return None
        root = self.sides.root
        family = self.families.get(root)
        if isinstance(family, tuple) and not kind.has_trait(family[1]):
            return None
        operators = {} if family is None else {root: cast(type[GraphOp], kind)}
        orderless = isinstance(family, tuple) and issubclass(family[1], Commutative)
        return _Finder(self.sides, operators, self.numbers, in_order=not orderless)

    def _accept(
        self,
        rewriter: PatternRewriter,
        op: GraphOp,
        values: tuple[Any, ...],
        below: tuple[Operation, ...],
    ) -> bool:
        """Replace a match, unless the condition refuses it or the type would be another one."""
        finder = cast(_Finder, self._finders[type(op)])
        names = dict(zip(finder.names, values, strict=True))
        builder = _Aside((*below, op)) if "b" in self._asked else None
        result: object = True
        if self._asked:
            known = {**names, "op": op, "weights": self.weights, "b": builder}
            result = self.condition(*[known[name] for name in self._asked])
        if not isinstance(result, SSAValue):
            if not result:
                return False
            builder = builder or _Aside((*below, op))
            if isinstance(result, Mapping):
                for name, value in result.items():
                    is_array = isinstance(value, np.ndarray)
                    names[name] = builder.constant(value) if is_array else value
            result = finder.right(builder, **names)
        new = [] if builder is None else builder.taken()
        if result.type != op.results[0].type:
            for made in reversed(new):
                made.erase()
            return False
        rewriter.replace(op, new, (result,))
        return True


class _Aside(InsertingBuilder):
    """Builds what is no part of the module until its type is known."""

    def __init__(self, sources: Iterable[Operation]) -> None:
        self._block = Block()
        super().__init__(Builder(InsertPoint.at_end(self._block)), sources)

    def taken(self) -> list[Operation]:
        """The operators, which then are in no block."""
        made = list(self._block.ops)
        for op in made:
            op.detach()
        return made


class _Finder:
    """An identity for one class of operators at its root."""

    def __init__(
        self,
        identity: Identity,
        operators: Mapping[str, type[GraphOp]],
        numbers: Mapping[str, float],
        in_order: bool,
    ) -> None:
        self._identity, self._operators, self._numbers = identity, operators, numbers
        self._in_order = in_order
        self._named: dict[str, Term | Captured] = {}
        self.term = cast(Operator, self._term(identity.left))
        self.names = tuple(self._named)
        self.find: Find = compiled(self.term, self._named)
        self._right: Callable[..., SSAValue] | None = None

    def right(self, builder: InsertingBuilder, **names: object) -> SSAValue:
        """Build the replacement."""
        if self._right is None:
            operators = {**graph_operators(), **self._operators}
            self._right = side(self._identity.right, operators, self._numbers)
        return self._right(builder, **names)

    def _term(self, expression: ast.expr) -> Term:
        match expression:
            case ast.NamedExpr(ast.Name(name), value):
                return self._named.setdefault(name, self._term(value))  # type: ignore[return-value]
            case ast.Constant(value):
                return Wildcard(Constraint(number=cast(float, value)))
            case ast.Name(name) if name in self._numbers:
                return Wildcard(Constraint(number=self._numbers[name]))
            case ast.Name(name):
                constraint = Constraint(constant=True if name in CONSTANTS else None)
                made = Wildcard(constraint, name)
                return self._named.setdefault(name, made)  # type: ignore[return-value]
            case ast.Call(ast.Name(mnemonic), arguments, keywords):
                return self._operator(mnemonic, arguments, keywords)
        raise self._identity.error(f"{ast.unparse(expression)} has no meaning")

    def _operator(
        self, mnemonic: str, arguments: list[ast.expr], keywords: list[ast.keyword]
    ) -> Operator:
        kind = self._operators.get(mnemonic) or graph_operators().get(mnemonic)
        if kind is None:
            raise self._identity.error(f'no operator "{mnemonic}"')
        parameters = parameters_of(kind)
        given = {str(keyword.arg): keyword.value for keyword in keywords}
        bound = parameters.signature.bind_partial(*arguments, **given).arguments
        operands = tuple(
            self._term(bound.pop(name)) for name in parameters.operands if name in bound
        )
        attributes = {name: self._attribute(value) for name, value in bound.items()}
        in_order = self._in_order and mnemonic in self._operators
        return Operator((kind,), operands, attributes, in_order=in_order)

    def _attribute(self, expression: ast.expr) -> object:
        if isinstance(expression, ast.Name):
            return self._named.setdefault(expression.id, Captured())
        return ast.literal_eval(expression)
