"""Checking an artefact: its parts, and the results of its examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.boundary.labels import unlabelled
from ...core.boundary.specs import ValueSpec
from ...core.distances import distance
from ...core.dtype_names import is_real
from ...core.errors import MiscompilationError, explain
from ...core.files.reading import amount
from .reading import Artefact

LARGEST_ULP = 4096.0
"""How far results may be from the stored ones: where vectors have another width, so have the parts
of a sum, and rounding errors are magnified by what follows."""


@dataclass(frozen=True)
class Verification:
    """The outcome of a check.

    `bytes` were read and compared with their digests, and `examples` were run; the results of these
    are at most `ulp` units in the last place of the largest element away from the stored ones.
    """

    bytes: int
    examples: int
    ulp: float

    def __str__(self) -> str:
        size = f"{amount(self.bytes)} are as they were written"
        if not self.examples:
            return f"{size}; there are no examples to run"
        give = "1 example gives" if self.examples == 1 else f"{self.examples} examples give"
        return f"{size}, and {give} results within {self.ulp:.3g} ulp"


def verify(
    artefact: Artefact, run: Callable[..., Any], outputs: Sequence[ValueSpec]
) -> Verification:
    """Check an artefact, and a program that was loaded from it, with its outputs.

    Raises:
        ImportModelError: if a part is damaged.
        MiscompilationError: if a result is too far away.
    """
    size = artefact.archive.check()
    examples = artefact.examples()
    worst = 0.0
    for number, (inputs, expected) in enumerate(examples):
        results = run(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        results = unlabelled(outputs, results)
        for result, stored in zip(results, expected, strict=True):
            worst = max(worst, _checked(number, np.asarray(result), stored))
    return Verification(size, len(examples), worst)


def _checked(number: int, result: np.ndarray, stored: np.ndarray) -> float:
    ulp, _ = distance(result, stored)
    if ulp > (LARGEST_ULP if is_real(stored.dtype) else 0):
        fact = f"example {number} has other results than when it was saved"
        expected, got = f"at most {LARGEST_ULP:.0f} ulp", f"{ulp:.3g} ulp"
        raise MiscompilationError(explain("verify", fact, expected=expected, got=got))
    return ulp
