"""Errors in ONNX models that are invalid: the first one is raised."""

from __future__ import annotations

from ...core.errors import ImportModelError, explain


def broken(
    fact: str,
    *,
    subject: str = "onnx",
    expected: object = None,
    got: object = None,
    origin: str | None = None,
    hint: str | None = None,
) -> ImportModelError:
    """The error for a model that is not valid ONNX."""
    text = explain(subject, fact, expected=expected, got=got, origin=origin, hint=hint)
    return ImportModelError(text)
