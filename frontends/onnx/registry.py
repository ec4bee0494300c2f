"""Conversions by ONNX operator: one small function each, with its first opset.

    @converts("Softmax", since=13)
    def softmax(node: Node) -> Value: ...

The files of the folder `ops` are imported when a model is first read. Other packages
register operators of their own domains, or better conversions of ONNX's, with the same decorator.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ...core.plugins import load_importers
from . import ops

if TYPE_CHECKING:
    import numpy as np

    from ..importing.values import Value
    from .nodes import Node

_T = TypeVar("_T")

Conversion = Callable[["Node"], "Value | Sequence[Value | None]"]
_Conversion = TypeVar("_Conversion", bound=Conversion)
Evaluation = Callable[["Node"], "np.ndarray | Value | None"]

_CONVERSIONS: dict[tuple[str, str], dict[int, Converter]] = {}
_EVALUATIONS: dict[tuple[str, str], dict[int, Evaluation]] = {}


@dataclass(frozen=True)
class Converter:
    """A registered conversion, and the attribute values that it requires."""

    convert: Conversion
    only: Mapping[str, int | str]


def converts(
    operator: str, *, since: int, domain: str = "", only: Mapping[str, int | str] | None = None
) -> Callable[[_Conversion], _Conversion]:
    """Register the conversion of `operator` from opset `since` on, to the next registered one.

    Args:
        operator: the ONNX operator.
        since: the first opset version of the conversion.
        domain: the operator's domain; ONNX's own is "".
        only: required values of attributes, which the conversion need not read; a node with another
            value is not supported.
    """

    def register(conversion: _Conversion) -> _Conversion:
        converter = Converter(conversion, only or {})
        _CONVERSIONS.setdefault((domain, operator), {})[since] = converter
        return conversion

    return register


def evaluates(operator: str, *, since: int, domain: str = "") -> Callable[[Evaluation], Evaluation]:
    """Register the evaluation of `operator` at import, for known operands.

    Where the function returns None, the conversion is used, and those of its operators whose
    operands are numbers are computed at import by their references.
    """

    def register(evaluation: Evaluation) -> Evaluation:
        _EVALUATIONS.setdefault((domain, operator), {})[since] = evaluation
        return evaluation

    return register


@functools.cache
def load_conversions() -> None:
    """Import the files that register conversions."""
    for file in sorted(file.name for file in pkgutil.iter_modules(ops.__path__)):
        importlib.import_module(f"{ops.__name__}.{file}")
    load_importers("onnx")


def converter(domain: str, operator: str, opset: int) -> Converter | None:
    """The conversion of an operator in an opset, or None."""
    return _newest(_CONVERSIONS.get((domain, operator), {}), opset)


def evaluation(domain: str, operator: str, opset: int) -> Evaluation | None:
    """The evaluation of an operator in an opset, or None."""
    return _newest(_EVALUATIONS.get((domain, operator), {}), opset)


def is_evaluated(domain: str, operator: str) -> bool:
    """Whether an operator has an evaluation in some opset."""
    return (domain, operator) in _EVALUATIONS


def _newest(versions: dict[int, _T], opset: int) -> _T | None:
    usable = [since for since in versions if since <= opset]
    return versions[max(usable)] if usable else None


def supported(domain: str = "", opset: int | None = None) -> list[str]:
    """The operators of a domain that can be converted (in an opset, if given), sorted."""
    return sorted(
        operator
        for (known, operator), versions in _CONVERSIONS.items()
        if known == domain and (opset is None or min(versions) <= opset)
    )


def forms(operator: str, domain: str = "") -> list[int]:
    """The opsets from which on an operator has another conversion, sorted."""
    return sorted(_CONVERSIONS.get((domain, operator), {}))


def registering_modules() -> set[str]:
    """The names of the Python modules whose functions are registered so far."""
    conversions = [known.convert for found in _CONVERSIONS.values() for known in found.values()]
    evaluations = [known for found in _EVALUATIONS.values() for known in found.values()]
    return {getattr(known, "__module__", "") for known in (*conversions, *evaluations)}
