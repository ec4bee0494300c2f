"""The functions that `convert-math-to-arith` expands, against f64, in ulps.

The expansions are evaluated operation by operation with NumPy, and as machine code, on whole
arrays of inputs: a sample of all f32, or with `STEPWELL_EXHAUSTIVE=1` the machine code on
every one of them (half an hour). In f64 they are random numbers, against extended precision.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import special
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.utils.type import get_element_type_or_self

from stepwell.backends.llvm.jit import compile_module
from stepwell.backends.reference.machine import ReferenceMachine, call
from stepwell.conversions.convert_math_to_arith import ConvertMathToArithPass
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import host
from stepwell.dialects.upstream.ops import AT_MOST_64

Array = np.ndarray[Any, np.dtype[Any]]

EXHAUSTIVE = os.environ.get("STEPWELL_EXHAUSTIVE") == "1"
STEP = 8191  # prime, so that low bits vary
CHUNK = 1 << 22

DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i1": np.bool_,
}

PREDICATES: dict[int, Callable[[Array, Array], Array]] = {
    1: np.equal,
    2: np.greater,
    4: np.less,
    5: np.less_equal,
    9: lambda a, b: ~np.less_equal(a, b),
    13: np.not_equal,
}


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c with one rounding, or two in one case out of millions."""
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    return (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(a.dtype)


ELEMENTWISE: dict[str, Callable[..., Array]] = {
    "arith.addf": np.add,
    "arith.addi": np.add,
    "arith.andi": np.bitwise_and,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.mulf": np.multiply,
    "arith.negf": np.negative,
    "arith.ori": np.bitwise_or,
    "arith.select": np.where,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.shrui": lambda a, b: (a.view(np.uint64) >> b.view(np.uint64)).view(np.int64),
    "arith.subf": np.subtract,
    "arith.subi": np.subtract,
    "arith.xori": np.bitwise_xor,
    "math.absf": np.abs,
    "math.copysign": np.copysign,
    "math.cos": np.cos,
    "math.fma": fma,
    "math.roundeven": np.rint,
    "math.sin": np.sin,
    "math.sqrt": np.sqrt,
    "math.tan": np.tan,
    # Of the condition of a branch, which is evaluated lane by lane.
    "vector.reduction": lambda lanes: lanes,
    "x86vector.avx512.mask.scalef": lambda _, a, b, *__: np.ldexp(a, np.nan_to_num(b).astype(int)),
}


def evaluate_op(op: Operation, operands: list[Array]) -> Array:
    """One operation of the expansions on arrays."""
    dtype = DTYPES[str(get_element_type_or_self(op.results[0].type))]
    if op.name == "arith.constant":
        value = op.properties["value"]
        if isinstance(value, DenseIntOrFPElementsAttr):
            return np.frombuffer(value.data.data, dtype)[:1]
        assert isinstance(value, FloatAttr | IntegerAttr)
        return np.array([value.value.data], dtype)
    if op.name == "arith.bitcast":
        return operands[0].view(dtype)
    if op.name == "arith.cmpf":
        predicate = op.properties["predicate"]
        assert isinstance(predicate, IntegerAttr)
        return PREDICATES[predicate.value.data](*operands)
    if op.name == "arith.trunci":
        assert dtype == np.bool_
        return operands[0] & 1 != 0
    if op.name in ("arith.extf", "arith.truncf", "arith.sitofp"):
        return operands[0].astype(dtype)
    return ELEMENTWISE[op.name](*operands)


def evaluate(module: ModuleOp, *arguments: Array) -> Array:
    """The result of the only function of `module`, for every element of the arguments."""
    (func,) = (op for op in module.ops if isinstance(op, FuncOp))
    values: dict[SSAValue, Array] = dict(zip(func.body.block.args, arguments, strict=True))
    with np.errstate(all="ignore"):
        return np.broadcast_to(evaluate_block(func.body.block, values), arguments[0].shape)


def evaluate_block(block: Block, values: dict[SSAValue, Array]) -> Array:
    """The operand of the last operation of a block."""
    for op in block.ops:
        operands = [values[operand] for operand in op.operands]
        if op.name in ("func.return", "scf.yield"):
            return operands[0]
        if op.name == "scf.if":
            branches = (evaluate_block(region.block, values) for region in op.regions)
            result = np.where(operands[0], *branches)
        else:
            result = evaluate_op(op, operands)
        assert result.dtype == DTYPES[str(get_element_type_or_self(op.results[0].type))]
        values[op.results[0]] = result
    raise AssertionError("no last operation")


def expanded(name: str, arity: int = 1, type: str = "f32", target: str | None = None) -> ModuleOp:
    """A function that does `math.<name>`, expanded."""
    arguments = ", ".join(f"%x{i}: {type}" for i in range(arity))
    operands = ", ".join(f"%x{i}" for i in range(arity))
    return convert(
        f"func.func @f({arguments}) -> {type} {{ %y = math.{name} {operands} : {type} "
        f"func.return %y : {type} }}",
        target,
    )


def convert(text: str, target: str | None = None) -> ModuleOp:
    ctx = make_context()
    module = Parser(ctx, text).parse_module()
    ConvertMathToArithPass(target).apply(ctx, module)
    module.verify()
    return module


def sample(step: int = STEP) -> Iterator[Array]:
    """Every f32 of a multiple of `step` as its bits, NaNs and infinities included, in chunks."""
    for start in range(0, 1 << 32, CHUNK * step):
        bits = np.arange(start, min(start + CHUNK * step, 1 << 32), step, dtype=np.int64)
        yield bits.astype(np.uint32).view(np.float32)


def ulps(result: Array, exact: Array) -> Array:
    """The distance of f32 results from exact ones, in ulps of the latter."""
    with np.errstate(all="ignore"):
        ulp = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 1, -126) - 23)
        error = np.abs(result.astype(np.float64) - exact) / ulp
        rounded = exact.astype(np.float32)
    both_nan = np.isnan(result) & np.isnan(exact)
    # An overflow is right where the exact result rounds to infinity.
    error = np.where((result == rounded) & ~(error <= 0.5), 0.5, error)
    return np.where(both_nan, 0.0, np.where(np.isnan(error), np.inf, error))


