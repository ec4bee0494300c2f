"""All operators of the `graph` dialect; `make public` writes this file."""

from collections.abc import Sequence
from types import ModuleType

from xdsl.ir import Attribute, Operation, SSAValue

from .ops_activations import ActivationOp as ActivationOp
from .ops_activations import CeluOp as _CeluOp
from .ops_activations import DropoutOp as _DropoutOp
from .ops_activations import EluOp as _EluOp
from .ops_activations import GeluOp as _GeluOp
from .ops_activations import HardSigmoidOp as _HardSigmoidOp
from .ops_activations import HardSwishOp as _HardSwishOp
from .ops_activations import LeakyReluOp as _LeakyReluOp
from .ops_activations import LogSigmoidOp as _LogSigmoidOp
from .ops_activations import MishOp as _MishOp
from .ops_activations import PreluOp as _PreluOp
from .ops_activations import SeluOp as _SeluOp
from .ops_activations import SiluOp as _SiluOp
from .ops_activations import SoftplusOp as _SoftplusOp
from .ops_activations import SoftsignOp as _SoftsignOp
from .ops_aggregate import AggregateOp as AggregateOp
from .ops_aggregate import AggregationOp as AggregationOp
from .ops_aggregate import ReduceEntriesOp as _ReduceEntriesOp
from .ops_aggregate_parts import AggregateDenseOp as _AggregateDenseOp
from .ops_arange import ArangeOp as _ArangeOp
from .ops_arg import ArgReduceOp as _ArgReduceOp
from .ops_attention import AttentionOp as _AttentionOp
from .ops_binary import BinaryOp as BinaryOp
from .ops_binary import ComparisonOp as ComparisonOp
from .ops_blocked import BlockedConvOp as BlockedConvOp
from .ops_boxes import SuppressBoxesOp as _SuppressBoxesOp
from .ops_call import CallDpsOp as CallDpsOp
from .ops_call import CallLikeOp as CallLikeOp
from .ops_call import CallPackedOp as CallPackedOp
from .ops_cast import BitcastOp as BitcastOp
from .ops_cast import CastOp as CastOp
from .ops_check import AliasOp as AliasOp
from .ops_check import CheckIndicesOp as CheckIndicesOp
from .ops_check import CheckOp as _CheckOp
from .ops_clip import ClipOp as ClipOp
from .ops_constant import ConstantOp as ConstantOp
from .ops_constant import splat_of as splat_of
from .ops_contraction import DenseOp as _DenseOp
from .ops_contraction import MatmulOp as _MatmulOp
from .ops_control import ControlFlowOp as ControlFlowOp
from .ops_control import YieldOp as YieldOp
from .ops_control import yielded as yielded
from .ops_csr import AssembleOp as _AssembleOp
from .ops_csr import SortEdgesOp as _SortEdgesOp
from .ops_csr_loops import SortEdgesWithLoopsOp as _SortEdgesWithLoopsOp
from .ops_cumulative import CumulativeOp as _CumulativeOp
from .ops_det import DetOp as _DetOp
from .ops_dynamic import DimOp as _DimOp
from .ops_dynamic import DynamicBroadcastOp as _DynamicBroadcastOp
from .ops_dynamic import DynamicReshapeOp as _DynamicReshapeOp
from .ops_dynamic import DynamicSliceOp as _DynamicSliceOp
from .ops_edge import EntriesOp as _EntriesOp
from .ops_edge import SddmmOp as _SddmmOp
from .ops_edge_softmax import EdgeSoftmaxOp as _EdgeSoftmaxOp
from .ops_edge_softmax import OwnSoftmaxOp as _OwnSoftmaxOp
from .ops_edge_softmax import SoftmaxOverEntriesOp as SoftmaxOverEntriesOp
from .ops_elementwise import ElementwiseOp as ElementwiseOp
from .ops_elementwise import FloatUnaryOp as FloatUnaryOp
from .ops_elementwise import UnaryOp as UnaryOp
from .ops_exchange import CombineOp as _CombineOp
from .ops_exchange import ExchangeOp as ExchangeOp
from .ops_functions import AbsOp as AbsOp
from .ops_functions import AcoshOp as AcoshOp
from .ops_functions import AcosOp as AcosOp
from .ops_functions import AddOp as AddOp
from .ops_functions import AsinhOp as AsinhOp
from .ops_functions import AsinOp as AsinOp
from .ops_functions import AtanhOp as AtanhOp
from .ops_functions import AtanOp as AtanOp
from .ops_functions import BitwiseAndOp as BitwiseAndOp
from .ops_functions import BitwiseNotOp as BitwiseNotOp
from .ops_functions import BitwiseOrOp as BitwiseOrOp
from .ops_functions import BitwiseXorOp as BitwiseXorOp
from .ops_functions import CeilOp as CeilOp
from .ops_functions import CoshOp as CoshOp
from .ops_functions import CosOp as CosOp
from .ops_functions import DivOp as DivOp
from .ops_functions import EqualOp as EqualOp
from .ops_functions import ErfOp as ErfOp
from .ops_functions import Expm1Op as Expm1Op
from .ops_functions import ExpOp as ExpOp
from .ops_functions import FloorOp as FloorOp
from .ops_functions import FmodOp as FmodOp
from .ops_functions import GreaterEqualOp as GreaterEqualOp
from .ops_functions import GreaterOp as GreaterOp
from .ops_functions import LessEqualOp as LessEqualOp
from .ops_functions import LessOp as LessOp
from .ops_functions import Log1pOp as Log1pOp
from .ops_functions import LogicalAndOp as LogicalAndOp
from .ops_functions import LogicalNotOp as LogicalNotOp
from .ops_functions import LogicalOrOp as LogicalOrOp
from .ops_functions import LogicalXorOp as LogicalXorOp
from .ops_functions import LogOp as LogOp
from .ops_functions import MaxOp as MaxOp
from .ops_functions import MinOp as MinOp
from .ops_functions import MulOp as MulOp
from .ops_functions import NegOp as NegOp
from .ops_functions import PowOp as PowOp
from .ops_functions import ReluOp as ReluOp
from .ops_functions import RoundOp as RoundOp
from .ops_functions import RsqrtOp as RsqrtOp
from .ops_functions import ShiftLeftOp as ShiftLeftOp
from .ops_functions import ShiftRightOp as ShiftRightOp
from .ops_functions import SigmoidOp as SigmoidOp
from .ops_functions import SignOp as SignOp
from .ops_functions import SinhOp as SinhOp
from .ops_functions import SinOp as SinOp
from .ops_functions import SmallExpOp as SmallExpOp
from .ops_functions import SqrtOp as SqrtOp
from .ops_functions import SubOp as SubOp
from .ops_functions import TanhOp as TanhOp
from .ops_functions import TanOp as TanOp
from .ops_gather import AlongAxisOp as AlongAxisOp
from .ops_gather import GatherElementsOp as _GatherElementsOp
from .ops_gather import GatherNdOp as _GatherNdOp
from .ops_gather import GatherOp as _GatherOp
from .ops_histogram import HistogramOp as _HistogramOp
from .ops_histogram import OneHotOp as _OneHotOp
from .ops_if import IfOp as IfOp
from .ops_loop import LoopOp as LoopOp
from .ops_nonzero import NonzeroOp as NonzeroOp
from .ops_normalization import BatchNormOp as BatchNormOp
from .ops_normalization import BatchNormTrainingOp as _BatchNormTrainingOp
from .ops_normalization import ChannelStandardizationOp as ChannelStandardizationOp
from .ops_normalization import GroupNormOp as _GroupNormOp
from .ops_normalization import InstanceNormOp as _InstanceNormOp
from .ops_normalization import L2NormalizeOp as _L2NormalizeOp
from .ops_normalization import LayerNormOp as _LayerNormOp
from .ops_normalization import NormalizationOp as NormalizationOp
from .ops_normalization import RmsNormOp as _RmsNormOp
from .ops_normalization import StandardizationOp as StandardizationOp
from .ops_pad import PadOp as PadOp
from .ops_pad_same import PadSameOp as PadSameOp
from .ops_pattern import AtEntriesOp as _AtEntriesOp
from .ops_pattern import SliceRowsOp as _SliceRowsOp
from .ops_pattern import ToDenseOp as _ToDenseOp
from .ops_pattern import WithEntriesOp as _WithEntriesOp
from .ops_quantize import DequantizeOp as DequantizeOp
from .ops_quantize import QuantizeOp as QuantizeOp
from .ops_quantize import RequantizeOp as RequantizeOp
from .ops_quantize import ScaledOp as ScaledOp
from .ops_quantized import QuantizedContractionOp as QuantizedContractionOp
from .ops_quantized import QuantizedConvOp as QuantizedConvOp
from .ops_quantized import QuantizedDenseOp as _QuantizedDenseOp
from .ops_quantized import QuantizedMatmulOp as _QuantizedMatmulOp
from .ops_random import RandomUniformOp as _RandomUniformOp
from .ops_reduction import ReduceOp as _ReduceOp
from .ops_scatter import ScatterElementsOp as _ScatterElementsOp
from .ops_scatter import ScatterNdOp as _ScatterNdOp
from .ops_scatter import ScatterOp as ScatterOp
from .ops_search import SearchsortedOp as _SearchsortedOp
from .ops_segment import SegmentReduceOp as _SegmentReduceOp
from .ops_select import ConcatOp as _ConcatOp
from .ops_select import SliceOp as SliceOp
from .ops_shape import BroadcastToOp as _BroadcastToOp
from .ops_shape import ReshapeOp as ReshapeOp
from .ops_shape import TransposeOp as TransposeOp
from .ops_softmax import LogSoftmaxOp as _LogSoftmaxOp
from .ops_softmax import NormalizedExponentialOp as NormalizedExponentialOp
from .ops_softmax import SoftmaxOp as _SoftmaxOp
from .ops_sort import OrderingOp as OrderingOp
from .ops_sort import SortOp as _SortOp
from .ops_sort import TopKOp as _TopKOp
from .ops_sparse import DegreeOp as _DegreeOp
from .ops_sparse import MatrixOp as MatrixOp
from .ops_sparse import MissingSelfLoopsOp as _MissingSelfLoopsOp
from .ops_sparse import NormalizeOp as _NormalizeOp
from .ops_sparse import RowOp as RowOp
from .ops_sparse import SpmmOp as SpmmOp
from .ops_ternary import FmaOp as _FmaOp
from .ops_ternary import WhereOp as _WhereOp
from .ops_trees import TreeEnsembleOp as _TreeEnsembleOp
from .ops_unique import UniqueOp as _UniqueOp
from .ops_window import ConvOp as ConvOp
from .ops_window import PoolOp as PoolOp

