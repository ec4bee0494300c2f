"""Standard operations that xDSL lacks, or defines for scalars only, under their own names.

xDSL's `arith`, `vector` and `llvm` dialects cover most of what is needed. What they miss is
in this folder and nowhere else, in upstream MLIR's text form, so that `mlir-opt` reads what we
print. `Arith`, `MemRef`, `Scf`, `Vector` and `Llvm` are xDSL's dialects with these operations
added; a context that holds them parses `arith.select` as `SelectOp` of `ops_arith`. An operation
that xDSL itself builds (the `arith.cmpi` of a lowered loop, say) may still be xDSL's class: code
that must take both looks at the name, not at the class.

Nothing is defined in this folder that xDSL already has right. Each class says what xDSL's lacks.
"""

from __future__ import annotations

from xdsl.dialects import arith, llvm, memref, scf
from xdsl.dialects import vector as vector_dialect
from xdsl.ir import Dialect, Operation

from .ops_arith import (
    CmpfOp,
    CmpiOp,
    ExtSIOp,
    ExtUIOp,
    FPToSIOp,
    FPToUIOp,
    IndexCastOp,
    IndexCastUIOp,
    SelectOp,
    SIToFPOp,
    TruncIOp,
    UIToFPOp,
)
from .ops_llvm import (
    ExtractElementOp,
    FCmpOp,
    GEPOp,
    LlvmFPToSIOp,
    LlvmFPToUIOp,
    LlvmSelectOp,
    LlvmUIToFPOp,
    PoisonOp,
)
from .ops_llvm_intrinsics import INTRINSICS, MaskedGatherOp, MaskedLoadOp, MaskedStoreOp
from .ops_memref import PrefetchOp
from .ops_scf import WhileOp
from .ops_vector import BroadcastOp, GatherOp, ReductionOp


def _with(dialect: Dialect, *replacements: type[Operation]) -> Dialect:
    """`dialect` with operations of these names replaced, and new ones added."""
    operations = {op.name: op for op in dialect.operations}
    operations |= {op.name: op for op in replacements}
    return Dialect(
        dialect.name,
        list(operations.values()),
        list(dialect.attributes),
        list(dialect._interfaces),  # xDSL has no public way to read them
    )


Arith = _with(
    arith.Arith,
    SelectOp,
    CmpiOp,
    CmpfOp,
    SIToFPOp,
    UIToFPOp,
    FPToSIOp,
    FPToUIOp,
    ExtSIOp,
    ExtUIOp,
    TruncIOp,
    IndexCastOp,
    IndexCastUIOp,
)
MemRef = _with(memref.MemRef, PrefetchOp)
Scf = _with(scf.Scf, WhileOp)
Vector = _with(vector_dialect.Vector, BroadcastOp, ReductionOp, GatherOp)
Llvm = _with(
    llvm.LLVM,
    LlvmSelectOp,
    FCmpOp,
    GEPOp,
    MaskedStoreOp,
    MaskedLoadOp,
    MaskedGatherOp,
    ExtractElementOp,
    PoisonOp,
    LlvmFPToSIOp,
    LlvmFPToUIOp,
    LlvmUIToFPOp,
    *INTRINSICS.values(),
)
