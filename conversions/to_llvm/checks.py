"""The functions that lowered operations of `rt` call, as MLIR text: checks of indices, and a clock.

A check calls the functions of `searches`. Each function here returns one that is cached, to be
cloned into a module.
"""

from __future__ import annotations

import functools
import time
from string import Template

from xdsl.dialects.builtin import IntegerType

from ...core.indices import CsrFault
from ...dialects.rt import ops as rt
from .searches import Function, parsed

_INDEX = """
func.func private @$name(
    %x: memref<?x$element>, %extent: index, %details: memref<3xindex>) -> i1 {
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
^bad:
  %value = memref.load %x[%place] : memref<?x$element>
  %wrong = arith.index_cast %value : $element to index
  memref.store %place, %details[%zero] : memref<3xindex>
  memref.store %wrong, %details[%one] : memref<3xindex>
  memref.store %extent, %details[%two] : memref<3xindex>
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
    %x: memref<?x$element>, %extent: index, %details: memref<3xindex>) -> i1 {
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
^bad(%place: index):
  %value = memref.load %x[%place] : memref<?x$element>
  %wrong = arith.index_cast %value : $element to index
  memref.store %place, %details[%zero] : memref<3xindex>
  memref.store %wrong, %details[%one] : memref<3xindex>
  memref.store %extent, %details[%two] : memref<3xindex>
  %no = arith.constant false
  func.return %no : i1
^good:
  %yes = arith.constant true
  func.return %yes : i1
}
"""

_CSR = """
func.func private @rt_check_csr_${pointer}_$index(
    %indptr: memref<?x$pointer>, %indices: memref<?x$index>, %columns: index,
    %details: memref<3xindex>) -> i1 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %start = arith.constant $start : index
  %size = memref.dim %indptr, %zero : memref<?x$pointer>
  %entries = memref.dim %indices, %zero : memref<?x$index>
  %rows = arith.subi %size, %one : index
  %empty = arith.cmpi slt, %rows, %zero : index
  cf.cond_br %empty, ^bad(%start, %zero, %zero : index, index, index), ^first
^first:
  %pointer = memref.load %indptr[%zero] : memref<?x$pointer>
  %begin = arith.index_cast %pointer : $pointer to index
  %begins = arith.cmpi eq, %begin, %zero : index
  cf.cond_br %begins, ^rise, ^bad(%start, %zero, %begin : index, index, index)
^rise:
  %row = func.call @rt_first_decrease_$pointer(%indptr) : (memref<?x$pointer>) -> index
  %high = memref.load %indptr[%row] : memref<?x$pointer>
  %above = arith.index_cast %high : $pointer to index
  %order = arith.constant $order : index
  %rises = arith.cmpi eq, %row, %rows : index
  cf.cond_br %rises, ^last, ^bad(%order, %row, %above : index, index, index)
^last:
  %end = arith.constant $end : index
  %ends = arith.cmpi eq, %above, %entries : index
  cf.cond_br %ends, ^inside, ^bad(%end, %entries, %above : index, index, index)
^inside:
  %low = arith.constant 0 : $index
  %limit = arith.constant $limit : index
  %width = arith.minsi %columns, %limit : index
  %span = arith.index_cast %width : index to $index
  %place = func.call @rt_first_outside_$index(%indices, %low, %span)
    : (memref<?x$index>, $index, $index) -> index
  %none = arith.cmpi eq, %place, %entries : index
  cf.cond_br %none, ^good, ^outside
^outside:
  %value = memref.load %indices[%place] : memref<?x$index>
  %wrong = arith.index_cast %value : $index to index
  %fault = arith.constant $fault : index
  cf.br ^bad(%fault, %place, %wrong : index, index, index)
^bad(%rule: index, %position: index, %got: index):
  memref.store %rule, %details[%zero] : memref<3xindex>
  memref.store %position, %details[%one] : memref<3xindex>
  memref.store %got, %details[%two] : memref<3xindex>
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


def _limit(element: IntegerType) -> int:
    """An extent from which on every nonnegative number of a type is valid."""
    return 2 ** min(element.width.data - 1, 62)


@functools.cache
def check_index(element: IntegerType) -> Function:
    """`(x, extent, details) -> i1`: whether every element is in [-extent, extent).

    If not, the details are the position of the first that is not, that element, and the extent.
    """
    return _index_check(f"rt_check_index_{element}", element, _FROM_BACK)


@functools.cache
def check_place(element: IntegerType) -> Function:
    """`(x, extent, details) -> i1`: whether every element is in [0, extent); see `check_index`."""
    return _index_check(f"rt_check_place_{element}", element, _FROM_FRONT)


def _index_check(name: str, element: IntegerType, bounds: str) -> Function:
    sizes = {"element": element, "limit": _limit(element)}
    return parsed(Template(_INDEX).substitute(name=name, bounds=bounds, **sizes))


@functools.cache
def check_offsets(element: IntegerType) -> Function:
    """`(x, extent, details) -> i1`: whether every element is in [0, extent], and none decreases.

    If not, the details are the position of the first that is outside, or else above the next one,
    that element, and the extent.
    """
    text = Template(_OFFSETS).substitute(element=element, limit=_limit(element))
    return parsed(text)


@functools.cache
def check_csr(pointer: IntegerType, index: IntegerType) -> Function:
    """`(indptr, indices, columns, details) -> i1`: whether they are a CSR matrix.

    It checks `core.indices.RULES`, in their order. If one does not hold, the details are its
    `CsrFault`, a position and a value.
    """
    text = Template(_CSR).substitute(
        pointer=pointer,
        index=index,
        limit=_limit(index),
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