MODULES: list[ModuleType]

class CeluOp(_CeluOp):
    def __init__(
        self, x: SSAValue | Operation, alpha: float = 1.0, result_type: Attribute | None = None
    ) -> None: ...

class DropoutOp(_DropoutOp):
    def __init__(
        self, x: SSAValue | Operation, ratio: float = 0.5, result_type: Attribute | None = None
    ) -> None: ...

class EluOp(_EluOp):
    def __init__(
        self, x: SSAValue | Operation, alpha: float = 1.0, result_type: Attribute | None = None
    ) -> None: ...

class GeluOp(_GeluOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        approximate: str = "none",
        result_type: Attribute | None = None,
    ) -> None: ...

class HardSigmoidOp(_HardSigmoidOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        alpha: float = 0.16666666666666666,
        beta: float = 0.5,
        result_type: Attribute | None = None,
    ) -> None: ...

class HardSwishOp(_HardSwishOp):
    def __init__(self, x: SSAValue | Operation, result_type: Attribute | None = None) -> None: ...

class LeakyReluOp(_LeakyReluOp):
    def __init__(
        self, x: SSAValue | Operation, alpha: float = 0.01, result_type: Attribute | None = None
    ) -> None: ...

class LogSigmoidOp(_LogSigmoidOp):
    def __init__(self, x: SSAValue | Operation, result_type: Attribute | None = None) -> None: ...

