"""Conditions and loops: `scf` around calls, on buffers that are exchanged and not copied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ...core.building.arithmetic import INDEX, constant
from ...core.errors import explain
from ...core.ir.provenance import origin
from ...core.ir.typed import tensor_type
from ...dialects.graph import ops as graph
from ...dialects.graph.buffers import buffer_types
from ...dialects.graph.interfaces import ShapeFacts, unknown_sizes
from ...dialects.rt import ops as rt
from ...dialects.upstream import ops as upstream
from .carrying import Carrying, in_results
from .computed import ComputedSizes
from .constants import Constants, as_type
from .function import BufferFunction, BufferPlace


class Regions:
    """Converts control flow.

    Args:
        function: the function under construction.
        constants: the buffers of operands.
        sizes: the sizes that the function computes.
        convert: converts an operation of a region.
    """

    def __init__(
        self,
        function: BufferFunction,
        constants: Constants,
        sizes: ComputedSizes,
        convert: Callable[[Operation], None],
    ) -> None:
        self.function, self.constants, self.convert = function, constants, convert
        self.sizes = sizes

    def convert_control(self, op: graph.ControlFlowOp) -> None:
        """Convert a condition or a loop."""
        if isinstance(op, graph.IfOp):
            self._convert_if(op)
        elif isinstance(op, graph.LoopOp):
            _Loop(self, op).convert()

    def _convert_if(self, op: graph.IfOp) -> None:
        function, sizes = self.function, self.sizes.measured_by(op)
        differing = [result for result in op.results if function.shapes.is_computed_by(op, result)]
        placed = [result for result in differing if function.is_placed_by_branch(op, result)]
        for result in op.results:
            if result not in differing:
                function.destination(result, op)
        for value, result in in_results(function, op).items():
            if result in differing:
                function.places[value] = function.places[result]
            else:
                function.buffers[value] = function.buffers[result]
        condition = self.flag(op.condition)
        blocks = [Block(), Block()]
        for body, block in zip(op.bodies, blocks, strict=True):
            with function.inside(block), function.standing_for(op.location):
                self.body(op, body)
                given = dict[SSAValue, SSAValue](zip(op.results, graph.yielded(body), strict=True))
                for result, value in given.items():
                    if result not in placed:
                        self._give(op, value, result, result in differing)
                ends = self._kept(body, [given[result] for result in placed])
                shapes = ((function.shapes.shape(given[result]), axis) for result, axis in sizes)
                ends += [function.size(shape[axis], op) for shape, axis in shapes]
                function.append(scf.YieldOp(*ends))
                types = [INDEX] * len(ends)
        then, orelse = (Region(block) for block in blocks)
        chosen = scf.IfOp(condition, types, then, orelse)
        function.append(chosen)
        ends = list(chosen.results)
        if placed:
            end, *ends = ends
            offsets, ends = ends[: len(placed)], ends[len(placed) :]
            self.sizes.arena.take(op, dict(zip(placed, offsets, strict=True)), end)
        for (result, axis), size in zip(sizes, ends, strict=True):
            self.sizes.measure(op, result, axis, size)
        for result in differing:
            function.begin(result, op)

    def _kept(self, body: Block, values: Sequence[SSAValue]) -> list[SSAValue]:
        """Keep values for results that a branch places; returns where they end and begin."""
        if not values:
            return []
        last = body.last_op
        assert isinstance(last, graph.YieldOp)
        offsets = [self.sizes.arena.keep(value, self.buffer(value), last) for value in values]
        assert self.function.arena_end is not None
        return [self.function.arena_end, *offsets]

    def _give(self, op: graph.IfOp, value: SSAValue, result: SSAValue, differs: bool) -> None:
        """Copy what a branch yields to a result, or the beginning of one, unless it is there."""
        function = self.function
        if not differs:
            self.copy(value, result)
        elif in_results(function, op).get(value) is not result:
            target = function.view(result, function.shapes.shape(value), op)
            self.copy_to(as_type(function, self.buffer(value), target.type), target)

    def body(self, op: graph.ControlFlowOp, body: Block) -> None:
        """Convert the operations of a region, which reads what is captured."""
        buffers = self.function.buffers
        for argument, value in zip(op.captured(body), op.captures, strict=True):
            buffers[argument] = self.constants.buffers_of(value)
        for inner in body.ops:
            if not isinstance(inner, graph.YieldOp):
                self.convert(inner)

    def copy(self, value: SSAValue, result: SSAValue) -> None:
        """Copy a value into the buffer of a result, unless it is there."""
        self.copy_to(self.buffer(value), self.buffer(result))

    def copy_to(self, source: SSAValue, target: SSAValue) -> None:
        """Copy a buffer into another one."""
        if source is not target:
            self.function.append(memref.CopyOp(source, target))

    def buffer(self, value: SSAValue) -> SSAValue:
        """The buffer of a dense value."""
        (buffer,) = self.constants.buffers_of(value)
        return buffer

    def convert_check(self, op: graph.CheckOp) -> None:
        """Give an operand its own buffer, after a check of a condition."""
        function = self.function
        function.alias(op.result, op.x, self.constants.buffers_of(op.x))
        holds, details = self.flag(op.condition), list[SSAValue]()
        for scalar in op.details:
            loaded = function.insert(memref.LoadOp.get(self.buffer(scalar), []))
            details.append(function.insert(arith.IndexCastOp(loaded, INDEX)))
        function.append(rt.CheckOp(function.check_context, holds, op.text, details))

    def flag(self, value: SSAValue) -> SSAValue:
        """The element of an i1 scalar."""
        loaded = self.function.insert(memref.LoadOp.get(self.buffer(value), []))
        zero = self.function.insert(constant(0, loaded.type))
        return self.function.insert(arith.CmpiOp(loaded, zero, "ne"))


class _Loop:
    """The conversion of one loop."""

    def __init__(self, regions: Regions, op: graph.LoopOp) -> None:
        self.regions, self.op, self.function = regions, op, regions.function
        self.carrying = Carrying.of(op)
        self.inits = [
            self._as(regions.buffer(value), argument)
            for value, argument in zip(op.inits, op.carried, strict=True)
        ]
        self.stacks = [self.function.destination(value, op)[0] for value in op.stacks]
        self.changing = [(n, axis) for n in range(len(op.inits)) for axis in op.bounds_of(n)]
        """The carried values whose sizes may change, and their axes."""
        slices = [self.function.shapes.shape(value) for value in op.sliced]
        self.iterations = op.iterations(slices, ShapeFacts(op, unknown_sizes()))
        self.count = self._count()
        self.spares = {v: list(self.function.spares[v]) for v in self.carrying.spares}
        for value, (number, place) in self.carrying.ends.items():
            self.spares[value].insert(place, self.function.destination(op.results[number], op)[0])

    def convert(self) -> None:
        """Emit the loop, and copy what it carries at the end to the results."""
        spares = [spare for own in self.spares.values() for spare in own]
        start = [*self.inits, *self._sizes(self.op.inits), *spares]
        emit = self._emit_for if self.op.condition is None else self._emit_while
        iterations, ended = emit(start)
        for stack in self.op.stacks:
            self.regions.sizes.measure(self.op, stack, 0, iterations)
        self._measure(self.op.results, ended[len(self.inits) :])
        written = {number for number, _ in self.carrying.ends.values()}
        for number, given in enumerate(ended[: len(self.inits)]):
            if number not in written:
                result = self.op.results[number]
                self.function.begin(result, self.op)
                self.regions.copy_to(given, self.function.buffers[result][0])

    def _as(self, buffer: SSAValue, argument: SSAValue) -> SSAValue:
        """A buffer as what the loop carries."""
        return as_type(self.function, buffer, buffer_types(tensor_type(argument))[0])

    def _sizes(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The sizes, within their bounds, of the values carried to an iteration."""
        op, shapes, sizes = self.op, self.function.shapes, self.regions.sizes
        bounds = [
            op.bounds_of(number, self.iterations, shapes.shape(init))
            for number, init in enumerate(op.inits)
        ]
        return [
            sizes.bounded(op, shapes.shape(values[number])[axis], bounds[number][axis])
            for number, axis in self.changing
        ]

    def _measure(self, values: Sequence[SSAValue], sizes: Sequence[SSAValue]) -> None:
        """Note the sizes of carried values."""
        for (number, axis), size in zip(self.changing, sizes, strict=False):
            self.regions.sizes.measure(self.op, values[number], axis, size)

    def _count(self) -> SSAValue | None:
        """The number of iterations; None where only a condition ends the loop."""
        op, function = self.op, self.function
        if op.times is not None:
            loaded = function.insert(memref.LoadOp.get(self.regions.buffer(op.times), []))
            given = function.insert(upstream.IndexCastOp(loaded, INDEX))
            if not op.stacks:
                return given
            return function.insert(arith.MaxSIOp(given, function.sizes.index(0)))
        return None if self.iterations is None else function.size(self.iterations, op)

    def _emit_for(self, start: Sequence[SSAValue]) -> tuple[SSAValue, Sequence[SSAValue]]:
        """Emit a loop without a condition; returns how many iterations it has, and its end."""
        assert self.count is not None
        self._check_limit(self.count, "sle")
        index = self.function.sizes.index
        block = Block(arg_types=[INDEX, *(value.type for value in start)])
        with self.function.inside(block), self.function.standing_for(self.op.location):
            with self.function.iteration(block.args[0], self.op):
                following = self._iterate(block.args)
            self.function.append(scf.YieldOp(*following))
        loop = scf.ForOp(index(0), self.count, index(1), start, Region(block))
        self.function.append(loop)
        return self.count, loop.results

    def _emit_while(self, start: Sequence[SSAValue]) -> tuple[SSAValue, Sequence[SSAValue]]:
        """Emit a loop with a condition; returns how many iterations it had, and its end."""
        function, index = self.function, self.function.sizes.index
        assert self.op.condition is not None
        given = [index(0), self.regions.flag(self.op.condition), *start]
        types = [value.type for value in given]
        before, after = Block(arg_types=types), Block(arg_types=types)
        with function.inside(before), function.standing_for(self.op.location):
            number, goes_on, *_ = before.args
            if self.count is not None:
                more = function.insert(arith.CmpiOp(number, self.count, "slt"))
                goes_on = function.insert(arith.AndIOp(more, goes_on))
            function.append(scf.ConditionOp(goes_on, *before.args))
        with function.inside(after), function.standing_for(self.op.location):
            number, _, *rest = after.args
            self._check_limit(number, "slt")
            with function.iteration(number, self.op):
                following = self._iterate([number, *rest])
            assert self.op.goes_on is not None
            goes_on = self.regions.flag(self.op.goes_on)
            step = function.insert(arith.AddiOp(number, index(1)))
            function.append(scf.YieldOp(step, goes_on, *following))
        loop = upstream.WhileOp(given, types, Region(before), Region(after))
        function.append(loop)
        return loop.results[0], loop.results[2:]

    def _check_limit(self, number: SSAValue, order: str) -> None:
        """Check the number of an iteration, or that of all, against the limit."""
        if self.op.limit is None:
            return
        limit = self.function.sizes.index(self.op.limit.value.data)
        inside = self.function.insert(arith.CmpiOp(number, limit, order))
        fact = "no end after {0} iterations"
        text = explain(self.op.name, fact, origin=origin(self.op))
        self.function.append(rt.CheckOp(self.function.check_context, inside, text, [limit]))

    def _iterate(self, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """Emit an iteration; returns the buffers for the next one."""
        number, *rest = arguments
        carried, rest = rest[: len(self.inits)], rest[len(self.inits) :]
        given = iter(rest[len(self.changing) :])
        spares = {value: [next(given) for _ in own] for value, own in self.spares.items()}
        function, op = self.function, self.op
        buffers, shapes = function.buffers, function.shapes
        self._measure(op.carried, rest)
        buffers |= {a: [b] for a, b in zip(op.carried, carried, strict=True)}
        for place, (argument, value) in enumerate(zip(op.slices, op.sliced, strict=True)):
            if not argument.uses:
                continue
            source, backward = self.regions.buffer(value), op.takes_backward(place)
            buffers[argument] = [self._slice(source, number, backward)]
        rows = [
            self._slice(target, number, op.stores_backward(place))
            for place, target in enumerate(self.stacks)
        ]
        buffers |= {value: [rows[place]] for value, place in self.carrying.stacks.items()}
        for value, own in spares.items():
            # Written to a buffer, or to the beginning of it once its size is known.
            if shapes.is_computed(*shapes.shape(value)):
                function.places[value] = BufferPlace(own[0])
            else:
                buffers[value] = [own[0]]
        if op.number.uses:
            if op.number not in buffers:
                buffers[op.number] = list(function.spares[op.number])
            element = function.insert(upstream.IndexCastOp(number, i64))
            function.append(memref.StoreOp.get(element, buffers[op.number][0], []))
        self.regions.body(op, op.body.block)
        for value, row in zip(op.stacked, rows, strict=True):
            self.regions.copy_to(self.regions.buffer(value), row)
        following = [
            self._as(self.regions.buffer(value), argument)
            for value, argument in zip(op.carried_on, op.carried, strict=True)
        ]
        return [*following, *self._sizes(op.carried_on), *_rotated(spares.values())]

    def _slice(self, buffer: SSAValue, number: SSAValue, backward: bool) -> SSAValue:
        """The slice of a buffer for an iteration."""
        function = self.function
        if backward:
            assert self.count is not None
            after = function.insert(arith.AddiOp(number, function.sizes.index(1)))
            number = function.insert(arith.SubiOp(self.count, after))
        return function.insert(rt.SliceOp(buffer, number))


def _rotated(spares: Iterable[Sequence[SSAValue]]) -> list[SSAValue]:
    """Buffers in the order of the next iteration: what was written now comes last."""
    return [spare for own in spares for spare in (*own[1:], own[0])]
