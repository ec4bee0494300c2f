"""Random programs that have the left side of a rule: shapes, element types, attributes, operands.

Operands and attributes that a text leaves open are made up from what the operator declares, as
`tests/fuzz` does. Few programs are valid, and in fewer the condition of the rule holds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from xdsl.utils.exceptions import VerifyException

import stepwell as sw
from stepwell.core.patterns.identity import CONSTANTS
from stepwell.dialects.graph.op_builder import graph_operators, parameters_of
from stepwell.dialects.graph.rules import IdentityRule

from ...fuzz.choices import Choices
from ...fuzz.operators import Kind, random_property, signature_of
from .instances import TYPES, families_of, rewrites, special_array

Program = tuple[sw.Module, list[np.ndarray]]


def random_instances(rule: IdentityRule, attempts: int) -> Iterator[Program]:
    """The programs in which a rule applies, of so many that are made, and their inputs."""
    families = list(families_of(rule))
    for attempt in range(attempts):
        choices = Choices(f"{rule.name} {attempt}")
        made = _Instance(rule, choices, *choices.choice(families))
        try:
            module = made.module()
        except (VerifyException, sw.StepwellError, TypeError, ValueError, IndexError):
            continue
        if rewrites(rule, module):
            yield module, made.inputs


class _Instance:
    """One program."""

    def __init__(
        self,
        rule: IdentityRule,
        choices: Choices,
        operators: Mapping[str, Any],
        numbers: Mapping[str, float],
    ) -> None:
        self.rule, self.choices, self.b = rule, choices, sw.Builder()
        self.numbers, self.kinds = numbers, dict(operators)
        self.type = choices.among("f32", "f16", "f32", "i8", "i1", "ui8")
        self.sizes = [choices.among(1, 2, 3, 4, 4) for _ in range(4)]
        self.rank = choices.among(1, 2, 2, 3, 3, 4)
        self.inputs = list[np.ndarray]()
        self.names = dict[str, Any]()

    def module(self) -> sw.Module:
        self.b.output(self._value(self.rule.sides.left, ()))
        return self.b.module()

    def _value(self, expression: ast.expr, kinds: tuple[Kind, ...]) -> Any:
        match expression:
            case ast.NamedExpr(ast.Name(name), value):
                self.names[name] = self._value(value, kinds)
                return self.names[name]
            case ast.Constant(value):
                return value
            case ast.Name(name) if name in self.numbers:
                return self.numbers[name]
            case ast.Name(name):
                if name not in self.names:
                    self.names[name] = self._leaf(kinds, constant=name in CONSTANTS)
                return self.names[name]
            case ast.Starred(ast.Name(name)):
                if name not in self.names:
                    count = self.choices.among(0, 1, 1, 2)
                    self.names[name] = [self._leaf(kinds, False) for _ in range(count)]
                return self.names[name]
            case ast.List(elements):
                return self._several(elements, kinds)
            case ast.Call(ast.Name(name), arguments, keywords):
                return self._call(name, arguments, keywords)
        raise TypeError(ast.unparse(expression))

    def _several(self, elements: list[ast.expr], kinds: tuple[Kind, ...]) -> list[Any]:
        found = list[Any]()
        for element in elements:
            made = self._value(element, kinds)
            found += made if isinstance(element, ast.Starred) else [made]
        return found

    def _call(self, name: str, arguments: list[ast.expr], keywords: list[ast.keyword]) -> Any:
        operator = graph_operators().get(name) or self._chosen(name)
        signature, operands = signature_of(operator), dict[str, Any]()
        kinds = {operand.name: operand.kinds for operand in signature.operands}
        known = parameters_of(operator)
        if name in self.rule.families:
            every = next(iter(kinds.values()), ())
            values = self._several(arguments, every)
            operands = dict(zip(known.operands, values, strict=False))
            if known.variadic:
                operands = {next(iter(known.variadic)): values}
            bound = {str(keyword.arg): keyword.value for keyword in keywords}
        else:
            given = {str(keyword.arg): keyword.value for keyword in keywords}
            bound = dict(known.signature.bind_partial(*arguments, **given).arguments)
            for operand in [name for name in known.operands if name in bound]:
                own = bound.pop(operand)
                made = self._value(own, kinds[operand])
                if isinstance(own, ast.Starred):
                    made = made[0] if made else None
                operands[operand] = made
        attributes = {
            one: self._attribute(bound.get(one), annotation, texts)
            for one, annotation, texts in signature.others
        }
        return self.b.apply(operator, **operands, **attributes)

    def _chosen(self, name: str) -> Any:
        """An operator of a family, the same one wherever the name occurs."""
        if name not in self.kinds:
            family = self.rule.families[name]
            kind, trait = family if isinstance(family, tuple) else (family, None)
            known = [op for op in graph_operators().values() if issubclass(op, kind)]
            fitting = [op for op in known if trait is None or op.has_trait(trait)]
            self.kinds[name] = self.choices.choice(fitting)
        return self.kinds[name]

    def _attribute(self, given: ast.expr | None, annotation: str, texts: Any) -> Any:
        if isinstance(given, ast.Name) and given.id in self.names:
            return self.names[given.id]
        if given is not None and not isinstance(given, ast.Name):
            return ast.literal_eval(given)
        length = self.choices.among(self.rank, self.rank, self.rank, max(self.rank - 2, 0))
        sizes = self.sizes[: self.rank] or [1]
        made = random_property(self.choices, annotation, texts, self.rank, length, sizes)
        if isinstance(given, ast.Name):
            self.names[given.id] = made
        return made

    def _leaf(self, kinds: tuple[Kind, ...], constant: bool) -> Any:
        """An operand that may be of some kinds: an input, a constant or a constant matrix."""
        fitting = [k for k in kinds if str(k.element) == self.type] or list(kinds)
        if fitting and all(kind.sparse for kind in fitting):
            self.sizes, self.rank, self.type = [4] * 4, self.choices.among(1, 2), "f32"
            kept = [[self.choices.chance(0.4) for _ in range(4)] for _ in range(4)]
            values = special_array(self.choices, "f32", [4, 4])
            return self.b.constant(sp.csr_array(np.where(kept, values, 0)))
        element = str(fitting[0].element) if fitting else self.type
        ranks = sorted({kind.rank for kind in fitting}) or [self.rank]
        rank = self.rank
        if rank not in ranks or self.choices.chance(0.1):
            rank = self.choices.choice(ranks)
        shape = [1 if self.choices.chance(0.1) else n for n in self.sizes[:rank]]
        if constant and self.choices.chance(0.6):
            shape = []
        element = element if element in TYPES else "f32"
        array = special_array(self.choices, element, shape)
        if constant:
            return self.b.constant(array)
        self.inputs.append(array)
        return self.b.input(f"x{len(self.inputs)}", array.shape, element)
