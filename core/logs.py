"""Logging under `stepwell.*`; see `docs/logging.md`.

Nothing is printed unless a program configures Python's logging.
"""

from __future__ import annotations

import logging

NAMES = ("compile", "passes", "tuning", "cache", "torch", "distributed")
"""The loggers, below `stepwell`."""

logging.getLogger("stepwell").addHandler(logging.NullHandler())


def logger(name: str) -> logging.Logger:
    """The logger `stepwell.<name>`, one of `NAMES`."""
    assert name in NAMES
    return logging.getLogger(f"stepwell.{name}")
