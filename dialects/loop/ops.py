"""Operations of the loop dialect.

Kernels are here; loops are in `ops_loops.py`, operations on values in `ops_values.py`, instructions
of processors in `ops_instruction.py`, hints in `ops_prefetch.py`, partitions of sparse work in
`ops_partition.py`, and of what is written in `ops_owned.py`.
Parsing and printing are written by hand where an operation applies an affine map to index values
(see `syntax.py`), names its loop variable or has numbers without a type; the declarative format
has none of these.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NoReturn, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
)
from xdsl.dialects.utils import print_func_argument
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import IRDLOperation, opt_prop_def, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.hints import isa

from ...core.building.creation import initialize
from ...core.ir.definitions import irdl_op_definition
from ...core.ir.refusal import operation_of
from .arguments import ENTRIES, IN_PLACE, TEXTS, are_texts, attributes_of
from .loop_base import YieldOp
from .ops_access import LoadOp, StoreOp
from .ops_instruction import InstructionOp
from .ops_loops import ForOp
from .ops_owned import OwnedOp
from .ops_partition import PartitionPointOp
from .ops_prefetch import PrefetchOp
from .ops_values import FoldOp, LocalOp, block_shape, element_type, refuse
from .proofs.accumulators import check_combiners
from .proofs.dependences import Dependence, access_text, dependences, unwritten
from .proofs.outside import outside
from .proofs.segments import is_row_pointer
from .trace_text import STEPS, is_trace
from .vectors import VECTORS, VectorsAttr

__all__ = [
    "ENTRIES",
    "IN_PLACE",
    "SCHEDULE",
    "TRUSTED",
    "FoldOp",
    "ForOp",
    "InstructionOp",
    "KernelOp",
    "LoadOp",
    "LocalOp",
    "OwnedOp",
    "PartitionPointOp",
    "PrefetchOp",
    "StoreOp",
    "YieldOp",
    "block_shape",
    "element_type",
]

SCHEDULE = "loop.schedule"
"""The attribute of a kernel with the steps that made it."""

TRUSTED = "loop.trusted"
"""The attribute of a kernel whose computed indices are taken to be inside of buffers."""

_NAME = re.compile(r"[A-Za-z_][\w.]*")
"""Valid names of loops: schedules derive names of loops and values from them."""

_OTHER_ROWS = "the rows of a matrix are not those that the kernel was given"


@irdl_op_definition
class KernelOp(IRDLOperation):
    """A kernel in destination-passing style: inputs are read, outputs are written.

    ```mlir
    loop.kernel @relu(%x: memref<4x8xf32>) -> (%y: memref<4x8xf32>) {
      %zero = arith.constant 0.0 : f32
      loop.for "i" %i to 4 {
        loop.for "j" %j to 8 {
          %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %j) : memref<4x8xf32>, f32
          %r = arith.maximumf %v, %zero : f32
          loop.store %r, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<4x8xf32>
        }
      }
    }
    ```

    All buffers are contiguous, row-major, and do not overlap. Attributes of an argument:
    `loop.constant` (unit): every call passes a constant of the program; `loop.packing`: the
    affine map from an index of the (packed) argument to the index of the constant it is made
    of; `loop.bounds = ["x0.1"]`: its integers are indices below each of these extents (here
    dimension 1 of the first tensor that is passed), checked before the kernel runs;
    `loop.sizes = ["graph.top_k, dimension 1 of x: x0.1 >= 10", "x0.0 <= 99"]`: these sizes are at
    least, or at most, so much, which is checked before as well; errors name the operator that needs
    it, or without one the kernel;
    `loop.fits = ["x0.0 <= x1.1+2"]`, of the first argument: comparisons of sizes, also of results
    (`y0.1`), under which all accesses are inside of their buffers, checked before (see
    `inside.py`);
    `loop.offsets = ["x0.0"]`: its integers are from 0 up to these extents and never decrease, which
    is checked as well;
    `loop.indptr` (unit): the row pointers of a CSR matrix, needed where only `loop.load` reads them
    (a loop `of` them implies it): every call passes a CSR matrix for them, which is checked;
    `loop.entries = 13264`, of column indices: the number of entries of the matrix in every call,
    for schedules; `loop.in_place = [2]`: this output may have the buffer of any of these inputs
    (see `in_place.py`).

    In a loop that is not `serial`, no iteration stores to a place that another one loads from or
    stores to, and what is read of an output or a `loop.local` may have been stored before (see
    `dependences.py`). No access is certainly outside of its buffer (see `outside.py`). A reduction
    accumulates each carried value by its combiner, and unless that is `custom`, no store in it
    depends on the value (see `accumulators.py`). Only `loop.for` has a body: schedules and
    conversions handle no other.

    The attribute `loop.schedule` is the trace of the steps that scheduled the kernel (see
    `trace.py`), for readers and for replay. `loop.vectors` gives the machine vectors that each
    vector of the kernel consists of (see `vectors.py`). `loop.trusted` (unit) is on kernels in
    text that `from_mlir` trusts (`trusted=True`): indices that they compute need no proof.
    """

    name = "loop.kernel"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface(), NoTerminator())

    def __init__(
        self,
        name: str,
        inputs: Sequence[Attribute],
        outputs: Sequence[Attribute],
        body: Region | None = None,
        arg_attrs: Sequence[DictionaryAttr] | None = None,
    ) -> None:
        if body is None:
            body = Region(Block(arg_types=[*inputs, *outputs]))
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(name),
            "function_type": FunctionType.from_lists(inputs, outputs),
        }
        if arg_attrs is not None:
            properties["arg_attrs"] = ArrayAttr(arg_attrs)
        # The general constructor is slow, and each step of a schedule makes a kernel.
        initialize(self, (), properties=properties, regions=[body])

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        """The buffers (and sizes) that are read."""
        return tuple(self.body.block.args[: len(self.function_type.inputs)])

    @property
    def outputs(self) -> tuple[SSAValue, ...]:
        """The buffers that are written."""
        return tuple(self.body.block.args[len(self.function_type.inputs) :])

    def attrs_of(self, index: int) -> dict[str, Attribute]:
        """The attributes of argument `index`, inputs counted first."""
        return attributes_of(self, index)

    def may_overwrite(self, number: int) -> set[int]:
        """The inputs that argument `number` may be written over, by `loop.in_place`."""
        marked = self.attrs_of(number).get(IN_PLACE, ArrayAttr([]))
        return {index.value.data for index in cast(ArrayAttr[IntegerAttr], marked)}

    def verify_(self) -> None:
        types = (*self.function_type.inputs, *self.function_type.outputs)
        args = self.body.block.args
        if tuple(a.type for a in args) != types:
            refuse(self, f"arguments of @{self.sym_name.data} differ from its type")
        for kind in types:
            if not isinstance(kind, MemRefType | IndexType):
                refuse(self, "wrong argument type", "a memref or index", kind)
        if self.arg_attrs is not None and len(self.arg_attrs) != len(types):
            refuse(self, "wrong number of argument attributes", len(types), len(self.arg_attrs))
        for number in range(len(types)):
            self._check_in_place(number)
            # What `TEXTS` names are arrays of such texts.
            for attr, given in self.attrs_of(number).items():
                read, expected = TEXTS.get(attr, (None, None))
                if read is not None and not are_texts(given, read):
                    refuse(self, f"wrong {attr} of argument {number}", expected, given)
        schedule = self.attributes.get(SCHEDULE)
        if schedule is not None and not (
            isinstance(schedule, StringAttr) and is_trace(schedule.data)
        ):
            refuse(self, f"wrong {SCHEDULE}", "a string of steps: " + STEPS, schedule)
        vectors = self.attributes.get(VECTORS)
        if vectors is not None and not isinstance(vectors, VectorsAttr):
            refuse(self, f"wrong {VECTORS}", f"#{VECTORS}", vectors)
        seen: set[str] = set()
        for op in self.walk():
            if isinstance(op, ForOp):
                name = op.loop_name.data
                if not _NAME.fullmatch(name):
                    refuse(op, "loop name is not an identifier", "letters and digits", f'"{name}"')
                if name in seen:
                    refuse(op, f'two loops are called "{name}"', "unique names")
                seen.add(name)
                check_combiners(op)
            elif op.regions and op is not self:
                refuse(op, "has a body", "loop.for as the only such operation in a kernel")
        self._check_memory()

    def emit_error(self, message: str, underlying_error: Exception) -> NoReturn:
        """Raise an error, shown at the operation in the body that it is about."""
        op = operation_of(underlying_error)
        if op is None or op is self:
            super().emit_error(message, underlying_error)
        op.emit_error(message, underlying_error)

    def dependences(self, names: Collection[str] | None = None) -> Iterator[Dependence]:
        """The dependences between iterations of loops of these names, or of all loops."""
        return dependences(self.body.block, self._overwritten(), names)

    def _overwritten(self) -> dict[SSAValue, list[SSAValue]]:
        """For each output the inputs that it may be written over."""
        return {
            output: [self.inputs[given] for given in sorted(self.may_overwrite(number))]
            for number, output in enumerate(self.outputs, len(self.inputs))
        }

    def _check_memory(self) -> None:
        """Check that unordered iterations are independent, and that reads are defined."""
        for found in self.dependences():
            refuse(found.loop, str(found), "independent iterations")
        for load in unwritten(self.body.block, self.outputs):
            fact = f"{access_text(load)} is read, but nothing is stored there before"
            refuse(load, fact, "a store that precedes it, also in the body of a serial loop")
        for place in outside(self.body.block):
            fact = f"{access_text(place.access)} is outside of dimension {place.dimension}"
            expected = "0 <= index" if place.size is None else f"0 <= index < {place.size}"
            refuse(place.access, fact, expected, place.index)
        written = {op.buffer for op in self.walk() if isinstance(op, StoreOp)}
        over = self._overwritten()
        written |= {given for output in self.outputs if output in written for given in over[output]}
        for op in self.walk():
            if isinstance(op, StoreOp) and op.buffer in self.inputs:
                fact, expected = f"{access_text(op)} is stored to", "an output or a loop.local"
                refuse(op, fact, expected, "an input")
            matrix = op.matrix if isinstance(op, ForOp) else ()
            rows = {op.indptr} if isinstance(op, PartitionPointOp) else set(matrix)
            if not rows <= set(self.inputs) - written:
                refuse(op, _OTHER_ROWS, "an input that nothing is written over")
        rows = set(filter(is_row_pointer, self.body.block.args))
        if not rows <= set(self.inputs) - written:
            refuse(self, _OTHER_ROWS, "an input that nothing is written over")

    def _check_in_place(self, number: int) -> None:
        """Check that `loop.in_place` is on an output, and names inputs of its type."""
        marked, args = self.attrs_of(number).get(IN_PLACE), self.body.block.args
        if marked is None:
            return
        expected = "an output with an array of inputs of its type"
        if number < len(self.inputs) or not isa(marked, ArrayAttr[IntegerAttr]):
            refuse(self, f"wrong {IN_PLACE} of argument {number}", expected, marked)
        for index in cast(ArrayAttr[IntegerAttr], marked):
            given = index.value.data
            if not 0 <= given < len(self.inputs) or args[given].type != args[number].type:
                refuse(self, f"wrong {IN_PLACE} of argument {number}", expected, marked)

    def print(self, printer: Printer) -> None:
        kind, args = self.function_type, self.body.block.args
        count = len(kind.inputs)

        def argument(index: int) -> None:
            print_func_argument(printer, args[index], DictionaryAttr(self.attrs_of(index)))

        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(range(count), argument)
        printer.print_string(" -> ")
        with printer.in_parens():
            printer.print_list(range(count, len(args)), argument)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        def argument() -> tuple[Parser.Argument, DictionaryAttr]:
            arg = parser.parse_argument()
            attrs = parser.parse_optional_dictionary_attr_dict()
            arg.location = parser.parse_optional_location()
            return arg, DictionaryAttr(attrs)

        name = parser.parse_symbol_name().data
        inputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        parser.parse_punctuation("->")
        outputs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument)
        extra = parser.parse_optional_attr_dict_with_keyword(("sym_name", "function_type"))
        body = parser.parse_region([a for a, _ in (*inputs, *outputs)])
        attrs = [d for _, d in (*inputs, *outputs)]
        op = cls(
            name,
            [a.type for a, _ in inputs],
            [a.type for a, _ in outputs],
            body,
            attrs if any(d.data for d in attrs) else None,
        )
        if extra is not None:
            op.attributes |= extra.data
        return op
