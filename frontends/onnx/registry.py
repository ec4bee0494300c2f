"""Conversions by ONNX operator: one small function each, with its first opset.

    @converts("Softmax", since=13)
    def softmax(node: Node) -> Value: ...

The files `ops_*.py` beside this one are imported when a model is first read. Other packages
register operators of their own domains, or better conversions of ONNX's, with the same decorator.
"""

from __future__ import annotations

import difflib
import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from onnx import defs

from ...core.plugins import load_importers
from ..importing.diagnostics import UnsupportedNodeError

if TYPE_CHECKING:
    from ..importing.values import Value
    from .nodes import Node

_T = TypeVar("_T")

Conversion = Callable[["Node"], "Value | Sequence[Value | None]"]
_Conversion = TypeVar("_Conversion", bound=Conversion)
Evaluation = Callable[["Node"], "np.ndarray | Value | None"]

_CONVERSIONS: dict[tuple[str, str], dict[int, Converter]] = {}
_EVALUATIONS: dict[tuple[str, str], dict[int, Evaluation]] = {}

_CLOSEST = {
    "Gelu": "Erf, Tanh",
}


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
    """Import the files of this folder that register conversions."""
    for path in sorted(Path(__file__).parent.glob("ops_*.py")):
        importlib.import_module(f".{path.stem}", __package__)
    load_importers("onnx")


def converter(domain: str, operator: str, opset: int) -> Converter | None:
    """The conversion of an operator in an opset, or None."""
    return _newest(_CONVERSIONS.get((domain, operator), {}), opset)


def evaluation(domain: str, operator: str, opset: int) -> Evaluation | None:
    """The evaluation of an operator in an opset, or None."""
    return _newest(_EVALUATIONS.get((domain, operator), {}), opset)


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


def not_supported(domain: str, operator: str, opset: int) -> UnsupportedNodeError:
    """The error for an operator without a conversion: the reason, and the closest supported one."""
    known = supported(opset=None if domain else opset)
    near = ", ".join(difflib.get_close_matches(operator, known, n=2)) or None
    return UnsupportedNodeError(_why_not(domain, operator, opset), _CLOSEST.get(operator, near))


def schema_of(domain: str, operator: str, opset: int) -> defs.OpSchema | None:
    """ONNX's own declaration of an operator; None if it has none.

    Raises:
        UnsupportedNodeError: if ONNX has the operator only in later opsets.
    """
    if not defs.has(operator, domain):
        return None
    if not defs.has(operator, opset, domain):
        raise not_supported(domain, operator, opset)
    return defs.get_schema(operator, opset, domain)


def _why_not(domain: str, operator: str, opset: int) -> str:
    schemas = [s for s in defs.get_all_schemas_with_history() if s.domain == domain]
    if not schemas and not any(known == domain for known, _ in _CONVERSIONS):
        return f'domain "{domain}" is not supported'
    if not defs.has(operator, domain):
        return f"no such operator in {domain or 'ONNX'}"
    begins = min(schema.since_version for schema in schemas if schema.name == operator)
    if begins > opset:
        return f"the operator begins with opset {begins}"
    if (domain, operator) in _EVALUATIONS:
        return "only supported if all its operands are constants"
    return "no conversion"
