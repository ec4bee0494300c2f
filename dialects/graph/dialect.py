"""The `graph` dialect: a model as pure operators on dense and sparse tensors.

Why upstream is not enough: `linalg` and `tosa` have no operator-level sparse algebra, no
symbolic sizes with names, and no operator that carries its shape rule, its NumPy meaning and
its value at an index. Frontends lower into it; `convert-graph-to-loop` turns each primitive
function into a kernel of the `loop` dialect, and `convert-graph-to-rt` the main function into
calls on buffers.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from . import attrs, ops

Graph = Dialect(
    "graph",
    [
        ops.ConstantOp,
        ops.DenseOp,
        ops.MatmulOp,
        ops.ConvOp,
        ops.AddOp,
        ops.SubOp,
        ops.MulOp,
        ops.DivOp,
        ops.MaxOp,
        ops.MinOp,
        ops.PowOp,
        ops.FmaOp,
        ops.NegOp,
        ops.ExpOp,
        ops.LogOp,
        ops.SqrtOp,
        ops.RsqrtOp,
        ops.TanhOp,
        ops.SigmoidOp,
        ops.ReluOp,
        ops.LeakyReluOp,
        ops.GeluOp,
        ops.ErfOp,
        ops.SinOp,
        ops.CosOp,
        ops.ClipOp,
        ops.AbsOp,
        ops.SignOp,
        ops.CeilOp,
        ops.FloorOp,
        ops.RoundOp,
        ops.CastOp,
        ops.EqualOp,
        ops.LessOp,
        ops.LessEqualOp,
        ops.GreaterOp,
        ops.GreaterEqualOp,
        ops.LogicalAndOp,
        ops.LogicalOrOp,
        ops.LogicalXorOp,
        ops.LogicalNotOp,
        ops.WhereOp,
        ops.SoftmaxOp,
        ops.LogSoftmaxOp,
        ops.ReduceOp,
        ops.PoolOp,
        ops.TransposeOp,
        ops.ReshapeOp,
        ops.ConcatOp,
        ops.SliceOp,
        ops.PadOp,
        ops.GatherOp,
        ops.BroadcastToOp,
        ops.BatchNormOp,
        ops.DropoutOp,
        ops.SpmmOp,
        ops.DegreeOp,
        ops.MissingSelfLoopsOp,
        ops.NormalizeOp,
        ops.EntriesOp,
        ops.SddmmOp,
        ops.EdgeSoftmaxOp,
        ops.OwnSoftmaxOp,
        ops.AggregateOp,
        ops.CallDpsOp,
        ops.CallPackedOp,
    ],
    [
        attrs.AggregateKindAttr,
        attrs.ApproximationAttr,
        attrs.NormalizeKindAttr,
        attrs.PadModeAttr,
        attrs.ReduceKindAttr,
        attrs.SddmmKindAttr,
    ],
)