FUNCTIONS: dict[str, tuple[Callable[[Array], Array], float]] = {
    "acos": (np.arccos, 1.15),
    "acosh": (np.arccosh, 0.51),
    "asin": (np.arcsin, 1.17),
    "asinh": (np.arcsinh, 0.51),
    "atan": (np.arctan, 1.20),
    "atanh": (np.arctanh, 0.51),
    "cos": (np.cos, 0.51),
    "cosh": (np.cosh, 0.51),
    "erf": (special.erf, 0.87),
    "exp": (np.exp, 0.90),
    "exp2": (np.exp2, 0.88),
    "expm1": (np.expm1, 2.02),
    "log": (np.log, 1.07),
    "log1p": (np.log1p, 1.82),
    "log2": (np.log2, 2.10),
    "rsqrt": (lambda x: 1.0 / np.sqrt(x), 1.50),
    "sin": (np.sin, 0.51),
    "sinh": (np.sinh, 0.51),
    "tan": (np.tan, 0.51),
    "tanh": (np.tanh, 3.33),
}
"""The function in f64, and the error over all of f32 that the file of its formula states."""


@pytest.mark.parametrize("name", ["cos", "sin", "tan"])
def test_an_angle_does_not_depend_on_its_neighbours(name: str) -> None:
    """Vectors with an angle from 2^20 on, or NaN, take a branch, in which others are the same."""
    near = np.random.default_rng(0).uniform(-(2.0**20), 2.0**20, 64 * 16).astype(np.float32)
    far = np.array([2.0**20, -3e38, inf, nan], np.float32)
    mixed = near.reshape(64, 16).copy()
    mixed[np.arange(64), np.arange(64) % 16] = np.tile(far, 16)
    alone, beside = (compiled(name)(x) for x in (near, mixed.ravel()))
    same = mixed.ravel() == near
    np.testing.assert_array_equal(beside[same], alone[same])


