"""The walk that lowers operations of the standard dialects to the LLVM dialect.

Each conversion `convert-<dialect>-to-llvm` is a table from the class of an operation to a function
that emits its replacement. `Lowering` walks a module once, definitions before uses, with one table
or several: `convert-to-llvm` joins all of them.

A value of a type that LLVM does not have (`index`, a buffer) is represented by its parts, see
`types`. If a conversion runs alone, `builtin.unrealized_conversion_cast` connects parts to
operations that are not converted yet; the next conversion looks through it, and the last one leaves
none.

The tables hold functions rather than rewrite patterns: a lookup by class costs a tenth of a pattern
visit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, cf, func, llvm
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    UnrealizedConversionCastOp,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import ConstantLike, IsolatedFromAbove

from ...core.algebra.polynomials import Polynomial
from ...core.building.tables import HandlerTable
from ...core.ir.context import index_bits_of
from ...core.ir.control_flow import definitions_first
from ...core.ir.refusal import refused
from ...core.ir.symbols import symbol_of
from ...core.ir.typed import bits, float_type
from ...core.pipelines.actions import allowed, is_counting
from .places import LoweringPlaces
from .types import NotLowerableError, dense, int_attr, parts_of, with_element_type

Parts: TypeAlias = tuple[SSAValue, ...]
Lower: TypeAlias = Callable[[Any, "Lowering"], SSAValue | Parts | None]
"""Emits the replacement of an operation; returns the parts of its only result, or None."""


class LoweringTable(HandlerTable["Lowering", SSAValue | Parts | None]):
    """How to lower operations, by their classes."""


_PREDICATES = {
    name: int_attr(number, 64) for number, name in enumerate(arith.CMPI_COMPARISON_OPERATIONS)
}


def lower_module(
    ctx: Context, module: ModuleOp, table: Mapping[type[Operation], Lower], dialects: Iterable[str]
) -> None:
    """Replace what `table` lowers; any other operation of `dialects` is an error.

    The target of the context defines the width of an index.

    Raises:
        PassFailedException: naming the first operation that cannot be converted.
    """
    index = IntegerType(index_bits_of(ctx))
    Lowering(table, frozenset(dialects), index).run(module)


class Lowering(LoweringPlaces):
    """One walk over one module."""

    def __init__(
        self, table: Mapping[type[Operation], Lower], dialects: frozenset[str], index: IntegerType
    ):
        super().__init__()
        self.index = index
        """The type of an `index`."""
        self._table = table
        self._dialects = dialects
        self._types: dict[int, tuple[Attribute, tuple[Attribute, ...]]] = {}
        self._parts: dict[SSAValue, Parts] = {}
        self._replaced: list[Operation] = []
        self._old_arguments: list[BlockArgument] = []
        self.atoms: list[SSAValue] = []
        """The LLVM values that sums of indices are made of."""
        self._atoms: dict[SSAValue, Polynomial[int]] = {}
        self.sums: dict[SSAValue, Polynomial[int]] = {}
        """Indices as polynomials over `atoms`."""
        self._symbols: set[str] | None = None
        self._last_added: Operation | None = None
        self.module: ModuleOp
        """The module that is being lowered."""

    # For the functions of a table

    def parts_of(self, type: Attribute) -> tuple[Attribute, ...]:
        """The LLVM types that a value of this type becomes."""
        found = self._types.get(id(type))
        if found is None:
            # Found by identity, for which the type is kept alive: hashing it takes longer.
            found = self._types[id(type)] = type, parts_of(type, self.index)
        return found[1]

    def parts(self, value: SSAValue) -> Parts:
        """The LLVM values that represent `value`, casts if it is not lowered yet."""
        known = self._parts.get(value)
        if known is not None:
            return known
        types = self.parts_of(value.type)
        if types == (value.type,):
            return (value,)
        number = ConstantLike.get_constant_value(value)
        if isinstance(number, IntegerAttr):
            return (self.integer(number.value.data, types[0]),)
        cast = UnrealizedConversionCastOp.create(operands=[value], result_types=types)
        anchor = self.last_definition([value])
        if anchor is None:
            self.place_before(cast)
            return tuple(cast.results)
        self.place_after(cast, anchor)
        self._parts[value] = tuple(cast.results)
        return self._parts[value]

    def value(self, value: SSAValue) -> SSAValue:
        """The only LLVM value that represents `value`."""
        known = self._parts.get(value)
        return (known or self.parts(value))[0]

    def constant(self, attribute: Attribute, type: Attribute) -> SSAValue:
        """A constant that is no integer, at the entry of the function."""
        return self.hoist((attribute, type), llvm.ConstantOp, (), type, {"value": attribute})

    def integer(self, number: int, type: Attribute | None = None) -> SSAValue:
        """An integer constant of an integer type; without one, that of an index."""
        kind = self.index if type is None else type
        width = bits(kind)
        value = {"value": int_attr(number, width)}
        return self.hoist((number, width), llvm.ConstantOp, (), kind, value)

    def number(self, value: float, type: Attribute) -> SSAValue:
        """A constant of a scalar type, or one in every lane of a vector."""
        if isinstance(type, VectorType):
            return self.constant(dense(type, [value]), type)
        if isinstance(type, IntegerType):
            return self.integer(int(value), type)
        return self.constant(FloatAttr(value, float_type(type)), type)

    def compare(self, predicate: str, left: SSAValue, right: SSAValue) -> SSAValue:
        """`llvm.icmp` of scalars or vectors."""
        type, properties = with_element_type(left.type, i1), {"predicate": _PREDICATES[predicate]}
        return self.emit(llvm.ICmpOp, (left, right), type, properties)

    def times(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """A product of indices."""
        return self.hoist(("mul", left, right), llvm.MulOp, (left, right), self.index)

    def atom(self, value: SSAValue) -> Polynomial[int]:
        """An LLVM value as a polynomial over `atoms`."""
        if value not in self._atoms:
            self._atoms[value] = Polynomial.atom(len(self.atoms))
            self.atoms.append(value)
        return self._atoms[value]

    def known_integer(self, value: SSAValue) -> int | None:
        """The value of an LLVM integer constant, else None."""
        owner = value.owner
        if not isinstance(owner, llvm.ConstantOp) or not isinstance(owner.value, IntegerAttr):
            return None
        return owner.value.value.data

    def define(self, old: SSAValue, parts: Parts) -> None:
        """Record the LLVM values that represent `old`."""
        self._parts[old] = parts

    def is_declared(self, name: str) -> bool:
        """Whether the module has a function of this name."""
        if self._symbols is None:
            self._symbols = set(filter(None, map(symbol_of, self.module.ops)))
        return name in self._symbols

    def declare(self, name: str, type: llvm.LLVMFunctionType) -> None:
        """Declare an external function, once per module."""
        if not self.is_declared(name):
            self.add_symbol(llvm.FuncOp(name, type, linkage=llvm.LinkageAttr("external")))

    def add_symbol(self, new: llvm.FuncOp | func.FuncOp | llvm.GlobalOp) -> None:
        """Insert a new function or variable before those of the module; it is not walked."""
        assert self._symbols is not None
        self._symbols.add(new.sym_name.data)
        block, last = self.module.body.block, self._last_added
        self._last_added = new
        if last is not None:
            block.insert_op_after(new, last)
            return
        assert block.first_op is not None
        block.insert_op_before(new, block.first_op)

    def convert_arguments(self, block: Block) -> None:
        """Replace the arguments of a block by arguments of LLVM types."""
        kinds = [self.parts_of(old.type) for old in block.args]
        if all(types == (old.type,) for old, types in zip(block.args, kinds, strict=True)):
            return
        for old, types in zip(block.args, kinds, strict=True):
            first = len(block.args)
            parts = tuple(block.insert_arg(t, first + i) for i, t in enumerate(types))
            parts[0].name_hint = old.name_hint
            self._parts[old] = parts
            self._old_arguments.append(old)

    def walk(self, region: Region) -> None:
        """Lower a region, visiting blocks so that definitions come first."""
        blocks = list(region.blocks)
        if len(blocks) > 1:
            blocks = definitions_first(blocks)
            if cf.BranchOp in self._table:
                for block in blocks[1:]:
                    self.convert_arguments(block)
        for block in blocks:
            self.begins(block)
            op = block.first_op
            while op is not None:
                following = op.next_op
                self._visit(op)
                op = following

    def walk_function(self, region: Region) -> None:
        """Lower a region that is isolated from above."""
        with self.function(region.blocks.first):
            self.walk(region)

    def refuse(self, fact: str, expected: object = None, got: object = None) -> NoReturn:
        """Raise the error that the current operation cannot be converted."""
        op = self.op
        raise refused(op, fact, expected=expected, got=got)

    # The walk

    def run(self, module: ModuleOp) -> None:
        """Lower the whole module."""
        self.module = module
        try:
            self.walk(module.body)
        except NotLowerableError as error:
            self.refuse(error.fact, error.expected, error.got)
        for op in reversed(self._replaced):
            for result in op.results:
                if result.first_use is not None:
                    self._hand_over(result)
            op.detach()
            op.erase(safe_erase=False)
        for old in self._old_arguments:
            if old.first_use is not None:
                self._hand_over(old)
            old.block.erase_arg(old)
        self.erase_unused()

    def _visit(self, op: Operation) -> None:
        self._order[op] = len(self._order)
        self.op = op
        lower = self._table.get(type(op))
        if lower is not None and (not is_counting() or _is_lowered(op)):
            result = lower(op, self)
            if result is not None:
                parts = result if isinstance(result, tuple) else (result,)
                self._parts[op.results[0]] = parts
                hint = op.results[0].name_hint
                if hint and parts[0].name_hint is None:
                    parts[0].name_hint = hint
            self._replaced.append(op)
            return
        if type(op) is UnrealizedConversionCastOp:
            self._look_through(op)
        elif lower is None and op.name.partition(".")[0] in self._dialects:
            self.refuse("cannot be converted to the llvm dialect")
        for region in op.regions:
            # There is no entry in the body of a module or of a function that is not converted.
            if op.has_trait(IsolatedFromAbove) or self.entry is None:
                self.walk_function(region)
            else:
                self.walk(region)

    def _look_through(self, op: UnrealizedConversionCastOp) -> None:
        """Record the parts of an earlier conversion, or supply those that it requested."""
        if len(op.results) == 1 and self.parts_of(op.results[0].type) == op.operand_types:
            self._parts[op.results[0]] = tuple(op.operands)
            self._replaced.append(op)
            return
        if len(op.operands) != 1:
            return
        known = self._parts.get(op.operands[0])
        if known is None or tuple(part.type for part in known) != op.result_types:
            return
        for result, part in zip(op.results, known, strict=True):
            self._parts[result] = (part,)
        self._replaced.append(op)

    # The end

    def _hand_over(self, old: SSAValue) -> None:
        """Replace `old` in operations that are not converted."""
        parts = self._parts[old]
        if len(parts) == 1 and parts[0].type == old.type:
            old.replace_all_uses_with(parts[0])
            return
        cast = UnrealizedConversionCastOp.create(operands=parts, result_types=[old.type])
        anchor = self.last_definition(parts)
        if anchor is not None:
            self.place_after(cast, anchor)
        else:
            assert isinstance(old.owner, Operation)
            assert old.owner.parent is not None
            old.owner.parent.insert_op_before(cast, old.owner)
        old.replace_all_uses_with(cast.results[0])


def _is_lowered(op: Operation) -> bool:
    """Whether an operation is lowered: one on values of LLVM types can be held back."""
    types = (*op.operand_types, *op.result_types)
    if not op.results or op.regions or any(parts_of(kind) != (kind,) for kind in types):
        return True
    return allowed("lower", op)
