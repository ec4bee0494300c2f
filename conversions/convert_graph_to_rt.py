"""The public function gets buffers for tensors, and one planned arena: `convert-graph-to-rt`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    UNKNOWN_LOC,
    AffineMapAttr,
    ArrayAttr,
    FunctionType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    i32,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from ..core.actions import allowed
from ..core.budgets import EXACT
from ..core.context import count, decide
from ..core.dims import Dim, product
from ..core.errors import explain
from ..core.module import is_public
from ..core.provenance import fuse, origin
from ..core.refusal import refused
from ..core.symbols import find_symbol
from ..core.weights import WeightStore, weights_of
from ..dialects import rt
from ..dialects.graph import ops as graph
from ..dialects.graph.buffers import buffer_types, storage_type
from ..dialects.graph.shapes import SymbolicShapes
from ..dialects.graph.signature import signature_attributes
from ..dialects.loop import ops as loop
from ..dialects.sparse_tensor import is_sparse
from .buffers import ArenaPlan, Lifetime, plan_arena
from .sizes import Sizes

ALIGNMENT = 64
"""Buffers in the arena begin at multiples of this many bytes: a cache line, a vector."""
LARGEST_ARENA = 1 << 62
"""More bytes cannot be counted: sizes are signed and have 64 bits."""

Call = graph.CallDpsOp | graph.CallPackedOp


@dataclass(frozen=True)
class _Buffer:
    """A buffer that gets a place in the arena: for a result, or for a part of an argument."""

    value: SSAValue
    part: int
    shape: Sequence[Dim]
    size: Dim

    @property
    def source(self) -> Operation | BlockArgument:
        """What its location is that of."""
        value = self.value
        return value if isinstance(value, BlockArgument) else cast(Operation, value.owner)


def element_bytes(kind: TensorType) -> int:
    """The size in bytes of one stored element."""
    width = getattr(kind.element_type, "bitwidth", None)
    if not isinstance(width, int):
        width = 64
    return max(1, width // 8)


def _hint(op: object) -> str | None:
    """What helps where a size is not known."""
    return "name it in `dims`" if isinstance(op, Call) else None


class _MainConverter:
    """Rewrites the public function of a module; see `ConvertGraphToRtPass`."""

    def __init__(self, function: func.FuncOp, weights: WeightStore, copy_indices: bool) -> None:
        self.function = function
        self.copy_indices = copy_indices
        self.weights = weights
        self.shapes = SymbolicShapes(function)
        self.block = Block()
        self.context = self.block.insert_arg(rt.ContextType(), 0)
        self.context.name_hint = "ctx"
        self.buffers: dict[SSAValue, list[SSAValue]] = {}
        self.sizes = Sizes(self.block)
        self.slots = 0
        self.registered: dict[object, int] = {}
        self.packed: dict[tuple[SSAValue, Attribute], list[SSAValue]] = {}
        self.body = [op for op in function.body.block.ops if not isinstance(op, func.ReturnOp)]
        self.returned = cast(func.ReturnOp, function.body.block.last_op).arguments

    def convert(self) -> tuple[func.FuncOp, ArenaPlan]:
        """The function on buffers, and the plan of its arena."""
        for arg in self.function.body.block.args:
            self.buffers[arg] = self._add_arguments(cast(TensorType, arg.type), arg.name_hint)
        outputs = [
            self._add_arguments(cast(TensorType, value.type), "result") for value in self.returned
        ]
        self._bind_symbols()
        self._check_results()
        indices = self._indices() if self.copy_indices else {}
        if not indices:
            self._check_inputs()
        for value, buffers in zip(self.returned, outputs, strict=True):
            if isinstance(value.owner, Call) and value not in indices:
                self.buffers.setdefault(value, buffers)
        plan = self._allocate(indices)
        if indices:
            self._check_inputs()
        for op in self.body:
            with self._standing_for(op.location):
                self._convert_op(op)
        for value, buffers in zip(self.returned, outputs, strict=True):
            with self._standing_for(_location(value)):
                for source, target in zip(self._operand(value), buffers, strict=True):
                    if source is not target:
                        self._insert(memref.CopyOp(source, target))
        status = self._insert(arith.ConstantOp(IntegerAttr(0, i32)))
        self.block.add_op(func.ReturnOp(status))
        name = self.function.sym_name.data
        kind = ([arg.type for arg in self.block.args], [i32])
        result = func.FuncOp(name, kind, Region(self.block), self.function.sym_visibility)
        result.location = self.function.location
        total = sum(plan.slots, Dim.of(ALIGNMENT * len(plan.slots)))
        result.attributes.update(signature_attributes(self.function, self.shapes, total))
        return result, plan

    def _add_arguments(self, kind: TensorType, name: str | None) -> list[SSAValue]:
        result: list[SSAValue] = []
        for buffer in buffer_types(kind):
            arg = self.block.insert_arg(buffer, len(self.block.args))
            arg.name_hint = name
            result.append(arg)
        return result

    # Sizes.

    def _bind_symbols(self) -> None:
        """Find the value of each symbol among the arguments."""
        args = self.function.body.block.args
        for name, (number, dimension) in self.shapes.bindings.items():
            with self._standing_for(args[number].location):
                self.sizes.symbols[name] = self._size(args[number], dimension)

    def _size(self, arg: SSAValue, dimension: int | str) -> SSAValue:
        """A size of an argument: of a dimension, or the number of its stored entries."""
        buffers = self.buffers[arg]
        if not is_sparse(arg.type):
            return self.sizes.of(buffers[0], cast(int, dimension))
        if dimension == 0:
            return self.sizes.rows(buffers[0])
        return buffers[3] if dimension == 1 else self.sizes.of(buffers[2], 0)

    def _check_results(self) -> None:
        """Results are made by the caller, who knows the sizes of arguments."""
        for number, value in enumerate(self.returned):
            if is_sparse(value.type):
                fact = f"result {number} is sparse"
                raise PassFailedException(
                    explain(self.function.name, fact, expected="a dense tensor", got=value.type)
                )
            for name in [name for dim in self.shapes.shape(value) for name in dim.symbols]:
                self.sizes.symbol(name, cast(Operation, value.owner), _hint(value.owner))

    def _dim(self, dim: Dim, op: Operation) -> SSAValue:
        return self.sizes.value(dim, op, _hint(op))

    def _insert(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0] if op.results else cast(SSAValue, None)

    @contextmanager
    def _standing_for(self, location: LocationAttr) -> Iterator[None]:
        """Give what is appended, and has no location of its own, this one."""
        before = self.block.last_op
        yield
        op = self.block.first_op if before is None else before.next_op
        while op is not None:
            if op.location is UNKNOWN_LOC:
                op.location = location
            op = op.next_op

    # Checks.

    def _check_inputs(self) -> None:
        for arg in self.function.body.block.args:
            kind = cast(TensorType, arg.type)
            if not is_sparse(kind):
                continue
            indptr, indices, _, *columns = self.buffers[arg]
            with self._standing_for(arg.location):
                width = columns[0] if columns else self.sizes.index(kind.get_shape()[1])
                subject = self._subject(arg)
                self._insert(rt.CheckCsrOp(self.context, indptr, indices, width, subject))

    def _indices(self) -> dict[SSAValue, tuple[int, ...]]:
        """The values with indices that calls go by, and which of their buffers those are."""
        arguments = self.function.body.block.args
        found: dict[SSAValue, tuple[int, ...]] = {a: (0, 1) for a in arguments if is_sparse(a.type)}
        for call in self.body:
            if not isinstance(call, graph.CallDpsOp):
                continue
            kernel = self._kernel(call)
            for operand, position in zip(call.arguments, call.places, strict=False):
                if "loop.bounds" in kernel.attrs_of(position):
                    found.setdefault(operand, (0,))
        return found

    def _subject(self, value: SSAValue) -> str:
        """What messages call an argument."""
        if isinstance(value, BlockArgument) and self.function.arg_attrs is not None:
            name = self.function.arg_attrs.data[value.index].data.get("graph.name")
            if isinstance(name, StringAttr):
                return f'input "{name.data}"'
        if isinstance(value, BlockArgument):
            return f'input "arg{value.index}"'
        return (origin(value.owner) if isinstance(value.owner, Operation) else None) or "value"

    # The arena.

    def _allocate(self, indices: Mapping[SSAValue, tuple[int, ...]]) -> ArenaPlan:
        """Give every result of a call that is not a result of the function its buffer.

        Indices among the arguments are copied to buffers of their own.
        """
        step = {op: number for number, op in enumerate(self.body)}
        copies = [
            self._copy_of(arg, part)
            for arg in self.function.body.block.args
            for part in indices.get(arg, ())
        ]
        buffers = list(copies)
        # Nothing else gets their slots: a kernel computes with the padding of an aligned row, and
        # small integers in it are subnormal floats, with which that takes ten times as long.
        lifetimes = [Lifetime(copy.size, -1, len(self.body)) for copy in copies]
        places: dict[OpResult, int] = {}
        for op in self.body:
            for value in op.results:
                if value in self.buffers or not isinstance(op, Call):
                    continue
                kind = cast(TensorType, value.type)
                if is_sparse(kind):
                    raise refused(op, "a call cannot give a sparse result")
                size = product(self.shapes.shape(value)) * element_bytes(kind)
                over = tuple(places[v] for v in self._overwritable(value) if v in places)
                places[value] = len(buffers)
                buffers.append(_Buffer(value, 0, self.shapes.shape(value), size))
                uses = [step.get(use.operation, len(self.body)) for use in value.uses]
                lifetimes.append(Lifetime(size, step[op], max(uses, default=step[op]), over))
        plan = self._planned(buffers, lifetimes)
        if buffers:
            with self._standing_for(fuse(buffer.source for buffer in buffers)):
                self._make_views(buffers, plan)
        return plan

    def _copy_of(self, arg: SSAValue, part: int) -> _Buffer:
        """A buffer for a copy of one buffer of an argument."""
        shape = self.shapes.shape(arg)
        if is_sparse(arg.type):
            entries = self.shapes.nnz(arg)
            assert entries is not None
            shape = (entries if part else shape[0] + Dim.of(1),)
        element = cast(MemRefType, self.buffers[arg][part].type).element_type
        size = product(shape) * (cast(IntegerType, element).width.data // 8)
        return _Buffer(arg, part, shape, size)

    def _planned(self, buffers: Sequence[_Buffer], lifetimes: Sequence[Lifetime]) -> ArenaPlan:
        calls = [cast(Operation, buffer.value.owner) for buffer in buffers]
        plan = plan_arena(lifetimes, lambda number: allowed("share a slot", calls[number]))
        size = sum(slot.value for slot in plan.slots if slot.is_static)
        if size > LARGEST_ARENA:
            fact = f"buffers of {size} bytes are needed at a time"
            raise PassFailedException(explain(self.function.name, fact, expected="less"))
        return plan

    def _overwritable(self, result: OpResult) -> Iterator[OpResult]:
        """The operands of a call whose buffers its kernel may write a result over."""
        call = cast(Call, result.owner)
        if not isinstance(call, graph.CallDpsOp):
            return
        kernel = self._kernel(call)
        positions: dict[SSAValue, list[int]] = {}
        *numbers, first = call.places
        for operand, number in zip(call.arguments, numbers, strict=True):
            positions.setdefault(operand, []).append(number)
        for operand, places in positions.items():
            if not isinstance(operand, OpResult):
                continue
            if self.shapes.shape(operand) != self.shapes.shape(result):
                continue
            if kernel.may_overwrite(first + result.index).issuperset(places):
                yield operand

    def _make_views(self, buffers: Sequence[_Buffer], plan: ArenaPlan) -> None:
        owner = buffers[0].value.owner
        owner = owner if isinstance(owner, Operation) else self.function
        offsets: list[SSAValue] = []
        static, moving = 0, cast(SSAValue | None, None)
        for size in plan.slots:
            offsets.append(self._offset(static, moving))
            if size.is_static:
                static += -(-size.value // ALIGNMENT) * ALIGNMENT
                continue
            rounded = self._rounded(self._dim(size, owner))
            moving = rounded if moving is None else self._insert(arith.AddiOp(moving, rounded))
        arena = self._insert(rt.ArenaOp(self.context, self._offset(static, moving)))
        arena.name_hint = "arena"
        for buffer, slot in zip(buffers, plan.slot_of, strict=True):
            value, part = buffer.value, buffer.part
            kind = cast(MemRefType, buffer_types(cast(TensorType, value.type))[part])
            dims = [
                self._dim(dim, owner)
                for dim, size in zip(buffer.shape, kind.get_shape(), strict=True)
                if size == DYNAMIC_INDEX
            ]
            made = memref.ViewOp(arena, offsets[slot], dims, kind)
            made.location = _location(value)
            view = self._insert(made)
            if isinstance(value, OpResult):
                self.buffers[value] = [view]
                continue
            copy = memref.CopyOp(self.buffers[value][part], view)
            copy.location = _location(value)
            self._insert(copy)
            self.buffers[value][part] = view

    def _offset(self, static: int, moving: SSAValue | None) -> SSAValue:
        if moving is None:
            return self.sizes.index(static)
        return self._insert(arith.AddiOp(moving, self.sizes.index(static))) if static else moving

    def _rounded(self, size: SSAValue) -> SSAValue:
        """A size in bytes, rounded up to the alignment."""
        more = self._insert(arith.AddiOp(size, self.sizes.index(ALIGNMENT - 1)))
        lines = self._insert(arith.DivUIOp(more, self.sizes.index(ALIGNMENT)))
        return self._insert(arith.MuliOp(lines, self.sizes.index(ALIGNMENT)))

    # Operations.

    def _operand(self, value: SSAValue) -> list[SSAValue]:
        """The buffers of a value; a constant gets its place in the table when first asked."""
        if value not in self.buffers:
            op = cast(graph.ConstantOp, value.owner)
            types = buffer_types(cast(TensorType, value.type))
            self.buffers[value] = self._constants(op, types, None)
        return self.buffers[value]

    def _constants(
        self, op: graph.ConstantOp, types: Sequence[Attribute], packing: Attribute | None
    ) -> list[SSAValue]:
        name = op.key
        if name is None or name in self.weights:
            array = op.array(self.weights)  # raises where it does not fit the type
            name = name or self.weights.add("literal", array)
        if not is_sparse(op.result.type):
            return [self._constant(op, name, cast(MemRefType, types[0]), packing)]
        entries = op.nnz.value.data if op.nnz is not None else None
        if entries is None:
            raise refused(op, "number of stored entries is unknown")
        result: list[SSAValue] = []
        for part, kind in zip(("indptr", "indices", "values"), types, strict=True):
            buffer = cast(MemRefType, kind)
            size = entries if part != "indptr" else buffer.get_shape()[0]
            exact = MemRefType(buffer.element_type, [size])
            value = self._constant(op, f"{name}.{part}", exact, None)
            result.append(self._cast(value, buffer))
        return result

    def _constant(
        self, op: Operation, name: str, kind: MemRefType, packing: Attribute | None
    ) -> SSAValue:
        constant = rt.ConstantOp(self.context, self.slots, name, kind, packing)
        constant.location = op.location
        self.slots += 1
        return self._insert(constant)

    def _cast(self, value: SSAValue, kind: Attribute) -> SSAValue:
        if value.type == kind or not isinstance(kind, MemRefType):
            return value
        return self._insert(memref.CastOp.get(value, kind))

    def _convert_op(self, op: Operation) -> None:
        if isinstance(op, graph.ConstantOp):
            return
        if isinstance(op, graph.CallDpsOp):
            self._convert_call(op)
        elif isinstance(op, graph.CallPackedOp):
            self._convert_packed(op)
        else:
            raise refused(op, "cannot be converted to the run time")

    def _convert_call(self, op: graph.CallDpsOp) -> None:
        kernel = self._kernel(op)
        arguments: list[SSAValue] = []
        for operand in op.arguments:
            arguments += self._argument(operand, kernel, len(arguments), op)
        for result in op.results:
            arguments += self.buffers[result]
        types = [arg.type for arg in kernel.body.block.args]
        if len(types) != len(arguments):
            raise refused(
                op,
                f"wrong number of buffers for {op.callee}",
                expected=len(types),
                got=len(arguments),
            )
        self._check_bounds(kernel, op)
        passed = [self._cast(a, t) for a, t in zip(arguments, types, strict=True)]
        call = rt.CallOp(op.callee.string_value(), passed)
        call.location = op.location
        self._insert(call)

    def _kernel(self, call: graph.CallDpsOp) -> loop.KernelOp:
        kernel = find_symbol(self.function, call.callee)
        if not isinstance(kernel, loop.KernelOp):
            fact = f"there is no kernel {call.callee}"
            raise refused(call, fact)
        return kernel

    def _argument(
        self, operand: SSAValue, kernel: loop.KernelOp, position: int, call: Operation
    ) -> list[SSAValue]:
        """The buffers of an operand, laid out as the kernel wants them."""
        attrs = kernel.attrs_of(position)
        packing = attrs.get("loop.packing")
        if not isinstance(packing, AffineMapAttr):
            return self._operand(operand)
        if not isinstance(operand.owner, graph.ConstantOp):
            raise refused(
                call,
                f"argument {position} of @{kernel.sym_name.data} is packed",
                expected="a constant",
                got=operand.type,
            )
        if (operand, packing) not in self.packed:
            types = [kernel.body.block.args[position].type]
            self.packed[operand, packing] = self._constants(operand.owner, types, packing)
        return self.packed[operand, packing]

    def _check_bounds(self, kernel: loop.KernelOp, call: graph.CallDpsOp) -> None:
        """Check the integers that the kernel uses as indices before it runs."""
        sizes = self._sizes_of(call.arguments)
        subject = origin(call) or f"kernel {kernel.sym_name.data}"
        for operand, position in zip(call.arguments, call.places, strict=False):
            bounds = kernel.attrs_of(position).get("loop.bounds")
            for text in bounds if isinstance(bounds, ArrayAttr) else ():
                extent = Dim.parse(cast(StringAttr, text).data).substitute(sizes)
                indices = self._operand(operand)[0]
                limit = self._dim(extent, call)
                self._insert(rt.CheckIndexOp(self.context, indices, limit, subject))

    def _sizes_of(self, operands: Sequence[SSAValue]) -> dict[str, Dim]:
        """The sizes of the operands of a call, as `loop.bounds` of a kernel names them."""
        sizes: dict[str, Dim] = {}
        for number, operand in enumerate(operands):
            for axis, dim in enumerate(self.shapes.shape(operand)):
                sizes[f"x{number}.{axis}"] = dim
            entries = self.shapes.nnz(operand)
            if entries is not None:
                sizes[f"x{number}.nnz"] = entries
        return sizes

    def _convert_packed(self, op: graph.CallPackedOp) -> None:
        name = op.callee.data
        inputs = [buffer for operand in op.arguments for buffer in self._operand(operand)]
        outputs = [buffer for result in op.results for buffer in self.buffers[result]]
        types = tuple(buffer.type for buffer in inputs), tuple(buffer.type for buffer in outputs)
        tensors = _unclear([*op.arguments], [*op.results])
        slot = self.registered.setdefault((name, types, tensors), len(self.registered))
        call = rt.CallPackedOp(self.context, slot, name, inputs, outputs, tensors)
        call.location = op.location
        self._insert(call)


def _location(value: SSAValue) -> LocationAttr:
    """The location of what makes a value."""
    source = value.owner if isinstance(value, OpResult) else cast(BlockArgument, value)
    return source.location


def _unclear(arguments: Sequence[SSAValue], results: Sequence[SSAValue]) -> FunctionType | None:
    """The tensors of a call, where their buffers do not say what they are."""
    types = [cast(TensorType, value.type) for value in (*arguments, *results)]
    stored = [storage_type(kind.element_type) == kind.element_type for kind in types]
    if all(stored) and not any(map(is_sparse, types)):
        return None
    return FunctionType.from_lists(types[: len(arguments)], types[len(arguments) :])


@dataclass(frozen=True)
class ConvertGraphToRtPass(ModulePass):
    """Give the public function buffers for tensors, an arena, and checks of its inputs.

    Before:

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = graph.call_dps @relu(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    loop.kernel @relu(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
    }
    ```

    After:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<4xf32>, %result: memref<4xf32>) -> i32
        attributes {graph.signature = (tensor<4xf32>) -> tensor<4xf32>} {
      rt.call @relu(%x, %result) : memref<4xf32>, memref<4xf32>
      %0 = arith.constant 0 : i32
      func.return %0 : i32
    }
    loop.kernel @relu(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
    }
    ```

    Requires: the public function has only constants and calls.
    Leaves: no operation of the graph dialect.
    """

    name = "convert-graph-to-rt"
    budget = EXACT

    copy_indices: bool = False
    """Whether indices are copied before they are checked, so that nobody else can write to them."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.ops if isinstance(f, func.FuncOp) and is_public(f)]:
            if rt.ContextType() in function.function_type.inputs.data:
                expected = "one on tensors"
                raise refused(function, "the function is on buffers already", expected=expected)
            kinds = (*function.function_type.inputs, *function.function_type.outputs)
            if other := [kind for kind in kinds if not isinstance(kind, TensorType)]:
                fact = "an argument or a result is no tensor"
                raise refused(function, fact, expected="tensors", got=other[0])
            converted, plan = _MainConverter(function, weights_of(ctx), self.copy_indices).convert()
            Rewriter.replace_op(function, converted, [])
            count(ctx, "buffers in the arena", len(plan.slot_of))
            if plan.slots:
                total = sum(plan.slots, Dim.of(0))
                decide(
                    ctx,
                    converted,
                    f"arena of {len(plan.slots)} slots for {len(plan.slot_of)} buffers",
                    "those of one slot are never needed at the same time",
                    f"peak of {total} bytes",
                )
