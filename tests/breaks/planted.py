"""The mistakes that are planted."""

from __future__ import annotations

from .compiler import COMPILER
from .surroundings import SURROUNDINGS

BREAKS = (*COMPILER, *SURROUNDINGS)
