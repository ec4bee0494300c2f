"""A pass as text: its name, its options, and the operations that it is nested in."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec


def pass_text(step: ModulePass) -> str:
    """The text of a pass with the options that are not defaults, for a pipeline."""
    inner: ModulePass = getattr(step, "step", step)
    return anchored(str(hyphenated(inner.spec())), getattr(step, "anchors", ()))


def anchored(text: str, anchors: Sequence[str]) -> str:
    """The text of passes, nested in operations."""
    for anchor in reversed(anchors):
        text = f"{anchor}({text})"
    return text


def hyphenated(spec: ArgSpec) -> ArgSpec:
    """The options as they are listed, ``max-ops``; they are read as ``max_ops``, too."""
    return ArgSpec(spec.name, {name.replace("_", "-"): v for name, v in spec.parameters.items()})
