"""Special functions composed of several operators, each with the identity that it uses.

All are computed in f64, where the roundings of a composition are far below those of f32. In f64
itself the error is some ulp, and absolute near zeros that are not those of `lgamma` at 1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from .elementwise import cast, modulo
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

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""The numbers of Bernoulli B_2, B_4, ..., of asymptotic series."""

_SHIFT = 10
"""From here on asymptotic series with these numbers have a relative error below 1e-17."""


class _Math:
    """Arithmetic on values in f64, at a node of a model."""

    def __init__(self, node: ModelNode) -> None:
        self.node = node

    def known(self, number: float) -> Value:
        return self.node.known(np.array(number, _F64))

    def add(self, a: Value, b: Value) -> Value:
        return self.node.add(a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.node.sub(a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.node.mul(a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self.node.div(a, b)

    def neg(self, x: Value) -> Value:
        return self.node.neg(x)

    def abs(self, x: Value) -> Value:
        return self.node.abs(x)

    def exp(self, x: Value) -> Value:
        return self.node.exp(x)

    def log(self, x: Value) -> Value:
        return self.node.log(x)

    def less(self, a: Value, b: Value) -> Value:
        return self.node.less(a, b)

    def equal(self, a: Value, b: Value) -> Value:
        return self.node.equal(a, b)

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        return self.node.where(condition, a, b)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """A polynomial with these coefficients, from the lowest power on."""
        found = self.known(coefficients[-1])
        for number in reversed(coefficients[:-1]):
            found = self.node.fma(found, x, self.known(number))
        return found

    def period(self, x: Value) -> Value:
        """x minus the nearest integer, exactly: the same for sin(pi x)^2 and tan(pi x)."""
        return self.sub(x, self.node.round(x))


def _in_f64(compute: Callable[[_Math, Value], Value]) -> Callable[[ModelNode, Value], Value]:
    def convert(node: ModelNode, x: Value) -> Value:
        return cast(node, compute(_Math(node), cast(node, x, _F64)), x.dtype)

    return convert


def _erfcx_of_positive(m: _Math, x: Value) -> Value:
    # exp(x^2) erfc(x) == P(1 - 8 / (x + 4)) / (1 + 2x)   for x >= 0
    place = m.sub(m.known(1), m.div(m.known(8), m.add(x, m.known(4))))
    return m.div(m.polynomial(place, _ERFCX), m.add(m.known(1), m.add(x, x)))


def _bell(m: _Math, x: Value) -> Value:
    # exp(-x^2) == exp(-s^2) * exp(-(x - s)(x + s))   where s^2 is exact
    short = cast(m.node, cast(m.node, m.node.clip(x, maximum=40.0), _F32), _F64)
    rest = m.mul(m.sub(x, short), m.add(x, short))
    rest = m.where(m.less(x, m.known(40)), rest, m.known(0))
    return m.mul(m.exp(m.neg(m.mul(short, short))), m.exp(m.neg(rest)))


def _erfc(m: _Math, x: Value) -> Value:
    # erfc(x) == exp(-x^2) erfcx(x) for x >= 0, and erfc(-x) == 2 - erfc(x)
    size = m.abs(x)
    found = m.mul(_bell(m, size), _erfcx_of_positive(m, size))
    return m.where(m.less(x, m.known(0)), m.sub(m.known(2), found), found)


def _erfcx(m: _Math, x: Value) -> Value:
    # exp(x^2) erfc(x) == 2 exp(x^2) - exp(x^2) erfc(-x)   for x < 0
    size = m.abs(x)
    found = _erfcx_of_positive(m, size)
    grown = m.div(m.known(2), _bell(m, size))
    return m.where(m.less(x, m.known(0)), m.sub(grown, found), found)


def _erfinv(m: _Math, y: Value) -> Value:
    # x - u / (1 + x u) with u == (erf(x) - y) / erf'(x): Halley's method, which triples the digits
    size, a = m.abs(y), 0.147
    # 1 - y^2 == (1 - y)(1 + y) == exp(4x^2/pi (1 + ...)), by Winitzki, which has 2e-3 of error
    less = m.neg(m.node.log1p(m.neg(m.mul(size, size))))
    half = m.sub(m.known(2 / (math.pi * a)), m.mul(less, m.known(0.5)))
    root = m.node.sqrt(m.add(m.mul(half, half), m.mul(less, m.known(1 / a))))
    x = m.node.sqrt(m.div(m.mul(less, m.known(1 / a)), m.add(root, half)))
    is_far, rest = m.less(m.known(0.5), size), m.sub(m.known(1), size)
    for _ in range(2):
        near = m.sub(m.node.erf(x), size)
        far = m.sub(rest, _erfc(m, x))
        slope = m.mul(m.known(2 / math.sqrt(math.pi)), _bell(m, x))
        step = m.div(m.where(is_far, far, near), slope)
        x = m.sub(x, m.div(step, m.add(m.known(1), m.mul(x, step))))
    x = m.where(m.equal(size, m.known(1)), m.known(math.inf), x)
    return m.where(m.less(y, m.known(0)), m.neg(x), x)


def _digamma(m: _Math, x: Value) -> Value:
    # psi(x) == psi(1 - x) - pi / tan(pi x), and psi(x) == psi(x + 1) - 1 / x
    zero, one = m.known(0), m.known(1)
    is_negative = m.less(x, zero)
    up, total = m.where(is_negative, m.sub(one, x), x), zero
    for _ in range(_SHIFT):
        is_low = m.less(up, m.known(_SHIFT))
        total = m.where(is_low, m.sub(total, m.div(one, up)), total)
        up = m.where(is_low, m.add(up, one), up)
    # psi(x) == log(x) - 1 / 2x - sum(B_2k / (2k x^2k))
    series = [number / (2 * k + 2) for k, number in enumerate(_BERNOULLI)]
    square = m.div(one, m.mul(up, up))
    last = m.add(m.div(m.known(0.5), up), m.mul(square, m.polynomial(square, series)))
    total = m.add(total, m.sub(m.log(up), last))
    tangent = m.node.tan(m.mul(m.known(math.pi), m.period(x)))
    total = m.where(is_negative, m.sub(total, m.div(m.known(math.pi), tangent)), total)
    # A pole of both signs is NaN, but for the two zeros, which have one sign each.
    is_whole = m.equal(x, m.node.floor(x))
    is_pole = m.node.logical_and(is_negative, is_whole)
    total = m.where(is_pole, m.known(math.nan), total)
    return m.where(m.equal(x, zero), m.neg(m.div(one, x)), total)


def _lgamma(m: _Math, x: Value) -> Value:
    # lgamma(x) == log(pi / |sin(pi x)|) - lgamma(1 - x)
    is_low = m.less(x, m.known(0.5))
    up = m.where(is_low, m.sub(m.known(1), x), x)
    found = m.where(m.less(up, m.known(3)), _lgamma_near_its_zeros(m, up), _lgamma_of_large(m, up))
    sine = m.abs(m.node.sin(m.mul(m.known(math.pi), m.period(x))))
    mirrored = m.sub(m.sub(m.known(math.log(math.pi)), m.log(sine)), found)
    found = m.where(is_low, mirrored, found)
    # Near 0 it is -log|x|, where 1 - x is rounded and |x| may be too small for the sine.
    size = m.abs(x)
    found = m.where(m.less(size, m.known(1e-17)), m.neg(m.log(size)), found)
    return m.where(m.equal(size, m.known(math.inf)), m.known(math.inf), found)


def _lgamma_near_its_zeros(m: _Math, x: Value) -> Value:
    """It for 0.5 <= x < 3."""
    # lgamma(x) == lgamma(x + 1) - log(x) for x < 1
    one, is_low = m.known(1), m.less(x, m.known(1))
    t = m.sub(m.where(is_low, x, m.sub(x, one)), one)
    found = m.mul(m.mul(t, m.add(t, one)), m.polynomial(t, _LGAMMA))
    return m.where(is_low, m.sub(found, m.log(x)), found)


def _lgamma_of_large(m: _Math, x: Value) -> Value:
    """It for x >= 3."""
    # lgamma(x) == lgamma(x + n) - log(x (x + 1) ... (x + n - 1))
    product = one = m.known(1)
    for _ in range(_SHIFT - 3):
        below = m.less(x, m.known(_SHIFT))
        product = m.where(below, m.mul(product, x), product)
        x = m.where(below, m.add(x, one), x)
    # lgamma(x) == (x - 1/2) (log(x) - 1) + (log(2 pi) - 1) / 2 + sum(B_2k / (2k (2k - 1) x^(2k-1)))
    series = [number / ((2 * k + 2) * (2 * k + 1)) for k, number in enumerate(_BERNOULLI)]
    inverse = m.div(one, x)
    rest = m.mul(inverse, m.polynomial(m.mul(inverse, inverse), series))
    rest = m.add(rest, m.known((math.log(2 * math.pi) - 1) / 2))
    found = m.add(m.mul(m.sub(x, m.known(0.5)), m.sub(m.log(x), one)), rest)
    return m.sub(found, m.log(product))


erfc, erfcx, erfinv = _in_f64(_erfc), _in_f64(_erfcx), _in_f64(_erfinv)
digamma, lgamma = _in_f64(_digamma), _in_f64(_lgamma)


def gcd(node: ModelNode, a: Value, b: Value) -> Value:
    """The greatest common divisor of integers, which is not negative; gcd(0, 0) is 0."""
    # gcd(a, b) == gcd(b, a mod b) for b != 0, and gcd(a, 0) == |a|
    zero, one = node.scalar(0, a), node.scalar(1, a)

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
        rest = modulo(node, a, node.where(left, b, one))
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
    divisor, zero = gcd(node, a, b), node.scalar(0, a)
    is_none = node.equal(divisor, zero)
    divisor = node.where(is_none, 1, divisor)
    return _size(node, node.mul(node.div(a, divisor), b))


def _size(node: ModelNode, x: Value) -> Value:
    return x if x.dtype.kind == "u" else node.abs(x)
