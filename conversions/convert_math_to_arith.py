"""`math` functions of f32 and f64 become arithmetic that every vector unit has.

LLVM lowers `llvm.exp` of a vector to a call of the C library for each lane. Here each function
becomes a few dozen instructions on all lanes at once: the formulas are in `polynomials.py` and
`arcs.py`, each with its maximum error over all of f32, for f64 in `doubles.py` and
`double_arcs.py`, and for both in `hyperbolic.py`. `circles.py` is for f32, `double_circles.py` for
devices. Source: `math`. Target: `arith`, those operations of `math` that are one instruction, and
`scf.if` around what few numbers need.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    ModuleOp,
    VectorType,
    bf16,
    f16,
    f32,
    f64,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import IsolatedFromAbove
from xdsl.utils.type import get_element_type_or_self

from ..core.instructions import EXTEND_F16, FMA, TRUNCATE_F16
from ..core.ir.context import target_of
from ..core.ir.typed import is_splat
from ..core.ir.walks import operations_in
from ..core.pipelines.actions import allowed
from ..core.pipelines.budgets import APPROXIMATION
from ..core.target import Target, named
from ..dialects.upstream import ops as upstream
from .math_to_arith import (
    arcs,
    circles,
    double_arcs,
    double_circles,
    double_power,
    doubles,
    halves,
    hyperbolic,
    polynomials,
    power,
)
from .math_to_arith.arithmetic import Arithmetic
from .math_to_arith.hyperbolic import rounded_once
from .math_to_arith.widening import widen

_Expansion = Callable[..., SSAValue]

_F32: dict[type[Operation], _Expansion] = {
    math.AcosOp: arcs.acos,
    math.AcoshOp: rounded_once(hyperbolic.acosh),
    math.AsinOp: arcs.asin,
    math.AsinhOp: rounded_once(hyperbolic.asinh),
    math.AtanOp: arcs.atan,
    math.AtanhOp: rounded_once(hyperbolic.atanh),
    math.CosOp: circles.by_library(circles.cos, math.CosOp),
    math.CoshOp: rounded_once(hyperbolic.cosh),
    math.Exp2Op: polynomials.exp2,
    math.ExpM1Op: polynomials.expm1,
    math.ExpOp: polynomials.exp,
    math.Log1pOp: polynomials.log1p,
    math.Log2Op: polynomials.log2,
    math.LogOp: polynomials.log,
    math.PowFOp: power.power,
    math.SinOp: circles.by_library(circles.sin, math.SinOp),
    math.SinhOp: rounded_once(hyperbolic.sinh),
    math.TanOp: circles.by_library(circles.tan, math.TanOp),
    math.TanhOp: polynomials.tanh,
}

_F64: dict[type[Operation], _Expansion] = {
    math.AcosOp: double_arcs.acos,
    math.AcoshOp: hyperbolic.acosh,
    math.AsinOp: double_arcs.asin,
    math.AsinhOp: hyperbolic.asinh,
    math.AtanOp: double_arcs.atan,
    math.AtanhOp: hyperbolic.atanh,
    math.CoshOp: hyperbolic.cosh,
    math.ErfOp: doubles.erf,
    math.Exp2Op: doubles.exp2,
    math.ExpM1Op: doubles.expm1,
    math.ExpOp: doubles.exp,
    math.Log1pOp: doubles.log1p,
    math.Log2Op: doubles.log2,
    math.LogOp: doubles.log,
    math.PowFOp: double_power.power,
    math.SinhOp: hyperbolic.sinh,
    math.TanhOp: hyperbolic.tanh,
}

_ON_DEVICE: dict[tuple[type[Operation], Attribute | None], _Expansion] = {
    (math.CosOp, f32): circles.of_any(circles.cos),
    (math.SinOp, f32): circles.of_any(circles.sin),
    (math.TanOp, f32): circles.of_any(circles.tan),
    (math.CosOp, f64): double_circles.cos,
    (math.SinOp, f64): double_circles.sin,
    (math.TanOp, f64): double_circles.tan,
}
"""Functions that the C library has where there is one, for some or all numbers."""

_BRANCHING = (math.CosOp, math.SinOp, math.TanOp)
"""Functions of f32 that ask for something of all lanes of a vector, which has one dimension."""

_CONSTANT_POWERS: dict[float, _Expansion] = {
    -1.0: polynomials.reciprocal,
    -0.5: polynomials.reciprocal_root,
    0.0: polynomials.one,
    0.5: polynomials.root,
    0.75: polynomials.three_quarters,
    1.0: polynomials.identity,
    2.0: polynomials.square,
    3.0: polynomials.cube,
    4.0: polynomials.fourth,
}


def _constant(value: SSAValue) -> float | None:
    """The number in every lane of `value`, if known."""
    op = value.owner
    if isinstance(op, upstream.BroadcastOp):
        return _constant(op.source)
    if not isinstance(op, arith.ConstantOp):
        return None
    if isinstance(op.value, FloatAttr):
        return op.value.value.data
    if not isinstance(op.value, DenseIntOrFPElementsAttr) or not is_splat(op.value):
        return None
    number = next(iter(op.value.iter_values()))
    return number if isinstance(number, float) else None


def _expansion(op: Operation, target: Target) -> tuple[_Expansion, tuple[SSAValue, ...]] | None:
    """The function that emits the expansion of `op`, and its arguments; None if it has none."""
    if not op.name.startswith("math."):
        converts = op.name in (arith.ExtFOp.name, arith.TruncFOp.name)
        return _conversion(op, target) if converts else None
    if isinstance(op, math.RsqrtOp):
        return polynomials.rsqrt, (op.operand,)
    if isinstance(op, math.PowFOp):
        exponent = _constant(op.rhs)
        if exponent in _CONSTANT_POWERS:
            return _CONSTANT_POWERS[exponent], (op.lhs,)
    kind = op.results[0].type if op.results else None
    element = None if kind is None else get_element_type_or_self(kind)
    expansion = None if target.device is None else _ON_DEVICE.get((type(op), element))
    if expansion is not None:
        return expansion, tuple(op.operands)
    if element == f64:
        # A product of pairs is precise by what a fused multiply-add does not round.
        pairs = isinstance(op, math.PowFOp)
        expansion = None if pairs and not _fuses(target) else _F64.get(type(op))
    elif element != f32:
        return None
    elif isinstance(op, math.ErfOp):
        quick = FastMathFlag.APPROX_FUNC in op.fastmath.data
        expansion = polynomials.quick_erf if quick else polynomials.erf
    elif isinstance(op, math.ExpOp) and upstream.AT_MOST_64 in op.attributes:
        expansion = polynomials.exp_of_small
    elif isinstance(kind, VectorType) and kind.get_num_dims() != 1:
        expansion = None if type(op) in _BRANCHING else _F32.get(type(op))
    else:
        expansion = _F32.get(type(op))
    return None if expansion is None else (expansion, tuple(op.operands))


def _fuses(target: Target) -> bool:
    """Whether what executes kernels has fused multiply-adds, as every device does."""
    return target.device is not None or target.has(FMA)


def _conversion(op: Operation, target: Target) -> tuple[_Expansion, tuple[SSAValue, ...]] | None:
    """Conversions from and to 16 bits without an instruction on the target."""
    (given,), widens = op.operands, op.name == arith.ExtFOp.name
    narrow, wide = given.type, op.results[0].type
    if not widens:
        narrow, wide = wide, narrow
    kind = get_element_type_or_self(narrow)
    single = get_element_type_or_self(wide) == f32
    instructions = target.has(EXTEND_F16 if widens else TRUNCATE_F16)
    if kind not in (f16, bf16) or (single and (kind == bf16 or instructions)):
        return None
    expand = halves.extended if widens else halves.truncated
    return functools.partial(expand, instructions=instructions), (given,)


def _isolated_region(op: Operation) -> Region:
    """The innermost region around `op` that sees no value from outside it."""
    parent = op.parent_op()
    while parent is not None and not parent.has_trait(IsolatedFromAbove):
        op, parent = parent, parent.parent_op()
    region = op.parent_region()
    assert region is not None, "the walk starts below a module, which is isolated"
    return region


@dataclass
class _Places:
    """The `Arithmetic` of each type in each isolated region."""

    target: Target
    found: dict[tuple[Region, Attribute], Arithmetic] = field(default_factory=dict)

    def at(self, op: Operation) -> Arithmetic:
        """The `Arithmetic` of the type of `op`, set to its location."""
        key = _isolated_region(op), op.results[0].type
        place = self.found.get(key)
        if place is None:
            place = self.found[key] = Arithmetic(key[1], self.target)
        place.location = op.location
        return place

    def insert_constants(self) -> None:
        """Insert the constants at the entry of their regions."""
        for (region, _), place in self.found.items():
            entry = region.blocks[0]
            if not place.hoisted:
                continue
            assert entry.first_op is not None
            entry.insert_ops_before(place.hoisted, entry.first_op)


def _runs(module: ModuleOp, target: Target) -> list[list[Operation]]:
    """The operations to expand; independent neighbours of one kind are in one run."""
    runs: list[list[Operation]] = []
    for op in operations_in(module):
        if _expansion(op, target) is None:
            continue
        run = runs[-1] if runs else []
        if (
            run
            and len(run) < target.interleaved_vectors
            and run[-1].next_op is op
            and _alike(op, run)
        ):
            run.append(op)
        else:
            runs.append([op])
    return runs


def _alike(op: Operation, run: Sequence[Operation]) -> bool:
    same = op.name == run[0].name and op.results[0].type == run[0].results[0].type
    return same and not any(operand.owner in run for operand in op.operands)


def _expand(run: Sequence[Operation], places: _Places, target: Target) -> None:
    """Expand a run: each operation becomes a long chain, and the chains are interleaved.

    That hides their latency.
    """
    chains: list[list[Operation]] = []
    results: list[SSAValue] = []
    for op in run:
        found = _expansion(op, target)
        assert found is not None, "the run was made of operations that are expanded"
        expand, arguments = found
        place = places.at(op)
        results.append(expand(place, *arguments))
        chains.append(place.take())
    block = run[0].parent_block()
    assert block is not None
    steps = [step for steps in zip_longest(*chains) for step in steps if step is not None]
    block.insert_ops_before(steps, run[0])
    for op, result in zip(run, results, strict=True):
        op.results[0].replace_all_uses_with(result)
        block.erase_op(op)


# fma(a, b, c) == a * b + c, rounded twice
def _unfuse(module: ModuleOp) -> None:
    """Split fused operations for a target that would call a function for each lane."""
    for op in [op for op in operations_in(module) if isinstance(op, math.FmaOp)]:
        product = arith.MulfOp(op.a, op.b)
        product.location = op.location
        total = arith.AddfOp(product, op.c)
        total.location = op.location
        Rewriter.replace_op(op, [product, total])


@dataclass(frozen=True)
class ConvertMathToArithPass(ModulePass):
    """Expand transcendental functions, scalar or vector, into arithmetic.

    Before:
    ```mlir
    func.func @f(%x: vector<16xf32>) -> vector<16xf32> {
      %y = math.rsqrt %x : vector<16xf32>
      func.return %y : vector<16xf32>
    }
    ```

    Options: `target=x86-64`

    After:
    ```mlir
    func.func @f(%x: vector<16xf32>) -> vector<16xf32> {
      %one = arith.constant dense<1.0> : vector<16xf32>
      %root = math.sqrt %x : vector<16xf32>
      %y = arith.divf %one, %root : vector<16xf32>
      func.return %y : vector<16xf32>
    }
    ```

    Requires: nothing; `math` operations may stand anywhere.
    Order: before `convert-to-llvm`, which has slower functions for what is left.
    Leaves: no acos, acosh, asin, asinh, atan, atanh, cosh, erf, exp, exp2, expm1, log, log1p, log2,
    sinh, tanh of f32 and f64, no cos, powf, sin and tan of f32, and no rsqrt and no powf with an
    exponent of -1, -0.5, 0.5, 0.75, 1, 2, 3 or 4 of any float type; no powf of f64 on a target with
    fma. Operations that are one instruction (absf, ceil, copysign, floor, fma, roundeven, sqrt...)
    and other functions stay for `convert-math-to-llvm`; on a target without fma that one is a
    product and a sum. For a target with a device, no cos, sin and tan of f64 are left; for others,
    those of f32 leave angles from 2^20 on, in a branch, to those of f64.
    Numbers of 16 bits are computed with in f32 where the target has no arithmetic for them, and f16
    is converted by arithmetic on its bits where it has no instruction for that.
    With AVX-512 16 lanes are multiplied by 2^n by `x86vector.avx512.mask.scalef`.
    An exp with the attribute `stepwell.at_most_64` has no upper bound, and its 2^n is one number.
    Constants stand once at the entry of the function. Neighbours of one kind are expanded
    together, a step of each in turn.

    Not kept: fast-math flags, since the expansions are exact about NaN, infinities and zeros. `erf`
    with `afn` has the error of 3 ulp that such a function may have, and takes three quarters of
    the time.
    """

    name = "convert-math-to-arith"
    budget = APPROXIMATION

    target: str | None = None
    """The name of the machine that the code is for; by default that of the compilation."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(ctx) if self.target is None else named(self.target)
        places = _Places(target)
        halves_too = not (target.has(EXTEND_F16) and target.has(TRUNCATE_F16))
        widen(op, (f16, bf16) if halves_too else (bf16,))
        for run in _runs(op, target):
            if allowed("expand", run[0]):
                _expand(run, places, target)
        places.insert_constants()
        if not _fuses(target):
            _unfuse(op)
