"""torch, an optional dependency that is loaded when a model of it is read."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from ...core.errors import ImportModelError, explain


@functools.cache
def library() -> Any:
    """The package torch, with `torch.export`.

    Raises:
        ImportModelError: if it is not installed, or has no decompositions to core ATen.
    """
    hint = "pip install 'stepwell[torch]'"
    try:
        torch = importlib.import_module("torch")
        export = importlib.import_module("torch.export")
        importlib.import_module("torch.utils._pytree")
    except ImportError as error:
        fact = "torch is not installed"
        raise ImportModelError(explain("from_torch", fact, hint=hint)) from error
    if not hasattr(export, "default_decompositions"):
        fact = "torch is too old"
        raise ImportModelError(
            explain("from_torch", fact, expected="2.6 or newer", got=torch.__version__, hint=hint)
        )
    return torch