@functools.cache
def compiled(
    name: str,
    arity: int = 1,
    type: str = "f32",
    attributes: str = "",
    target: str | None = None,
) -> Callable[..., Array]:
    """Machine code of a loop that does `math.<name>` on 16 lanes of f32, or 8 of f64.

    With the name of a target with a device, it is of what the device executes.
    """
    dtype = DTYPES[type]
    arguments, width = [f"%x{i}" for i in range(arity)], 64 // np.dtype(dtype).itemsize
    buffer, lanes = f"memref<?x{type}>", f"vector<{width}x{type}>"
    loads = [f"%a{i} = vector.load %x{i}[%i] : {buffer}, {lanes}" for i in range(arity)]
    text = f"""
      func.func @f({"".join(f"{x}: {buffer}, " for x in arguments)}%y: {buffer}) {{
        %zero = arith.constant 0 : index
        %step = arith.constant {width} : index
        %n = memref.dim %y, %zero : {buffer}
        scf.for %i = %zero to %n step %step {{
          {" ".join(loads)}
          %r = math.{name} {", ".join(f"%a{i}" for i in range(arity))} {attributes} : {lanes}
          vector.store %r, %y[%i] : {buffer}, {lanes}
        }}
        func.return
      }}"""
    ctx = make_context()
    module = Parser(ctx, text).parse_module()
    ConvertMathToArithPass(target).apply(ctx, module)
    run_passes(ctx, module, "convert-scf-to-cf,convert-to-llvm")
    code = compile_module(module, host())
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_int64] * (arity + 1))
    function = prototype(code.address("f"))

    def call(*inputs: Array) -> Array:
        assert code.addresses, "the code lives as long as this closure"
        count = inputs[0].size
        arrays = [np.concatenate([x, np.zeros(-count % width, dtype)]) for x in inputs]
        arrays.append(np.empty_like(arrays[0]))
        function(*(word for array in arrays for word in (array.ctypes.data, array.size)))
        return arrays[-1][:count]

    return call


def interpreted(name: str) -> Callable[[Array], Array]:
    """The expansion of `math.<name>`, operation by operation."""
    module = expanded(name)
    return lambda x: evaluate(module, x)


@pytest.mark.parametrize("run", [interpreted, compiled])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_and_sign(name: str, run: Callable[[str], Callable[[Array], Array]]) -> None:
    function, stated = FUNCTIONS[name]
    values = run(name)
    for x in sample(1 if EXHAUSTIVE and run is compiled else STEP):
        y = values(x)
        with np.errstate(all="ignore"):
            exact = function(x.astype(np.float64))
        error = ulps(y, exact)
        worst = int(np.argmax(error))
        assert error[worst] <= stated, f"{name}({x[worst]}) = {y[worst]}, not {exact[worst]}"
        wrong = (np.signbit(y) != np.signbit(exact)) & ~np.isnan(exact)
        assert not wrong.any(), f"{name}({x[wrong][:5]}) = {y[wrong][:5]}"


inf, nan, tiny, largest = np.inf, np.nan, 2.0**-149, 3.4028234663852886e38

