"""A program of types that are stored in a byte, and cannot be computed with."""

from __future__ import annotations

from typing import Any

import numpy as np

import stepwell as sw
from stepwell.core.dtype_names import dtype_named

_NAMES = ("f8E4M3FN", "f8E8M0FNU", "i4", "ui2")


def low_bits() -> tuple[sw.Module, tuple[Any, ...]]:
    """Casts, clips, bits and moves of these types, with inputs."""
    b = sw.Builder("main")
    for name in _NAMES:
        x = b.input(name, ("n", 5), name)
        scaled = b.mul(b.cast(x, "f32"), 1.5)
        b.output(b.concat([x, b.cast(b.clip(scaled, -6.0, 6.0), name)], axis=1))
        b.output(b.bitcast(b.bitcast(scaled, "i32") + 1, "f32"))
    codes = np.arange(20, dtype=np.uint8).reshape(4, 5)
    return b.module(), tuple(codes.view(dtype_named(name)) for name in _NAMES)
