"""Packing of constants: the same elements, whether as a view, a copy, or padded."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import AffineMapAttr, MemRefType, f32
from xdsl.ir.affine import AffineExpr, AffineMap

import stepwell as sw
from stepwell.dialects.loop.packing import pack_array, unpack_array
from stepwell.dialects.program import Constant
from stepwell.runtime.constants import materialised

Apart = Callable[[Callable[[], object]], str]

MAPS: dict[str, tuple[Callable[..., tuple[AffineExpr, ...]], tuple[int, ...]]] = {
    "panels": (lambda j0, k, j1: (j0 * 4 + j1, k), (2, 5, 4)),
    "panels of columns": (lambda j0, k, j1: (k, j0 * 4 + j1), (3, 5, 4)),
    "the last panel is short": (lambda j0, k, j1: (j0 * 4 + j1, k), (3, 5, 4)),
    "backwards": (lambda a, b: (a * -1 + 3, b + 1), (3, 2)),
    "beyond both ends": (lambda a, b: (a * -1 + 3, b - 1), (6, 2)),
    "quotients": (lambda a, b: (a // 2, b), (6, 3)),
    "windows": (lambda a, b, c: (a + b, c), (3, 4, 2)),
    "one row": (lambda a, b: (a * 0, b), (2, 2)),
    "nothing": (lambda a, b: (a, b), (4, 0)),
}


@pytest.mark.parametrize("source", [(8, 5), (5, 12), (9, 6), (1, 1), (0, 4)])
@pytest.mark.parametrize("name", MAPS)
def test_each_element_is_that_of_the_map(name: str, source: tuple[int, int]) -> None:
    function, shape = MAPS[name]
    packing = AffineMap.from_callable(function)
    array = np.random.default_rng(0).random(source)
    expected = np.zeros(shape)
    for place in itertools.product(*map(range, shape)):
        index = packing.eval(place, [])
        if all(0 <= i < size for i, size in zip(index, source, strict=True)):
            expected[place] = array[tuple(index)]
    for given in (array, np.asfortranarray(array)):
        np.testing.assert_array_equal(pack_array(given, packing, shape), expected)


def test_what_is_inside_is_not_copied() -> None:
    array = np.arange(40.0).reshape(8, 5)
    packed = pack_array(array, AffineMap.from_callable(MAPS["panels"][0]), (2, 5, 4))
    assert np.shares_memory(packed, array)
    assert not packed.flags.writeable


@pytest.mark.parametrize("source", [(8, 5), (5, 12), (9, 6), (1, 1), (0, 4)])
@pytest.mark.parametrize("name", MAPS)
def test_the_constant_is_had_again_from_its_packed_form(name: str, source: tuple[int, int]) -> None:
    function, shape = MAPS[name]
    packing = AffineMap.from_callable(function)
    array = np.random.default_rng(0).random(source)
    packed = pack_array(array, packing, shape)
    held = np.where(np.isin(array, packed), array, 0)
    np.testing.assert_array_equal(unpack_array(packed.copy(), packing, source), held)


@pytest.mark.parametrize(
    "packing",
    [
        AffineMap.from_callable(lambda a: (a,)),
        AffineMap.from_callable(lambda a, b: (a,)),
        AffineMap.from_callable(lambda a, b: (a, b // 0)),
        AffineMap.from_callable(lambda a, b: (a // 2 + (1 << 63), b)),
        AffineMap(2, 1, (AffineExpr.dimension(0), AffineExpr.symbol(0))),
    ],
    ids=str,
)
def test_maps_that_lead_to_no_elements(packing: AffineMap) -> None:
    weights = sw.WeightStore()
    weights.add("w", np.ones((2, 3), np.float32))
    constant = Constant("w", MemRefType(f32, [2, 3]), AffineMapAttr(packing))
    message = 'constant "w": wrong packing, expected a map from 2 to 2 dimensions in 64 bits, got '
    with pytest.raises(sw.CompileError, match=re.escape(f"{message}{packing}")):
        materialised([constant], weights)


@pytest.mark.parametrize("size", [1 << 36, 1 << 62])
def test_a_packed_form_that_is_too_large(size: int, apart: Apart) -> None:
    """It is not even begun."""
    weights = sw.WeightStore()
    weights.add("w", np.ones((2, 3), np.float32))
    packing = AffineMap.from_callable(lambda a, b: (a // 2, b))
    constant = Constant("w", MemRefType(f32, [size, 3]), AffineMapAttr(packing))
    outcome = apart(lambda: materialised([constant], weights))
    assert outcome.startswith('CompileError: constant "w": not enough memory for ')
