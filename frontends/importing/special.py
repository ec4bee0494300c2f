"""Special functions composed of several operators, each with the identity that it uses.

All are computed in f64, where the roundings of a composition are far below those of f32. In f64
itself the error is some ulp, and absolute near zeros that are not those of `lgamma` at 1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...dialects.graph.op_builder import OpBuilder, V
from .dtypes import element_type
from .elementwise import cast, is_nan, modulo
from .nodes import ModelNode
from .regions import iterated
from .values import Value

_F64, _F32, _I64 = np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.int64)

_ERFCX = (
    1.2329951186255526,
    -0.13962111684056228,
    0.015379652102619974,
    0.06809705425466839,
    -0.10103906603631811,
    0.09373283499911264,
    -0.06633036581186058,
    0.037167515526338006,
    -0.01619773406293477,
    0.005031970069102256,
    -0.0007577732435942575,
    -0.00019925715247265212,
    0.0001506214260865191,
    -2.4397731143022357e-05,
    -1.1221135665964922e-05,
    5.706578299238968e-06,
    2.917342557290342e-07,
    -8.210647933275638e-07,
    7.771943241315064e-08,
    1.06318175936524e-07,
    -2.0725802489924743e-08,
    -1.2338731403081173e-08,
    3.2323973452623877e-09,
    9.297625262367834e-10,
    -2.7641202351454575e-10,
)
"""(1 + 2x) exp(x^2) erfc(x) for x >= 0, a polynomial in (x - 4) / (x + 4) from the lowest power on:
its interpolation at 25 nodes of Chebyshev, which has a relative error of 7e-17."""

_LGAMMA = (
    0.42278433509846713,
    -0.10031730167435392,
    0.03296500062115574,
    -0.012384192193371238,
    0.004998641164703528,
    -0.002108130833958805,
    0.0009153769220696921,
    -0.00040570739742046497,
    0.00018255264185594036,
    -8.30951276372239e-05,
    3.8168863787885225e-05,
    -1.766166422556033e-05,
    8.222342452139818e-06,
    -3.847396648270243e-06,
    1.8074775340912791e-06,
    -8.526588188526563e-07,
    4.0551922127948146e-07,
    -1.9252286332850674e-07,
    8.75360413423732e-08,
    -4.17254430301382e-08,
    2.615457216445561e-08,
    -1.2569945435720683e-08,
    -6.830399052794191e-10,
    3.613371593815743e-10,
    4.885761922683655e-09,
    -2.372580625023415e-09,
    -1.3764318718154119e-09,
    6.705737026247826e-10,
    4.226016675377439e-10,
    -2.0542420991550905e-10,
)
"""lgamma(2 + t) / (t (1 + t)) for -1 <= t <= 1, from the lowest power on: its interpolation at 30
nodes of Chebyshev, which has a relative error of 1e-17."""

_I0E_NEAR = (
    0.2070019212239867,
    -0.11300432688620549,
    0.09451562853995103,
    -0.08904344136075991,
    0.08734341617552291,
    -0.08496338091615124,
    0.07927522590716898,
    -0.06954119561742342,
    0.056777032019843215,
    -0.04298594945226738,
    0.03017791202356886,
    -0.019682654708082413,
    0.011960077903963348,
    -0.006792399792271578,
    0.0036171264596770616,
    -0.0018118870527295522,
    0.0008563152483951447,
    -0.0003829015089457559,
    0.0001624054672701359,
    -6.550956130635514e-05,
    2.5202271984440893e-05,
    -9.25059710625537e-06,
    3.2293850630678377e-06,
    -1.0891964284507317e-06,
    3.675592893288293e-07,
    -1.1339523685907105e-07,
    2.6273368345256394e-08,
    -7.860369707508212e-09,
    4.469372581856615e-09,
    -1.1662904878442954e-09,
)
"""exp(-x) I0(x) for 0 <= x <= 8, a polynomial in x / 4 - 1 from the lowest power on: its
interpolation at 30 nodes of Chebyshev, which has a relative error of 3e-18."""

_I0E_FAR = (
    0.4021765094450081,
    0.0033605519836678913,
    0.00013621607438951463,
    1.114303378845176e-05,
    1.4838476780922646e-06,
    2.9735992084667734e-07,
    8.872014585661555e-08,
    3.932512321137824e-08,
    2.156780676115673e-08,
    7.559364098665437e-09,
    -6.856484545962442e-09,
    -1.3427511481900905e-08,
    -5.0175940345046716e-09,
    7.600254486433509e-09,
    6.522264862032271e-09,
    -3.5862834111582305e-09,
    -4.5305710768621196e-09,
    1.6084886155781772e-09,
    2.163681278413876e-09,
    -6.327909921997027e-10,
    -6.494591114401118e-10,
    1.7698085539456536e-10,
    9.114760157514253e-11,
    -2.4421972688131832e-11,
)
"""exp(-x) sqrt(x) I0(x) for x >= 8, a polynomial in 16 / x - 1: at 24 nodes it is within 3e-17."""

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""The numbers of Bernoulli B_2, B_4, ..., of asymptotic series."""