SPECIAL = {
    "acos": "1:0 1.0000001:nan -1.0000001:nan inf:nan -inf:nan 0:1.5707964 -1:3.1415927",
    "asin": "0:0 -0:-0 1e-45:1e-45 1:1.5707964 -1:-1.5707964 1.0000001:nan inf:nan -inf:nan",
    "atan": "0:0 -0:-0 -1e-45:-1e-45 inf:1.5707964 -inf:-1.5707964 3.4e38:1.5707964",
    "erf": "0:0 -0:-0 inf:1 -inf:-1 4:1 -4:-1 3.4e38:1",
    "exp": "0:1 -0:1 inf:inf -inf:0 89:inf -104:0 1e-45:1",
    "exp2": "0:1 inf:inf -inf:0 128:inf 127:1.7014118e38 -149:1e-45 -151:0",
    "expm1": "0:0 -0:-0 inf:inf -inf:-1 89:inf -88:-1",
    "log": "1:0 0:-inf -0:-inf inf:inf -1:nan -inf:nan -1e-45:nan",
    "log1p": "0:0 -0:-0 -1:-inf inf:inf -1.5:nan -inf:nan 1e-45:1e-45",
    "log2": "1:0 0:-inf inf:inf 8:3 1e-45:-149 1.7014118e38:127 -1:nan",
    "rsqrt": "0:inf -0:-inf inf:0 4:0.5 -1:nan",
    "sin": "0:0 -0:-0 inf:nan -inf:nan 1e-45:1e-45 3.1415927:-8.742278e-8",
    "tan": "0:0 -0:-0 inf:nan -inf:nan -1e-45:-1e-45 1.5707964:-22877332",
    "tanh": "0:0 -0:-0 inf:1 -inf:-1 10:1 -3.4e38:-1 1e-45:1e-45",
}
"""Argument:result, exactly, with the signs of zeros."""


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str) -> None:
    pairs = [pair.split(":") for pair in f"{SPECIAL[name]} nan:nan".split()]
    x, expected = np.array(pairs).astype(np.float32).T.copy()
    y = evaluate(expanded(name), x)
    np.testing.assert_array_equal(y, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(y)[numbers], np.signbit(expected)[numbers])


def test_quick_error_function() -> None:
    """The one that `afn` permits, as gelu does: another formula near 0."""
    module = convert(
        "func.func @f(%x: f32) -> f32 { %y = math.erf %x fastmath<afn> : f32 func.return %y : f32 }"
    )
    usual = expanded("erf")
    assert len(list(module.walk())) < 0.8 * len(list(usual.walk()))
    x = np.linspace(-5.0, 5.0, 400_001, dtype=np.float32)
    y = evaluate(module, x)
    assert ulps(y, special.erf(x.astype(np.float64))).max() <= 3.10
    assert np.abs(y).max() == 1.0


@pytest.mark.parametrize(("name", "end"), [("tanh", 9.02), ("erf", 3.93)])
def test_saturates_and_is_odd(name: str, end: float) -> None:
    module = expanded(name)
    x = np.linspace(0.0, 2.0 * end, 200_001, dtype=np.float32)
    y = evaluate(module, x)
    assert y.max() == 1.0
    assert (y[x >= end] == 1.0).all()
    np.testing.assert_array_equal(evaluate(module, -x), -y)


def check_power(x: Array, y: Array) -> None:
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
    for result in (evaluate(expanded("powf", 2), x, y), compiled("powf", 2)(x, y)):
        error = ulps(result, exact)
        worst = int(np.argmax(error))
        case = f"{x[worst]} ** {y[worst]}"
        assert error[worst] <= 0.75, f"{case} = {result[worst]}, not {exact[worst]}"
        wrong = (np.signbit(result) != np.signbit(exact)) & ~np.isnan(exact)
        assert not wrong.any(), f"{x[wrong][:5]} ** {y[wrong][:5]} = {result[wrong][:5]}"


POWERS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, tiny, 1e-38, 1 - 2.0**-24, 1 + 2.0**-23]
POWERS += [2.0**23 + 1, 2.0**24 - 1, 2.0**24, 2.0**24 + 2, 2.0**31, 1e10, largest, inf]


def test_power_special_cases() -> None:
    values = np.array([*POWERS, *(-value for value in POWERS), nan], np.float32)
    x, y = np.meshgrid(values, values)
    check_power(x.ravel(), y.ravel())


