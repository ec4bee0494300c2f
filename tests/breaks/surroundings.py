"""Mistakes around the compiler: the call, importers, the interpreter, files, distribution."""

from __future__ import annotations

from .mistakes import Break

SURROUNDINGS: tuple[Break, ...] = ()
