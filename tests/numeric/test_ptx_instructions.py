"""Instructions of PTX, one at a time, compared with the same computation on Python's integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from ml_dtypes import bfloat16

import stepwell as sw

from ..harness import RNG, floats


def dtype_of(kind: str) -> np.dtype[Any]:
    letter = {"f": "f", "s": "i"}.get(kind[0], "u")
    return np.dtype(f"{letter}{int(kind[1:]) // 8}")


def computed(
    opcode: str, kinds: Sequence[str], result: str, columns: Sequence[Any], constants: str = ""
) -> np.ndarray:
    """The results of an instruction on columns of operands, each of a type."""
    arrays = [np.array(c, dtype_of(k)) for c, k in zip(columns, kinds, strict=True)]
    out = np.zeros(len(arrays[0]), dtype_of(result))
    names = "abcde"[: len(kinds)]
    body = ["mov.u32 %n, %tid.x;"]
    registers = [".reg .b32 %n;", ".reg .b64 %at;", f".reg .b{8 * out.itemsize} %out;"]
    for m, (name, array) in enumerate(zip(names, arrays, strict=True)):
        bits = 8 * array.itemsize
        registers.append(f".reg .b{bits} %{name};")
        body += [f"ld.param.u64 %at, [p{m}];", f"mad.wide.u32 %at, %n, {array.itemsize}, %at;"]
        body.append(f"ld.global.b{bits} %{name}, [%at];")
    operands = ", ".join(f"%{name}" for name in names)
    body += [f"{opcode} %out, {operands}{constants};", f"ld.param.u64 %at, [p{len(arrays)}];"]
    body += [f"mad.wide.u32 %at, %n, {out.itemsize}, %at;"]
    body += [f"st.global.b{8 * out.itemsize} [%at], %out;", "ret;"]
    parameters = ", ".join(f".param .u64 p{m}" for m in range(len(arrays) + 1))
    text = [".version 8.0", ".target sm_90", ".address_size 64", f".visible .entry k({parameters})"]
    text += ["{", *registers, *body, "}"]
    sw.emulate("\n".join(text), [*arrays, out], grid=1, block=len(out), undefined=[out])
    return out


def signed(x: int, bits: int) -> int:
    return (x & ((1 << bits) - 1)) - ((x >> (bits - 1) & 1) << bits)


def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def field(x: int, at: int, length: int) -> int:
    return x >> min(at & 255, 32) & ((1 << min(length & 255, 32)) - 1)


def inserted(x: int, y: int, at: int, length: int) -> int:
    mask = ((1 << min(length & 255, 32)) - 1) << (at & 255) & 0xFFFFFFFF
    return (y & ~mask) | (x << (at & 255) & mask)


def signed_field(x: int, at: int, length: int) -> int:
    # The definition of PTX, bit by bit.
    at, length = at & 255, length & 255
    sign = 0 if length == 0 else x >> min(at + length - 1, 31) & 1
    bits = [x >> (at + n) & 1 if n < length and at + n < 32 else sign for n in range(32)]
    return sum(bit << n for n, bit in enumerate(bits))


INTEGERS: list[tuple[str, str, str, Callable[..., int]]] = [
    ("add.s32", "s32 s32", "s32", lambda a, b: a + b),
    ("sub.u64", "u64 u64", "u64", lambda a, b: a - b),
    ("mul.lo.s32", "s32 s32", "s32", lambda a, b: a * b),
    ("mul.hi.s32", "s32 s32", "s32", lambda a, b: a * b >> 32),
    ("mul.hi.u32", "u32 u32", "u32", lambda a, b: a * b >> 32),
    ("mul.hi.u64", "u64 u64", "u64", lambda a, b: a * b >> 64),
    ("mul.hi.s64", "s64 s64", "s64", lambda a, b: a * b >> 64),
    ("mul.wide.s32", "s32 s32", "s64", lambda a, b: a * b),
    ("mad.lo.u32", "u32 u32 u32", "u32", lambda a, b, c: a * b + c),
    ("mad.wide.s32", "s32 s32 s64", "s64", lambda a, b, c: a * b + c),
    ("mad.hi.u32", "u32 u32 u32", "u32", lambda a, b, c: (a * b >> 32) + c),
    ("div.s32", "s32 s32", "s32", lambda a, b: quotient(a, b or 1)),
    ("rem.s64", "s64 s64", "s64", lambda a, b: a - quotient(a, b or 1) * (b or 1)),
    ("rem.u32", "u32 u32", "u32", lambda a, b: a % (b or 1)),
    ("min.s32", "s32 s32", "s32", min),
    ("max.u64", "u64 u64", "u64", max),
    ("abs.s32", "s32", "s32", int.__abs__),
    ("neg.s64", "s64", "s64", lambda a: -a),
    ("and.b32", "u32 u32", "u32", lambda a, b: a & b),
    ("xor.b64", "u64 u64", "u64", lambda a, b: a ^ b),
    ("not.b32", "u32", "u32", lambda a: ~a),
    ("cnot.b32", "u32", "u32", lambda a: int(a == 0)),
    ("shl.b32", "u32 u32", "u32", lambda a, b: a << b if b < 32 else 0),
    ("shr.u32", "u32 u32", "u32", lambda a, b: a >> min(b, 32)),
    ("shr.s64", "s64 u32", "s64", lambda a, b: a >> min(b, 63)),
    ("shf.l.wrap.b32", "u32 u32 u32", "u32", lambda a, b, c: (b << 32 | a) << (c & 31) >> 32),
    ("shf.r.clamp.b32", "u32 u32 u32", "u32", lambda a, b, c: (b << 32 | a) >> min(c, 32)),
    ("bfe.u32", "u32 u32 u32", "u32", field),
    ("bfe.s32", "u32 u32 u32", "u32", signed_field),
    ("bfi.b32", "u32 u32 u32 u32", "u32", inserted),
    ("popc.b32", "u32", "u32", int.bit_count),
    ("clz.b64", "u64", "u32", lambda a: 64 - a.bit_length()),
    ("brev.b32", "u32", "u32", lambda a: int(f"{a:032b}"[::-1], 2)),
    ("bfind.u32", "u32", "u32", lambda a: a.bit_length() - 1),
    ("bfind.s32", "s32", "u32", lambda a: (~a if a < 0 else a).bit_length() - 1),
    ("cvt.s64.s32", "s32", "s64", lambda a: a),
    ("cvt.u32.u64", "u64", "u32", lambda a: a),
    ("cvt.s32.s8", "s32", "s32", lambda a: signed(a, 8)),
    ("cvt.sat.u8.s32", "s32", "u32", lambda a: min(max(a, 0), 255)),
]
EDGES = [0, 1, 2, 7, 8, 31, 32, 33, 63, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
EDGES += [0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF]


def numbers(count: int) -> list[int]:
    """Random integers of all sizes, every other one of them a number at an edge."""
    sizes = RNG.integers(0, 64, count).tolist()
    drawn = [x >> n for x, n in zip(RNG.integers(0, 1 << 63, count).tolist(), sizes, strict=True)]
    drawn[::2] = RNG.choice(np.array(EDGES, np.uint64), len(drawn[::2])).tolist()
    return drawn


@pytest.mark.parametrize("row", INTEGERS, ids=lambda row: row[0])
def test_integers(row: Any) -> None:
    opcode, text, result, function = row
    kinds, columns = text.split(), [numbers(1000) for _ in range(4)]

    def as_kind(x: int, kind: str) -> int:
        bits = int(kind[1:])
        return signed(x, bits) if kind[0] == "s" else x & ((1 << bits) - 1)

    taken = [[as_kind(x, k) for x in c] for k, c in zip(kinds, columns, strict=False)]
    if opcode[:3] in ("div", "rem"):
        taken[1] = [x or 1 for x in taken[1]]
    found = computed(opcode, kinds, result, taken)
    wanted = [as_kind(function(*row), result) for row in zip(*taken, strict=True)]
    assert found.tolist() == wanted


SPECIAL = [0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan, 3e38, -1e-45, 1e-39, 2.5, -2.5]
PAIRS = [(a, b) for a in SPECIAL for b in SPECIAL]


def test_extrema_of_floats() -> None:
    a, b = zip(*PAIRS, strict=True)
    for opcode in ("min.f32", "max.f32", "min.NaN.f32"):
        found = computed(opcode, ["f32", "f32"], "f32", [a, b])
        for x, y, z in zip(a, b, found.tolist(), strict=True):
            if math.isnan(x) or math.isnan(y):
                other = math.nan if "NaN" in opcode else y if math.isnan(x) else x
                np.testing.assert_equal(z, float(np.float32(other)))
                continue
            key = (x, math.copysign(1, x)), (y, math.copysign(1, y))
            wanted = np.float32((min if "min" in opcode else max)(key)[0])
            assert (z, math.copysign(1, z)) == (wanted, math.copysign(1, wanted))


@given(st.lists(st.tuples(*[st.floats(width=32)] * 3), min_size=1, max_size=40))
def test_a_multiply_add_rounds_once(rows: list[tuple[float, float, float]]) -> None:
    columns = list(zip(*rows, strict=True))
    for kind in ("f32", "f64"):
        found = computed(f"fma.rn.{kind}", [kind] * 3, kind, columns)
        for (a, b, c), z in zip(rows, found, strict=True):
            if all(map(math.isfinite, (a, b, c))):
                assert z == rounded(Fraction(a) * Fraction(b) + Fraction(c), found.dtype)
            else:
                wanted = a * b + c
                assert z == wanted or (z != z and wanted != wanted)


def rounded(exact: Fraction, dtype: np.dtype[Any]) -> float:
    """An exact number as a float: of two neighbours the nearer, or the even one."""
    limits = np.finfo(dtype)
    if abs(exact) < Fraction(float(limits.smallest_subnormal)) / 4:
        return 0.0
    precision, least = limits.nmant, limits.minexp
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** (max(exponent, int(least)) - precision)
    found = round(exact / unit) * unit
    return (
        math.copysign(math.inf, found) if abs(found) > Fraction(float(limits.max)) else float(found)
    )


def test_a_multiply_add_whose_double_rounding_shows() -> None:
    """2^24 + 3 - 2^-40 is a little below the middle between two f32, and in f64 in the middle."""
    a, b, c = np.float32(1 + 2**-20), np.float32(1 - 2**-20), np.float32(2**24 + 2)
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    found = computed("fma.rn.f32", ["f32"] * 3, "f32", [[a], [b], [c]])
    assert found[0] == rounded(exact, found.dtype) == 2**24 + 2


@pytest.mark.parametrize("order", ["lt", "le", "gt", "ge", "eq", "ne", "ltu", "neu", "equ"])
def test_comparisons_of_floats(order: str) -> None:
    """Unordered comparisons hold for NaN, others do not: `ne` neither."""
    a, b = (np.array(x, np.float32) for x in zip(*PAIRS, strict=True))
    nan = np.isnan(a) | np.isnan(b)
    plain = {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "eq": a == b, "ne": a != b}
    wanted = plain[order[:2]] & ~nan | (nan if order.endswith("u") else False)
    out = np.zeros(len(a), np.uint32)
    text = f"""
