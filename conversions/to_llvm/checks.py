"""Functions that lowered operations call, as MLIR text: checks of indices, a clock, allocation.

A check calls the functions of `searches`, and stores its details as words of 64 bits. Each function
here returns one that is cached, to be cloned into a module.
"""

from __future__ import annotations

import functools
import time
from string import Template

from xdsl.dialects.builtin import IntegerType, i64

from ...core.boundary.indices import CsrFault
from ...dialects.rt import ops as rt
from ...dialects.rt.abi import ALIGNMENT
from .searches import Function, parsed

_INDEX = """
func.func private @$name(
    %x: memref<?x$element>, %extent: index, %details: memref<3xi64>) -> i1 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %limit = arith.constant $limit : index$bounds
  %low = arith.index_cast %least : index to $element
  %span = arith.index_cast %numbers : index to $element
  %place = func.call @rt_first_outside_$element(%x, %low, %span)
    : (memref<?x$element>, $element, $element) -> index
  %count = memref.dim %x, %zero : memref<?x$element>
  %none = arith.cmpi eq, %place, %count : index
  cf.cond_br %none, ^good, ^bad
^bad:"""

# The end of the checks of elements: what is stored about the one at %place.
_BAD_ELEMENT = """
  %value = memref.load %x[%place] : memref<?x$element>
  %where = arith.index_cast %place : index to i64
  %size = arith.index_cast %extent : index to i64
  $wide
  memref.store %where, %details[%zero] : memref<3xi64>
  memref.store $wrong, %details[%one] : memref<3xi64>
  memref.store %size, %details[%two] : memref<3xi64>
  %no = arith.constant false
  func.return %no : i1
^good:
  %yes = arith.constant true
  func.return %yes : i1
}
"""

_FROM_BACK = """
  %all = arith.cmpi sge, %extent, %limit : index
  cf.cond_br %all, ^good, ^search
^search:
  %least = arith.subi %zero, %extent : index
  %numbers = arith.addi %extent, %extent : index"""
_FROM_FRONT = """
  %least = arith.constant 0 : index
  %numbers = arith.minsi %extent, %limit : index"""

# 0 <= x <= extent for extents that the type holds; any other is above all of its numbers
_OFFSETS = """
func.func private @rt_check_offsets_$element(
    %x: memref<?x$element>, %extent: index, %details: memref<3xi64>) -> i1 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %count = memref.dim %x, %zero : memref<?x$element>
  %none = arith.cmpi eq, %count, %zero : index
  cf.cond_br %none, ^good, ^range
^range:
  %low = arith.constant 0 : $element
  %most = arith.constant $limit : index
  %after = arith.addi %extent, %one : index
  %numbers = arith.minsi %after, %most : index
  %span = arith.index_cast %numbers : index to $element
  %outside = func.call @rt_first_outside_$element(%x, %low, %span)
    : (memref<?x$element>, $element, $element) -> index
  %inside = arith.cmpi eq, %outside, %count : index
  cf.cond_br %inside, ^order, ^bad(%outside : index)
^order:
  %last = arith.subi %count, %one : index
  %high = func.call @rt_first_decrease_$element(%x) : (memref<?x$element>) -> index
  %rises = arith.cmpi eq, %high, %last : index
  cf.cond_br %rises, ^good, ^bad(%high : index)
^bad(%place: index):"""

