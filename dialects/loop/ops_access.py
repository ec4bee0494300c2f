"""Operations of the loop dialect on buffers: loads and stores of scalars and blocks."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    DenseArrayBase,
    IntegerType,
    MemRefType,
    i1,
    i64,
)
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap, AffineSymExpr
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect

from ...core.bounded_cache import bounded_cache
from ...core.building.creation import initialize
from ...core.ir.definitions import irdl_op_definition
from ...core.ir.typed import memref_type
from ...core.pipelines.exactness import EXACT, states
from .attrs import Combine, CombineAttr
from .effects import StoreEffects
from .ops_values import block_shape, element_type, refuse
from .proofs.bounds import shortened
from .syntax import INDEX, parse_applied_map, print_applied_map


class _Access:
    """The common part of `loop.load` and `loop.store`: an affine map from indices and axes to a
    place.

    Mixed into operations that have `buffer`, `indices`, `limits`, `map` and `limited`.
    """

    @staticmethod
    def check(op: LoadOp | StoreOp, block: Attribute) -> None:
        kind, map, shape = memref_type(op.buffer), op.map.data, block_shape(block)
        if element_type(block) != kind.element_type:
            refuse(op, "element types differ", kind.element_type, element_type(block))
        if len(map.results) != kind.get_num_dims():
            refuse(op, "map has the wrong number of results", kind.get_num_dims(), map)
        count = len(op.arguments) - len(op.limited)
        if map.num_dims != count:
            refuse(op, "map has the wrong number of dimensions", max(count, 0), map)
        if map.num_symbols != len(shape):
            refuse(op, "map has the wrong number of symbols", len(shape), map)
        used = {e.position for r in map.results for e in r.dfs() if isinstance(e, AffineSymExpr)}
        for axis, lanes in enumerate(shape):
            if lanes > 1 and axis not in used and isinstance(op, StoreOp):
                refuse(op, f"lanes of axis {axis} are stored to one place")
            if lanes == 1 and axis in used and isinstance(op, LoadOp):
                refuse(op, f"axis {axis} is used, but has one lane")
        axes = list(op.limited.get_values())
        for axis in axes:
            if not 0 <= axis < len(shape):
                refuse(op, "no such axis", f"below {len(shape)}", axis)
        if len(set(axes)) < len(axes):
            refuse(op, "an axis has two limits", "one for each", axes)


def _print_limits(printer: Printer, op: LoadOp | StoreOp) -> None:
    if not op.limits:
        return
    printer.print_string(" valid(")
    axes = op.limited.get_values()

    def limit(pair: tuple[int, SSAValue]) -> None:
        printer.print_string(f"{pair[0]} : ")
        printer.print_ssa_value(pair[1])

    printer.print_list(zip(axes, op.limits, strict=True), limit)
    printer.print_string(")")


def _parse_limits(parser: Parser) -> tuple[list[int], list[SSAValue]]:
    if parser.parse_optional_keyword("valid") is None:
        return [], []

    def limit() -> tuple[int, SSAValue]:
        axis = parser.parse_integer()
        parser.parse_punctuation(":")
        return axis, parser.resolve_operand(parser.parse_unresolved_operand(), INDEX)

    pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, limit)
    return [axis for axis, _ in pairs], [value for _, value in pairs]


@irdl_op_definition
class LoadOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """Read a scalar, or a block whose dimensions are axes.

    ```mlir
    %a = loop.load %x (d0, d1) -> (d0, d1)(%i, %k) : memref<?x784xf32>, f32
    %b = loop.load %w (d0, d1)[s0, s1] -> (d0 * 32 + s1, d1)(%j0, %k) valid(1 : %n)
        : memref<100x784xf32>, vector<1x32xf32>
    ```

    Dimensions of the map are index values, its symbols are axes: `s1` is the lane number
    along axis 1. An axis that the map does not use has one lane. `valid(a : %n)` says that
    only the first `%n` lanes of axis `a` lie inside the buffer; the others are unspecified
    and must not reach a result.

    In a kernel:

    ```mlir
    loop.kernel @first_lanes(%x: memref<6xf32>) -> (%y: memref<6xf32>) {
      loop.for "i" %i to 2 {
        %n = affine.min affine_map<(d0) -> (4, d0 * -4 + 6)>(%i)
        %v = loop.load %x (d0)[s0] -> (d0 * 4 + s0)(%i) valid(0 : %n) : memref<6xf32>, vector<4xf32>
        %r = arith.negf %v : vector<4xf32>
        loop.store %r, %y (d0)[s0] -> (d0 * 4 + s0)(%i) valid(0 : %n) : vector<4xf32>, memref<6xf32>
      }
    }
    ```
    """

    name = "loop.load"

    buffer = operand_def(MemRefType)
    arguments = var_operand_def(INDEX)
    """The operands of the map, then how many lanes of each limited axis are valid."""
    map = prop_def(AffineMapAttr)
    limited = prop_def(DenseArrayBase.constr(i64))
    result = result_def()

    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        buffer: SSAValue,
        map: AffineMap,
        indices: Sequence[SSAValue],
        result_type: Attribute | None = None,
        limits: Sequence[tuple[int, SSAValue]] = (),
    ) -> None:
        # Not by the general constructor: schedules make accesses by the hundred.
        operands = [buffer, *indices, *(limit for _, limit in limits)]
        results = [result_type or memref_type(buffer).element_type]
        initialize(self, operands, results, _properties(map, limits))

    @property
    def indices(self) -> Sequence[SSAValue]:
        """The indices that the map is applied to."""
        return self.operands[1 : 1 + self.map.data.num_dims]

    @property
    def limits(self) -> Sequence[SSAValue]:
        """How many lanes of each limited axis are valid."""
        return self.operands[1 + self.map.data.num_dims :]

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (ShortenAccess(),)

    def verify_(self) -> None:
        _Access.check(self, self.result.type)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.buffer)
        printer.print_string(" ")
        print_applied_map(printer, self.map, self.indices)
        _print_limits(printer, self)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list((self.buffer.type, self.result.type), printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        buffer = parser.parse_unresolved_operand()
        map, indices = parse_applied_map(parser)
        axes, limits = _parse_limits(parser)
        attrs = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        buffer_type = parser.parse_type()
        parser.parse_punctuation(",")
        op = cls(
            parser.resolve_operand(buffer, buffer_type),
            map.data,
            [parser.resolve_operand(o, INDEX) for o in indices],
            parser.parse_type(),
            list(zip(axes, limits, strict=True)),
        )
        op.attributes |= attrs
        return op


@irdl_op_definition
class StoreOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """Write a scalar, or a block whose dimensions are axes.

    ```mlir
    loop.store %r, %y (d0)[s0, s1] -> (d0 * 12 + s0, s1)(%i0) valid(0 : %m)
        : vector<12x16xf32>, memref<?x16xf32>
    ```

    The map is that of `loop.load`; lanes beyond `valid` are not written.

    ```mlir
    loop.store add %v, %h (d0) -> (d0)(%c) : f32, memref<16xf32>
    ```

    A store with a combiner accumulates: it combines each element of the buffer with the stored one.
    It reads and writes, lane by lane. Two such stores to one place commute if they have the same
    combiner, so that the iterations of a reduction may run in any order. They are not atomic: only
    loops of the kinds `serial` and `reduction` may accumulate into one place in several iterations.

    In a kernel:

    ```mlir
    loop.kernel @histogram(%c: memref<6xi32>) -> (%h: memref<4xf32>) {
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      loop.for "j" %j to 4 {
        loop.store %zero, %h (d0) -> (d0)(%j) : f32, memref<4xf32>
      }
      loop.for "i" %i to 6 serial {
        %n = loop.load %c (d0) -> (d0)(%i) : memref<6xi32>, i32
        %k = arith.index_cast %n : i32 to index
        loop.store add %one, %h (d0) -> (d0)(%k) : f32, memref<4xf32>
      }
    }
    ```
    """

    name = "loop.store"

    value = operand_def()
    buffer = operand_def(MemRefType)
    arguments = var_operand_def(INDEX)
    """The operands of the map, then how many lanes of each limited axis are valid."""
    map = prop_def(AffineMapAttr)
    limited = prop_def(DenseArrayBase.constr(i64))
    combine = opt_prop_def(CombineAttr)

    traits = traits_def(StoreEffects())

    def __init__(
        self,
        value: SSAValue,
        buffer: SSAValue,
        map: AffineMap,
        indices: Sequence[SSAValue],
        limits: Sequence[tuple[int, SSAValue]] = (),
        combine: Combine | None = None,
    ) -> None:
        properties = _properties(map, limits)
        if combine is not None:
            properties["combine"] = CombineAttr(combine)
        operands = [value, buffer, *indices, *(limit for _, limit in limits)]
        initialize(self, operands, properties=properties)

    @property
    def indices(self) -> Sequence[SSAValue]:
        """The indices that the map is applied to."""
        return self.operands[2 : 2 + self.map.data.num_dims]

    @property
    def limits(self) -> Sequence[SSAValue]:
        """How many lanes of each limited axis are valid."""
        return self.operands[2 + self.map.data.num_dims :]

    @property
    def accumulates(self) -> Combine | None:
        """How the stored value is combined with the old one; None if it replaces it."""
        return None if self.combine is None else self.combine.data

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (ShortenAccess(),)

    def verify_(self) -> None:
        _Access.check(self, self.value.type)
        if self.accumulates is None:
            return
        if self.accumulates == Combine.CUSTOM:
            refuse(self, "cannot accumulate by an unknown combiner", "add, mul, max or min")
        kind = element_type(self.value.type)
        if not isinstance(kind, AnyFloat | IntegerType) or kind == i1:
            refuse(self, "cannot accumulate", "numbers", kind)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if self.accumulates is not None:
            printer.print_string(f"{self.accumulates} ")
        printer.print_list((self.value, self.buffer), printer.print_ssa_value)
        printer.print_string(" ")
        print_applied_map(printer, self.map, self.indices)
        _print_limits(printer, self)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list((self.value.type, self.buffer.type), printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        combine = parser.parse_optional_str_enum(Combine)
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        buffer = parser.parse_unresolved_operand()
        map, indices = parse_applied_map(parser)
        axes, limits = _parse_limits(parser)
        attrs = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value_type = parser.parse_type()
        parser.parse_punctuation(",")
        op = cls(
            parser.resolve_operand(value, value_type),
            parser.resolve_operand(buffer, parser.parse_type()),
            map.data,
            [parser.resolve_operand(o, INDEX) for o in indices],
            list(zip(axes, limits, strict=True)),
            combine,
        )
        op.attributes |= attrs
        return op


def _properties(map: AffineMap, limits: Sequence[tuple[int, SSAValue]]) -> dict[str, Attribute]:
    limited = _limited(tuple(axis for axis, _ in limits))
    return {"map": AffineMapAttr(map), "limited": limited}


@bounded_cache
def _limited(axes: tuple[int, ...]) -> Attribute:
    return DenseArrayBase.from_list(i64, axes)


@states(EXACT, "load %x (d0, d1) -> (d1 + d0)(%c2, %i) == load %x (d0) -> (d0 + 2)(%i)")
class ShortenAccess(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: LoadOp | StoreOp, rewriter: PatternRewriter) -> None:
        shorter = shortened(op.map.data, op.indices)
        if shorter is None:
            return
        map, indices = shorter
        limits = list(zip(op.limited.get_values(), op.limits, strict=True))
        if isinstance(op, LoadOp):
            new = LoadOp(op.buffer, map, indices, op.result.type, limits)
        else:
            new = StoreOp(op.value, op.buffer, map, indices, limits, op.accumulates)
        rewriter.replace(op, new)
