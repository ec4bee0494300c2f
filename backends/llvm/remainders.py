"""Remainders of floating-point numbers in code for a device.

LLVM's back end for devices computes `frem` as `x - trunc(x / y) * y`, which is wrong where the
quotient has more bits than the type, and of another size where it overflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from ...core.errors import UnsupportedError, explain

_WIDE = ir.IntType(64)


@dataclass(frozen=True)
class _Format:
    """A type of numbers: its bits, and those of its mantissas, the leading one left out."""

    type: Any
    bits: int
    mantissa: int

    @property
    def word(self) -> ir.IntType:
        return ir.IntType(self.bits)

    @property
    def infinity(self) -> int:
        return ((1 << (self.bits - 1 - self.mantissa)) - 1) << self.mantissa


_FORMATS = (_Format(ir.FloatType(), 32, 23), _Format(ir.DoubleType(), 64, 52))


def define_remainders(module: ir.Module) -> None:
    """Replace each `frem` by a call of a function that computes it exactly.

    Raises:
        UnsupportedError: if it is one of vectors.
    """
    for function in list(module.functions):
        for block in function.blocks:
            for op in [op for op in block.instructions if op.opname == "frem"]:
                found = next((one for one in _FORMATS if one.type == op.type), None)
                if found is None:
                    fact = f"there is no remainder of {op.type}"
                    raise UnsupportedError(explain("device", fact, expected="float or double"))
                call: Any = ir.instructions.CallInstr(block, _remainder(module, found), op.operands)
                call.metadata = op.metadata
                block.replace(op, call)


def _remainder(module: ir.Module, of: _Format) -> Any:
    """The function of a format, which is inlined."""
    name = f"stepwell_remainder_{of.bits}"
    if name in module.globals:
        return module.globals[name]
    function: Any = ir.Function(module, ir.FunctionType(of.type, [of.type] * 2), name)
    function.linkage = "internal"
    function.attributes.add("alwaysinline")
    x, y = function.args
    entry, undefined, defined, small, large = (function.append_basic_block() for _ in range(5))
    b = ir.IRBuilder(entry)
    (one, sign), (other, _) = (_magnitude(b, value, of) for value in (x, y))
    wrong = b.icmp_unsigned("==", other, _number(0))
    wrong = b.or_(wrong, b.icmp_unsigned(">", other, _number(of.infinity)))
    wrong = b.or_(wrong, b.icmp_unsigned(">=", one, _number(of.infinity)))
    b.cbranch(wrong, undefined, defined)
    b.position_at_end(undefined)
    product = b.fmul(x, y)
    b.ret(b.fdiv(product, product))
    b.position_at_end(defined)
    b.cbranch(b.icmp_unsigned("<", one, other), small, large)
    b.position_at_end(small)
    b.ret(x)
    b.position_at_end(large)
    (whole, exponent), (divisor, unit) = (_parts(b, word, of) for word in (one, other))
    rest = _modulo(b, whole, b.sub(exponent, unit), divisor, of)
    word = b.or_(_joined(b, rest, unit, of), sign)
    b.ret(b.bitcast(b.trunc(word, of.word) if of.word != _WIDE else word, of.type))
    return function


def _number(value: int) -> ir.Constant:
    return ir.Constant(_WIDE, value)


def _magnitude(b: ir.IRBuilder, value: Any, of: _Format) -> tuple[Any, Any]:
    """The bits of a number without its sign, and that of its sign."""
    word = b.bitcast(value, of.word)
    word = b.zext(word, _WIDE) if of.word != _WIDE else word
    sign = 1 << (of.bits - 1)
    return b.and_(word, _number(sign - 1)), b.and_(word, _number(sign))


def _parts(b: ir.IRBuilder, word: Any, of: _Format) -> tuple[Any, Any]:
    """The whole number and the exponent of a magnitude; that of subnormal numbers is 1."""
    exponent = b.lshr(word, _number(of.mantissa))
    fraction = b.and_(word, _number((1 << of.mantissa) - 1))
    subnormal = b.icmp_unsigned("==", exponent, _number(0))
    whole = b.or_(fraction, _number(1 << of.mantissa))
    return b.select(subnormal, fraction, whole), b.select(subnormal, _number(1), exponent)


# m 2^e mod k 2^f == (m 2^(e - f) mod k) 2^f  for e >= f
def _modulo(b: ir.IRBuilder, whole: Any, distance: Any, divisor: Any, of: _Format) -> Any:
    """A whole number times a power of two, modulo a divisor: as many bits at a time as fit."""
    begin = b.block
    again, shifted, end = (b.append_basic_block() for _ in range(3))
    first, most = b.urem(whole, divisor), _number(_WIDE.width - 1 - of.mantissa)
    b.branch(again)
    b.position_at_end(again)
    rest, left = b.phi(_WIDE), b.phi(_WIDE)
    b.cbranch(b.icmp_unsigned("==", left, _number(0)), end, shifted)
    b.position_at_end(shifted)
    step = b.select(b.icmp_unsigned("<", left, most), left, most)
    for phi, value, repeated in (
        (rest, first, b.urem(b.shl(rest, step), divisor)),
        (left, distance, b.sub(left, step)),
    ):
        phi.add_incoming(value, begin)
        phi.add_incoming(repeated, shifted)
    b.branch(again)
    b.position_at_end(end)
    return rest


def _joined(b: ir.IRBuilder, whole: Any, exponent: Any, of: _Format) -> Any:
    """The magnitude of a whole number and an exponent: subnormal where that ends at 1."""
    zeros: Any = b.ctlz(whole, ir.Constant(ir.IntType(1), 0))
    wanted = b.sub(zeros, _number(_WIDE.width - 1 - of.mantissa))
    limit = b.sub(exponent, _number(1))
    shift = b.select(b.icmp_unsigned("<", wanted, limit), wanted, limit)
    word = b.add(b.shl(b.sub(limit, shift), _number(of.mantissa)), b.shl(whole, shift))
    return b.select(b.icmp_unsigned("==", whole, _number(0)), _number(0), word)