def test_power_error() -> None:
    rng = np.random.default_rng(0)
    count = 200_000
    bits = rng.integers(0, 1 << 32, (2, count), dtype=np.uint32).view(np.float32)
    check_power(bits[0], bits[1])
    # Bases of all sizes and near 1, with exponents that give every size of result.
    size = rng.uniform(-151.0, 129.0, count)
    near_one = 1.0 + rng.standard_normal(count) * 10.0 ** rng.uniform(-7.0, -1.0, count)
    for x in (np.abs(bits[0]), near_one.astype(np.float32)):
        with np.errstate(all="ignore"):
            y = (size / np.log2(np.abs(x).astype(np.float64))).astype(np.float32)
        check_power(x, y)
    # Negative bases with whole and half exponents.
    x = (rng.standard_normal(count) * 10.0).astype(np.float32)
    check_power(x, (rng.integers(-40, 40, count) / 2).astype(np.float32))


@pytest.mark.parametrize("exponent", [-1.0, -0.5, 0.0, 0.5, 0.75, 1.0, 2.0, 3.0, 4.0])
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_constant_powers(exponent: float, type: str) -> None:
    """x ** 2 and the like are not computed through the logarithm, and give what it gives."""
    module = convert(
        f"func.func @f(%x: {type}) -> {type} {{ %e = arith.constant {exponent} : {type} "
        f"%y = math.powf %x, %e : {type} func.return %y : {type} }}"
    )
    assert not [op for op in module.walk() if op.name == "math.powf"]
    with np.errstate(invalid="ignore"):  # NaNs that signal
        x = np.concatenate([next(sample()), [0.0, -0.0, inf, -inf, nan, tiny, largest]])
        x = x.astype(DTYPES[type])
    y = evaluate(module, x)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), np.full(x.shape, exponent))
        error = ulps(y.astype(np.float32), exact)
    assert error.max() <= 2.0, (x[error.argmax()], y[error.argmax()])
    wrong = (np.signbit(y) != np.signbit(exact)) & ~np.isnan(exact)
    assert not wrong.any(), (x[wrong][:5], y[wrong][:5])


def exact_erf(x: Array) -> Array:
    """The error function in extended precision, by a series whose terms have one sign."""
    t = np.minimum(np.abs(x.astype(np.longdouble)), 7)
    total = term = t
    for n in range(1, 200):
        term = term * (2 * t * t / (2 * n + 1))
        total = total + term
    pi = np.longdouble("3.14159265358979323846264338327950288")
    return np.copysign(2 / np.sqrt(pi) * np.exp(-t * t) * total, x)


FUNCTIONS_OF_F64: dict[str, tuple[Callable[[Array], Array], float]] = {
    "acos": (lambda x: np.arccos(x.astype(np.longdouble)), 1.0),
    "acosh": (lambda x: np.arccosh(x.astype(np.longdouble)), 1.0),
    "asin": (lambda x: np.arcsin(x.astype(np.longdouble)), 1.0),
    "asinh": (lambda x: np.arcsinh(x.astype(np.longdouble)), 1.0),
    "atan": (lambda x: np.arctan(x.astype(np.longdouble)), 1.0),
    "atanh": (lambda x: np.arctanh(x.astype(np.longdouble)), 1.0),
    "cosh": (lambda x: np.cosh(x.astype(np.longdouble)), 1.0),
    "erf": (exact_erf, 0.90),
    "exp": (lambda x: np.exp(x.astype(np.longdouble)), 0.79),
    "exp2": (lambda x: np.exp2(x.astype(np.longdouble)), 0.79),
    "expm1": (lambda x: np.expm1(x.astype(np.longdouble)), 0.81),
    "log": (lambda x: np.log(x.astype(np.longdouble)), 0.83),
    "log1p": (lambda x: np.log1p(x.astype(np.longdouble)), 0.85),
    "log2": (lambda x: np.log2(x.astype(np.longdouble)), 0.77),
    "sinh": (lambda x: np.sinh(x.astype(np.longdouble)), 1.0),
    "tanh": (lambda x: np.tanh(x.astype(np.longdouble)), 1.0),
}
"""The function in extended precision, and the error that the file of its formula states."""
COUNT_OF_F64 = 4_000_000 if EXHAUSTIVE else 20_000


