"""Rewrite rules of operators, each an identity that is read as it is written.

    @rule("x * -1 == -x", EXACT)
    def multiply_minus_one(x: SSAValue) -> bool:
        return not is_constant(x)

The identity says what is replaced by what, and its exactness what may differ: see
`core/patterns/identity.py` and `core/pipelines/exactness.py`. The names `c` and `d` are constants,
a number is a constant of that number everywhere, and ``(t := x * c)`` names the value of an
operator. Operands of commutative operators match in either order, those of a family only if all in
it are commutative. Operands that are not written must be absent; attributes may be anything.
``dense(x, w, *v)`` matches with and without a bias, and ``concat([*before, x, *after])`` each
operand of a list: such a name is a tuple of values. A name in the place of an operator stands for
the operators of a class, perhaps with a trait; on the right side it is the one that was found, on
other operands. ``add(x, *v)`` is x where v is empty.

The function is the condition of the rule. Its parameters are names of the identity, `op`, which is
the operator that is replaced, `weights`, the store of large constants, and what else a pass gives
the rule. It returns whether the rule holds, or further names of the right side with their values. A
function without parameters has no condition. One that takes the builder `b` may build such values,
or returns the replacement, of which the right side is then a description; None if the rule does not
hold. An operator that was found and takes no operands of other types makes the rule not hold.

Operators of the right side have the names of those that they stand for: of the one on the left of
the same class, if there is one such; else of the innermost ones above all that they are computed
from. The result also has the names of the root, and of those that nothing else stands for: in
``dense(x * n, w) == dense(x, w) * n`` it has those of both.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import UnionType
from typing import Any, TypeVar, cast, get_args

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import Commutative, OpTrait
from xdsl.utils.exceptions import VerifyException

from ...core.ir.provenance import fuse
from ...core.ir.weights import WeightStore
from ...core.patterns.compiled import Find, compiled
from ...core.patterns.identity import CONSTANTS, Identity, side
from ...core.patterns.terms import Captured, Constraint, Operator, Rest, Term, Wildcard
from ...core.pipelines.exactness import Exactness
from .interfaces import GraphOp, compatible, set_result_types
from .op_builder import InsertingBuilder, graph_operators, parameters_of

Condition = Callable[..., "bool | Mapping[str, object] | SSAValue | None"]
Family = type[Operation] | UnionType | tuple[type[Operation], type[OpTrait]]
"""The operators that a name stands for: those of classes, or of a class that have a trait."""
TermT = TypeVar("TermT", bound=Term)


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
        self.given: Mapping[str, object] = {"weights": WeightStore()}
        """What a pass gives the condition, by the names of its parameters."""
        self._asked = tuple(inspect.signature(condition).parameters)
        self._finders: dict[type[Operation], _Finder | None] = {}

    def of(self, **numbers: float) -> IdentityRule:
        """The rule in which names stand for these numbers."""
        new = copy.copy(self)
        new.numbers, new._finders = numbers, {}
        return new

    def with_given(self, **given: object) -> IdentityRule:
        """The rule whose condition may ask for these values, by the names of its parameters."""
        new = copy.copy(self)
        new.given = given
        return new

    @cached_property
    def roots(self) -> tuple[type[Operation], ...]:
        """The classes of operators that it may replace."""
        family = self.families.get(self.sides.root)
        return _classes(graph_operators()[self.sides.root] if family is None else family)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        self._find(op, self._accept, rewriter)

    def matches(self, op: Operation) -> bool:
        """Whether its left side is found, whatever its condition says."""
        return self._find(op, lambda *_: True, None)

    def _find(self, op: Operation, accept: Callable[..., bool], context: object) -> bool:
        kind = type(op)
        try:
            finder = self._finders[kind]
        except KeyError:
            finder = self._finders[kind] = self.finder_of(kind)
        return finder is not None and finder.find(op, accept, context)

    def finder_of(self, kind: type[Operation]) -> _Finder | None:
        """What finds the left side below operators of a class; None if it is not its root."""
        family = self.families.get(self.sides.root)
        if not issubclass(kind, self.roots):
            return None
        if isinstance(family, tuple) and not kind.has_trait(family[1]):
            return None
        return _Finder(self.sides, kind, self.families, self.numbers)

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
        for name in self.families.keys() & names.keys():
            names[name] = names[name].owner
        names |= {"op": op, **self.given}
        weights = cast(WeightStore, names["weights"]) if "weights" in self._asked else None
        builder = _Aside(weights) if "b" in self._asked else None
        result: object = True
        if self._asked:
            known = {**names, "b": builder}
            result = self.condition(*[known[name] for name in self._asked])
        if not isinstance(result, SSAValue) and result:
            builder = builder or _Aside(weights)
            if isinstance(result, Mapping):
                for name, value in result.items():
                    is_array = isinstance(value, np.ndarray)
                    names[name] = builder.constant(value) if is_array else value
            names[self.sides.root] = op
            result = self._right(finder, builder, names)
        new = [] if builder is None else builder.taken()
        wanted = op.results[0].type
        if isinstance(result, SSAValue) and result.owner in new and _refines(wanted, result.type):
            result = Rewriter.replace_value_with_new_type(result, wanted)
        if not isinstance(result, SSAValue) or result.type != wanted:
            for made in reversed(new):
                made.erase()
            return False
        _locate(new, (*below, op))
        rewriter.replace(op, new, (result,))
        return True

    def _right(self, finder: _Finder, builder: _Aside, names: dict[str, object]) -> SSAValue | None:
        """The replacement; None if an operator that was found takes no such operands."""
        try:
            return finder.right(builder, **names)
        except VerifyException:
            if not self.families:
                raise
            return None


def on_operands(op: GraphOp, operands: Sequence[SSAValue]) -> GraphOp:
    """The same operator on other operands.

    Raises:
        VerifyException: if it takes none of their types.
    """
    types = [result.type for result in op.results]
    copy = type(op).create(operands=operands, result_types=types, properties=dict(op.properties))
    try:
        set_result_types(copy, copy.infer_types())
        copy.verify()
    except VerifyException:
        copy.erase()
        raise
    return copy


def _locate(made: Sequence[Operation], matched: Sequence[Operation]) -> None:
    """Give operators, of which the last one makes the result, the locations of what they stand for.

    Args:
        made: the operators of a replacement, producers first.
        matched: the operators that were found, producers first.
    """
    below: dict[Operation | Block, set[SSAValue]] = {}
    for op in matched:
        below[op] = {*op.operands}.union(*(below.get(v.owner, ()) for v in op.operands))
    read: dict[Operation | Block, set[SSAValue]] = {}
    stands: dict[Operation, list[Operation]] = {}
    for op in made:
        read[op] = set[SSAValue]().union(*(read.get(v.owner, {v}) for v in op.operands))
        same = [one for one in matched if type(one) is type(op)]
        above = [one for one in matched if read[op] and read[op] <= below[one]]
        inner = [one for one in above if below[one].isdisjoint(r for o in above for r in o.results)]
        stands[op] = same if len(same) == 1 else inner or [matched[-1]]
    for op in made[-1:]:
        named = {one for own in stands.values() for one in own} - {matched[-1]}
        stands[op] += [one for one in matched if one not in named]
    for op, own in stands.items():
        op.location = fuse(one for one in matched if one in own)


def _refines(type: Attribute, other: Attribute) -> bool:
    """Whether a type of tensors differs from another one in that it tells more sizes."""
    if type == other or not isinstance(type, TensorType) or not isinstance(other, TensorType):
        return False
    pairs = zip(type.get_shape(), other.get_shape(), strict=False)
    return compatible(type, other) and all(size in (own, DYNAMIC_INDEX) for own, size in pairs)


def _classes(family: Family) -> tuple[type[Operation], ...]:
    """The classes that a family has the operators of."""
    kind = family[0] if isinstance(family, tuple) else family
    return get_args(kind) or (cast("type[Operation]", kind),)


class _Aside(InsertingBuilder):
    """Builds what is no part of the module until its type is known."""

    def __init__(self, weights: WeightStore | None) -> None:
        self._block = Block()
        super().__init__(Builder(InsertPoint.at_end(self._block)), (), weights)

    def apply(self, operator: Any, *args: Any, **kwargs: Any) -> Any:
        """Add an operator, or one that was found on other operands; a sum of one value is it."""
        if isinstance(operator, GraphOp):
            return self.insert(on_operands(operator, args))
        if operator is graph_operators()["add"] and len(args) == 1:
            return args[0]
        return super().apply(operator, *args, **kwargs)

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
        root: type[Operation],
        families: Mapping[str, Family],
        numbers: Mapping[str, float],
    ) -> None:
        self._identity, self._root = identity, root
        self._families, self._numbers = families, numbers
        self._named: dict[str, Any] = {}
        self.term = cast(Operator, self._term(identity.left))
        self.names = tuple(self._named)
        self.find: Find = compiled(self.term, self._named)
        self._right: Callable[..., SSAValue] | None = None

    def right(self, builder: InsertingBuilder, **names: object) -> SSAValue:
        """Build the replacement."""
        if self._right is None:
            known = {k: v for k, v in graph_operators().items() if k not in self._families}
            self._right = side(self._identity.right, known, self._numbers)
        return self._right(builder, **names)

    def _term(self, expression: ast.expr) -> Term:
        match expression:
            case ast.NamedExpr(ast.Name(name), value):
                return self._name(name, self._term(value))
            case ast.Starred(ast.Name(name)):
                return self._named.setdefault(name, Rest())
            case ast.Constant(value):
                return Wildcard(Constraint(number=cast(float, value)))
            case ast.Name(name) if name in self._numbers:
                return Wildcard(Constraint(number=self._numbers[name]))
            case ast.Name(name):
                constraint = Constraint(constant=True if name in CONSTANTS else None)
                made = Wildcard(constraint, name)
                return self._named.setdefault(name, made)
            case ast.Call(ast.Name(name), arguments, keywords) if name in self._families:
                return self._any_of(name, arguments, keywords)
            case ast.Call(ast.Name(mnemonic), arguments, keywords):
                return self._operator(mnemonic, arguments, keywords)
        raise self._identity.error(f"{ast.unparse(expression)} has no meaning")

    def _name(self, name: str, term: TermT) -> TermT:
        if self._named.setdefault(name, term) is not term:
            raise self._identity.error(f"{name} is read before it is found, or found twice")
        return term

    def _any_of(
        self, name: str, arguments: list[ast.expr], keywords: list[ast.keyword]
    ) -> Operator:
        """An operator of a family, whose operands are written one by one."""
        family, is_root = self._families[name], name == self._identity.root
        trait = family[1] if isinstance(family, tuple) else None
        orderless = trait is not None and issubclass(trait, Commutative)
        made = Operator(
            (self._root,) if is_root else _classes(family),
            tuple(self._term(argument) for argument in arguments),
            {str(keyword.arg): self._attribute(keyword.value) for keyword in keywords},
            in_order=not orderless,
            trait=None if is_root else trait,
        )
        return made if is_root else self._name(name, made)

    def _operator(
        self, mnemonic: str, arguments: list[ast.expr], keywords: list[ast.keyword]
    ) -> Operator:
        kind = graph_operators().get(mnemonic)
        if kind is None:
            raise self._identity.error(f'no operator "{mnemonic}"')
        parameters = parameters_of(kind)
        if len(parameters.optional | parameters.variadic) > 1:
            fact = f"{kind.name} has several optional operands, or lists of operands"
            raise self._identity.error(fact)
        given = {str(keyword.arg): keyword.value for keyword in keywords}
        bound = parameters.bind_term(arguments, given).arguments
        operands = tuple(
            self._operand(name, bound.pop(name), name in parameters.variadic)
            for name in parameters.operands
            if name in bound
        )
        attributes = {name: self._attribute(value) for name, value in bound.items()}
        return Operator((kind,), operands, attributes)

    def _operand(self, name: str, expression: ast.expr, is_list: bool) -> Term | tuple[Term, ...]:
        if not is_list:
            return self._term(expression)
        if not isinstance(expression, ast.List):
            raise self._identity.error(f"{name} is a list of operands", expected="[x, *y]")
        return tuple(self._term(element) for element in expression.elts)

    def _attribute(self, expression: ast.expr) -> object:
        if isinstance(expression, ast.Name):
            return self._named.setdefault(expression.id, Captured())
        return ast.literal_eval(expression)