_SHIFT = 10
"""From here on asymptotic series with these numbers have a relative error below 1e-17."""


def _in_f64(compute: Callable[[ModelNode, Value], Value]) -> Callable[[ModelNode, Value], Value]:
    def convert(node: ModelNode, x: Value) -> Value:
        return cast(node, compute(node, cast(node, x, _F64)), x.dtype)

    return convert


def _polynomial(b: OpBuilder[V], x: V, coefficients: Sequence[float]) -> V:
    """A polynomial with these coefficients, from the lowest power on."""
    *others, second, first = coefficients
    found = b.fma(first, x, second)
    for number in reversed(others):
        found = b.fma(found, x, number)
    return found


def _period(b: OpBuilder[V], x: V) -> V:
    """x minus the nearest integer, exactly: the same for sin(pi x)^2 and tan(pi x)."""
    return b.sub(x, b.round(x))


def _erfcx_of_positive(b: OpBuilder[V], x: V) -> V:
    # exp(x^2) erfc(x) == P(1 - 8 / (x + 4)) / (1 + 2x)   for x >= 0
    place = b.sub(1, b.div(8, b.add(x, 4)))
    return b.div(_polynomial(b, place, _ERFCX), b.add(1, b.add(x, x)))


def _bell(b: OpBuilder[V], x: V) -> V:
    # exp(-x^2) == exp(-s^2) * exp(-(x - s)(x + s))   where s^2 is exact
    short = b.cast(b.cast(b.clip(x, maximum=40.0), "f32"), "f64")
    rest = b.mul(b.sub(x, short), b.add(x, short))
    rest = b.where(b.less(x, 40), rest, 0)
    return b.mul(b.exp(b.neg(b.mul(short, short))), b.exp(b.neg(rest)))


def _erfc(b: OpBuilder[V], x: V) -> V:
    # erfc(x) == exp(-x^2) erfcx(x) for x >= 0, and erfc(-x) == 2 - erfc(x)
    size = b.abs(x)
    found = b.mul(_bell(b, size), _erfcx_of_positive(b, size))
    return b.where(b.less(x, 0), b.sub(2, found), found)


def _erfcx(b: OpBuilder[V], x: V) -> V:
    # exp(x^2) erfc(x) == 2 exp(x^2) - exp(x^2) erfc(-x)   for x < 0
    size = b.abs(x)
    found = _erfcx_of_positive(b, size)
    grown = b.div(2, _bell(b, size))
    return b.where(b.less(x, 0), b.sub(grown, found), found)


def _erfinv(b: OpBuilder[V], y: V) -> V:
    # x - u / (1 + x u) with u == (erf(x) - y) / erf'(x): Halley's method, which triples the digits
    size, a = b.abs(y), 0.147
    # 1 - y^2 == (1 - y)(1 + y) == exp(4x^2/pi (1 + ...)), by Winitzki, which has 2e-3 of error
    less = b.neg(b.log1p(b.neg(b.mul(size, size))))
    half = b.sub(2 / (math.pi * a), b.mul(less, 0.5))
    root = b.sqrt(b.add(b.mul(half, half), b.mul(less, 1 / a)))
    x = b.sqrt(b.div(b.mul(less, 1 / a), b.add(root, half)))
    is_far, rest = b.less(0.5, size), b.sub(1, size)
    for _ in range(2):
        near = b.sub(b.erf(x), size)
        far = b.sub(rest, _erfc(b, x))
        slope = b.mul(2 / math.sqrt(math.pi), _bell(b, x))
        step = b.div(b.where(is_far, far, near), slope)
        x = b.sub(x, b.div(step, b.add(1, b.mul(x, step))))
    x = b.where(b.equal(size, 1), math.inf, x)
    return b.where(b.less(y, 0), b.neg(x), x)


