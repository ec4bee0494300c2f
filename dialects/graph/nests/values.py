"""What the results of a kernel are at an index: how `graph.call_dps` is fused like an operator.

A kernel has a value at an index where each of its results is stored once, at the variables of
the parallel loops around it. The value is then found by following the store back to the loads, and
replacing these by values of the operands of the call. A kernel that does more (that is scheduled,
or has buffers of its own, or loops that keep their order) has none: it runs as it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, VectorType
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.traits import is_side_effect_free

from ....core.algebra.affine import normalized
from ....core.algebra.dims import Shape, size_of_argument
from ....core.ir.typed import memref_type, owned
from ...loop.arguments import BOUNDS, OFFSETS, PACKING, SIZES
from ...loop.attrs import LoopKind
from ...loop.loops import loops_in
from ...loop.ops import ForOp, KernelOp, LoadOp, LocalOp, StoreOp, YieldOp
from ...loop.proofs.bounds import constant_index
from ...sparse_tensor import is_sparse
from ..interfaces import FusionKind, Indices, Nest, tensor_type
from . import scalars
from .sizes import KernelSizes, NoValueError


class KernelValues(KernelSizes):
    """The results of a kernel at an index.

    Args:
        kernel: the kernel.
        operands: the values that a call of it passes.

    Raises:
        NoValueError: if it has no such values.
    """

    def __init__(self, kernel: KernelOp, operands: Sequence[SSAValue]) -> None:
        super().__init__(kernel, [tensor_type(value) for value in operands])
        self.kernel, self.operands = kernel, operands
        self._refuse_scheduled()
        self.stores = [self._only_store(buffer) for buffer in kernel.outputs]
        self.loops = [_loops_of(store) for store in self.stores]
        self.sizes = [
            tuple(self.extent(loop) for loop in loops) for loops in self.loops
        ]  # of each dimension of each result
        for buffer, shape in zip(kernel.outputs, self.sizes, strict=True):
            for declared, size in zip(memref_type(buffer).get_shape(), shape, strict=True):
                if declared >= 0 and size != declared:
                    raise NoValueError(f"a loop to {size} does not fill a result of {declared}")

    def _refuse_scheduled(self) -> None:
        for op in self.kernel.body.walk():
            if isinstance(op, LocalOp):
                raise NoValueError("it has a buffer of its own")
            if any(isinstance(result.type, VectorType) for result in op.results):
                raise NoValueError("it is scheduled")
            if isinstance(op, ForOp):
                _check_loop(op)
            elif isinstance(op, LoadOp):
                self._check_load(op)
            elif not isinstance(op, (StoreOp, YieldOp, memref.DimOp)) and (
                op.regions or not is_side_effect_free(op)
            ):
                raise NoValueError(f"it has {op.name}")
        for number in range(len(self.kernel.inputs)):
            if {BOUNDS, OFFSETS} & self.kernel.attrs_of(number).keys():
                raise NoValueError("its indices are checked before it runs")
            if SIZES in self.kernel.attrs_of(number):
                raise NoValueError("a size is checked before it runs")
            if PACKING in self.kernel.attrs_of(number):
                raise NoValueError("it is scheduled")

    def _check_load(self, load: LoadOp) -> None:
        if load.buffer not in self.parts:
            raise NoValueError("it reads what it writes")
        part = self.parts[load.buffer]
        if not is_sparse(self.operands[part.operand].type):
            return
        entries = load.indices[0].owner if load.indices else None
        around = entries.parent_op() if not isinstance(entries, Operation) and entries else None
        reads_entry = (
            isinstance(around, ForOp)
            and around.over_entries
            and part.place == 2
            and list(load.indices) == [around.variable]
            and load.map.data == AffineMap.identity(1)
        )
        if not reads_entry:
            raise NoValueError("it reads a sparse matrix otherwise than by rows")

    def _only_store(self, buffer: SSAValue) -> StoreOp:
        users = [use.operation for use in buffer.uses]
        if len(users) != 1 or not isinstance(users[0], StoreOp) or users[0].accumulates:
            raise NoValueError("a result is not stored by one statement")
        return users[0]

    # Sizes.

    def shapes(self, shapes: Sequence[Shape]) -> list[Shape]:
        """The shapes of the results, for operands of these shapes."""
        sizes = {
            size_of_argument(number, axis): dim
            for number, shape in enumerate(shapes)
            for axis, dim in enumerate(shape)
        }
        return [tuple(dim.substitute(sizes) for dim in shape) for shape in self.sizes]

    # Fusion.

    @property
    def fusion(self) -> FusionKind:
        """How a call takes part in fusion, by what it reads for one element of its results."""
        reads = [op for op in self.kernel.body.walk() if isinstance(op, LoadOp)]
        loops = list(loops_in(self.kernel.body.block))
        if any(loop.over_entries for loop in loops):
            return FusionKind.CONTRACTION
        if not any(loop.is_reduction for loop in loops):
            whole = len(self.stores) == 1 and all(self._is_whole(load) for load in reads)
            return FusionKind.ELEMENTWISE if whole else FusionKind.CONTRACTION
        if all(set(_variables(load)) <= set(load.indices) for load in reads):
            return FusionKind.REDUCTION
        return FusionKind.CONTRACTION

    def _is_whole(self, load: LoadOp) -> bool:
        """Whether an operand is read at the index of the result, NumPy's broadcasting included."""
        (loops,) = self.loops
        sizes = memref_type(load.buffer).get_shape()
        if len(sizes) > len(loops):
            return False
        variables = [loop.variable for loop in loops[len(loops) - len(sizes) :]]
        for expr, size, variable in zip(load.map.data.results, sizes, variables, strict=True):
            own = isinstance(expr, AffineDimExpr) and load.indices[expr.position] is variable
            if not own and not (size == 1 and expr == AffineExpr.constant(0)):
                return False
        return True

    # The value.

    def value_at(self, nest: Nest, index: Indices, result: int) -> SSAValue:
        """The scalar that the kernel stores at an index, as it is stored."""
        return _Replay(self, nest, result, index).value(self.stores[result].value)


