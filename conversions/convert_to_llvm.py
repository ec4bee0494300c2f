"""All standard dialects to the LLVM dialect in one walk."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..core.pipelines.budgets import SUMS
from ..dialects.stages import reach
from .convert_arith_to_llvm import ARITH
from .convert_cf_to_llvm import CF
from .convert_func_to_llvm import FUNC
from .convert_math_to_llvm import MATH
from .convert_memref_to_llvm import MEMREF
from .convert_vector_to_llvm import VECTOR
from .to_llvm.lowering import lower_module

_SOURCES = (
    *("arith", "math", "memref", "vector", "x86vector", "cf", "func"),
    *("scf", "affine", "rt", "loop", "graph"),
)


class ConvertToLlvmPass(ModulePass):
    """Lower what the conversions of single dialects lower, in one walk over the module.

    Before:
    ```mlir
    func.func @f(%x: memref<?xf32>, %i: index) {
      %0 = memref.load %x[%i] : memref<?xf32>
      %1 = arith.addf %0, %0 : f32
      memref.store %1, %x[%i] : memref<?xf32>
      func.return
    }
    ```
    After:
    ```mlir
    llvm.func @f(%x: !llvm.ptr, %0: i64, %i: i64) {
      %1 = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %2 = llvm.load %1 {alignment = 4 : i64} : !llvm.ptr -> f32
      %3 = llvm.fadd %2, %2 : f32
      llvm.store %3, %1 {alignment = 4 : i64} : f32, !llvm.ptr
      llvm.return
    }
    ```
    Requires: no `scf` and no `rt`.
    Order: after `convert-scf-to-cf` and `convert-rt-to-llvm`, which convert these.
    Leaves: the LLVM dialect only.
    """

    name = "convert-to-llvm"
    budget = SUMS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        table = ARITH | MATH | MEMREF | VECTOR | CF | FUNC
        lower_module(ctx, op, table, _SOURCES)
        reach(op, "llvm")
