"""DFT, STFT and MelWeightMatrix: Fourier transforms are products with matrices."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from ....core.algebra.dims import Dim
from ....core.dtype_names import is_real
from ...importing.formulas import FormulaTerm
from ...importing.resizing import Numbers
from ...importing.selection import apart, padded, sliced, whole
from ...importing.shapes import (
    matrix_product,
    places_of,
    reshaped,
    squeezed,
    transposed,
    unsqueezed,
)
from ...importing.values import Value, is_static
from ..axes import along_axis_by
from ..dynamic import Element
from ..nodes import Node
from ..registry import converts

_LONGEST_PRODUCT = 512
"""The longest transform that is one product; a longer one is divided."""
_LONGEST_PRIME = 1 << 11

Complex = Sequence[Value]
"""A real part, and an imaginary part unless it is 0."""


@converts("DFT", since=17)
def dft_17(node: Node) -> Value:
    axis = node.axis(node.attr_int("axis", 1), node.input(0).rank)
    return _dft_along(node, axis)


@converts("DFT", since=20)
def dft(node: Node) -> Value:
    x, given = node.input(0), node.optional(2)
    (axis,) = [Dim.of(-2)] if given is None else node.elements(2)
    if isinstance(axis, Dim):
        return _dft_along(node, node.axis(axis.value, x.rank))
    declared = node.declared_sizes(x.rank)
    fitting = [
        own
        for own in range(x.rank - 1)
        if _points(node, own) > 0
        and all(n is None or n == dim for n, dim in zip(declared, _shape(node, own), strict=True))
    ]
    if len({_shape(node, own) for own in fitting}) != 1:
        raise node.unsupported("an axis that comes at run time, without a declared shape of one")
    return along_axis_by(node, x, axis, functools.partial(_dft_along, node), fitting)


def _dft_along(node: Node, axis: int) -> Value:
    x, signal, count = node.input(0), _signal(node), _length(node, axis)
    inverse, onesided = node.attr_int("inverse"), node.attr_int("onesided")
    last = x.rank - 2
    if axis > last:
        raise node.broken("axis out of range", f"at most {last}", axis)
    order = [*(n for n in range(last + 1) if n != axis), axis]
    kept = count // 2 + 1 if onesided and inverse else count
    parts = [_resized(node, transposed(node, part, order), kept) for part in signal]
    if onesided and inverse:
        parts = _mirrored(node, parts, count)
    found = _transform(node, parts, count, 1 if inverse else -1, _bins(node, count))
    if inverse:
        scale = node.known(np.array(1 / count, x.dtype))
        found = [node.mul(part, scale) for part in found]
    back = np.argsort(order).tolist()
    results = found[:1] if onesided and inverse else found
    return _stacked(node, [transposed(node, part, back) for part in results])


def _signal(node: Node) -> Complex:
    """The parts of a signal, whose last dimension is that of its 1 or 2 parts."""
    x = node.input(0)
    if x.rank < 2 or x.shape[-1] not in (1, 2) or not is_real(x.dtype):
        got = f"{x.dtype.name}, {[str(dim) for dim in x.shape]}"
        raise node.broken("operand is no signal", "floats, a last dimension of 1 or 2", got)
    last = x.rank - 1
    parts = apart(node, x, last, [1] * x.shape[-1].value)
    return [squeezed(node, part, [last]) for part in parts]


def _points(node: Node, axis: int) -> int:
    """The number of points of the transform along an axis, which may have none."""
    if node.optional(1) is not None:
        (count,) = node.integers(1)
        return count
    size = node.input(0).shape[axis]
    if not size.is_static:
        raise node.unsupported(f"a transform over symbolic dimension {size}")
    half = node.attr_int("inverse") and node.attr_int("onesided")
    return 2 * (size.value - 1) if half else size.value


def _length(node: Node, axis: int) -> int:
    """The number of points of the transform."""
    count = _points(node, axis)
    if count < 1:
        raise node.broken("the transform has no points", "dft_length >= 1", count)
    return count


def _bins(node: Node, count: int) -> int:
    """The number of results of a transform."""
    half = node.attr_int("onesided") and not node.attr_int("inverse")
    return count // 2 + 1 if half else count


def _shape(node: Node, axis: int) -> tuple[Dim, ...]:
    """The shape of the result of a DFT."""
    parts = 1 if node.attr_int("onesided") and node.attr_int("inverse") else 2
    shape = [*node.input(0).shape[:-1], Dim.of(parts)]
    shape[axis] = Dim.of(_bins(node, _length(node, axis)))
    return tuple(shape)


def _resized(node: Node, x: Value, size: int) -> Value:
    """The first elements of rows, with zeros after them."""
    (last,) = x.shape[-1:]
    if not last.is_static:
        raise node.unsupported(f"a transform over symbolic dimension {last}")
    missing = [0] * (x.rank - 1) + [size - last.value]
    return padded(node, x, [0] * x.rank, missing)


def _mirrored(node: Node, parts: Complex, count: int) -> Complex:
    """All numbers of the transform of a real signal, from the first half of them."""
    # X[count - k] == conj(X[k]), so that the numbers in the middle are real
    half, axis = count // 2 + 1, parts[0].rank - 1
    others = whole(parts[0])
    others[-1] = (count - half, 0, -1)
    signs = np.ones(half)
    signs[0 :: half - 1 if count % 2 == 0 and half > 1 else half] = 0
    results: list[Value] = []
    for sign, part in zip((1, -1), parts, strict=False):
        own = part
        if sign < 0:
            own = node.mul(part, node.known(signs.astype(part.dtype)))
        rest = sliced(node, own, others)
        rest = rest if sign > 0 else node.neg(rest)
        results.append(node.concat([own, rest], axis=axis))
    return results


def _transform(node: Node, x: Complex, length: int, sign: int, count: int) -> Complex:
    """The first numbers X[k] = sum_n x[n] exp(sign 2 pi i k n / length) of rows."""
    divisor = _divisor(length)
    if divisor == 1:
        if length > _LONGEST_PRIME:
            raise node.unsupported(f"a transform of {length} points, which is a prime number")
        return _product(node, x, length, sign, count)
    found = _divided(node, x, divisor, length // divisor, sign)
    return [sliced(node, part, [*whole(part)[:-1], (0, count, 1)]) for part in found]


def _divisor(length: int) -> int:
    """The number of transforms that one is divided into; 1 for a transform that is one product."""
    if length <= _LONGEST_PRODUCT:
        return 1
    return max(n for n in range(1, math.isqrt(length) + 1) if length % n == 0)


def _product(node: Node, x: Complex, length: int, sign: int, count: int) -> Complex:
    turns = np.outer(np.arange(length), np.arange(count)) % length / length
    cosine, sine = np.cos(2 * np.pi * turns), sign * np.sin(2 * np.pi * turns)
    blocks = [[cosine, sine], [-sine, cosine]]
    matrix = np.block(blocks[: len(x)]).astype(x[0].dtype)
    axis = x[0].rank - 1
    row = x[0] if len(x) == 1 else node.concat(x, axis=axis)
    return apart(node, matrix_product(node, row, node.known(matrix)), axis, [count, count])


# J. W. Cooley and J. W. Tukey, An algorithm for the machine calculation of complex Fourier series,
# 1965: with n = b n1 + n2 and k = k1 + a k2, for length = a b,
#     X[k] = sum_n2 w^(n2 k1) (sum_n1 x[n] exp(2 pi i n1 k1 / a)) exp(2 pi i n2 k2 / b)
def _divided(node: Node, x: Complex, a: int, b: int, sign: int) -> Complex:
    """A transform of a * b points by those of a and of b points."""
    turns = np.outer(np.arange(b), np.arange(a)) / (a * b)
    twiddles = [np.cos(2 * np.pi * turns), sign * np.sin(2 * np.pi * turns)]
    cosine, sine = (node.known(part.astype(x[0].dtype)) for part in twiddles)
    *outer, _ = x[0].shape
    swapped = [*range(len(outer)), len(outer) + 1, len(outer)]
    apart = [reshaped(node, part, [*outer, Dim.of(a), Dim.of(b)]) for part in x]
    columns = [transposed(node, part, swapped) for part in apart]
    real, imaginary = _transform(node, columns, a, sign, a)
    turned = _rotated(node, real, imaginary, cosine, sine)
    rows = [transposed(node, part, swapped) for part in turned]
    found = _transform(node, rows, b, sign, b)
    ordered = [transposed(node, part, swapped) for part in found]
    return [reshaped(node, part, [*outer, Dim.of(a * b)]) for part in ordered]


def _rotated(node: Node, re: Value, im: Value, cosine: Value, sine: Value) -> Complex:
    return [
        node.sub(node.mul(re, cosine), node.mul(im, sine)),
        node.add(node.mul(re, sine), node.mul(im, cosine)),
    ]


def _stacked(node: Node, parts: Complex) -> Value:
    axis = parts[0].rank
    apart = [unsqueezed(node, part, [axis]) for part in parts]
    return apart[0] if len(apart) == 1 else node.concat(apart, axis=axis)


@converts("STFT", since=17)
def stft(node: Node) -> Value:
    x, signal = node.input(0), _signal(node)
    if x.rank != 3:
        raise node.broken("the signal has the wrong rank", 3, x.rank)
    given = None if node.optional(3) is None else node.elements(3)[0]
    if not isinstance(given, Value):
        return _stft_of(node, signal, _frame_length(node))
    # The result is that of each length which gives the declared shape; one of them is selected.
    length, *others = _possible_lengths(node)
    result, fits = _stft_of(node, signal, length), _gives_declared(node, given, length)
    for other in others:
        is_own = _gives_declared(node, given, other)
        result = node.where(is_own, _stft_of(node, signal, other), result)
        fits = node.logical_or(fits, is_own)
    return node.check(result, fits, [given], "frame_length {0} does not give the declared shape")


def _gives_declared(node: Node, given: Value, length: int) -> Value:
    """Whether frames have a length, and are as many as the model declares."""
    size, (step,) = node.input(0).shape[1], node.elements(1)
    count = node.add(node.div(node.sub(size, length), step), 1)
    fits = node.logical_and(
        node.less_equal(length, size), node.equal(count, node.declared_sizes(4)[1])
    )
    return node.logical_and(node.equal(given, length), fits)


def _possible_lengths(node: Node) -> list[int]:
    """The lengths of frames with as many numbers as the model declares."""
    _, frames, count, _ = node.declared_sizes(4)
    window, onesided = node.optional(2), node.attr_int("onesided", 1)
    if frames is None or count is None:
        raise node.unsupported("a frame_length that comes at run time, without a declared shape")
    if window is not None and window.shape[0].is_static:
        return [window.shape[0].value]
    return [n for n in (2 * count - 2, 2 * count - 1) if n > 0] if onesided else [count]


def _stft_of(node: Node, signal: Complex, length: int) -> Value:
    """The transforms of frames of a length."""
    window, frames = node.optional(2), _frames(node, length)
    parts = [node.gather(part, frames, axis=1) for part in signal]
    if window is not None:
        parts = [node.mul(part, window) for part in parts]
    count = length // 2 + 1 if node.attr_int("onesided", 1) else length
    return _stacked(node, _transform(node, parts, length, -1, count))


def _frame_length(node: Node) -> int:
    window = node.optional(2)
    if node.optional(3) is not None:
        (length,) = node.integers(3)
    else:
        size = node.input(0).shape[1] if window is None else window.shape[0]
        if not size.is_static:
            raise node.unsupported(f"frames of symbolic dimension {size}")
        length = size.value
    if window is not None and window.shape != (Dim.of(length),):
        got = [str(dim) for dim in window.shape]
        raise node.broken("the window has the wrong shape", [length], got)
    if length < 1:
        raise node.broken("frames are empty", "frame_length >= 1", length)
    return length


def _frames(node: Node, length: int) -> Value:
    """The places of the elements of each frame, a row for each."""
    size, (step,) = node.input(0).shape[1], node.elements(1)
    is_known = node.optional(3) is None or node.input(3).contents is not None
    if isinstance(step, Dim) and step.is_static and step.value < 1:
        raise node.broken("frames overlap in all elements", "frame_step >= 1", step.value)
    if is_known and isinstance(step, Dim) and is_static([step, size]):
        count = (size.value - length) // step.value + 1
    else:
        declared = node.declared_sizes(4)[1]
        if declared is None:
            raise node.unsupported("a number of frames that is not known")
        count = declared
    if count < 1:
        raise node.broken("there is no frame", f"a signal of {length} elements", str(size))
    first = unsqueezed(node, node.mul(places_of(node, Dim.of(count)), step), [1])
    places = node.add(first, places_of(node, Dim.of(length)))
    if is_known:
        return places
    # Frames of a length that is not selected may reach beyond the signal.
    return node.min(places, node.sub(size, 1))


@converts("MelWeightMatrix", since=17)
def mel_weight_matrix(node: Node) -> Value:
    dtype = node.attr_dtype("output_datatype", np.dtype(np.float32))
    sizes = [_size(element) for index in (1, 0) for element in node.elements(index)]
    declared = node.declared_sizes(2)
    rows = declared[0] if sizes[0] is None else sizes[0] // 2 + 1
    columns = declared[1] if sizes[1] is None else sizes[1]
    if rows is None or columns is None:
        raise node.unsupported("numbers of rows and columns that are not known")
    if rows < 1 or columns < 1:
        raise node.broken("the matrix is empty", "dft_length >= 0, num_mel_bins >= 1", sizes)
    points, rate, low, high = (FormulaTerm.of(node, node.input(index)) for index in range(1, 5))
    least, most = (2595 / np.log(10) * np.log(1 + hertz / 700) for hertz in (low, high))
    mel = np.arange(columns + 2) * ((most - least) / (columns + 2)) + least
    hertz = 700 * (np.exp(mel * (np.log(10) / 2595)) - 1)
    bins = np.floor((points + 1) * hertz / rate).value
    left, middle, right = (
        FormulaTerm.of(node, sliced(node, bins, [(start, start + columns, 1)]))
        for start in range(3)
    )
    row = np.arange(rows)[:, None].astype(float)
    return _triangle(row, left, middle, right).as_type(dtype.type)


def _triangle(row: Numbers, left: Numbers, middle: Numbers, right: Numbers) -> Numbers:
    """From 0 at the left through 1 in the middle to 0 at the right; 0 outside."""
    width = middle - left
    rising = np.where(width > 0, (row - left) / np.maximum(width, 1.0), 1.0)
    falling = (right - row) / np.maximum(right - middle, 1.0)
    own = np.where((row >= left) & (row <= middle), rising, 0.0)
    return np.where((row >= middle) & (row < right), falling, own)


def _size(element: Element) -> int | None:
    return element.value if isinstance(element, Dim) and element.is_static else None
