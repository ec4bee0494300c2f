"""Checks of the conditions on sizes that a program was made for."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ...core.ir.refusal import refused
from ...dialects.graph.sizes.guards import Guard, guards_of
from ...dialects.rt import ops as rt
from ...dialects.rt.abi import DETAIL_WORDS
from .function import BufferFunction

_ARITHMETIC = {"+": arith.AddiOp, "-": arith.SubiOp, "*": arith.MuliOp, "or": arith.OrIOp}
_PREDICATES = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}


def check_guards(function: BufferFunction) -> None:
    """Check the conditions that the source states, which are over sizes of its arguments."""
    for guard in guards_of(function.source):
        with function.standing_for(function.source.location):
            _check(function, guard)


def _check(function: BufferFunction, guard: Guard) -> None:
    bindings, source = function.shapes.bindings, function.source
    unknown = [name for name in guard.names if name not in bindings]
    if unknown:
        fact = f"the condition {guard.text} has a size that no argument has"
        raise refused(source, fact, expected=sorted(bindings), got=unknown[0])

    def combined(sign: str, a: SSAValue, b: SSAValue) -> SSAValue:
        if sign in _PREDICATES:
            return function.insert(arith.CmpiOp(a, b, _PREDICATES[sign]))
        if sign in _ARITHMETIC:
            return function.insert(_ARITHMETIC[sign](a, b))
        divisor = _divisor(function, b)
        quotient = function.insert(arith.FloorDivSIOp(a, divisor))
        if sign == "//":
            return quotient
        whole = function.insert(arith.MuliOp(quotient, divisor))
        return function.insert(arith.SubiOp(a, whole))

    values = {name: function.sizes.symbol(name, source) for name in guard.names}
    holds = guard.evaluated(function.sizes.index, values.__getitem__, combined)
    number, dimension = bindings[guard.names[0]]
    subject = function.subject(function.arguments[number])
    details = list(values.values())[:DETAIL_WORDS]
    places = [f"{{{place}}}" for place in range(len(details))]
    words = guard.error(subject, dimension, places)
    function.append(rt.CheckOp(function.check_context, holds, words, details))


# a / 0 == a / 1
def _divisor(function: BufferFunction, b: SSAValue) -> SSAValue:
    is_zero = function.insert(arith.CmpiOp(b, function.sizes.index(0), "eq"))
    return function.insert(arith.SelectOp(is_zero, function.sizes.index(1), b))