_CSR = """
func.func private @rt_check_csr_${pointer}_$index(
    %indptr: memref<?x$pointer>, %indices: memref<?x$index>, %columns: index,
    %details: memref<3xi64>) -> i1 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %none = arith.constant 0 : i64
  %start = arith.constant $start : i64
  %size = memref.dim %indptr, %zero : memref<?x$pointer>
  %entries = memref.dim %indices, %zero : memref<?x$index>
  %rows = arith.subi %size, %one : index
  %empty = arith.cmpi slt, %rows, %zero : index
  cf.cond_br %empty, ^bad(%start, %none, %none : i64, i64, i64), ^first
^first:
  %value = memref.load %indptr[%zero] : memref<?x$pointer>
  $begin
  %begins = arith.cmpi eq, $pointer_value, %none : i64
  cf.cond_br %begins, ^rise, ^bad(%start, %none, $pointer_value : i64, i64, i64)
^rise:
  %row = func.call @rt_first_decrease_$pointer(%indptr) : (memref<?x$pointer>) -> index
  %high = memref.load %indptr[%row] : memref<?x$pointer>
  $above
  %order = arith.constant $order : i64
  %place = arith.index_cast %row : index to i64
  %rises = arith.cmpi eq, %row, %rows : index
  cf.cond_br %rises, ^last, ^bad(%order, %place, $high_value : i64, i64, i64)
^last:
  %end = arith.constant $end : i64
  %count = arith.index_cast %entries : index to i64
  %ends = arith.cmpi eq, $high_value, %count : i64
  cf.cond_br %ends, ^inside, ^bad(%end, %count, $high_value : i64, i64, i64)
^inside:
  %low = arith.constant 0 : $index
  %limit = arith.constant $limit : index
  %width = arith.minsi %columns, %limit : index
  %span = arith.index_cast %width : index to $index
  %first = func.call @rt_first_outside_$index(%indices, %low, %span)
    : (memref<?x$index>, $index, $index) -> index
  %all = arith.cmpi eq, %first, %entries : index
  cf.cond_br %all, ^good, ^outside
^outside:
  %column = memref.load %indices[%first] : memref<?x$index>
  $wide
  %fault = arith.constant $fault : i64
  %entry = arith.index_cast %first : index to i64
  cf.br ^bad(%fault, %entry, $wrong : i64, i64, i64)
^bad(%rule: i64, %position: i64, %got: i64):
  memref.store %rule, %details[%zero] : memref<3xi64>
  memref.store %position, %details[%one] : memref<3xi64>
  memref.store %got, %details[%two] : memref<3xi64>
  %no = arith.constant false
  func.return %no : i1
^good:
  %yes = arith.constant true
  func.return %yes : i1
}
"""

_CLOCK = f"""
llvm.func internal @rt_clock() -> i64 {{
  %two = llvm.mlir.constant(2) : i64
  %now = llvm.alloca %two x i64 {{alignment = 8 : i64}} : (i64) -> !llvm.ptr
  %which = llvm.mlir.constant({time.CLOCK_MONOTONIC} : i32) : i32
  %status = llvm.call @{rt.SYSTEM_CLOCK}(%which, %now) : (i32, !llvm.ptr) -> i32
  %seconds = llvm.load %now {{alignment = 8 : i64}} : !llvm.ptr -> i64
  %more = llvm.getelementptr %now[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %rest = llvm.load %more {{alignment = 8 : i64}} : !llvm.ptr -> i64
  %billion = llvm.mlir.constant(1000000000) : i64
  %whole = llvm.mul %seconds, %billion : i64
  %nanoseconds = llvm.add %whole, %rest : i64
  llvm.return %nanoseconds : i64
}}
"""


ALLOCATE = "rt_allocate"
"""The function `(bytes) -> address`. A kernel cannot fail, so without memory the process ends."""

# The C library takes multiples of the alignment, and may have no address for 0 bytes.
_ALLOCATE = f"""
llvm.func internal @{ALLOCATE}(%bytes: $index) -> !llvm.ptr {{
  %more = llvm.mlir.constant({2 * ALIGNMENT - 1}) : $index
  %mask = llvm.mlir.constant({-ALIGNMENT}) : $index
  %alignment = llvm.mlir.constant({ALIGNMENT}) : $index
  %zero = llvm.mlir.constant(0) : $index
  %longer = llvm.add %bytes, %more : $index
  %whole = llvm.and %longer, %mask : $index
  %address = llvm.call @{rt.SYSTEM_ALLOCATE}(%alignment, %whole) : ($index, $index) -> !llvm.ptr
  %number = llvm.ptrtoint %address : !llvm.ptr to $index
  %none = llvm.icmp "eq" %number, %zero : $index
  llvm.cond_br %none, ^fail, ^end
^fail:
  llvm.call @{rt.SYSTEM_ABORT}() : () -> ()
  llvm.br ^end
^end:
  llvm.return %address : !llvm.ptr
}}
"""


