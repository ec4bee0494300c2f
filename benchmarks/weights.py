"""Weights for models that are only compiled, or whose time does not depend on them."""

from __future__ import annotations

import numpy as np


class Weights:
    """Random weights, the same in each run."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)

    def array(self, *shape: int) -> np.ndarray:
        return self.random.standard_normal(shape, np.float32)

    def positive(self, *shape: int) -> np.ndarray:
        return self.random.uniform(0.5, 2.0, shape).astype(np.float32)