class MishOp(_MishOp):
    def __init__(self, x: SSAValue | Operation, result_type: Attribute | None = None) -> None: ...

class PreluOp(_PreluOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        slope: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None: ...

class SeluOp(_SeluOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        alpha: float = 1.6732631921768188,
        gamma: float = 1.0507010221481323,
        result_type: Attribute | None = None,
    ) -> None: ...

class SiluOp(_SiluOp):
    def __init__(self, x: SSAValue | Operation, result_type: Attribute | None = None) -> None: ...

class SoftplusOp(_SoftplusOp):
    def __init__(self, x: SSAValue | Operation, result_type: Attribute | None = None) -> None: ...

class SoftsignOp(_SoftsignOp):
    def __init__(self, x: SSAValue | Operation, result_type: Attribute | None = None) -> None: ...

class ReduceEntriesOp(_ReduceEntriesOp):
    def __init__(
        self,
        a: SSAValue | Operation,
        x: SSAValue | Operation,
        kind: str = "sum",
        result_type: Attribute | None = None,
    ) -> None: ...

class AggregateDenseOp(_AggregateDenseOp):
    def __init__(
        self,
        a: SSAValue | Operation,
        x: SSAValue | Operation,
        w: SSAValue | Operation,
        kind: str = "sum",
        result_type: Attribute | None = None,
    ) -> None: ...

class ArangeOp(_ArangeOp):
    def __init__(
        self,
        count: SSAValue | Operation,
        at_most: int | None = None,
        result_type: Attribute | None = None,
    ) -> None: ...

class ArgReduceOp(_ArgReduceOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        kind: str,
        axis: int = -1,
        keepdims: bool = False,
        last: bool = False,
        result_type: Attribute | None = None,
    ) -> None: ...

class AttentionOp(_AttentionOp):
    def __init__(
        self,
        q: SSAValue | Operation,
        k: SSAValue | Operation,
        v: SSAValue | Operation,
        mask: SSAValue | Operation | None = None,
        lengths: SSAValue | Operation | None = None,
        scale: float = 1.0,
        softcap: float = 0.0,
        left: int = -1,
        right: int = -1,
        at_end: bool = False,
        safe: bool = False,
        result_type: Attribute | None = None,
    ) -> None: ...

class SuppressBoxesOp(_SuppressBoxesOp):
    def __init__(
        self,
        boxes: SSAValue | Operation,
        scores: SSAValue | Operation,
        most: SSAValue | Operation,
        overlap: SSAValue | Operation,
        least: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None: ...

class CheckOp(_CheckOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        condition: SSAValue | Operation,
        details: Sequence[SSAValue | Operation] = (),
        message: str = "",
        result_type: Attribute | None = None,
    ) -> None: ...

class DenseOp(_DenseOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        w: SSAValue | Operation,
        bias: SSAValue | Operation | None = None,
        result_type: Attribute | None = None,
    ) -> None: ...

class MatmulOp(_MatmulOp):
    def __init__(
        self, a: SSAValue | Operation, b: SSAValue | Operation, result_type: Attribute | None = None
    ) -> None: ...

class AssembleOp(_AssembleOp):
    def __init__(
        self,
        indptr: SSAValue | Operation,
        indices: SSAValue | Operation,
        values: SSAValue | Operation,
        sources: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None: ...

class SortEdgesOp(_SortEdgesOp):
    def __init__(
        self,
        rows: SSAValue | Operation,
        columns: SSAValue | Operation,
        targets: SSAValue | Operation,
        sources: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None: ...

class SortEdgesWithLoopsOp(_SortEdgesWithLoopsOp):
    def __init__(
        self,
        rows: SSAValue | Operation,
        columns: SSAValue | Operation,
        nodes: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None: ...

class CumulativeOp(_CumulativeOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        kind: str,
        axis: int = -1,
        exclusive: bool = False,
        reverse: bool = False,
        result_type: Attribute | None = None,
    ) -> None: ...

class DetOp(_DetOp):
    def __init__(self, x: SSAValue | Operation, result_type: Attribute | None = None) -> None: ...

class DimOp(_DimOp):
    def __init__(
        self, x: SSAValue | Operation, axis: int = 0, result_type: Attribute | None = None
    ) -> None: ...

class DynamicBroadcastOp(_DynamicBroadcastOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        sizes: Sequence[SSAValue | Operation],
        shape: Sequence[int],
        result_type: Attribute | None = None,
    ) -> None: ...

class DynamicReshapeOp(_DynamicReshapeOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        sizes: Sequence[SSAValue | Operation],
        shape: Sequence[int],
        result_type: Attribute | None = None,
    ) -> None: ...

class DynamicSliceOp(_DynamicSliceOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        start: SSAValue | Operation,
        step: SSAValue | Operation,
        count: SSAValue | Operation,
        axis: int = 0,
        result_type: Attribute | None = None,
    ) -> None: ...

class EntriesOp(_EntriesOp):
    def __init__(self, a: SSAValue | Operation, result_type: Attribute | None = None) -> None: ...

class SddmmOp(_SddmmOp):
    def __init__(
        self,
        a: SSAValue | Operation,
        x: SSAValue | Operation,
        y: SSAValue | Operation,
        kind: str = "dot",
        result_type: Attribute | None = None,
    ) -> None: ...

class EdgeSoftmaxOp(_EdgeSoftmaxOp):
    def __init__(
        self,
        a: SSAValue | Operation,
        scores: SSAValue | Operation,
        own: SSAValue | Operation | None = None,
        result_type: Attribute | None = None,
    ) -> None: ...

class OwnSoftmaxOp(_OwnSoftmaxOp):
    def __init__(
        self,
        a: SSAValue | Operation,
        scores: SSAValue | Operation,
        own: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None: ...

class CombineOp(_CombineOp):
    def __init__(
        self, x: SSAValue | Operation, kind: str, result_type: Attribute | None = None
    ) -> None: ...

class GatherElementsOp(_GatherElementsOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        indices: SSAValue | Operation,
        axis: int = 0,
        result_type: Attribute | None = None,
    ) -> None: ...

class GatherNdOp(_GatherNdOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        result_type: Attribute | None = None,
    ) -> None: ...

class GatherOp(_GatherOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        indices: SSAValue | Operation,
        axis: int = 0,
        result_type: Attribute | None = None,
    ) -> None: ...

class HistogramOp(_HistogramOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        bins: int,
        weights: SSAValue | Operation | None = None,
        result_type: Attribute | None = None,
    ) -> None: ...

class OneHotOp(_OneHotOp):
    def __init__(
        self,
        indices: SSAValue | Operation,
        values: SSAValue | Operation,
        depth: int,
        axis: int = -1,
        result_type: Attribute | None = None,
    ) -> None: ...

class BatchNormTrainingOp(_BatchNormTrainingOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        scale: SSAValue | Operation | None = None,
        bias: SSAValue | Operation | None = None,
        axis: int = 1,
        epsilon: float = 1e-05,
        result_type: Attribute | None = None,
    ) -> None: ...

class GroupNormOp(_GroupNormOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        groups: int,
        scale: SSAValue | Operation | None = None,
        bias: SSAValue | Operation | None = None,
        axis: int = 1,
        epsilon: float = 1e-05,
        result_type: Attribute | None = None,
    ) -> None: ...

class InstanceNormOp(_InstanceNormOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        scale: SSAValue | Operation | None = None,
        bias: SSAValue | Operation | None = None,
        axis: int = 1,
        epsilon: float = 1e-05,
        result_type: Attribute | None = None,
    ) -> None: ...

class L2NormalizeOp(_L2NormalizeOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        axes: Sequence[int] = (-1,),
        epsilon: float = 1e-12,
        result_type: Attribute | None = None,
    ) -> None: ...

class LayerNormOp(_LayerNormOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        scale: SSAValue | Operation | None = None,
        bias: SSAValue | Operation | None = None,
        axis: int = -1,
        epsilon: float = 1e-05,
        result_type: Attribute | None = None,
    ) -> None: ...

class RmsNormOp(_RmsNormOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        scale: SSAValue | Operation | None = None,
        axis: int = -1,
        epsilon: float = 1e-05,
        result_type: Attribute | None = None,
    ) -> None: ...

class AtEntriesOp(_AtEntriesOp):
    def __init__(
        self,
        a: SSAValue | Operation,
        x: SSAValue | Operation,
        axis: int,
        result_type: Attribute | None = None,
    ) -> None: ...

class SliceRowsOp(_SliceRowsOp):
    def __init__(
        self, a: SSAValue | Operation, start: int, end: int, result_type: Attribute | None = None
    ) -> None: ...

class ToDenseOp(_ToDenseOp):
    def __init__(
        self,
        a: SSAValue | Operation,
        values: SSAValue | Operation | None = None,
        result_type: Attribute | None = None,
    ) -> None: ...

class WithEntriesOp(_WithEntriesOp):
    def __init__(
        self,
        a: SSAValue | Operation,
        values: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None: ...

class QuantizedDenseOp(_QuantizedDenseOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        x_scale: SSAValue | Operation,
        x_zero_point: SSAValue | Operation,
        w: SSAValue | Operation,
        w_scale: SSAValue | Operation,
        w_zero_point: SSAValue | Operation,
        y_scale: SSAValue | Operation,
        y_zero_point: SSAValue | Operation,
        bias: SSAValue | Operation | None = None,
        result_type: Attribute | None = None,
    ) -> None: ...

class QuantizedMatmulOp(_QuantizedMatmulOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        x_scale: SSAValue | Operation,
        x_zero_point: SSAValue | Operation,
        w: SSAValue | Operation,
        w_scale: SSAValue | Operation,
        w_zero_point: SSAValue | Operation,
        y_scale: SSAValue | Operation,
        y_zero_point: SSAValue | Operation,
        bias: SSAValue | Operation | None = None,
        result_type: Attribute | None = None,
    ) -> None: ...

class RandomUniformOp(_RandomUniformOp):
    def __init__(
        self, seeds: SSAValue | Operation, result_type: Attribute | None = None
    ) -> None: ...

class ReduceOp(_ReduceOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        kind: str,
        axes: Sequence[int],
        keepdims: bool = False,
        neutral: bool = False,
        result_type: Attribute | None = None,
    ) -> None: ...

class ScatterElementsOp(_ScatterElementsOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        indices: SSAValue | Operation,
        updates: SSAValue | Operation,
        axis: int = 0,
        kind: str = "none",
        result_type: Attribute | None = None,
    ) -> None: ...

class ScatterNdOp(_ScatterNdOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        updates: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        kind: str = "none",
        result_type: Attribute | None = None,
    ) -> None: ...

class SearchsortedOp(_SearchsortedOp):
    def __init__(
        self,
        sorted: SSAValue | Operation,
        values: SSAValue | Operation,
        right: bool = False,
        result_type: Attribute | None = None,
    ) -> None: ...

class SegmentReduceOp(_SegmentReduceOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        offsets: SSAValue | Operation,
        kind: str = "sum",
        result_type: Attribute | None = None,
    ) -> None: ...

class ConcatOp(_ConcatOp):
    def __init__(
        self,
        inputs: Sequence[SSAValue | Operation],
        axis: int,
        result_type: Attribute | None = None,
    ) -> None: ...

class BroadcastToOp(_BroadcastToOp):
    def __init__(
        self, x: SSAValue | Operation, shape: Sequence[int], result_type: Attribute | None = None
    ) -> None: ...

class LogSoftmaxOp(_LogSoftmaxOp):
    def __init__(
        self, x: SSAValue | Operation, axis: int = -1, result_type: Attribute | None = None
    ) -> None: ...

class SoftmaxOp(_SoftmaxOp):
    def __init__(
        self, x: SSAValue | Operation, axis: int = -1, result_type: Attribute | None = None
    ) -> None: ...

class SortOp(_SortOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        axis: int = -1,
        descending: bool = False,
        result_type: Attribute | None = None,
    ) -> None: ...

class TopKOp(_TopKOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        k: int,
        axis: int = -1,
        largest: bool = True,
        result_type: Attribute | None = None,
    ) -> None: ...

class DegreeOp(_DegreeOp):
    def __init__(
        self,
        a: SSAValue | Operation,
        self_loops: bool = False,
        power: float = 1.0,
        values: SSAValue | Operation | None = None,
        result_type: Attribute | None = None,
    ) -> None: ...

class MissingSelfLoopsOp(_MissingSelfLoopsOp):
    def __init__(
        self,
        a: SSAValue | Operation,
        values: SSAValue | Operation | None = None,
        halo: bool = False,
        result_type: Attribute | None = None,
    ) -> None: ...

class NormalizeOp(_NormalizeOp):
    def __init__(
        self,
        a: SSAValue | Operation,
        kind: str = "symmetric",
        self_loops: bool = True,
        result_type: Attribute | None = None,
    ) -> None: ...

class FmaOp(_FmaOp):
    def __init__(
        self,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        c: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None: ...

class WhereOp(_WhereOp):
    def __init__(
        self,
        condition: SSAValue | Operation,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        result_type: Attribute | None = None,
    ) -> None: ...

class TreeEnsembleOp(_TreeEnsembleOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        threshold: SSAValue | Operation,
        feature: SSAValue | Operation,
        next: SSAValue | Operation,
        leaf: SSAValue | Operation,
        values: SSAValue | Operation,
        root: SSAValue | Operation,
        depth: SSAValue | Operation,
        kind: str = "sum",
        result_type: Attribute | None = None,
    ) -> None: ...

class UniqueOp(_UniqueOp):
    def __init__(
        self, x: SSAValue | Operation, sorted: bool = True, result_type: Attribute | None = None
    ) -> None: ...
