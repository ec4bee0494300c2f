"""All operators of the `graph` dialect, under the one name by which others import them.

from stepwell.dialects.graph import ops as graph

y = graph.ReluOp(graph.DenseOp(x, w, bias))
"""

from __future__ import annotations

from .ops_binary import AddOp, BinaryOp, DivOp, MaxOp, MinOp, MulOp, PowOp, SubOp
from .ops_call import CallDpsOp, CallPackedOp
from .ops_constant import ConstantOp, splat_of
from .ops_contraction import DenseOp, MatmulOp
from .ops_edge import AggregateOp, EdgeSoftmaxOp, EntriesOp, OwnSoftmaxOp, SddmmOp
from .ops_elementwise import (
    CastOp,
    ClipOp,
    ErfOp,
    ExpOp,
    GeluOp,
    LeakyReluOp,
    LogOp,
    NegOp,
    ReluOp,
    RsqrtOp,
    SigmoidOp,
    SqrtOp,
    TanhOp,
    UnaryOp,
)
from .ops_model import BatchNormOp, DropoutOp
from .ops_reduction import LogSoftmaxOp, ReduceOp, SoftmaxOp
from .ops_select import ConcatOp, GatherOp, SliceOp
from .ops_shape import BroadcastToOp, ReshapeOp, TransposeOp
from .ops_sparse import DegreeOp, MissingSelfLoopsOp, NormalizeOp, SpmmOp

__all__ = [
    "AddOp",
    "AggregateOp",
    "BatchNormOp",
    "BinaryOp",
    "BroadcastToOp",
    "CallDpsOp",
    "CallPackedOp",
    "CastOp",
    "ClipOp",
    "ConcatOp",
    "ConstantOp",
    "DegreeOp",
    "DenseOp",
    "DivOp",
    "DropoutOp",
    "EdgeSoftmaxOp",
    "EntriesOp",
    "ErfOp",
    "ExpOp",
    "GatherOp",
    "GeluOp",
    "LeakyReluOp",
    "LogOp",
    "LogSoftmaxOp",
    "MatmulOp",
    "MaxOp",
    "MinOp",
    "MissingSelfLoopsOp",
    "MulOp",
    "NegOp",
    "NormalizeOp",
    "OwnSoftmaxOp",
    "PowOp",
    "ReduceOp",
    "ReluOp",
    "ReshapeOp",
    "RsqrtOp",
    "SddmmOp",
    "SigmoidOp",
    "SliceOp",
    "SoftmaxOp",
    "SpmmOp",
    "SqrtOp",
    "SubOp",
    "TanhOp",
    "TransposeOp",
    "UnaryOp",
    "splat_of",
]