.version 8.0
.target sm_90
.address_size 64
.entry k(.param .u64 a, .param .u64 b, .param .u64 c)
{{
  .reg .pred %p<3>; .reg .f32 %f<3>; .reg .b64 %rd<4>; .reg .b32 %r<4>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];
  mad.wide.u32 %rd1, %r1, 4, %rd1; mad.wide.u32 %rd2, %r1, 4, %rd2;
  mad.wide.u32 %rd3, %r1, 4, %rd3;
  ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd2];
  setp.{order}.f32 %p1|%p2, %f1, %f2;
  selp.b32 %r2, 2, 0, %p1;
  @%p2 add.s32 %r2, %r2, 1;
  st.global.u32 [%rd3], %r2;
  ret;
}}
"""
    sw.emulate(text, [a, b, out], grid=1, block=len(a))
    np.testing.assert_array_equal(out, np.where(wanted, 2, 1))


def test_functions() -> None:
    x = np.abs(floats(50)) + np.float32(0.1)
    for opcode, function in (
        ("ex2.approx.f32", np.exp2),
        ("lg2.approx.f32", np.log2),
        ("rcp.rn.f32", np.reciprocal),
        ("sqrt.rn.f32", np.sqrt),
        ("rsqrt.approx.f32", lambda x: 1 / np.sqrt(x)),
        ("tanh.approx.f32", np.tanh),
        ("sin.approx.f32", np.sin),
    ):
        found = computed(opcode, ["f32"], "f32", [x])
        np.testing.assert_array_equal(found, function(x.astype(np.float64)).astype(np.float32))


def test_denormal_numbers_are_flushed_where_it_says_so() -> None:
    x = np.array([1e-39, -1e-39, 1e-20, 3.0], np.float32)
    np.testing.assert_array_equal(computed("mul.f32", ["f32"] * 2, "f32", [x, x]), x * x)
    found = computed("add.ftz.f32", ["f32"] * 2, "f32", [x, np.zeros(4)])
    np.testing.assert_array_equal(found, np.array([0, 0, 1e-20, 3], np.float32))
    found = computed("fma.rn.sat.f32", ["f32"] * 3, "f32", [x, x, x])
    np.testing.assert_array_equal(found, np.array([1e-39, 0, 1e-20, 1], np.float32))


def test_conversions_of_floats() -> None:
    x = np.array([1.5, 2.5, -1.5, -0.4, 3e9, -3e9, math.inf, math.nan], np.float32)
    for rounding, function in (("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor)):
        wide = np.nan_to_num(function(x.astype(np.float64)))
        wanted = np.clip(wide, -(2**31), 2**31 - 1).astype(np.int32)
        found = computed(f"cvt.{rounding}.s32.f32", ["f32"], "s32", [x])
        np.testing.assert_array_equal(found, wanted)
        found = computed(f"cvt.{rounding}.f32.f32", ["f32"], "f32", [x])
        np.testing.assert_array_equal(found, function(x))
    large = [2**24 + 1, -(2**31), 7]
    found = computed("cvt.rn.f32.s32", ["s32"], "f32", [large])
    np.testing.assert_array_equal(found, np.array(large, np.int32).astype(np.float32))
    found = computed("cvt.rn.f16.f32", ["f32"], "f16", [x[:4] / 3])
    np.testing.assert_array_equal(found, (x[:4] / 3).astype(np.float16))
    # The first one is in the upper half.
    for kind, dtype in (("f16", np.dtype(np.float16)), ("bf16", np.dtype(bfloat16))):
        found = computed(f"cvt.rn.{kind}x2.f32", ["f32"] * 2, "b32", [x[:4] / 3, x[:4] / 7])
        halves = np.stack([x[:4] / 7, x[:4] / 3], 1).astype(dtype)
        np.testing.assert_array_equal(found, halves.view(np.uint32).ravel())


@pytest.mark.parametrize(
    ("test", "function"),
    [
        ("infinite", np.isinf),
        ("finite", np.isfinite),
        ("notanumber", np.isnan),
        ("number", lambda x: ~np.isnan(x)),
    ],
)
def test_classes_of_floats(test: str, function: Callable[[np.ndarray], np.ndarray]) -> None:
    x = np.array([0, -1.5, math.inf, -math.inf, math.nan], np.float32)
    text = f""".version 8.0
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 x, .param .u64 y)
    {{ .reg .pred %p; .reg .b32 %r<3>; .reg .f32 %f; .reg .b64 %a<5>;
    mov.u32 %r1, %tid.x; ld.param.u64 %a1, [x]; ld.param.u64 %a2, [y];
    mad.wide.u32 %a3, %r1, 4, %a1; mad.wide.u32 %a4, %r1, 4, %a2;
    ld.global.f32 %f, [%a3]; testp.{test}.f32 %p, %f; selp.u32 %r2, 1, 0, %p;
    st.global.u32 [%a4], %r2; ret; }}"""
    y = np.zeros(5, np.uint32)
    sw.emulate(text, [x, y], grid=1, block=5)
    np.testing.assert_array_equal(y != 0, function(x))


def test_bits_by_tables() -> None:
    columns = RNG.integers(0, 1 << 32, (3, 500)).tolist()
    rows = list(zip(*columns, strict=True))
    found = computed("lop3.b32", ["u32"] * 3, "u32", columns, ", 0x96")
    assert found.tolist() == [a ^ b ^ c for a, b, c in rows]
    selectors = [c & 0x7777 for c in columns[2]]
    found = computed("prmt.b32", ["u32"] * 3, "u32", [columns[0], columns[1], selectors])
    bytes_of = [a.to_bytes(4, "little") + b.to_bytes(4, "little") for a, b, _ in rows]
    wanted = [
        int.from_bytes(bytes(both[s >> 4 * n & 7] for n in range(4)), "little")
        for both, s in zip(bytes_of, selectors, strict=True)
    ]
    assert found.tolist() == wanted
