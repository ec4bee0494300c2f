"""Weights of the IR that the constants of a program contain, and are stored as those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr

from ...core.ir.weights import WeightStore
from ...dialects.loop.packing import unpack_array
from ...dialects.program import Constant, constants_in
from ..constants import renewed
from ..lowered import Generated

Place = tuple[int, int]
"""The number of a program in an artefact, and that of one of its constants."""


def places(programs: Sequence[Generated], weights: WeightStore) -> Mapping[str, Place]:
    """Constants of which weights can be had again, bit for bit, by the names of the weights."""
    found: dict[str, Place] = {}
    for number, program in enumerate(programs):
        declared = constants_in(program.interface.packing)
        for slot, (constant, array) in enumerate(zip(declared, program.constants, strict=True)):
            name = constant.weight
            if name in weights and name not in found and _contains(constant, array, weights[name]):
                found[name] = number, slot
    return found


def _contains(constant: Constant, array: np.ndarray, weight: Any) -> bool:
    """Whether a constant was packed and has all bits of a weight."""
    if not isinstance(constant.packing, AffineMapAttr) or not isinstance(weight, np.ndarray):
        return False
    return array.dtype == weight.dtype and _same(unpacked(constant, array, weight.shape), weight)


def unpacked(constant: Constant, array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The weight of a shape that a constant was packed from."""
    assert isinstance(constant.packing, AffineMapAttr)
    return unpack_array(array, constant.packing.data, shape)


def are_renewable(program: Generated, weights: WeightStore) -> bool:
    """Whether the constants of a program are what packing makes of these weights.

    Then other weights can take their place without another compilation.
    """
    declared = constants_in(program.interface.packing)
    made = renewed(declared, program.constants, weights)
    return all(map(_same, made, program.constants))


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays have the same bits."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return np.array_equal(_bits(one), _bits(other))


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