def _limit(element: IntegerType, index: IntegerType) -> int:
    """An extent from which on every nonnegative number of a type is valid.

    No extent is larger than a quarter of what an index can be.
    """
    return 2 ** min(element.width.data - 1, index.width.data - 2)


def _widened(name: str, value: str, element: IntegerType) -> tuple[str, str]:
    """The line that makes a word `name` of a value of an integer type, and what the word is called.

    A value of 64 bits is a word already.
    """
    if element == i64:
        return "", value
    return f"{name} = arith.extsi {value} : {element} to i64", name


@functools.cache
def check_index(element: IntegerType, index: IntegerType) -> Function:
    """`(x, extent, details) -> i1`: whether every element is in [-extent, extent).

    If not, the details are the position of the first that is not, that element, and the extent.
    """
    return _index_check(f"rt_check_index_{element}", element, index, _FROM_BACK)


@functools.cache
def check_place(element: IntegerType, index: IntegerType) -> Function:
    """`(x, extent, details) -> i1`: whether every element is in [0, extent); see `check_index`."""
    return _index_check(f"rt_check_place_{element}", element, index, _FROM_FRONT)


def _index_check(name: str, element: IntegerType, index: IntegerType, bounds: str) -> Function:
    text = Template(_INDEX.replace("$bounds", bounds) + _BAD_ELEMENT).substitute(
        name=name, **_element_facts(element, index)
    )
    return parsed(text)


def _element_facts(element: IntegerType, index: IntegerType) -> dict[str, object]:
    wide, wrong = _widened("%wide", "%value", element)
    limit = _limit(element, index)
    return {"element": element, "limit": limit, "wide": wide, "wrong": wrong}


@functools.cache
def check_offsets(element: IntegerType, index: IntegerType) -> Function:
    """`(x, extent, details) -> i1`: whether every element is in [0, extent], and none decreases.

    If not, the details are the position of the first that is outside, or else above the next one,
    that element, and the extent.
    """
    return parsed(Template(_OFFSETS + _BAD_ELEMENT).substitute(_element_facts(element, index)))


@functools.cache
def check_csr(pointer: IntegerType, column: IntegerType, index: IntegerType) -> Function:
    """`(indptr, indices, columns, details) -> i1`: whether they are a CSR matrix.

    It checks `core.boundary.indices.RULES`, in their order. If one does not hold, the details are
    its `CsrFault`, a position and a value.
    """
    begin, first = _widened("%begin", "%value", pointer)
    above, high = _widened("%above", "%high", pointer)
    wide, wrong = _widened("%wide", "%column", column)
    text = Template(_CSR).substitute(
        pointer=pointer,
        index=column,
        begin=begin,
        pointer_value=first,
        above=above,
        high_value=high,
        wide=wide,
        wrong=wrong,
        limit=_limit(column, index),
        start=CsrFault.START.value,
        order=CsrFault.ORDER.value,
        end=CsrFault.END.value,
        fault=CsrFault.INDEX.value,
    )
    return parsed(text)


@functools.cache
def clock() -> Function:
    """A function without arguments that returns the nanoseconds of the system's steady clock."""
    return parsed(_CLOCK)


@functools.cache
def allocate(index: IntegerType) -> Function:
    """The function `ALLOCATE`."""
    return parsed(Template(_ALLOCATE).substitute(index=index))
