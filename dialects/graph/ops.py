"""All operators of the `graph` dialect, under the one name by which others import them.

from stepwell.dialects.graph import ops as graph

y = graph.ReluOp(graph.DenseOp(x, w, bias))
"""

from __future__ import annotations

from .ops_activations import *  # noqa: F403
from .ops_aggregate import AggregateOp, ReduceEntriesOp
from .ops_aggregate_parts import AggregateDenseOp
from .ops_arange import ArangeOp
from .ops_arg import ArgReduceOp
from .ops_attention import AttentionOp
from .ops_binary import BinaryOp, ComparisonOp
from .ops_blocked import BlockedConvOp
from .ops_boxes import SuppressBoxesOp
from .ops_call import CallDpsOp, CallPackedOp
from .ops_cast import BitcastOp, CastOp
from .ops_check import AliasOp, CheckIndicesOp, CheckOp
from .ops_clip import ClipOp
from .ops_constant import ConstantOp, splat_of
from .ops_contraction import DenseOp, MatmulOp
from .ops_control import ControlFlowOp, YieldOp, yielded
from .ops_csr import AssembleOp, SortEdgesOp
from .ops_csr_loops import SortEdgesWithLoopsOp
from .ops_cumulative import CumulativeOp
from .ops_det import DetOp
from .ops_dynamic import DimOp, DynamicBroadcastOp, DynamicReshapeOp, DynamicSliceOp
from .ops_edge import EntriesOp, SddmmOp
from .ops_edge_softmax import EdgeSoftmaxOp, OwnSoftmaxOp
from .ops_elementwise import UnaryOp
from .ops_exchange import CombineOp, ExchangeOp
from .ops_functions import *  # noqa: F403
from .ops_gather import GatherElementsOp, GatherNdOp, GatherOp
from .ops_histogram import HistogramOp, OneHotOp
from .ops_if import IfOp
from .ops_loop import LoopOp
from .ops_nonzero import NonzeroOp
from .ops_normalization import (
    BatchNormOp,
    BatchNormTrainingOp,
    GroupNormOp,
    InstanceNormOp,
    L2NormalizeOp,
    LayerNormOp,
    RmsNormOp,
)
from .ops_pad import PadOp
from .ops_pad_same import PadSameOp
from .ops_pattern import AtEntriesOp, SliceRowsOp, ToDenseOp, WithEntriesOp
from .ops_quantize import DequantizeOp, QuantizeOp, RequantizeOp, ScaledOp
from .ops_quantized import (
    QuantizedContractionOp,
    QuantizedConvOp,
    QuantizedDenseOp,
    QuantizedMatmulOp,
)
from .ops_random import RandomUniformOp
from .ops_reduction import LogSoftmaxOp, ReduceOp, SoftmaxOp
from .ops_scatter import ScatterElementsOp, ScatterNdOp
from .ops_search import SearchsortedOp
from .ops_segment import SegmentReduceOp
from .ops_select import ConcatOp, SliceOp
from .ops_shape import BroadcastToOp, ReshapeOp, TransposeOp
from .ops_sort import SortOp, TopKOp
from .ops_sparse import DegreeOp, MissingSelfLoopsOp, NormalizeOp, SpmmOp
from .ops_ternary import FmaOp, WhereOp
from .ops_trees import TreeEnsembleOp
from .ops_unique import UniqueOp
from .ops_window import ConvOp, PoolOp

__all__ = [
    "AggregateDenseOp",
    "AggregateOp",
    "AliasOp",
    "ArangeOp",
    "ArgReduceOp",
    "AssembleOp",
    "AtEntriesOp",
    "AttentionOp",
    "BatchNormOp",
    "BatchNormTrainingOp",
    "BinaryOp",
    "BitcastOp",
    "BlockedConvOp",
    "BroadcastToOp",
    "CallDpsOp",
    "CallPackedOp",
    "CastOp",
    "CheckIndicesOp",
    "CheckOp",
    "ClipOp",
    "CombineOp",
    "ComparisonOp",
    "ConcatOp",
    "ConstantOp",
    "ControlFlowOp",
    "ConvOp",
    "CumulativeOp",
    "DegreeOp",
    "DenseOp",
    "DequantizeOp",
    "DetOp",
    "DimOp",
    "DynamicBroadcastOp",
    "DynamicReshapeOp",
    "DynamicSliceOp",
    "EdgeSoftmaxOp",
    "EntriesOp",
    "ExchangeOp",
    "FmaOp",
    "GatherElementsOp",
    "GatherNdOp",
    "GatherOp",
    "GroupNormOp",
    "HistogramOp",
    "IfOp",
    "InstanceNormOp",
    "L2NormalizeOp",
    "LayerNormOp",
    "LogSoftmaxOp",
    "LoopOp",
    "MatmulOp",
    "MissingSelfLoopsOp",
    "NonzeroOp",
    "NormalizeOp",
    "OneHotOp",
    "OwnSoftmaxOp",
    "PadOp",
    "PadSameOp",
    "PoolOp",
    "QuantizeOp",
    "QuantizedContractionOp",
    "QuantizedConvOp",
    "QuantizedDenseOp",
    "QuantizedMatmulOp",
    "RandomUniformOp",
    "ReduceEntriesOp",
    "ReduceOp",
    "RequantizeOp",
    "ReshapeOp",
    "RmsNormOp",
    "ScaledOp",
    "ScatterElementsOp",
    "ScatterNdOp",
    "SddmmOp",
    "SearchsortedOp",
    "SegmentReduceOp",
    "SliceOp",
    "SliceRowsOp",
    "SoftmaxOp",
    "SortEdgesOp",
    "SortEdgesWithLoopsOp",
    "SortOp",
    "SpmmOp",
    "SuppressBoxesOp",
    "ToDenseOp",
    "TopKOp",
    "TransposeOp",
    "TreeEnsembleOp",
    "UnaryOp",
    "UniqueOp",
    "WhereOp",
    "WithEntriesOp",
    "YieldOp",
    "splat_of",
    "yielded",
]
