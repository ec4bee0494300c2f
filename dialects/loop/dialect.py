"""The loop dialect, as it is registered.

Why upstream is not enough: `linalg` has no sparse operands and no accumulators that outlive an
operation, `affine` has no blocks of values whose dimensions are loops, and neither represents a
fused GEMM, a GCN layer and a softmax in the same way. `scf` comes after scheduling.
What lowers into it: operators of `graph`, by `convert-graph-to-loop`, and plug-ins' operators.
What it lowers to: `scf`, `memref`, one-dimensional `vector`, `arith` and `math`, by
`convert-loop-to-scf`, once `loop-legalize-vectors` has chosen the machine vectors.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from . import ops
from .attrs import CombineAttr, LoopKindAttr, SpaceAttr
from .vectors import VectorsAttr

Loop = Dialect(
    "loop",
    [
        *(ops.FoldOp, ops.ForOp, ops.InstructionOp, ops.KernelOp, ops.LoadOp, ops.LocalOp),
        *(ops.OwnedOp, ops.PartitionPointOp, ops.PrefetchOp, ops.StoreOp, ops.YieldOp),
    ],
    [CombineAttr, LoopKindAttr, SpaceAttr, VectorsAttr],
)