def numbers_of_f64() -> Iterator[Array]:
    """Numbers of all bits, those around 1, and around the ends of the results of `exp`, `exp2`."""
    rng, count = np.random.default_rng(0), COUNT_OF_F64
    yield rng.integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64)
    yield rng.uniform(-2.0, 2.0, count)
    yield rng.uniform(-750.0, 712.0, count)
    yield rng.uniform(-1080.0, 1030.0, count)
    yield rng.uniform(0.3, 0.5, count)
    yield rng.uniform(-6.5, 6.5, count)
    yield 1.0 + rng.standard_normal(count) * 10.0 ** rng.uniform(-16.0, 0.0, count)
    yield np.ldexp(rng.uniform(-1.0, 1.0, count), rng.integers(-1074, -1000, count))
    bounds = np.array([0.85, 5.93, 2 / 3, 4 / 3, 2.0**-1022, 709.782712893384, -745.1332191019411])
    bounds = np.append(bounds, [1024.0, -1022.0, -1075.0, -1.0, 1 / 3, -1 / 3, 2.0**53, 37.4])
    yield np.concatenate([np.nextafter(bounds, end) for end in (-np.inf, 0.0, np.inf)])


def check_in_f64(name: str, y: Array, exact: Array, stated: float, *arguments: Array) -> None:
    """The errors of results in f64, and their signs."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float64)
        ulp = np.ldexp(np.longdouble(1), np.maximum(np.frexp(exact)[1] - 1, -1022) - 52)
        error = np.abs(y.astype(np.longdouble) - exact) / ulp
    alike = (y == rounded) | (np.isnan(y) & np.isnan(rounded))
    ends = ~np.isfinite(y) | ~np.isfinite(rounded)
    error = np.where(ends, np.where(alike, 0.0, np.inf), error)
    worst = int(np.argmax(error))
    given = [x[worst] for x in arguments]
    assert error[worst] <= stated, f"{name}{given} = {y[worst]!r}, not {exact[worst]}"
    wrong = (np.signbit(y) != np.signbit(exact)) & ~np.isnan(rounded)
    assert not wrong.any(), f"{name}{[x[wrong][:5] for x in arguments]} = {y[wrong][:5]}"


@pytest.mark.parametrize("name", FUNCTIONS_OF_F64)
def test_error_and_sign_in_f64(name: str) -> None:
    (function, stated), values = FUNCTIONS_OF_F64[name], compiled(name, type="f64")
    for x in numbers_of_f64():
        with np.errstate(all="ignore"):
            exact = function(x)
        check_in_f64(name, values(x), exact, stated, x)


CIRCLES: dict[str, tuple[Callable[[Array], Array], float]] = {
    "cos": (lambda x: np.cos(x.astype(np.longdouble)), 0.80),
    "sin": (lambda x: np.sin(x.astype(np.longdouble)), 0.80),
    "tan": (lambda x: np.tan(x.astype(np.longdouble)), 0.90),
}
DEVICE = "cuda:sm_90,emulated"


def angles_of_f64() -> Iterator[Array]:
    """Numbers of all bits and sizes, those below 2^21, and those next to quarters of a circle."""
    rng, count = np.random.default_rng(0), COUNT_OF_F64
    yield rng.integers(0, 1 << 64, count, dtype=np.uint64).view(np.float64)
    yield rng.uniform(-1.0, 1.0, count)
    yield rng.uniform(-100.0, 100.0, count)
    yield rng.uniform(-(2.0**21), 2.0**21, count)
    yield np.ldexp(rng.uniform(-1.0, 1.0, count), rng.integers(-1074, 1024, count))
    quarters = np.arange(min(count, 2**20)) * (np.pi / 2)
    for end in (0.0, np.inf):
        yield np.nextafter(quarters, end)
    bounds = np.array([2.0**20, 2.0**63, np.pi / 4, 5e-324, 2.0**-1022])
    # The second one is the next one to a multiple of pi/2 of all numbers (J.-M. Muller, Elementary
    # Functions); a product of the third one is small, and its words carry.
    near = [1.7976931348623157e308, 6381956970095103.0 * 2.0**797, 5.354930492483087e275]
    some = np.array([*bounds, *np.nextafter(bounds, 0), *np.nextafter(bounds, 3e38), *near])
    some = np.append(some, [0.0, np.inf, np.nan])
    yield np.concatenate([some, -some])


@pytest.mark.parametrize("name", CIRCLES)
def test_circles_of_a_device_in_f64(name: str) -> None:
    (function, stated), values = CIRCLES[name], compiled(name, type="f64", target=DEVICE)
    for x in angles_of_f64():
        with np.errstate(all="ignore"):
            exact = function(x)
        check_in_f64(name, values(x), exact, stated, x)


def check_power_in_f64(x: Array, y: Array, stated: float) -> None:
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    check_in_f64("powf", compiled("powf", 2, "f64")(x, y), exact, stated, x, y)


def test_power_special_cases_in_f64() -> None:
    near = [1 - 2.0**-53, 1 + 2.0**-52, 2.0**52 + 1, 2.0**53 - 1, 2.0**53, 2.0**53 + 2]
    sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 5e-324, 1e-308, *near, 1e19, 1.7e308, inf]
    values = np.array([*sizes, *(-value for value in sizes), nan])
    x, y = np.meshgrid(values, values)
    check_power_in_f64(x.ravel(), y.ravel(), 0.79)


def test_power_error_in_f64() -> None:
    rng, count = np.random.default_rng(0), COUNT_OF_F64
    bits = rng.integers(0, 1 << 64, (2, count), dtype=np.uint64).view(np.float64)
    check_power_in_f64(bits[0], bits[1], 0.79)
    # Bases of all sizes, denormal ones, near 1 and of some units, with exponents that give every
    # size of result; denormal ones are rounded twice.
    near_one = 1.0 + rng.standard_normal(count) * 10.0 ** rng.uniform(-16.0, -1.0, count)
    denormal = np.ldexp(rng.uniform(0.5, 1.0, count), rng.integers(-1073, -1000, count))
    for least, stated in ((-1022.0, 0.61), (-1076.0, 0.79)):
        size = rng.uniform(least, 1025.0, count)
        for x in (np.abs(bits[0]), near_one, denormal, rng.uniform(0.3, 3.0, count)):
            with np.errstate(all="ignore"):
                y = size / np.log2(x)
            check_power_in_f64(x, y, stated)
    # Negative bases with whole and half exponents.
    x = rng.standard_normal(count) * 10.0
    check_power_in_f64(x, rng.integers(-40, 40, count) / 2, 0.61)


SPECIAL_OF_F64 = {
    "erf": "0:0 -0:-0 inf:1 -inf:-1 5.93:1 -5.93:-1 1.7e308:1 nan:nan",
    "exp": "0:1 -0:1 inf:inf -inf:0 710:inf -746:0 5e-324:1 1.7e308:inf -1.7e308:0 nan:nan",
    "exp2": "0:1 -0:1 inf:inf -inf:0 1024:inf -1074:5e-324 -1076:0 nan:nan",
    "expm1": "0:0 -0:-0 5e-324:5e-324 inf:inf -inf:-1 710:inf -40:-1 -1.7e308:-1 nan:nan",
    "log": "1:0 0:-inf -0:-inf inf:inf -1:nan -inf:nan -5e-324:nan nan:nan",
    "log1p": "0:0 -0:-0 -1:-inf inf:inf -1.5:nan -inf:nan 5e-324:5e-324 -5e-324:-5e-324 nan:nan",
    "log2": "1:0 0:-inf -0:-inf inf:inf 8:3 5e-324:-1074 8.98846567431158e307:1023 -1:nan nan:nan",
}
"""Argument:result, exactly, with the signs of zeros."""


@pytest.mark.parametrize("name", SPECIAL_OF_F64)
def test_special_values_in_f64(name: str) -> None:
    pairs = [pair.split(":") for pair in SPECIAL_OF_F64[name].split()]
    x, expected = np.array(pairs).astype(np.float64).T.copy()
    y = compiled(name, type="f64")(x)
    np.testing.assert_array_equal(y, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(y)[numbers], np.signbit(expected)[numbers])


def test_lanes_are_like_scalars() -> None:
    """A vector is expanded into the operations of a scalar."""
    for name in FUNCTIONS:
        scalar, lanes = expanded(name), expanded(name, type="vector<8xf32>")
        assert [op.name for op in scalar.walk()] == [
            op.name for op in lanes.walk() if op.name != "vector.reduction"
        ]
        x = next(sample())[:1000]
        np.testing.assert_array_equal(evaluate(scalar, x), evaluate(lanes, x))


@pytest.mark.parametrize("name", ["exp", "exp2"])
def test_scaling_by_an_instruction(name: str) -> None:
    """What AVX-512 does in one instruction gives what any processor computes, bit by bit."""
    scaled = expanded(name, type="vector<16xf32>", target="x86-64-v4")
    assert any(op.name == "x86vector.avx512.mask.scalef" for op in scaled.walk())
    x = next(sample())
    np.testing.assert_array_equal(evaluate(scaled, x), evaluate(expanded(name), x))


@pytest.mark.parametrize(("type", "target"), [("f32", None), ("vector<16xf32>", "x86-64-v4")])
def test_exponentials_of_small_numbers(type: str, target: str | None) -> None:
    """They have no upper bound, and the bits of others."""
    known = convert(
        f"func.func @f(%x: {type}) -> {type} {{ %y = math.exp %x {{{AT_MOST_64}}} : {type} "
        f"func.return %y : {type} }}",
        target,
    )
    assert not any(op.name == "arith.minimumf" for op in known.walk())
    unknown = expanded("exp", type=type, target=target)
    for x in sample():
        small = x[~(x > 64)]
        bits = (evaluate(module, small).view(np.uint32) for module in (known, unknown))
        np.testing.assert_array_equal(*bits)


def test_exponentials_of_all_small_numbers() -> None:
    known, unknown = compiled("exp", attributes=f"{{{AT_MOST_64}}}"), compiled("exp")
    for x in sample(1 if EXHAUSTIVE else STEP):
        small = x[~(x > 64)]
        np.testing.assert_array_equal(known(small).view(np.uint32), unknown(small).view(np.uint32))


SCALE = """
func.func @f(%rest: vector<16xf32>, %a: vector<16xf32>, %b: vector<16xf32>) -> vector<16xf32> {
  %mask = arith.constant 30583 : i16
  %nearest = arith.constant 4 : i32
  %y = x86vector.avx512.mask.scalef %rest, %a, %b, %mask, %nearest : vector<16xf32>
  func.return %y : vector<16xf32>
}
"""


@pytest.mark.parametrize("passes", ["", "convert-to-llvm"])
def test_scaling_in_the_interpreter(passes: str) -> None:
    """Lanes that the mask leaves out, halves that are rounded down, denormals, overflow, NaN."""
    ctx = make_context()
    module = Parser(ctx, SCALE).parse_module()
    run_passes(ctx, module, passes)
    rest = np.arange(16, dtype=np.float32)
    a = np.array([1.5, -3, 1 + 2**-23, 7, nan, inf, 0, 1] * 2, np.float32)
    b = np.array([2, -1.5, -127, 9, 1, 3, 100, nan, 127.5, 140, -149, 9, 1, -3, 0, 1], np.float32)
    (y,) = call(ReferenceMachine(module), module.ops.first, [rest, a, b])
    with np.errstate(all="ignore"):
        expected = (a * np.exp2(np.floor(b.astype(np.float64)))).astype(np.float32)
    expected[[3, 7, 11, 15]] = rest[[3, 7, 11, 15]]
    np.testing.assert_array_equal(y, expected)