def _digamma(b: OpBuilder[V], x: V) -> V:
    # psi(x) == psi(1 - x) - pi / tan(pi x), and psi(x) == psi(x + 1) - 1 / x
    is_negative = b.less(x, 0)
    up, total = b.where(is_negative, b.sub(1, x), x), 0
    for _ in range(_SHIFT):
        is_low = b.less(up, _SHIFT)
        total = b.where(is_low, b.sub(total, b.div(1, up)), total)
        up = b.where(is_low, b.add(up, 1), up)
    # psi(x) == log(x) - 1 / 2x - sum(B_2k / (2k x^2k))
    series = [number / (2 * k + 2) for k, number in enumerate(_BERNOULLI)]
    square = b.div(1, b.mul(up, up))
    last = b.add(b.div(0.5, up), b.mul(square, _polynomial(b, square, series)))
    total = b.add(total, b.sub(b.log(up), last))
    tangent = b.tan(b.mul(math.pi, _period(b, x)))
    total = b.where(is_negative, b.sub(total, b.div(math.pi, tangent)), total)
    # A pole of both signs is NaN, but for the two zeros, which have one sign each.
    is_whole = b.equal(x, b.floor(x))
    is_pole = b.logical_and(is_negative, is_whole)
    total = b.where(is_pole, math.nan, total)
    return b.where(b.equal(x, 0), b.neg(b.div(1, x)), total)


def _lgamma(b: OpBuilder[V], x: V) -> V:
    # lgamma(x) == log(pi / |sin(pi x)|) - lgamma(1 - x)
    is_low = b.less(x, 0.5)
    up = b.where(is_low, b.sub(1, x), x)
    found = b.where(b.less(up, 3), _lgamma_near_its_zeros(b, up), _lgamma_of_large(b, up))
    sine = b.abs(b.sin(b.mul(math.pi, _period(b, x))))
    mirrored = b.sub(b.sub(math.log(math.pi), b.log(sine)), found)
    found = b.where(is_low, mirrored, found)
    # Near 0 it is -log|x|, where 1 - x is rounded and |x| may be too small for the sine.
    size = b.abs(x)
    found = b.where(b.less(size, 1e-17), b.neg(b.log(size)), found)
    return b.where(b.equal(size, math.inf), math.inf, found)


def _lgamma_near_its_zeros(b: OpBuilder[V], x: V) -> V:
    """It for 0.5 <= x < 3."""
    # lgamma(x) == lgamma(x + 1) - log(x) for x < 1
    is_low = b.less(x, 1)
    t = b.sub(b.where(is_low, x, b.sub(x, 1)), 1)
    found = b.mul(b.mul(t, b.add(t, 1)), _polynomial(b, t, _LGAMMA))
    return b.where(is_low, b.sub(found, b.log(x)), found)


def _lgamma_of_large(b: OpBuilder[V], x: V) -> V:
    """It for x >= 3."""
    # lgamma(x) == lgamma(x + n) - log(x (x + 1) ... (x + n - 1))
    product = 1
    for _ in range(_SHIFT - 3):
        below = b.less(x, _SHIFT)
        product = b.where(below, b.mul(product, x), product)
        x = b.where(below, b.add(x, 1), x)
    # lgamma(x) == (x - 1/2) (log(x) - 1) + (log(2 pi) - 1) / 2 + sum(B_2k / (2k (2k - 1) x^(2k-1)))
    series = [number / ((2 * k + 2) * (2 * k + 1)) for k, number in enumerate(_BERNOULLI)]
    inverse = b.div(1, x)
    rest = b.mul(inverse, _polynomial(b, b.mul(inverse, inverse), series))
    rest = b.add(rest, (math.log(2 * math.pi) - 1) / 2)
    found = b.add(b.mul(b.sub(x, 0.5), b.sub(b.log(x), 1)), rest)
    return b.sub(found, b.log(product))