def _check_loop(loop: ForOp) -> None:
    if loop.is_scheduled:
        raise NoValueError("it is scheduled")
    if loop.kind.data == LoopKind.SERIAL:
        raise NoValueError("it has a loop that keeps its order")
    if len(loop.results) != (1 if loop.is_reduction else 0):
        raise NoValueError("it has a reduction that carries several values")
    if loop.over_entries and not loop.is_reduction:
        raise NoValueError("it stores the entries of a row")


def _loops_of(store: StoreOp) -> list[ForOp]:
    """The loop over each dimension of the store."""
    around: dict[SSAValue, ForOp] = {}
    parent = store.parent_op()
    while isinstance(parent, ForOp) and parent.is_plain:
        around[parent.variable] = parent
        parent = parent.parent_op()
    if not isinstance(parent, KernelOp):
        raise NoValueError("a result is stored inside of a reduction")
    indices = [
        store.indices[expr.position] if isinstance(expr, AffineDimExpr) else None
        for expr in store.map.data.results
    ]
    if set(indices) != set(around) or len(indices) != len(around):
        raise NoValueError("a result is not stored at the variables of the loops around it")
    return [around[cast(SSAValue, index)] for index in indices]


def _variables(load: LoadOp) -> list[SSAValue]:
    """The variables of the reductions around a load, and of the loops that these depend on."""
    reductions: list[ForOp] = []
    parent = load.parent_op()
    while not isinstance(parent, KernelOp):
        if isinstance(parent, ForOp) and parent.is_reduction:
            reductions.append(parent)
        parent = cast(Operation, parent).parent_op()
    found = [reduction.variable for reduction in reductions]
    for reduction in reductions:
        for op in reduction.walk():
            found += [
                value
                for value in op.operands
                if isinstance(value, BlockArgument)
                and isinstance(loop := value.owner.parent_op(), ForOp)
                and loop.is_plain
            ]
    return found


