"""The versions that the manifest of an artefact states.

A Stepwell reads the files of its own `FORMAT`. It runs machine code that was made for its `ABI`,
and of other code only the IR: that is compiled anew.
"""

from __future__ import annotations

from typing import Any

from ...core.files.formats import Format

FORMAT = 3
"""The version of the container, and of the keys of the manifest."""


def _without_packing(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest of version 1, which does not say how constants are made of weights."""
    for program in manifest["programs"]:
        program["interface"]["packing"] = ""
        program["renewable"] = False
    return manifest


def _without_instructions(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest of version 2, whose target names instructions that follow from its features."""
    for name in ("fma", "half", "scale"):
        del manifest["source"]["recipe"]["target"][name]
    return manifest


MANIFESTS = Format[dict[str, Any]](FORMAT, {1: _without_packing, 2: _without_instructions})
"""Manifests, and their upgrades."""

ABI = 2
"""The version of what machine code and the run time agree on.

It is that of `dialects/rt/abi.py`, of plans of the call boundary, and of the thread pool.
"""
