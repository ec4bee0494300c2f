"""The list of rewrite rules: their identities, how exact they are, and where they are used."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import NamedTuple

from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Operation
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import HasCanonicalizationPatternsTrait

from ..core.pipelines.exactness import Exactness
from ..core.registry import own_dialects, own_passes
from ..dialects.graph.rules import IdentityRule

_PACKAGE = __name__.rpartition(".tools.")[0]
_ROOMS = ("dialects", "passes", "conversions")
_OWN_RULES = ("graph", "loop", "rt")


class ListedRule(NamedTuple):
    """A rule: what it is called, what it states, and the passes and operations that have it."""

    name: str
    identities: tuple[str, ...]
    exactness: Exactness
    users: tuple[str, ...]


def list_of_rules() -> str:
    """Every rule, with a line for each identity."""
    lines: list[str] = []
    for rule in listed_rules():
        lines.append(f"{rule.name} ({rule.exactness.value}): {', '.join(rule.users)}")
        lines += [f"  {identity}" for identity in rule.identities]
    return "\n".join(lines)


def listed_rules() -> list[ListedRule]:
    """All rules, by name."""
    canonicalizations = _canonicalizations()
    passes = {name: sys.modules[load().__module__] for name, load in own_passes().items()}
    found: list[ListedRule] = []
    for (module, name), rule in all_rules().items():
        ops = canonicalizations.get(name)
        users = [] if ops is None else [f"canonicalize {', '.join(ops)}"]
        users += [user for user, room in passes.items() if _uses(room, module, rule)]
        stated = tuple(getattr(rule, "identity", "").split("\n"))
        exactness = Exactness.of(rule)
        assert exactness is not None
        found.append(ListedRule(name, stated, exactness, tuple(users)))
    return sorted(found)


def all_rules() -> Mapping[tuple[str, str], object]:
    """The rules of the dialects, passes and conversions, by the names of their module and theirs.

    They are `IdentityRule`, classes below `states`, and functions that legalise.
    """
    found: dict[tuple[str, str], object] = {}
    for module in _modules():
        for value in vars(module).values():
            if isinstance(value, IdentityRule):
                if value.condition.__module__ == module.__name__:
                    found[module.__name__, value.name] = value
            elif getattr(value, "__module__", None) == module.__name__ and isinstance(
                getattr(value, "__dict__", {}).get("identity"), str
            ):
                found[module.__name__, value.__name__] = value
    return found


def _modules() -> Iterator[ModuleType]:
    for room in _ROOMS:
        package = importlib.import_module(f"{_PACKAGE}.{room}")
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(info.name)


def _canonicalizations() -> dict[str, list[str]]:
    """The operations that have each rule, by the name of the rule."""
    found: dict[str, list[str]] = {}
    for dialect in _OWN_RULES:
        for op in own_dialects()[dialect]().operations:
            for pattern in canonicalizations_of(op):
                name = getattr(pattern, "name", type(pattern).__name__)
                found.setdefault(name, []).append(op.name)
    return found


def canonicalizations_of(op: type[Operation]) -> tuple[RewritePattern, ...]:
    """The rules that `canonicalize` applies to an operation."""
    if issubclass(op, HasCanonicalizationPatternsInterface):
        return tuple(op.get_canonicalization_patterns())
    trait = op.get_trait(HasCanonicalizationPatternsTrait)
    return () if trait is None else tuple(trait.get_canonicalization_patterns())


def _uses(room: ModuleType, module: str, rule: object) -> bool:
    """Whether the module of a pass defines a rule, or names it, its module or a part of that."""
    if module.startswith(f"{_PACKAGE}.dialects"):
        return rule in vars(room).values()
    named = {getattr(value, "__module__", None) for value in vars(room).values()}
    named |= {value.__name__ for value in vars(room).values() if isinstance(value, ModuleType)}
    return room.__name__ == module or module in named