class _Replay:
    """Writes what a kernel computes for one element of a result into a nest."""

    def __init__(self, values: KernelValues, nest: Nest, result: int, index: Indices) -> None:
        self.source, self.nest = values, nest
        loops = values.loops[result]
        self.exprs = {loop.variable: e for loop, e in zip(loops, index, strict=True)}
        self.known: dict[SSAValue, SSAValue] = {}

    def value(self, old: SSAValue) -> SSAValue:
        """The scalar in the nest that stands for one of the kernel."""
        if old in self.exprs:
            return self.nest.value(self.exprs[old])
        if old not in self.known:
            self.known[old] = self._computed(old)
        return self.known[old]

    def expr(self, old: SSAValue) -> AffineExpr:
        """The index expression in the nest that stands for an index of the kernel."""
        if old not in self.exprs:
            self.exprs[old] = self._expr(old)
        return self.exprs[old]

    def _expr(self, old: SSAValue) -> AffineExpr:
        constant = constant_index(old)
        if constant is not None:
            return AffineExpr.constant(constant)
        if old in self.source.parts:
            return self.nest.extent(self.source.operands[self.source.parts[old].operand], 1)
        owner = old.owner
        if isinstance(owner, memref.DimOp) and owner.source in self.source.parts:
            part = self.source.parts[owner.source]
            operand = self.source.operands[part.operand]
            dimension = constant_index(owner.index)
            if dimension is not None and not is_sparse(operand.type):
                return self.nest.extent(operand, dimension)
            if part.place == 0:
                return self.nest.extent(operand, 0) + 1
        return self.nest.index(self.value(old))

    def composed(self, map: AffineMap, operands: Sequence[SSAValue]) -> Indices:
        dims = [self.expr(operand) for operand in operands]
        return tuple(normalized(e.replace_dims_and_symbols(dims, [])) for e in map.results)

    def _computed(self, old: SSAValue) -> SSAValue:
        op = old.owner
        assert isinstance(op, Operation)
        match op:
            case LoadOp():
                return self._loaded(op)
            case ForOp():
                return self._reduced(op)
            case memref.DimOp():
                return self.nest.value(self.expr(old))
            case arith.ConstantOp(value=IntegerAttr() as number):
                return self.nest.constant(number.value.data, old.type)
        operands = [self.value(operand) for operand in op.operands]
        first = self.nest.insert(
            type(op).create(
                operands=operands,
                result_types=op.result_types,
                properties=dict(op.properties),
                attributes=dict(op.attributes),
            )
        )
        # That of an equal operation, where the nest has one.
        self.known |= dict(zip(op.results, owned(first, Operation).results, strict=True))
        return self.known[old]

    def _loaded(self, op: LoadOp) -> SSAValue:
        operand = self.source.operands[self.source.parts[op.buffer].operand]
        index = self.composed(op.map.data, op.indices)
        if is_sparse(operand.type):
            value = self.nest.stored_entry(operand, index[0])
        else:
            value = self.nest.at(operand, index)
        return scalars.stored(self.nest, value, tensor_type(operand).element_type)

    def _reduced(self, op: ForOp) -> SSAValue:
        """A reduction that carries one value."""
        place = self.composed(op.bound.data, op.bounds)
        (combine,), (init,), (carried,), (after,) = op.combines, op.inits, op.carried, op.yielded
        if not op.over_entries:

            def step(index: Indices, accumulator: SSAValue) -> SSAValue:
                self.exprs[op.variable] = index[0]
                self.known[carried] = accumulator
                return self.value(after)

            return self.nest.reduce(place, combine, self.value(init), step)

        def entry(position: AffineExpr, column: AffineExpr, accumulator: SSAValue) -> SSAValue:
            self.exprs |= {op.variable: position, op.column: column}
            self.known[carried] = accumulator
            return self.value(after)

        operand = self.source.operands[self.source.parts[op.matrix[0]].operand]
        return self.nest.pattern(operand, place[0], combine, self.value(init), entry)
