"""Functions of scalars, element by element: the table of their operators.

A row states the name of an operator, what it computes, its function on scalars and on arrays, and
the facts that passes ask for. Its class is made from the row; type checkers read the classes in
`functions.pyi`, which `make public` writes.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, i1, i32
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, result_def, traits_def
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import Commutative, OpTrait

from .....core.ir.definitions import irdl_op_definition
from .....core.ir.typed import bits
from ....upstream.ops import RemfOp
from ... import identities as known
from ...attrs import (
    DENSE_TENSOR,
    FLOAT_TENSOR,
    INTEGER_TENSOR,
    SHIFTED_TENSOR,
    TRUTH_TENSOR,
    TensorConstraint,
    is_float,
    is_unsigned,
)
from ...interfaces import GraphOp, Nest, element_type
from ...kinds import Precision
from ...nests import scalars
from ...traits import (
    AddedByPasses,
    Discontinuous,
    HalfPrecision,
    Homogeneous,
    KeepsNonnegative,
    NeverNegative,
    SignInterface,
)
from .bases import FloatUnaryOp, UnaryOp
from .binary import BinaryOp, ComparisonOp, larger, smaller, truncated_quotient

OperatorT = TypeVar("OperatorT", bound=UnaryOp | BinaryOp)
Method = Callable[..., SSAValue] | staticmethod

FOLLOWS_OPERANDS = HalfPrecision(Precision.FOLLOW)


def function(
    family: type[OperatorT],
    mnemonic: str,
    documentation: str,
    scalar: type[Operation] | Method,
    array: Callable[..., np.ndarray],
    operands: TensorConstraint | None = None,
    identities: tuple[RewritePattern, ...] = (),
    traits: tuple[OpTrait, ...] = (),
    is_nonnegative: Callable[[Any, Sequence[bool]], bool] | None = None,
) -> type[OperatorT]:
    """The class of an operator, from its row.

    Args:
        family: its base class.
        mnemonic: its name in the dialect; that of the class follows from it.
        documentation: what it computes; an example in IR is added.
        scalar: the operation on scalars that it is, or its method `scalar`.
        array: its function on arrays, in the type in which it is computed.
        operands: the types of its operands; None: those of the family. The result has them too,
            but for a comparison.
        identities: its canonicalisation patterns.
        traits: facts, such as those of `traits.py`.
        is_nonnegative: the method of `SignInterface`, where it has one.
    """
    name = "".join(word.capitalize() for word in mnemonic.split("_")) + "Op"
    example = _example(family, mnemonic, operands)
    body: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": f"{inspect.cleandoc(documentation)}\n\n{example}",
        "name": f"graph.{mnemonic}",
        "scalar": _inserting(scalar) if isinstance(scalar, type) else scalar,
        "array": staticmethod(array),
    }
    if operands is not None:
        names = ("x",) if issubclass(family, UnaryOp) else ("lhs", "rhs")
        body |= {operand: operand_def(operands) for operand in names}
        body |= {} if issubclass(family, ComparisonOp) else {"result": result_def(operands)}
    if traits:
        body["traits"] = traits_def(*traits)
    bases: tuple[type, ...] = (family,)
    if is_nonnegative is not None:
        bases = *bases, SignInterface
        body["is_nonnegative"] = is_nonnegative
    if identities:
        bases = *bases, HasCanonicalizationPatternsInterface
        body["get_canonicalization_patterns"] = classmethod(lambda cls: identities)
    return irdl_op_definition(types.new_class(name, bases, exec_body=lambda own: own.update(body)))


def _example(
    family: type[UnaryOp | BinaryOp], mnemonic: str, operands: TensorConstraint | None
) -> str:
    kinds = (f32,) if operands is None else operands.elements
    kind = next(kind for kind in (f32, i32, i1) if kind in kinds)
    result = i1 if issubclass(family, ComparisonOp) else kind
    names, given = "%x", f"tensor<4x3x{kind}>"
    if not issubclass(family, UnaryOp):
        names, given = "%a, %b", f"{given}, tensor<3x{kind}>"
    return f"%y = graph.{mnemonic} {names} : ({given}) -> tensor<4x3x{result}>"


def _inserting(operation: Callable[..., Operation]) -> Method:
    """The method of a function that is an operation on scalars."""

    def scalar(self: GraphOp, nest: Nest, *operands: SSAValue) -> SSAValue:
        return nest.insert(operation(*operands))

    return scalar


def _typed(compute: Callable[..., SSAValue]) -> Method:
    """The method of a function of scalars that also takes the element type of the operands."""

    def scalar(self: GraphOp, nest: Nest, *operands: SSAValue) -> SSAValue:
        return compute(nest, *operands, element_type(self.operands[0]))

    return scalar


# Signs and whole numbers


def _absolute(nest: Nest, x: SSAValue, kind: Attribute) -> SSAValue:
    if is_float(x.type):
        return nest.insert(math.AbsFOp(x))
    if is_unsigned(kind):
        return x
    return scalars.maximum(nest, x, scalars.negative(nest, x))


def _sign(nest: Nest, x: SSAValue, kind: Attribute) -> SSAValue:
    zero = scalars.zero(nest, x.type)
    if is_unsigned(kind):
        return scalars.select(nest, scalars.equal(nest, x, zero), zero, nest.constant(1, x.type))
    one, minus_one = (scalars.number(nest, n, x.type) for n in (1, -1))
    # -0.0 + 0.0 is 0.0
    neither = scalars.add(nest, x, zero)
    rest = scalars.select(nest, scalars.less(nest, x, zero), minus_one, neither)
    return scalars.select(nest, scalars.less(nest, zero, x), one, rest)


NegOp = function(
    UnaryOp,
    "neg",
    "-x.",
    staticmethod(scalars.negative),
    np.negative,
    identities=(known.involution,),
    traits=(Homogeneous(), FOLLOWS_OPERANDS),
)
AbsOp = function(
    UnaryOp,
    "abs",
    "The absolute value; the smallest integer, whose negation overflows, is unchanged.",
    _typed(_absolute),
    np.abs,
    identities=(known.even_function, known.idempotent),
    traits=(Homogeneous(), FOLLOWS_OPERANDS),
)
SignOp = function(
    UnaryOp,
    "sign",
    "1 for positive x, -1 for negative x, 0 for 0 of either sign; NaN stays NaN.",
    _typed(_sign),
    np.sign,
    traits=(Discontinuous(),),
)
CeilOp = function(
    FloatUnaryOp,
    "ceil",
    "The smallest whole number that is not below x.",
    math.CeilOp,
    np.ceil,
    traits=(Discontinuous(),),
)
FloorOp = function(
    FloatUnaryOp,
    "floor",
    "The largest whole number that is not above x.",
    math.FloorOp,
    np.floor,
    traits=(Discontinuous(),),
)
RoundOp = function(
    FloatUnaryOp,
    "round",
    "The nearest whole number, ties to even.",
    math.RoundEvenOp,
    np.round,
    traits=(Discontinuous(),),
)

# Roots, exponentials and logarithms


def _inverse_root(x: np.ndarray) -> np.ndarray:
    return x.dtype.type(1) / np.sqrt(x)


SqrtOp = function(
    FloatUnaryOp,
    "sqrt",
    "The square root; NaN for negative x.",
    math.SqrtOp,
    np.sqrt,
    traits=(NeverNegative(),),
)
RsqrtOp = function(
    FloatUnaryOp, "rsqrt", "One over the square root; inf for 0.", math.RsqrtOp, _inverse_root
)
ExpOp = function(
    FloatUnaryOp, "exp", "e to the power of x.", math.ExpOp, np.exp, traits=(NeverNegative(),)
)
SmallExpOp = function(
    FloatUnaryOp,
    "small_exp",
    """e to the power of x, which must not be above 64 in f32: cheaper than `exp`.

    It is a part of `softmax`, which bounds x; other programs use `exp`, which has all results.
    """,
    lambda self, nest, x: scalars.exp_of_difference(nest, x),
    np.exp,
    traits=(NeverNegative(), AddedByPasses()),
)
Expm1Op = function(FloatUnaryOp, "expm1", "exp(x) - 1, precise near 0.", math.ExpM1Op, np.expm1)
LogOp = function(
    FloatUnaryOp,
    "log",
    "The natural logarithm; NaN for negative x, -inf for 0.",
    math.LogOp,
    np.log,
)
Log1pOp = function(
    FloatUnaryOp,
    "log1p",
    "log(1 + x), precise near 0; NaN below -1, -inf for -1.",
    math.Log1pOp,
    np.log1p,
)

# Trigonometric and hyperbolic functions, and their inverses

SinOp = function(FloatUnaryOp, "sin", "The sine of an angle in radians.", math.SinOp, np.sin)
CosOp = function(FloatUnaryOp, "cos", "The cosine of an angle in radians.", math.CosOp, np.cos)
TanOp = function(FloatUnaryOp, "tan", "The tangent of an angle in radians.", math.TanOp, np.tan)
AsinOp = function(
    FloatUnaryOp,
    "asin",
    "The angle between -pi/2 and pi/2 whose sine is x; NaN outside of [-1, 1].",
    math.AsinOp,
    np.arcsin,
)
AcosOp = function(
    FloatUnaryOp,
    "acos",
    "The angle between 0 and pi whose cosine is x; NaN outside of [-1, 1].",
    math.AcosOp,
    np.arccos,
)
AtanOp = function(
    FloatUnaryOp,
    "atan",
    "The angle between -pi/2 and pi/2 whose tangent is x.",
    math.AtanOp,
    np.arctan,
)
SinhOp = function(
    FloatUnaryOp,
    "sinh",
    "The hyperbolic sine, (exp(x) - exp(-x)) / 2.",
    math.SinhOp,
    np.sinh,
)
CoshOp = function(
    FloatUnaryOp,
    "cosh",
    "The hyperbolic cosine, (exp(x) + exp(-x)) / 2.",
    math.CoshOp,
    np.cosh,
    traits=(NeverNegative(),),
)
TanhOp = function(FloatUnaryOp, "tanh", "The hyperbolic tangent.", math.TanhOp, np.tanh)
AsinhOp = function(
    FloatUnaryOp,
    "asinh",
    "The number whose hyperbolic sine is x.",
    math.AsinhOp,
    np.arcsinh,
)
AcoshOp = function(
    FloatUnaryOp,
    "acosh",
    "The number of 0 or more whose hyperbolic cosine is x; NaN below 1.",
    math.AcoshOp,
    np.arccosh,
)
AtanhOp = function(
    FloatUnaryOp,
    "atanh",
    "The number whose hyperbolic tangent is x; NaN outside of [-1, 1].",
    math.AtanhOp,
    np.arctanh,
)

# Activations and the error function


def _erf(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    return erf(x)


def _sigmoid(nest: Nest, x: SSAValue) -> SSAValue:
    one = nest.constant(1.0, x.type)
    e = nest.insert(math.ExpOp(scalars.negative(nest, x)))
    return scalars.divide(nest, one, scalars.add(nest, one, e))


def _sigmoids(x: np.ndarray) -> np.ndarray:
    one = x.dtype.type(1)
    return one / (one + np.exp(-x))


def _relu(nest: Nest, x: SSAValue, kind: Attribute) -> SSAValue:
    return scalars.maximum(nest, x, scalars.zero(nest, x.type), kind)


def _relus(x: np.ndarray) -> np.ndarray:
    return larger(x, x.dtype.type(0))


ErfOp = function(FloatUnaryOp, "erf", "The error function.", math.ErfOp, _erf)
SigmoidOp = function(
    FloatUnaryOp,
    "sigmoid",
    "1 / (1 + exp(-x)).",
    staticmethod(_sigmoid),
    _sigmoids,
    traits=(NeverNegative(),),
)
ReluOp = function(
    UnaryOp,
    "relu",
    "The larger of x and 0; NaN stays NaN.",
    _typed(_relu),
    _relus,
    identities=(known.idempotent,),
    traits=(Homogeneous(), NeverNegative(), FOLLOWS_OPERANDS),
)

# Arithmetic


def _is_square(self: BinaryOp, operands: Sequence[bool]) -> bool:
    return self.lhs is self.rhs and is_float(element_type(self.lhs))


def _quotients(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a / b if a.dtype.kind == "f" else truncated_quotient(a, b)


def _powers(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return np.power(a, b)
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 1, -1, 1), 0))
    return np.where(b < 0, inverse.astype(a.dtype), np.power(a, np.maximum(b, 0)))


AddOp = function(
    BinaryOp,
    "add",
    "a + b.",
    staticmethod(scalars.add),
    np.add,
    traits=(Commutative(), KeepsNonnegative(), FOLLOWS_OPERANDS),
    # 0.0 would turn -0.0 into 0.0
    identities=(known.neutral_operand.of(e=-0.0),),
)
SubOp = function(
    BinaryOp,
    "sub",
    "a - b.",
    staticmethod(scalars.sub),
    np.subtract,
    identities=(known.right_neutral_operand.of(e=0.0),),
    traits=(FOLLOWS_OPERANDS,),
)
MulOp = function(
    BinaryOp,
    "mul",
    "a * b.",
    staticmethod(scalars.mul),
    np.multiply,
    traits=(Commutative(), KeepsNonnegative(), FOLLOWS_OPERANDS),
    identities=(known.neutral_operand.of(e=1.0),),
    is_nonnegative=_is_square,
)
DivOp = function(
    BinaryOp,
    "div",
    "a / b. Integers are truncated toward zero, as in C and ONNX; x / 0 is 0.",
    _typed(scalars.divide),
    _quotients,
    identities=(known.right_neutral_operand.of(e=1.0),),
)
MaxOp = function(
    BinaryOp,
    "max",
    "The larger of a and b; NaN if one of them is.",
    _typed(scalars.maximum),
    larger,
    traits=(Commutative(), FOLLOWS_OPERANDS),
    identities=(known.of_same,),
    is_nonnegative=lambda self, operands: any(operands),
)
MinOp = function(
    BinaryOp,
    "min",
    "The smaller of a and b; NaN if one of them is.",
    _typed(scalars.minimum),
    smaller,
    traits=(Commutative(), KeepsNonnegative(), FOLLOWS_OPERANDS),
    identities=(known.of_same,),
)
PowOp = function(
    BinaryOp,
    "pow",
    """a to the power of b.

    An integer to a negative power is truncated toward zero: 1 ** -n is 1, (-1) ** -n is
    1 or -1, and everything else is 0 (NumPy raises an error there).
    """,
    _typed(scalars.power),
    _powers,
    identities=(known.right_neutral_operand.of(e=1.0), known.power_of_two),
    # A negative base has a power only for whole exponents.
    traits=(Discontinuous(operands=(1,)),),
)
FmodOp = function(
    BinaryOp,
    "fmod",
    """The remainder of a / b rounded toward zero, without a rounding; it has the sign of a.

    It is a for an infinite b, and NaN for an infinite a and for b = 0.
    """,
    RemfOp,
    np.fmod,
    operands=FLOAT_TENSOR,
    traits=(Discontinuous(),),
)

# Comparisons and logic


def _inverted(nest: Nest, x: SSAValue) -> SSAValue:
    ones = nest.constant(True, i1) if x.type == i1 else nest.constant(-1, x.type)
    return nest.insert(arith.XOrIOp(x, ones))


EqualOp = function(
    ComparisonOp,
    "equal",
    "a == b, for truth values as well.",
    staticmethod(scalars.equal),
    np.equal,
    operands=DENSE_TENSOR,
    traits=(Commutative(),),
)
LessOp = function(ComparisonOp, "less", "a < b.", _typed(scalars.less), np.less)
LessEqualOp = function(
    ComparisonOp, "less_equal", "a <= b.", _typed(scalars.less_equal), np.less_equal
)
GreaterOp = function(
    ComparisonOp,
    "greater",
    "a > b; canonically b < a.",
    _typed(lambda nest, a, b, kind: scalars.less(nest, b, a, kind)),
    np.greater,
    identities=(known.mirrored_greater,),
)
GreaterEqualOp = function(
    ComparisonOp,
    "greater_equal",
    "a >= b; canonically b <= a.",
    _typed(lambda nest, a, b, kind: scalars.less_equal(nest, b, a, kind)),
    np.greater_equal,
    identities=(known.mirrored_greater_equal,),
)
LogicalAndOp = function(
    BinaryOp,
    "logical_and",
    "Whether both are true.",
    arith.AndIOp,
    np.logical_and,
    operands=TRUTH_TENSOR,
    traits=(Commutative(),),
)
LogicalOrOp = function(
    BinaryOp,
    "logical_or",
    "Whether one of them is true.",
    arith.OrIOp,
    np.logical_or,
    operands=TRUTH_TENSOR,
    traits=(Commutative(),),
)
LogicalXorOp = function(
    BinaryOp,
    "logical_xor",
    "Whether they differ.",
    arith.XOrIOp,
    np.logical_xor,
    operands=TRUTH_TENSOR,
    traits=(Commutative(),),
)
LogicalNotOp = function(
    UnaryOp,
    "logical_not",
    "Whether x is false.",
    staticmethod(_inverted),
    np.logical_not,
    operands=TRUTH_TENSOR,
    identities=(known.involution,),
)

# The bits of integers


def _is_inside(nest: Nest, places: SSAValue, kind: Attribute) -> SSAValue:
    """Whether a shift by so many places leaves bits: a negative number is a large unsigned one."""
    width = nest.constant(bits(kind), places.type)
    return nest.insert(arith.CmpiOp(places, width, "ult"))


def _shifted_left(nest: Nest, a: SSAValue, places: SSAValue, kind: Attribute) -> SSAValue:
    inside, none = _is_inside(nest, places, kind), scalars.zero(nest, a.type)
    safe = scalars.select(nest, inside, places, none)
    return scalars.select(nest, inside, nest.insert(arith.ShLIOp(a, safe)), none)


def _shifted_right(nest: Nest, a: SSAValue, places: SSAValue, kind: Attribute) -> SSAValue:
    inside, none = _is_inside(nest, places, kind), scalars.zero(nest, a.type)
    if is_unsigned(kind):
        safe = scalars.select(nest, inside, places, none)
        return scalars.select(nest, inside, nest.insert(arith.ShRUIOp(a, safe)), none)
    # The last bit that is left is the sign.
    last = nest.constant(bits(kind) - 1, a.type)
    return nest.insert(arith.ShRSIOp(a, scalars.select(nest, inside, places, last)))


def _shifts_left(a: np.ndarray, places: np.ndarray) -> np.ndarray:
    inside = (places >= 0) & (places < 8 * a.itemsize)
    return np.where(inside, np.left_shift(a, np.where(inside, places, 0)), 0)


def _shifts_right(a: np.ndarray, places: np.ndarray) -> np.ndarray:
    inside = (places >= 0) & (places < 8 * a.itemsize)
    below = np.where(a < 0, -1, 0).astype(a.dtype)
    return np.where(inside, np.right_shift(a, np.where(inside, places, 0)), below)


BitwiseAndOp = function(
    BinaryOp,
    "bitwise_and",
    "The bits that are set in both; for truth values, canonically `graph.logical_and`.",
    arith.AndIOp,
    np.bitwise_and,
    operands=INTEGER_TENSOR,
    traits=(Commutative(),),
    identities=(known.and_as_logical,),
)
BitwiseOrOp = function(
    BinaryOp,
    "bitwise_or",
    "The bits that are set in one of them; for truth values, canonically `graph.logical_or`.",
    arith.OrIOp,
    np.bitwise_or,
    operands=INTEGER_TENSOR,
    traits=(Commutative(),),
    identities=(known.or_as_logical,),
)
BitwiseXorOp = function(
    BinaryOp,
    "bitwise_xor",
    "The bits that differ; for truth values, canonically `graph.logical_xor`.",
    arith.XOrIOp,
    np.bitwise_xor,
    operands=INTEGER_TENSOR,
    traits=(Commutative(),),
    identities=(known.xor_as_logical,),
)
BitwiseNotOp = function(
    UnaryOp,
    "bitwise_not",
    "The bits that are not set; for truth values, canonically `graph.logical_not`.",
    staticmethod(_inverted),
    np.invert,
    operands=INTEGER_TENSOR,
    identities=(known.involution, known.not_as_logical),
)
ShiftLeftOp = function(
    BinaryOp,
    "shift_left",
    "a * 2 ** b, of which the low bits are kept; 0 for b < 0 and for b not below the width.",
    _typed(_shifted_left),
    _shifts_left,
    operands=SHIFTED_TENSOR,
)
ShiftRightOp = function(
    BinaryOp,
    "shift_right",
    "a / 2 ** b, rounded down; for b < 0 and for b not below the width, 0 or -1 with a's sign.",
    _typed(_shifted_right),
    _shifts_right,
    operands=SHIFTED_TENSOR,
)
