"""Compiled searches that the checks of `rt` call, in the LLVM dialect.

Each looks at a whole array at memory speed: 4 vectors at a time, until one of them holds
something wrong or less than 4 are left; then element by element, which finds the position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    SymbolRefAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...core.indices import RULES, CsrFault, CsrRule, Wrong
from ...dialects.upstream import ops as upstream
from ..convert_cf_to_llvm import conditional_branch
from ..convert_func_to_llvm import direct_call
from .types import PTR, int_attr, vector_of

_UNROLL = 4
_EQ, _NE, _SLT, _SGE, _UGE = (int_attr(n, 64) for n in (0, 1, 2, 5, 9))
_PLAIN = int_attr(0, 64)


class Assembler:
    """Puts operations of the LLVM dialect at the end of a block."""

    def __init__(self, block: Block, location: LocationAttr = UNKNOWN_LOC):
        self.block = block
        self.location = location

    def emit(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        type: Attribute,
        properties: Mapping[str, Attribute] = {},
    ) -> SSAValue:
        """An operation with one result."""
        op = kind.create(operands=operands, result_types=[type], properties=properties)
        self.perform(op)
        return op.results[0]

    def perform(self, op: Operation) -> None:
        """Any operation."""
        op.location = self.location
        self.block.add_op(op)

    def integer(self, number: int, type: IntegerType = i64) -> SSAValue:
        """A constant."""
        return self.emit(llvm.ConstantOp, (), type, {"value": IntegerAttr(number, type)})

    def compare(self, predicate: IntegerAttr, one: SSAValue, other: SSAValue) -> SSAValue:
        """`icmp` of scalars or vectors."""
        type = upstream.with_element_type(one.type, i1)
        return self.emit(llvm.ICmpOp, (one, other), type, {"predicate": predicate})

    def at(self, base: SSAValue, index: SSAValue, element: Attribute, offset: int = 0) -> SSAValue:
        """The address of an element."""
        if offset:
            index = self.emit(llvm.AddOp, (index, self.integer(offset)), i64)
        indices = DenseArrayBase.from_list(i32, [llvm.GEP_USE_SSA_VAL])
        properties: dict[str, Attribute] = {"rawConstantIndices": indices, "elem_type": element}
        properties["noWrapFlags"] = int_attr(0, 32)
        return self.emit(upstream.GEPOp, (base, index), PTR, properties)

    def load(self, address: SSAValue, type: Attribute, bytes: int) -> SSAValue:
        """A load with the alignment of an element of so many bytes."""
        properties = {"alignment": int_attr(bytes, 64), "ordering": _PLAIN}
        return self.emit(llvm.LoadOp, (address,), type, properties)

    def store_word(self, base: SSAValue, word: int, value: SSAValue) -> None:
        """Store to a word of an array of words."""
        address = self.at(base, self.integer(word), i64)
        properties = {"alignment": int_attr(8, 64), "ordering": _PLAIN}
        self.perform(llvm.StoreOp.create(operands=[value, address], properties=properties))

    def splat(self, value: SSAValue, lanes: int) -> SSAValue:
        """A vector that holds one value in every lane."""
        type = vector_of(value.type, lanes)
        poison = self.emit(upstream.PoisonOp, (), type)
        first = self.emit(llvm.InsertElementOp, (poison, value, self.integer(0)), type)
        mask = {"mask": DenseArrayBase.from_list(i32, [0] * lanes)}
        return self.emit(llvm.ShuffleVectorOp, (first, poison), type, mask)

    def branch(self, block: Block, *operands: SSAValue) -> None:
        """`llvm.br`."""
        self.perform(llvm.BrOp.create(operands=operands, successors=[block]))

    def branch_if(
        self,
        condition: SSAValue,
        then: Block,
        then_operands: Sequence[SSAValue],
        other: Block,
        other_operands: Sequence[SSAValue] = (),
    ) -> None:
        """`llvm.cond_br`."""
        self.perform(conditional_branch(condition, then, then_operands, other, other_operands))

    def call(self, name: str, arguments: Sequence[SSAValue], type: Attribute) -> SSAValue:
        """A call of a function with one result."""
        op = direct_call(SymbolRefAttr(name), arguments, type)
        self.perform(op)
        return op.results[0]


Load: TypeAlias = Callable[[int], SSAValue]
"""Loads elements at the place looked at plus an offset: a vector, or one element."""
IsBad: TypeAlias = Callable[[Assembler, Load, int | None], SSAValue]
"""Whether elements are invalid; the number of lanes is None for one element."""


def _search(name: str, element: IntegerType, extra: Sequence[Attribute], bad) -> llvm.FuncOp:
    """A function (address, count, extra...) -> the first position that is bad, or the count."""
    lanes, bytes = 512 // element.width.data, element.width.data // 8
    entry = Block(arg_types=[PTR, i64, *extra])
    head, body = Block(arg_types=[i64]), Block()
    tail, one, found = Block(arg_types=[i64]), Block(), Block(arg_types=[i64])
    base, count, *given = entry.args

    at = Assembler(entry)
    mask = at.integer(-lanes * _UNROLL)
    whole = at.emit(llvm.AndOp, (count, mask), i64)
    wide = [at.splat(value, lanes) for value in given]
    at.branch(head, at.integer(0))

    at = Assembler(head)
    place = head.args[0]
    at.branch_if(at.compare(_SLT, place, whole), body, (), tail, (place,))

    at = Assembler(body)
    found_bad: SSAValue | None = None
    for part in range(_UNROLL):
        here = at.at(base, place, element, part * lanes)
        load = _loader(at, here, vector_of(element, lanes), element, bytes)
        now = bad(at, load, wide)
        if found_bad is not None:
            now = at.emit(llvm.OrOp, (found_bad, now), now.type)
        found_bad = now
    assert found_bad is not None
    bits = at.emit(llvm.BitcastOp, (found_bad,), IntegerType(lanes))
    any_bad = at.compare(_NE, bits, at.integer(0, IntegerType(lanes)))
    following = at.emit(llvm.AddOp, (place, at.integer(lanes * _UNROLL)), i64)
    at.branch_if(any_bad, tail, (place,), head, (following,))

    at = Assembler(tail)
    place = tail.args[0]
    at.branch_if(at.compare(_SLT, place, count), one, (), found, (count,))

    at = Assembler(one)
    load = _loader(at, at.at(base, place, element), element, element, bytes)
    is_bad = bad(at, load, given)
    following = at.emit(llvm.AddOp, (place, at.integer(1)), i64)
    at.branch_if(is_bad, found, (place,), tail, (following,))

    Assembler(found).perform(llvm.ReturnOp.create(operands=[found.args[0]]))
    return _function(name, [PTR, i64, *extra], i64, [entry, head, body, tail, one, found])


def _loader(at: Assembler, here: SSAValue, type: Attribute, element: Attribute, bytes: int) -> Load:
    def load(offset: int) -> SSAValue:
        address = at.at(here, at.integer(offset), element) if offset else here
        return at.load(address, type, bytes)

    return load


def _function(
    name: str, inputs: Sequence[Attribute], output: Attribute, blocks: Sequence[Block]
) -> llvm.FuncOp:
    type = llvm.LLVMFunctionType(inputs, output)
    return llvm.FuncOp(name, type, llvm.LinkageAttr("internal"), body=Region(blocks))


def _outside_name(element: IntegerType) -> str:
    return f"rt_first_outside_{element}"


def first_outside(element: IntegerType) -> llvm.FuncOp:
    """`(address, count, low, span) -> i64`: the first x that is not in [low, low + span)."""

    # low <= x < low + span == x - low < span, unsigned
    def bad(at: Assembler, load: Load, given: Sequence[SSAValue]) -> SSAValue:
        low, span = given
        value = load(0)
        return at.compare(_UGE, at.emit(llvm.SubOp, (value, low), value.type), span)

    return _search(_outside_name(element), element, [element, element], bad)


def _decrease_name(element: IntegerType) -> str:
    return f"rt_first_decrease_{element}"


def first_decrease(element: IntegerType) -> llvm.FuncOp:
    """`(address, count) -> i64`: the first position whose element is above the next one."""

    def bad(at: Assembler, load: Load, given: Sequence[SSAValue]) -> SSAValue:
        return at.compare(_SLT, load(1), load(0))

    return _search(_decrease_name(element), element, [], bad)


def check_index_name(element: IntegerType) -> str:
    """The name of `check_index`."""
    return f"rt_check_index_{element}"


def check_index(element: IntegerType) -> llvm.FuncOp:
    """`(address, count, extent, details) -> i1`: every x in [-extent, extent).

    Otherwise the details are the position, the element and the extent.
    """
    entry, search, bad = Block(arg_types=[PTR, i64, i64, PTR]), Block(), Block()
    good = Block()
    base, count, extent, details = entry.args

    # An extent that the type cannot exceed holds for every element.
    at = Assembler(entry)
    limit = at.integer(2 ** (element.width.data - 1) if element == i32 else 2**62)
    at.branch_if(at.compare(_SGE, extent, limit), good, (), search)

    at = Assembler(search)
    zero = at.integer(0)
    low = _narrow(at, at.emit(llvm.SubOp, (zero, extent), i64), element)
    span = _narrow(at, at.emit(llvm.AddOp, (extent, extent), i64), element)
    position = at.call(_outside_name(element), (base, count, low, span), i64)
    at.branch_if(at.compare(_EQ, position, count), good, (), bad)

    at = Assembler(bad)
    value = at.load(at.at(base, position, element), element, element.width.data // 8)
    for word, detail in enumerate((position, _wide(at, value), extent)):
        at.store_word(details, word, detail)
    at.perform(llvm.ReturnOp.create(operands=[at.integer(0, i1)]))

    at = Assembler(good)
    at.perform(llvm.ReturnOp.create(operands=[at.integer(1, i1)]))
    inputs = [PTR, i64, i64, PTR]
    return _function(check_index_name(element), inputs, i1, [entry, search, bad, good])


def check_csr_name(pointer: IntegerType, index: IntegerType) -> str:
    """The name of `check_csr`."""
    return f"rt_check_csr_{pointer}_{index}"


@dataclass(frozen=True)
class _Matrix:
    """The arguments of a check: the arrays of a matrix, their elements, and their sizes."""

    indptr: SSAValue
    rows: SSAValue
    indices: SSAValue
    entries: SSAValue
    columns: SSAValue
    pointer: IntegerType
    index: IntegerType

    def element(self, at: Assembler, array: str, place: SSAValue) -> SSAValue:
        """An element of an array, as i64."""
        base, kind = {
            "indptr": (self.indptr, self.pointer),
            "indices": (self.indices, self.index),
        }[array]
        return _wide(at, at.load(at.at(base, place, kind), kind, kind.width.data // 8))


_Found: TypeAlias = tuple[SSAValue, SSAValue, SSAValue]
"""Whether a fact holds; where it does not: the place of the element, and the position reported."""


def _look(at: Assembler, rule: CsrRule, matrix: _Matrix) -> _Found:
    """Look for what makes an array of a matrix wrong."""
    match rule.wrong:
        case Wrong.FIRST_IS_NOT_ZERO:
            zero = at.integer(0)
            return at.compare(_EQ, matrix.element(at, rule.array, zero), zero), zero, zero
        case Wrong.DECREASES:
            name = _decrease_name(matrix.pointer)
            row = at.call(name, (matrix.indptr, matrix.rows), i64)
            return at.compare(_EQ, row, matrix.rows), row, row
        case Wrong.LAST_IS_NOT_COUNT:
            last = matrix.element(at, rule.array, matrix.rows)
            return at.compare(_EQ, last, matrix.entries), matrix.rows, matrix.entries
        case Wrong.OUTSIDE:
            index = matrix.index
            limit = at.integer(2 ** (index.width.data - 1) if index == i32 else 2**62)
            columns = at.emit(upstream.INTRINSICS["smin"], (matrix.columns, limit), i64)
            span, low = _narrow(at, columns, index), at.integer(0, index)
            given = (matrix.indices, matrix.entries, low, span)
            place = at.call(_outside_name(index), given, i64)
            return at.compare(_EQ, place, matrix.entries), place, place


def check_csr(pointer: IntegerType, index: IntegerType) -> llvm.FuncOp:
    """`(indptr, its size, indices, their number, columns, details) -> i1`: is it a CSR matrix.

    Otherwise the details are a `CsrFault`, a position and a value. What is checked is `RULES`.
    """
    inputs = [PTR, i64, PTR, i64, i64, PTR]
    entry, good, bad = Block(arg_types=inputs), Block(), Block(arg_types=[i64, i64, i64])
    indptr, size, indices, entries, columns, details = entry.args

    at = Assembler(entry)
    zero = at.integer(0)
    rows = at.emit(llvm.SubOp, (size, at.integer(1)), i64)
    matrix = _Matrix(indptr, rows, indices, entries, columns, pointer, index)
    looks = [Block() for _ in RULES]
    without = (at.integer(CsrFault.START), zero, zero)
    at.branch_if(at.compare(_SLT, rows, zero), bad, without, looks[0])

    blocks = [entry]
    for rule, look, following in zip(RULES, looks, [*looks[1:], good], strict=True):
        found = Block()
        at = Assembler(look)
        holds, place, position = _look(at, rule, matrix)
        at.branch_if(holds, following, (), found)
        at = Assembler(found)
        value = matrix.element(at, rule.array, place)
        at.branch(bad, at.integer(rule.fault), position, value)
        blocks += [look, found]

    at = Assembler(bad)
    for word, detail in enumerate(bad.args):
        at.store_word(details, word, detail)
    at.perform(llvm.ReturnOp.create(operands=[at.integer(0, i1)]))

    at = Assembler(good)
    at.perform(llvm.ReturnOp.create(operands=[at.integer(1, i1)]))
    return _function(check_csr_name(pointer, index), inputs, i1, [*blocks, bad, good])


def _narrow(at: Assembler, value: SSAValue, type: IntegerType) -> SSAValue:
    return value if type == i64 else at.emit(llvm.TruncOp, (value,), type)


def _wide(at: Assembler, value: SSAValue) -> SSAValue:
    return value if value.type == i64 else at.emit(llvm.SExtOp, (value,), i64)
