"""All primitives: the files of `passes/loop/steps`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from ...primitive import DEFINED, Primitive
from .. import steps

for _file in pkgutil.iter_modules(steps.__path__):
    importlib.import_module(f"{steps.__name__}.{_file.name}")

PRIMITIVES: Mapping[str, Primitive] = dict(sorted(DEFINED.items()))
"""The possible steps, by name."""
