"""Choose the machine vectors that each vector of a kernel consists of: `loop-legalize-vectors`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import (
    AnyFloat,
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    VectorType,
    i64,
)
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...core.ir.context import decide, known_to, target_of
from ...core.ir.refusal import refused
from ...core.ir.typed import bits, memref_type
from ...core.ir.walks import operations_in
from ...core.pipelines.actions import allowed
from ...core.pipelines.budgets import EXACT
from ...core.target import Target, named
from ...dialects.bodies import depth_of
from ...dialects.loop.attrs import LoopKind, LoopKindAttr
from ...dialects.loop.nests import EXPENSIVE, MOST_LANES
from ...dialects.loop.ops import (
    FoldOp,
    ForOp,
    InstructionOp,
    KernelOp,
    LoadOp,
    LocalOp,
    StoreOp,
    block_shape,
)
from ...dialects.loop.proofs.levels import is_in_block, space_of
from ...dialects.loop.vectors import (
    BRANCH,
    INTERLEAVE,
    INTRINSICS,
    VECTORS,
    RowCut,
    Shape,
    Vectors,
    VectorsAttr,
)
from ...dialects.upstream import ops as upstream

_REGISTERS_OF_A_FUNCTION = 3
"""The registers that an expensive function needs for each vector."""


def legalize_vectors(kernel: KernelOp, target: Target) -> Vectors | None:
    """Note in a kernel the machine vectors that its vectors consist of, if it has any."""
    ops = list(operations_in(kernel))
    kinds = [value.type for op in ops for value in (*op.operands, *op.results)]
    # Types are compared by identity: they derive from an ABC, whose hash and isinstance are slow.
    types = list({id(kind): kind for kind in kinds if type(kind) is VectorType}.values())
    if not types:
        return None
    shapes = list(dict.fromkeys(kind.get_shape() for kind in types))
    if () in shapes:
        raise refused(kernel, "a vector has no axis", subject=LoopLegalizeVectorsPass.name)
    if (largest := max(map(math.prod, shapes))) > MOST_LANES:
        raise refused(
            kernel,
            "a vector has too many lanes",
            subject=LoopLegalizeVectorsPass.name,
            expected=f"at most {MOST_LANES}",
            got=largest,
        )
    # The width of the widest numbers that the kernel computes with.
    elements = [kind.element_type for kind in types]
    floats = [element.bitwidth for element in elements if isinstance(element, AnyFloat)]
    if max(floats, default=16) > 16:
        widest = max(floats)
    else:
        widest = max(
            [8, *(bits(element) for element in elements if isinstance(element, IntegerType))]
        )
    most = target.lanes(widest)
    found = _merged(ops, most) | _columns(ops, most)
    merged = [shape for shape in shapes if shape in found]
    masks = target.has_masks
    lanes = dict.fromkeys(shape[-1] for shape in shapes if shape not in merged)
    cuts = {number: _cut(number, most, masks) for number in lanes if number > 1}
    for op in ops:
        if isinstance(op, InstructionOp):
            _choose_forms(op, cuts, target)
        elif isinstance(op, StoreOp):
            _choose_branch(op, masks)
    # Half of the registers are left for the computation in the loops.
    vectors = Vectors(target.vector_registers // 2, tuple(cuts.values()), tuple(merged))
    kernel.attributes[VECTORS] = VectorsAttr(vectors)
    for op in ops:
        if type(op) in EXPENSIVE:
            _interleave(op, vectors, target)
    return vectors


def _merged(ops: Sequence[Operation], most: int) -> set[Shape]:
    """The shapes whose last axis but one is folded, and whose last two axes fit into a machine
    vector.
    """
    folded: set[Shape] = set()
    limited: set[Shape] = set()
    rows_of: list[tuple[Shape, Shape]] = []
    for op in ops:
        if isinstance(op, LoadOp | StoreOp) and op.limits:
            limited.add(block_shape((op.result if isinstance(op, LoadOp) else op.value).type))
        elif isinstance(op, FoldOp):
            shape, axis = block_shape(op.value.type), op.axis.value.data
            if axis == len(shape) - 2:
                folded.add(shape)
            elif axis < len(shape) - 2:
                rows_of.append((shape, block_shape(op.result.type)))
        elif isinstance(op, upstream.BroadcastOp):
            rows_of.append((block_shape(op.source.type), block_shape(op.vector.type)))
    merged = {shape for shape in folded - limited if _fits(shape[-2:], most)}
    # Rows of such shapes are combined or copied as a whole, so the results are merged as well.
    while apart := {one for one, other in rows_of if one in merged and other not in merged}:
        merged -= apart
    return merged


def _columns(ops: Sequence[Operation], most: int) -> set[Shape]:
    """The shapes with one lane in each of several rows of which expensive functions are computed.

    The rows become the lanes of one machine vector.
    """
    found = {block_shape(op.results[0].type) for op in ops if type(op) in EXPENSIVE}
    found = {s for s in found if len(s) > 1 and s[-1] == 1 and s[-2] in range(2, most + 1)}
    left = set[Shape]()
    for op in ops if found else ():
        if isinstance(op, LoadOp | StoreOp) and op.limits:
            left.add(block_shape((op.result if isinstance(op, LoadOp) else op.value).type))
        elif isinstance(op, FoldOp):
            left |= {block_shape(value.type) for value in (op.value, op.result)}
    return {shape for shape in found - left if not shape[-2] & (shape[-2] - 1)}


def _fits(axes: Sequence[int], most: int) -> bool:
    """Whether two axes fit into one machine vector, as its rows."""
    rows, lanes = axes
    return min(axes) > 1 and rows * lanes <= most and not (rows * lanes) & (rows * lanes - 1)


def _cut(lanes: int, most: int, masks: bool) -> RowCut:
    """A row cut into the widest machine vectors of the target.

    If the machine has masked loads and stores for every type, the remainder is one masked vector,
    else several vectors, each half as wide as the last.
    """
    chunks: list[tuple[int, int]] = []
    left = lanes
    while left:
        width = min(most, 1 << (left - 1).bit_length())
        if width > left and not masks:
            width //= 2
        chunks.append((min(width, left), width))
        left -= chunks[-1][0]
    return RowCut.of(lanes, chunks)


def _choose_forms(op: InstructionOp, cuts: dict[int, RowCut], target: Target) -> None:
    """Note the intrinsics of an instruction, and cut its operands in groups as its result."""
    depth, lanes = depth_of(op.row), block_shape(op.result.type)[-1]
    if depth > 1 and lanes in cuts:
        cuts[lanes * depth] = cuts[lanes].in_groups(depth)
    found = {str(f.lanes): StringAttr(f.intrinsic) for f in target.forms(op.row) if f.intrinsic}
    op.attributes[INTRINSICS] = DictionaryAttr(found)


def _choose_branch(op: StoreOp, masks: bool) -> None:
    """Note whether a store branches around its masks, if the machine has none for every type."""
    op.attributes.pop(BRANCH, None)
    if not masks and len(block_shape(op.value.type)) - 1 in op.limited.get_values():
        op.attributes[BRANCH] = UnitAttr()


def _interleave(op: Operation, vectors: Vectors, target: Target) -> None:
    """Note how many vectors of a row a function interleaves, if several."""
    op.attributes.pop(INTERLEAVE, None)
    layout = vectors.layout(block_shape(op.results[0].type))
    if layout is None:
        return
    free = target.vector_registers - len(layout.places())
    together = min(free // _REGISTERS_OF_A_FUNCTION, len(layout.chunks))
    if together > 1:
        op.attributes[INTERLEAVE] = IntegerAttr(together, i64)


def _take_as_tiles(kernel: KernelOp) -> None:
    """Make tiles of iterations that are to be threads of a device, or blocks of them.

    What threads of a block do is what a tile does, in memory of its own.
    """
    loops = [op for op in operations_in(kernel) if isinstance(op, ForOp)]
    on_device = [op for op in loops if op.kind.data.is_on_device]
    kinds = [
        LoopKind.PARALLEL
        if op.kind.data is LoopKind.THREADS and is_in_block(op)
        else LoopKind.TILES
        for op in on_device
    ]
    for op, kind in zip(on_device, kinds, strict=True):
        op.properties["kind"] = LoopKindAttr(kind)
    for op in loops:
        if op.kind.data is LoopKind.ASYNC:
            op.properties["kind"] = LoopKindAttr(LoopKind.UNROLL)
    for op in list(operations_in(kernel)):
        if isinstance(op, LocalOp) and space_of(op) is not None:
            kind = memref_type(op.result)
            own = MemRefType(kind.element_type, kind.get_shape())
            Rewriter.replace_value_with_new_type(op.result, own)


@dataclass(frozen=True)
class LoopLegalizeVectorsPass(ModulePass):
    """Choose the machine vectors that each vector of a kernel consists of.

    Before:

    ```mlir
    loop.kernel @gelu(%x: memref<?x39xf32>) -> (%y: memref<?x39xf32>) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<?x39xf32>
      loop.for "i" %i to %n {
        %v = loop.load %x (d0)[s0] -> (d0, s0)(%i) : memref<?x39xf32>, vector<39xf32>
        %e = math.erf %v : vector<39xf32>
        loop.store %e, %y (d0)[s0] -> (d0, s0)(%i) : vector<39xf32>, memref<?x39xf32>
      }
    }
    ```

    Options: `target=x86-64-v4`

    After:

    ```mlir
    loop.kernel @gelu(%x: memref<?x39xf32>) -> (%y: memref<?x39xf32>)
        attributes {loop.vectors = #loop.vectors<hoist 16, 39 = [16, 16, 7 of 8]>} {
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<?x39xf32>
      loop.for "i" %i to %n {
        %v = loop.load %x (d0)[s0] -> (d0, s0)(%i) : memref<?x39xf32>, vector<39xf32>
        %e = math.erf %v {loop.interleave = 3 : i64} : vector<39xf32>
        loop.store %e, %y (d0)[s0] -> (d0, s0)(%i) : vector<39xf32>, memref<?x39xf32>
      }
    }
    ```

    Requires: vectors of one axis or more.
    Order: after `loop-schedule`, which vectorises loops; before `convert-loop-to-scf`, which lowers
        vectors chunk by chunk.
    Leaves: every operation, and in kernels with vectors what `convert-loop-to-scf` needs to know
    about the machine: the chunks of each row, LLVM's names of instructions, how many machine
    vectors of a row an expensive function interleaves, which stores branch around their masks, and
    how many loads may be hoisted out of their loops. In a compilation for a target without a
    device, threads are tiles.
    """

    name = "loop-legalize-vectors"
    budget = EXACT

    target: str | None = None
    """The name of the target machine; by default that of the compilation."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(ctx) if self.target is None else named(self.target)
        compiled_for = known_to(ctx).target
        for kernel in operations_in(op):
            if not isinstance(kernel, KernelOp) or not allowed("legalize vectors", kernel):
                continue
            if compiled_for is not None and compiled_for.device is None:
                _take_as_tiles(kernel)
            vectors = legalize_vectors(kernel, target)
            if vectors is not None and vectors.cuts:
                what = f"rows of lanes: {', '.join(map(str, vectors.cuts))}"
                decide(ctx, kernel, what, f"a machine vector has {target.vector_bits} bits")
