"""The functions by which checks search an array for the first invalid element, as MLIR text.

A search runs at memory speed: `_BITS` at a time until an element is invalid or fewer are left, then
one element at a time, which finds the position. LLVM splits the long vectors into those of the
machine. The masks of a block are as wide as its elements, so that they are combined where the
comparisons leave them; a vector of bits would be packed first.

A divided search runs as tiles, each of which searches a part of the array; the first of the places
that they find is that of the whole, in whatever order they run.

Each function here returns some that are cached, to be cloned into a module.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from string import Template
from typing import TypeAlias

from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import IntegerType

from ...core.ir.parsing import MlirParser
from ...core.registry import make_context

Function: TypeAlias = func.FuncOp | llvm.FuncOp

_BITS = 2048
PART_BITS = 1 << 19
"""A tile searches at least as much: 2 us at 30 GB/s."""
MOST_PARTS = 64
FEWEST_PARTS = 4
"""An array that has fewer is searched as a whole."""

_SEARCH = """
func.func private @$name(%x: memref<?x$element>$range$arguments) -> index {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %lanes = arith.constant $lanes : index
  $bounds
  $splats
  cf.br ^blocks(%begin : index)
^blocks(%first: index):
  %after = arith.addi %first, %lanes : index
  %fits = arith.cmpi sle, %after, %count : index
  cf.cond_br %fits, ^block, ^elements(%first : index)
^block:
  %here = vector.load %x[%first] : memref<?x$element>, vector<${lanes}x$element>
  $are_good
  %masks = arith.extsi %good : vector<${lanes}xi1> to vector<${lanes}x$element>
  %mask = vector.reduction <and>, %masks : vector<${lanes}x$element> into $element
  %all = arith.trunci %mask : $element to i1
  cf.cond_br %all, ^blocks(%after : index), ^elements(%first : index)
^elements(%place: index):
  %left = arith.cmpi slt, %place, %count : index
  cf.cond_br %left, ^element, ^end(%count : index)
^element:
  %number = memref.load %x[%place] : memref<?x$element>
  %next = arith.addi %place, %one : index
  $is_bad
  cf.cond_br %wrong, ^end(%place : index), ^elements(%next : index)
^end(%found: index):
  func.return %found : index
}
"""
_OF_ALL = {
    "range": "",
    "bounds": """
  %begin = arith.constant 0 : index
  %size = memref.dim %x, %zero : memref<?x$element>
  %count = arith.subi %size, %$ahead : index""",
}
_OF_A_PART = {"range": ", %begin: index, %count: index", "bounds": ""}

# A part that finds nothing gives the end of the array, as the whole search does.
_PART = """
func.func private @${name}_part(%part: index, %x: memref<?x$element>, %each: index, %all: index,
    %found: memref<${most}xindex>$arguments) {
  %begin = arith.muli %part, %each : index
  %after = arith.addi %begin, %each : index
  %end = arith.minsi %after, %all : index
  %place = func.call @${name}_in(%x, %begin, %end$passed)
    : (memref<?x$element>, index, index$types) -> index
  %none = arith.cmpi eq, %place, %end : index
  %first = arith.select %none, %all, %place : index
  memref.store %first, %found[%part] : memref<${most}xindex>
  func.return
}
"""
_DIVIDED = """
func.func private @$name(%x: memref<?x$element>$arguments) -> index {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %few = arith.constant $few : index
  %most = arith.constant $most : index
  %least = arith.constant $least : index
  %size = memref.dim %x, %zero : memref<?x$element>
  %count = arith.subi %size, %$ahead : index
  %even = arith.ceildivsi %count, %most : index
  %each = arith.maxsi %even, %least : index
  %parts = arith.ceildivsi %count, %each : index
  %is_small = arith.cmpi slt, %parts, %few : index
  cf.cond_br %is_small, ^whole, ^divided
^whole:
  %only = func.call @${name}_in(%x, %zero, %count$passed)
    : (memref<?x$element>, index, index$types) -> index
  func.return %only : index
^divided:
  %found = memref.alloca() : memref<${most}xindex>
  rt.call_tiles %parts, @${name}_part(%x, %each, %count, %found$passed)
    : memref<?x$element>, index, index, memref<${most}xindex>$types
  cf.br ^parts(%zero, %count : index, index)
^parts(%part: index, %first: index):
  %more = arith.cmpi slt, %part, %parts : index
  cf.cond_br %more, ^part, ^end
^part:
  %place = memref.load %found[%part] : memref<${most}xindex>
  %before = arith.minsi %first, %place : index
  %next = arith.addi %part, %one : index
  cf.br ^parts(%next, %before : index, index)
^end:
  func.return %first : index
}
"""


@dataclass(frozen=True)
class _Rule:
    """What a search looks for; `$element` and `$lanes` stand for the elements and for how many."""

    name: str
    are_good: str
    is_bad: str
    ahead: str = "zero"
    """How many elements a place needs behind it: `zero` or `one`."""
    arguments: tuple[str, ...] = ()
    splats: str = ""

    def parts(self) -> dict[str, str]:
        """The parts of a text."""
        named = [f"%{name}" for name in self.arguments]
        return {
            "name": f"rt_first_{self.name}_${{element}}",
            "are_good": self.are_good,
            "is_bad": self.is_bad,
            "ahead": self.ahead,
            "splats": self.splats,
            "arguments": "".join(f", {name}: $element" for name in named),
            "passed": "".join(f", {name}" for name in named),
            "types": ", $element" * len(named),
        }


# low <= x < low + span == x - low < span, unsigned
_OUTSIDE = _Rule(
    "outside",
    are_good="""
  %offsets = arith.subi %here, %lows : vector<${lanes}x$element>
  %good = arith.cmpi ult, %offsets, %spans : vector<${lanes}x$element>""",
    is_bad="""
  %offset = arith.subi %number, %low : $element
  %wrong = arith.cmpi uge, %offset, %span : $element""",
    arguments=("low", "span"),
    splats="""
  %lows = vector.broadcast %low : $element to vector<${lanes}x$element>
  %spans = vector.broadcast %span : $element to vector<${lanes}x$element>""",
)
_DECREASE = _Rule(
    "decrease",
    are_good="""
  %ahead = arith.addi %first, %one : index
  %there = vector.load %x[%ahead] : memref<?x$element>, vector<${lanes}x$element>
  %good = arith.cmpi sge, %there, %here : vector<${lanes}x$element>""",
    is_bad="""
  %other = memref.load %x[%next] : memref<?x$element>
  %wrong = arith.cmpi slt, %other, %number : $element""",
    ahead="one",
)


def first_outside(element: IntegerType, divided: bool = False) -> tuple[Function, ...]:
    """`(x, low, span) -> index`: the first element not in [low, low + span), or the size of x.

    It is the last of the functions, which calls the others.

    Args:
        element: the type of the elements.
        divided: whether parts of a long x are searched in tiles.
    """
    return _functions(_OUTSIDE, element, divided)


def first_decrease(element: IntegerType, divided: bool = False) -> tuple[Function, ...]:
    """`(x) -> index`: the first element that is above the next one, or the last one.

    See `first_outside` for the arguments.
    """
    return _functions(_DECREASE, element, divided)


@functools.cache
def _functions(rule: _Rule, element: IntegerType, divided: bool) -> tuple[Function, ...]:
    bits = element.width.data
    numbers = {
        "element": element,
        "lanes": _BITS // bits,
        "least": PART_BITS // bits,
        "most": MOST_PARTS,
        "few": FEWEST_PARTS,
    }
    parts = rule.parts()

    def made(text: str, **others: str) -> Function:
        text = Template(text).safe_substitute(parts | others)
        return parsed(Template(Template(text).safe_substitute(parts)).substitute(numbers))

    if not divided:
        return (made(_SEARCH, **_OF_ALL),)
    inner = made(_SEARCH, **_OF_A_PART, name=f"{parts['name']}_in")
    return (inner, made(_PART), made(_DIVIDED))


def parsed(text: str) -> Function:
    """The only function of a text."""
    op = MlirParser(make_context(), text).parse_module().body.block.first_op
    assert isinstance(op, func.FuncOp | llvm.FuncOp)
    return op
