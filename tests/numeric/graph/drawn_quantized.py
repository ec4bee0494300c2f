"""Random programs for rules of quantised tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .drawn import WHOLE, Drawing, draws
from .instances import TYPES

_SCALES = (2.0**-40, 0.1, 0.3, 1.0, 41.0, 2.0**40)


def _zero(d: Drawing, kind: str, *shape: int) -> np.ndarray:
    """Zero points of a type."""
    low, high = (0, 255) if kind == "ui8" else (-128, 127)
    values = [d.choices.among(0, d.choices.randint(low, high)) for _ in range(int(np.prod(shape)))]
    return np.array(values).reshape(shape).astype(TYPES[kind])


def _scale(d: Drawing, *shape: int) -> np.ndarray:
    values = [d.choices.choice(_SCALES) for _ in range(int(np.prod(shape)))]
    return np.array(values, np.float32).reshape(shape)


def _steps(d: Drawing, kind: str, sizes: list[int]) -> tuple[np.ndarray, np.ndarray, int | None]:
    """A scale, a zero point, and the axis along which there is one for each index, if any."""
    axis = d.choices.among(None, None, d.choices.randrange(len(sizes)))
    shape = () if axis is None else (sizes[axis],)
    return _scale(d, *shape), _zero(d, kind, *shape), axis


@draws("QuantizeWhatWasQuantized")
def quantized_again(d: Drawing) -> None:
    b, kind, sizes = d.b, d.kind("i8", "ui8"), d.sizes(2)
    steps = _steps(d, kind, sizes)
    d.b.output(b.quantize(b.dequantize(d.input(kind, *sizes), *steps), *steps))


@draws("QuantizeWhatWasCut")
def quantized_clip(d: Drawing) -> None:
    b, kind = d.b, d.kind("i8", "ui8")
    x = d.input("f32", *d.sizes(2))
    low, high = d.choices.among(None, -0.25, -3.0, -0.0), d.choices.among(None, 0.0, 1.75, 6.0)
    cut = b.relu(x) if d.choices.chance(0.4) else b.clip(x, low, high)
    b.output(b.quantize(cut, _scale(d), _zero(d, kind)))


@draws("PadOfDequantized")
def padded(d: Drawing) -> None:
    b, kind, sizes = d.b, d.kind("i8", "ui8"), d.sizes(d.choices.among(1, 2, 3))
    low, high = ([d.choices.among(0, 1, 2) for _ in sizes] for _ in range(2))
    x = b.dequantize(d.input(kind, *sizes), _scale(d), _zero(d, kind))
    b.output(b.pad(x, low, high))


@draws("MoveOfDequantized")
def moved(d: Drawing) -> None:
    d.symbolic = False
    b, kind, sizes = d.b, d.kind("i8", "ui8"), d.sizes(3)
    x = b.dequantize(d.input(kind, *sizes), *_steps(d, kind, sizes))
    flat = int(np.prod(sizes))
    axis = d.choices.randrange(3)
    made = [
        lambda: b.reshape(x, d.choices.choice([[flat], [sizes[0], sizes[1] * sizes[2]]])),
        lambda: b.transpose(x, d.permuted(3)),
        lambda: b.slice(x, [0, 0, sizes[2] - 1], [WHOLE, 1, 0], [1, 1, -2]),
        lambda: b.pool(x, "max", [1], [1]),
        lambda: b.reduce(x, d.choices.among("min", "max"), [axis]),
        lambda: b.gather(x, np.array([0, sizes[axis] - 1, 0]), axis=axis),
        lambda: b.broadcast_to(x, [2, *sizes]),
    ]
    b.output(d.choices.choice(made)())


def _widened(d: Drawing, x: Any, zero: Any) -> Any:
    return d.b.cast(x, "i16") - zero


def _integer_product(d: Drawing, zeros: tuple[int, ...]) -> None:
    """A product of integers of 8 bits, each less a zero point."""
    b, kind, (rows, terms, width) = d.b, d.kind("i8", "ui8"), d.sizes(3)
    zero = np.int16(d.choices.choice(zeros))
    form = d.choices.among("dense", "matmul", "conv")
    sizes = (2, terms, 4) if form == "conv" else (rows, terms)
    shape = {"dense": (width, terms), "matmul": (terms, width), "conv": (width, terms, 2)}[form]
    of_weights = np.int16(d.choices.among(0, 3))
    elements = d.array("i8", *shape)
    weights = b.cast(b.constant(elements), "i16") - of_weights
    if d.choices.chance(0.5):
        weights = b.constant(elements.astype(np.int16) - of_weights)
    x = _widened(d, d.input(kind, *sizes), zero)
    bias = [] if form == "matmul" or d.choices.chance(0.5) else [d.either("i32", width)]
    b.output(getattr(b, form)(x, weights, *bias))


@draws("FirstFactorIsNarrow", "SecondFactorIsNarrow")
def narrow_factors(d: Drawing) -> None:
    _integer_product(d, (0, 0, -3, 255))


@draws("ProductOfShifted")
def shifted_factor(d: Drawing) -> None:
    _integer_product(d, (-3, 7, 255))


@draws("QuantizeOfProduct")
def quantized_product(d: Drawing) -> None:
    """Scales are powers of two: the sums of floats are exact, as those of integers are."""
    b, kinds, (rows, terms, width) = d.b, [d.kind("i8", "ui8") for _ in range(3)], d.sizes(3)
    form = d.choices.among("dense", "matmul", "conv")
    sizes = (2, terms, 4) if form == "conv" else (rows, terms)
    shape = {"dense": (width, terms), "matmul": (terms, width), "conv": (width, terms, 2)}[form]
    scales = [np.float32(2.0 ** d.choices.among(-4, -2, -1)) for _ in range(3)]
    x = b.dequantize(d.input(kinds[0], *sizes), scales[0], _zero(d, kinds[0]))
    w = b.dequantize(d.constant(kinds[1], *shape), scales[1], _zero(d, kinds[1]))
    bias = list[Any]()
    if form != "matmul" and d.choices.chance(0.5):
        added = d.constant("i32", width)
        bias = [b.dequantize(added, np.float32(scales[0] * scales[1]), np.int32(0))]
    product = getattr(b, form)(x, w, *bias)
    b.output(b.quantize(product, scales[2], _zero(d, kinds[2])))