def _i0e(b: OpBuilder[V], x: V) -> V:
    size = b.abs(x)
    near = _polynomial(b, b.sub(b.mul(b.clip(size, maximum=8.0), 0.25), 1), _I0E_NEAR)
    large = b.clip(size, minimum=8.0)
    far = b.div(_polynomial(b, b.sub(b.div(16, large), 1), _I0E_FAR), b.sqrt(large))
    return b.where(b.less(size, 8), near, far)


def _i0(b: OpBuilder[V], x: V) -> V:
    # I0(x) == exp(|x| / 2) (exp(|x| / 2) (exp(-|x|) I0(x))), of which no factor overflows before
    size = b.abs(x)
    root = b.exp(b.mul(size, 0.5))
    return b.where(b.equal(size, math.inf), size, b.mul(root, b.mul(root, _i0e(b, x))))


erfc, erfcx, erfinv = _in_f64(_erfc), _in_f64(_erfcx), _in_f64(_erfinv)
digamma, lgamma = _in_f64(_digamma), _in_f64(_lgamma)
i0, i0e = _in_f64(_i0), _in_f64(_i0e)


def nextafter(node: ModelNode, a: Value, b: Value) -> Value:
    """The float that follows a on the way to b: b where they are equal, NaN where one is.

    The bits of a float as an integer, plus 1, are those of the next float away from 0.
    """
    integer = np.dtype(f"i{a.dtype.itemsize}")
    is_up, is_zero = node.less(a, b), node.equal(a, node.scalar(0, a))
    is_away = node.equal(is_up, node.less(node.scalar(0, a), a))
    bits = node.bitcast(a, target=element_type(integer))
    step = node.where(is_away, node.scalar(1, bits), node.scalar(-1, bits))
    lowest = node.scalar(np.iinfo(integer).min + 1, bits)
    from_zero = node.where(is_up, node.scalar(1, bits), lowest)
    bits = node.where(is_zero, from_zero, node.add(bits, step))
    found = node.bitcast(bits, target=element_type(a.dtype))
    found = node.where(node.equal(a, b), b, found)
    # A sum with NaN is NaN, in the shape of both.
    return node.where(node.logical_or(is_nan(node, a), is_nan(node, b)), node.add(a, b), found)


def gcd(node: ModelNode, a: Value, b: Value) -> Value:
    """The greatest common divisor of integers, which is not negative; gcd(0, 0) is 0."""
    # gcd(a, b) == gcd(b, a mod b) for b != 0, and gcd(a, 0) == |a|
    zero = node.scalar(0, a)

    def is_left(b: Value) -> Value:
        return node.logical_not(node.equal(b, zero))

    def goes_on(b: Value) -> Value:
        count = cast(node, is_left(b), _I64)
        axes = list(range(b.rank))
        total = node.reduce(count, kind="sum", axes=axes) if axes else count
        return node.less(node.known(np.array(0)), total)

    def step(values: Sequence[Value]) -> list[Value]:
        _, a, b = values
        left = is_left(b)
        rest = modulo(node, a, node.where(left, b, 1))
        first = node.where(left, b, a)
        second = node.where(left, rest, zero)
        return [goes_on(second), first, second]

    # Both have the shape of the result.
    nothing = node.mul(node.mul(a, b), zero)
    first, second = (node.add(_size(node, x), nothing) for x in (a, b))
    return iterated(node, step, [first, second], None, goes_on(second), None)[0]


def lcm(node: ModelNode, a: Value, b: Value) -> Value:
    """The least common multiple of integers, which is not negative; 0 if one is 0."""
    # lcm(a, b) == |a / gcd(a, b) * b|
    divisor = gcd(node, a, b)
    divisor = node.where(node.equal(divisor, 0), 1, divisor)
    return _size(node, node.mul(node.div(a, divisor), b))


def _size(node: ModelNode, x: Value) -> Value:
    return x if x.dtype.kind == "u" else node.abs(x)
