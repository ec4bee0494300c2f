"""Kernels become functions of loops, memory accesses and machine vectors.

Source: `loop`, with the scalar operations of `arith`, `math` and `memref` in it. Target: `func`,
`scf`, `memref`, `vector` (one-dimensional), `arith`, `math`, and `rt` for tiles.

A kernel is converted with four tables of functions by class of operation, which share one `State`:
`elementwise.py`, `memory.py`, `loops.py` (with `tiles.py`) and `searches.py`. `blocks.py` emits the
machine vectors of a block on demand; `transfers.py` loads and stores them at the places that
`accesses.py` computes, and `contents.py` forwards
stores to loads. `indices.py` does index arithmetic; `scopes.py` places each operation in the
outermost legal loop. `aligned.py` says which arguments of a kernel are aligned on a device.

The conversion does not depend on the target: `loop-legalize-vectors` has written down the layout
of each block.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Region
from xdsl.passes import ModulePass

from ..core.ir.walks import operations_in
from ..core.pipelines.actions import allowed, held_back
from ..core.pipelines.budgets import SUMS
from ..dialects.loop.ops import KernelOp
from ..dialects.loop.proofs.in_place import sharing
from ..dialects.loop.proofs.levels import VECTOR_BYTES
from ..dialects.stages import reach
from .loop_to_scf.aligned import aligned_arguments
from .loop_to_scf.elementwise import ELEMENTWISE, elementwise
from .loop_to_scf.loops import LOOPS
from .loop_to_scf.memory import MEMORY
from .loop_to_scf.searches import SEARCHES
from .loop_to_scf.state import State, refuse

_HANDLERS = ELEMENTWISE | MEMORY | LOOPS | SEARCHES


def _convert_kernel(kernel: KernelOp, aligned: Sequence[bool] | None) -> func.FuncOp:
    """The function that a kernel becomes.

    Args:
        kernel: the kernel.
        aligned: which of its arguments a device finds at multiples of 16 bytes; None on a host.

    Raises:
        PassFailedException: naming an operation that cannot be converted.
    """
    types = [arg.type for arg in kernel.body.block.args]
    body = Block(arg_types=types)
    for old, new in zip(kernel.body.block.args, body.args, strict=True):
        new.name_hint = old.name_hint
    state = State(kernel, body, _HANDLERS, elementwise)
    pairs = zip(kernel.body.block.args, aligned or (), strict=False)
    state.aligned.update(argument for argument, is_aligned in pairs if is_aligned)
    emit = state.emitter
    emit.location = kernel.location
    state.convert(kernel.body.block.ops)
    emit.emit(func.ReturnOp, [])
    emit.close()
    state.buffers.contents.drop_unread()
    emit.drop_unused_lanes()
    shared = sharing(kernel)
    attrs: list[DictionaryAttr] = []
    for number, kind in enumerate(types):
        facts: dict[str, Attribute] = {}
        if isinstance(kind, MemRefType) and number not in shared:
            facts["llvm.noalias"] = UnitAttr()
        if isinstance(kind, MemRefType) and aligned is not None and aligned[number]:
            facts["llvm.align"] = IntegerAttr(VECTOR_BYTES, i64)
        attrs.append(DictionaryAttr(facts))
    return func.FuncOp.create(
        properties={
            "sym_name": kernel.sym_name,
            "function_type": FunctionType.from_lists(types, []),
            "sym_visibility": StringAttr("private"),
            "arg_attrs": ArrayAttr(attrs),
        },
        regions=[Region(body)],
        location=kernel.location,
    )


class ConvertLoopToScfPass(ModulePass):
    """Turn kernels into functions, and their blocks into machine vectors.

    Before:

    ```mlir
    loop.kernel @scale(%x: memref<?x8xf32>, %s: memref<8xf32>) -> (%y: memref<?x8xf32>)
        attributes {loop.vectors = #loop.vectors<hoist 16, 8 = [8]>} {
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<?x8xf32>
      loop.for "i" %i to %n {
        %v = loop.load %x (d0)[s0] -> (d0, s0)(%i) : memref<?x8xf32>, vector<8xf32>
        %w = loop.load %s ()[s0] -> (s0)() : memref<8xf32>, vector<8xf32>
        %p = arith.mulf %v, %w : vector<8xf32>
        loop.store %p, %y (d0)[s0] -> (d0, s0)(%i) : vector<8xf32>, memref<?x8xf32>
      }
    }
    ```

    After:

    ```mlir
    func.func private @scale(%x: memref<?x8xf32> {llvm.noalias}, %s: memref<8xf32> {llvm.noalias},
                             %y: memref<?x8xf32> {llvm.noalias}) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : memref<?x8xf32>
      %c1 = arith.constant 1 : index
      %w = vector.load %s[%c0] : memref<8xf32>, vector<8xf32>
      scf.for %i = %c0 to %n step %c1 {
        %v = vector.load %x[%i, %c0] : memref<?x8xf32>, vector<8xf32>
        %p = arith.mulf %v, %w : vector<8xf32>
        vector.store %p, %y[%i, %c0] : memref<?x8xf32>, vector<8xf32>
      } func.return }
    ```

    Requires: operations of `loop` and elementwise operations without a region; vectors as
    `loop-legalize-vectors` leaves them.
    Leaves: no operation of `loop`; tile loops as `rt.parallel_tiles`.
    """

    name = "convert-loop-to-scf"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        aligned = aligned_arguments(op)
        for kernel in [inner for inner in operations_in(op) if isinstance(inner, KernelOp)]:
            if not allowed("convert kernel", kernel):
                continue
            function = _convert_kernel(kernel, aligned.get(kernel.sym_name.data))
            block = kernel.parent
            assert block is not None
            block.insert_op_before(function, kernel)
            block.erase_op(kernel)
        if held_back():
            return
        reach(op, "loops")
        for inner in operations_in(op):
            if inner.name.startswith("loop."):
                refuse(inner, "is in no kernel", "a loop.kernel around it")
