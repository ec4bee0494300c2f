"""`Pattern`: a Python function over operators, made searchable."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation, SSAValue

from ..errors import CompileError, StepwellError, explain
from ..ir.module import Module
from ..ir.provenance import names
from .matching import Matcher, MatchFailure, described, operations
from .terms import Constrained, OneOf, Operator, Result, Term, Wildcard, is_constant, subterms


@dataclass(frozen=True, repr=False)
class Match:
    """A place where a pattern matches.

    ``match["x"]`` is the `SSAValue` or `Operation` bound to the parameter `x`, or to the
    operator named "x"; None if the chosen alternative, or an absent operand, does not use it.
    """

    pattern: Pattern
    ops: tuple[Operation, ...]
    """The matched operators, producers first."""
    roots: tuple[SSAValue, ...]
    """The values of the results of the pattern."""
    bindings: Mapping[str, SSAValue | Operation | None]

    def __repr__(self) -> str:
        return f"<match of {self.pattern.name}: {self.origin}>"

    def __getitem__(self, name: str) -> Any:
        return self.bindings[name]

    @property
    def origin(self) -> str:
        """The names of the matched nodes of the model, or else of the operators."""
        found = list(dict.fromkeys(name for op in self.ops for name in names(op)))
        if found:
            return f"node{'s' if len(found) > 1 else ''} " + ", ".join(f'"{n}"' for n in found)
        return ", ".join(op.name for op in self.ops)


class Pattern:
    """The operators that a function describes; made by the decorator `pattern`.

    Args:
        function: takes the wildcards, calls operators, returns one result or several.
        when: a predicate of whole matches.

    Raises:
        CompileError: if the function does not describe a pattern.
    """

    def __init__(
        self, function: Callable[..., Any], when: Callable[[Match], bool] | None = None
    ) -> None:
        self.name = getattr(function, "__name__", "pattern")
        self.__doc__ = function.__doc__
        self.when = when
        parameters = self._parameters(function)
        returned = self._guarded(function, *parameters.values())
        self.roots: tuple[Term, ...] = (
            tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)
        )
        self._check_roots()
        self.terms = list(dict.fromkeys(t for root in self.roots for t in subterms(root)))
        unused = [name for name, term in parameters.items() if term not in self.terms]
        if unused:
            raise self.error(f'wildcard "{unused[0]}" is not used')
        self.named = self._named(parameters)

    def _parameters(self, function: Callable[..., Any]) -> dict[str, Term]:
        """A term for each parameter: its annotation or default value, or a wildcard."""
        try:
            signature = inspect.signature(function, eval_str=True)
        except (NameError, TypeError, ValueError, SyntaxError, AttributeError) as error:
            raise self.error(f"its annotations cannot be evaluated: {error}") from error
        result: dict[str, Term] = {}
        for name, parameter in signature.parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise self.error(f'parameter "{name}" stands for several values')
            stated = [t for t in (parameter.annotation, parameter.default) if isinstance(t, Term)]
            # Parameters annotated with one constraint are still different values.
            result[name] = dataclasses.replace(stated[0]) if stated else Wildcard()  # type: ignore[type-var]
        return result

    def _guarded(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a user's function; whatever it raises becomes an error of the pattern."""
        try:
            return function(*arguments)
        except Exception as error:
            reason = str(error).partition("\n")[0].removeprefix("pattern: ")
            if isinstance(error, StepwellError):
                raise self.error(reason) from error
            raise self.error(f"raised {type(error).__name__}: {reason}") from error

    def _check_roots(self) -> None:
        known: set[Term] = set()
        if not self.roots:
            raise self.error("returns nothing", expected="1 operator or more")
        for root in self.roots:
            if not isinstance(root, Term) or not _is_operator(root):
                kind = "a wildcard" if isinstance(root, Term) else type(root).__name__
                raise self.error("wrong result", expected="an operator", got=kind)
            parts = set(subterms(root))
            if known and known.isdisjoint(parts):
                raise self.error("its results have nothing in common")
            known |= parts

    def _named(self, parameters: Mapping[str, Term]) -> dict[str, Term]:
        result = dict(parameters)
        for term in self.terms:
            name = term.name if isinstance(term, Operator) else None
            if name is not None and result.setdefault(name, term) is not term:
                raise self.error(f'the name "{name}" is used twice')
        return result

    def error(self, fact: str, expected: object = None, got: object = None) -> CompileError:
        """An error that names the pattern."""
        return CompileError(explain(f'pattern "{self.name}"', fact, expected=expected, got=got))

    def __repr__(self) -> str:
        return f"<pattern {self.name}({', '.join(self.named)})>"

    def match(self, op: Operation) -> Match | None:
        """The first match whose first result is a result of `op`, if any."""
        return self._match(op, None)

    def matches(self, target: Module | Operation) -> list[Match]:
        """All matches in a module or an operation, one for each operator; they may overlap."""
        top = target.op if isinstance(target, Module) else target
        return [match for op in top.walk() if (match := self.match(op)) is not None]

    def explain(self, at: Operation | SSAValue | str, module: Module | None = None) -> str:
        """Why the pattern does not match: the mismatch after the most matched terms.

        Equally good alternatives get a line each.

        Args:
            at: the operator or value that is its first result; or, with a module, the name
                of a node of the model.
            module: the module that has the node.

        Raises:
            CompileError: if there is no such node.
        """
        found = [self._explained(op) for op in self._located(at, module)]
        most = max(progress for progress, _ in found)
        return "\n".join(text for progress, text in found if progress == most)

    def _explained(self, op: Operation) -> tuple[float, str]:
        """The largest number of matched terms, and the reason why the rest did not match."""
        failures: list[MatchFailure] = []
        subject, place = f'pattern "{self.name}"', described(op)
        if (match := self._match(op, failures)) is not None:
            return math.inf, f"{subject} matches {place}: {match.origin}"
        most = max(failure.progress for failure in failures)
        reasons = dict.fromkeys(f.reason for f in failures if f.progress == most)
        return most, "\n  ".join([f"{subject} does not match {place}:", *reasons])

    def _located(self, at: Operation | SSAValue | str, module: Module | None) -> list[Operation]:
        if isinstance(at, str):
            walked = module.op.walk() if module is not None else ()
            found = [op for op in walked if op.results and at in names(op)]
            if not found:
                raise self.error(f'there is no node "{at}"', got=None if module else "no module")
            # A layer also names its constants.
            return [op for op in found if not is_constant(op.results[0])] or found
        op = at.owner if isinstance(at, SSAValue) else at
        if not isinstance(op, Operation) or not op.results:
            raise self.error("there is nothing to explain", "the result of an operator", at)
        return [op]

    def _match(self, op: Operation, failures: list[MatchFailure] | None) -> Match | None:
        matcher = Matcher(self.roots, op.parent, failures)
        states = (state for root in op.results for state in matcher.states(root))
        # An error raised by a user's predicate becomes one of the pattern.
        while (found := self._guarded(next, states, None)) is not None:
            state, roots = found
            ops = operations(state, roots)
            bindings = {name: state.get(term) for name, term in self.named.items()}
            match = Match(self, tuple(ops), roots, bindings)
            if self.when is None or self._guarded(self.when, match):
                return match
            if failures is not None:
                reason = explain(described(op), "`when` of the pattern refuses the match")
                failures.append(MatchFailure(len(state) + 1, reason))
        return None


def _is_operator(term: Term) -> bool:
    """Whether a term stands for results of operators only."""
    if isinstance(term, OneOf):
        return all(map(_is_operator, term.alternatives))
    if isinstance(term, Constrained):
        return _is_operator(term.term)
    return isinstance(term, (Operator, Result))
