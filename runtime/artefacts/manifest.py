"""The versions that the manifest of an artefact states.

A Stepwell reads the files of its own `FORMAT`. It runs machine code that was made for its `ABI`,
and of other code only the IR: that is compiled anew.
"""

from __future__ import annotations

from typing import Any

from ...core.formats import Format

FORMAT = 1
"""The version of the container, and of the keys of the manifest."""

MANIFESTS = Format[dict[str, Any]](FORMAT)
"""Manifests, and their upgrades."""

ABI = 1
"""The version of what machine code and the run time agree on.

It is that of `dialects/rt/abi.py`, of plans of the call boundary, and of the thread pool.
"""
