"""ONNX's own declarations of operators, and why an operator is not supported."""

from __future__ import annotations

import difflib

from onnx import defs

from ..importing.diagnostics import UnsupportedNodeError
from .registry import is_evaluated, supported

_CLOSEST = {
    "Gelu": "Erf, Tanh",
}


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
    if not schemas and not supported(domain):
        return f'domain "{domain}" is not supported'
    if not defs.has(operator, domain):
        return f"no such operator in {domain or 'ONNX'}"
    begins = min(schema.since_version for schema in schemas if schema.name == operator)
    if begins > opset:
        return f"the operator begins with opset {begins}"
    if is_evaluated(domain, operator):
        return "only supported if all its operands are constants"
    return "no conversion"
