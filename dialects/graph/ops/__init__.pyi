"""All operators of the `graph` dialect; `make public` writes this file."""

from collections.abc import Sequence
from types import ModuleType

from xdsl.ir import Attribute, Operation, SSAValue

from .control.call import CallDpsOp as CallDpsOp
from .control.call import CallLikeOp as CallLikeOp
from .control.call import CallPackedOp as CallPackedOp
from .control.check import AliasOp as AliasOp
from .control.check import CheckIndicesOp as CheckIndicesOp
from .control.check import CheckOp as _CheckOp
from .control.conditional import IfOp as IfOp
from .control.loop import LoopOp as LoopOp
from .control.regions import ControlFlowOp as ControlFlowOp
from .control.regions import YieldOp as YieldOp
from .control.regions import yielded as yielded
from .elementwise.activations import ActivationOp as ActivationOp
from .elementwise.activations import CeluOp as _CeluOp
from .elementwise.activations import DropoutOp as _DropoutOp
from .elementwise.activations import EluOp as _EluOp
from .elementwise.activations import GeluOp as _GeluOp
from .elementwise.activations import HardSigmoidOp as _HardSigmoidOp
from .elementwise.activations import HardSwishOp as _HardSwishOp
from .elementwise.activations import LeakyReluOp as _LeakyReluOp
from .elementwise.activations import LogSigmoidOp as _LogSigmoidOp
from .elementwise.activations import MishOp as _MishOp
from .elementwise.activations import PreluOp as _PreluOp
from .elementwise.activations import SeluOp as _SeluOp
from .elementwise.activations import SiluOp as _SiluOp
from .elementwise.activations import SoftplusOp as _SoftplusOp
from .elementwise.activations import SoftsignOp as _SoftsignOp
from .elementwise.bases import ElementwiseOp as ElementwiseOp
from .elementwise.bases import FloatUnaryOp as FloatUnaryOp
from .elementwise.bases import UnaryOp as UnaryOp
from .elementwise.binary import BinaryOp as BinaryOp
from .elementwise.binary import ComparisonOp as ComparisonOp
from .elementwise.cast import BitcastOp as BitcastOp
from .elementwise.cast import CastOp as CastOp
from .elementwise.clip import ClipOp as ClipOp
from .elementwise.functions import AbsOp as AbsOp
from .elementwise.functions import AcoshOp as AcoshOp
from .elementwise.functions import AcosOp as AcosOp
from .elementwise.functions import AddOp as AddOp
from .elementwise.functions import AsinhOp as AsinhOp
from .elementwise.functions import AsinOp as AsinOp
from .elementwise.functions import AtanhOp as AtanhOp
from .elementwise.functions import AtanOp as AtanOp
from .elementwise.functions import BitwiseAndOp as BitwiseAndOp
from .elementwise.functions import BitwiseNotOp as BitwiseNotOp
from .elementwise.functions import BitwiseOrOp as BitwiseOrOp
from .elementwise.functions import BitwiseXorOp as BitwiseXorOp
from .elementwise.functions import CeilOp as CeilOp
from .elementwise.functions import CoshOp as CoshOp
from .elementwise.functions import CosOp as CosOp
from .elementwise.functions import DivOp as DivOp
from .elementwise.functions import EqualOp as EqualOp
from .elementwise.functions import ErfOp as ErfOp
from .elementwise.functions import Expm1Op as Expm1Op
from .elementwise.functions import ExpOp as ExpOp
from .elementwise.functions import FloorOp as FloorOp
from .elementwise.functions import FmodOp as FmodOp
from .elementwise.functions import GreaterEqualOp as GreaterEqualOp
from .elementwise.functions import GreaterOp as GreaterOp
from .elementwise.functions import LessEqualOp as LessEqualOp
from .elementwise.functions import LessOp as LessOp
from .elementwise.functions import Log1pOp as Log1pOp
from .elementwise.functions import LogicalAndOp as LogicalAndOp
from .elementwise.functions import LogicalNotOp as LogicalNotOp
from .elementwise.functions import LogicalOrOp as LogicalOrOp
from .elementwise.functions import LogicalXorOp as LogicalXorOp
from .elementwise.functions import LogOp as LogOp
from .elementwise.functions import MaxOp as MaxOp
from .elementwise.functions import MinOp as MinOp
from .elementwise.functions import MulOp as MulOp
from .elementwise.functions import NegOp as NegOp
from .elementwise.functions import PowOp as PowOp
from .elementwise.functions import ReluOp as ReluOp
from .elementwise.functions import RoundOp as RoundOp
from .elementwise.functions import RsqrtOp as RsqrtOp
from .elementwise.functions import ShiftLeftOp as ShiftLeftOp
from .elementwise.functions import ShiftRightOp as ShiftRightOp
from .elementwise.functions import SigmoidOp as SigmoidOp
from .elementwise.functions import SignOp as SignOp
from .elementwise.functions import SinhOp as SinhOp
from .elementwise.functions import SinOp as SinOp
from .elementwise.functions import SmallExpOp as SmallExpOp
from .elementwise.functions import SqrtOp as SqrtOp
from .elementwise.functions import SubOp as SubOp
from .elementwise.functions import TanhOp as TanhOp
from .elementwise.functions import TanOp as TanOp
from .elementwise.quantize import DequantizeOp as DequantizeOp
from .elementwise.quantize import QuantizeOp as QuantizeOp
from .elementwise.quantize import RequantizeOp as RequantizeOp
from .elementwise.quantize import ScaledOp as ScaledOp
from .elementwise.ternary import FmaOp as _FmaOp
from .elementwise.ternary import WhereOp as _WhereOp
from .moves.dynamic import DimOp as _DimOp
from .moves.dynamic import DynamicBroadcastOp as _DynamicBroadcastOp
from .moves.dynamic import DynamicReshapeOp as _DynamicReshapeOp
from .moves.dynamic import DynamicSliceOp as _DynamicSliceOp
from .moves.gather import AlongAxisOp as AlongAxisOp
from .moves.gather import GatherElementsOp as _GatherElementsOp
from .moves.gather import GatherNdOp as _GatherNdOp
from .moves.gather import GatherOp as _GatherOp
from .moves.pad import PadOp as PadOp
from .moves.pad_same import PadSameOp as PadSameOp
from .moves.padding import PaddingOp as PaddingOp
from .moves.scatter import ScatterElementsOp as _ScatterElementsOp
from .moves.scatter import ScatterNdOp as _ScatterNdOp
from .moves.scatter import ScatterOp as ScatterOp
from .moves.select import ConcatOp as _ConcatOp
from .moves.select import SliceOp as SliceOp
from .moves.shape import BroadcastToOp as _BroadcastToOp
from .moves.shape import ReshapeOp as ReshapeOp
from .moves.shape import TransposeOp as TransposeOp
from .orders.boxes import SuppressBoxesOp as _SuppressBoxesOp
from .orders.nonzero import NonzeroOp as NonzeroOp
from .orders.search import SearchsortedOp as _SearchsortedOp
from .orders.sort import OrderingOp as OrderingOp
from .orders.sort import SortOp as _SortOp
from .orders.sort import TopKOp as _TopKOp
from .orders.trees import TreeEnsembleOp as _TreeEnsembleOp
from .orders.unique import UniqueOp as _UniqueOp
from .products.attention import AttentionOp as _AttentionOp
from .products.blocked import BlockedConvOp as BlockedConvOp
from .products.contraction import DenseOp as _DenseOp
from .products.contraction import MatmulOp as _MatmulOp
from .products.det import DetOp as _DetOp
from .products.quantized import QuantizedContractionOp as QuantizedContractionOp
from .products.quantized import QuantizedConvOp as QuantizedConvOp
from .products.quantized import QuantizedDenseOp as _QuantizedDenseOp
from .products.quantized import QuantizedMatmulOp as _QuantizedMatmulOp
from .products.window import ConvOp as ConvOp
from .products.window import PoolOp as PoolOp
from .products.winograd import WinogradConvOp as _WinogradConvOp
from .products.winograd import WinogradFilterOp as _WinogradFilterOp
from .reductions.arg import ArgReduceOp as _ArgReduceOp
from .reductions.cumulative import CumulativeOp as _CumulativeOp
from .reductions.histogram import HistogramOp as _HistogramOp
from .reductions.histogram import OneHotOp as _OneHotOp
from .reductions.normalization import BatchNormOp as BatchNormOp
from .reductions.normalization import BatchNormTrainingOp as _BatchNormTrainingOp
from .reductions.normalization import ChannelStandardizationOp as ChannelStandardizationOp
from .reductions.normalization import GroupNormOp as _GroupNormOp
from .reductions.normalization import InstanceNormOp as _InstanceNormOp
from .reductions.normalization import L2NormalizeOp as _L2NormalizeOp
from .reductions.normalization import LayerNormOp as _LayerNormOp
from .reductions.normalization import NormalizationOp as NormalizationOp
from .reductions.normalization import RmsNormOp as _RmsNormOp
from .reductions.normalization import StandardizationOp as StandardizationOp
from .reductions.reduction import ReduceOp as _ReduceOp
from .reductions.segment import SegmentReduceOp as _SegmentReduceOp
from .reductions.softmax import LogSoftmaxOp as _LogSoftmaxOp
from .reductions.softmax import NormalizedExponentialOp as NormalizedExponentialOp
from .reductions.softmax import SoftmaxOp as _SoftmaxOp
from .sources.arange import ArangeOp as _ArangeOp
from .sources.constant import ConstantOp as ConstantOp
from .sources.constant import splat_of as splat_of
from .sources.random import RandomUniformOp as _RandomUniformOp
from .sparse.aggregate import AggregateOp as AggregateOp
from .sparse.aggregate import AggregationOp as AggregationOp
from .sparse.aggregate import ReduceEntriesOp as _ReduceEntriesOp
from .sparse.aggregate_parts import AggregateDenseOp as _AggregateDenseOp
from .sparse.csr import AssembleOp as _AssembleOp
from .sparse.csr import SortEdgesOp as _SortEdgesOp
from .sparse.csr_loops import SortEdgesWithLoopsOp as _SortEdgesWithLoopsOp
from .sparse.edge import EntriesOp as _EntriesOp
from .sparse.edge import SddmmOp as _SddmmOp
from .sparse.edge_softmax import EdgeSoftmaxOp as _EdgeSoftmaxOp
from .sparse.edge_softmax import OwnSoftmaxOp as _OwnSoftmaxOp
from .sparse.edge_softmax import SoftmaxOverEntriesOp as SoftmaxOverEntriesOp
from .sparse.exchange import CombineOp as _CombineOp
from .sparse.exchange import ExchangeOp as ExchangeOp
from .sparse.pattern import AtEntriesOp as _AtEntriesOp
from .sparse.pattern import SliceRowsOp as _SliceRowsOp
from .sparse.pattern import ToDenseOp as _ToDenseOp
from .sparse.pattern import WithEntriesOp as _WithEntriesOp
from .sparse.products import DegreeOp as _DegreeOp
from .sparse.products import MatrixOp as MatrixOp
from .sparse.products import MissingSelfLoopsOp as _MissingSelfLoopsOp
from .sparse.products import NormalizeOp as _NormalizeOp
from .sparse.products import RowOp as RowOp
from .sparse.products import SpmmOp as SpmmOp

def modules() -> list[ModuleType]: ...
def operators() -> dict[str, type]: ...

class CheckOp(_CheckOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        condition: SSAValue | Operation,
        details: Sequence[SSAValue | Operation] = (),
        message: str = "",
        result_type: Attribute | None = None,
    ) -> None: ...

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

class SearchsortedOp(_SearchsortedOp):
    def __init__(
        self,
        sorted: SSAValue | Operation,
        values: SSAValue | Operation,
        right: bool = False,
        result_type: Attribute | None = None,
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

class DetOp(_DetOp):
    def __init__(self, x: SSAValue | Operation, result_type: Attribute | None = None) -> None: ...

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

class WinogradConvOp(_WinogradConvOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        u: SSAValue | Operation,
        tile: int,
        block: int,
        bias: SSAValue | Operation | None = None,
        result_type: Attribute | None = None,
    ) -> None: ...

class WinogradFilterOp(_WinogradFilterOp):
    def __init__(
        self, w: SSAValue | Operation, tile: int, result_type: Attribute | None = None
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

class SegmentReduceOp(_SegmentReduceOp):
    def __init__(
        self,
        x: SSAValue | Operation,
        offsets: SSAValue | Operation,
        kind: str = "sum",
        result_type: Attribute | None = None,
    ) -> None: ...

class LogSoftmaxOp(_LogSoftmaxOp):
    def __init__(
        self, x: SSAValue | Operation, axis: int = -1, result_type: Attribute | None = None
    ) -> None: ...

class SoftmaxOp(_SoftmaxOp):
    def __init__(
        self, x: SSAValue | Operation, axis: int = -1, result_type: Attribute | None = None
    ) -> None: ...

class ArangeOp(_ArangeOp):
    def __init__(
        self,
        count: SSAValue | Operation,
        at_most: int | None = None,
        result_type: Attribute | None = None,
    ) -> None: ...

class RandomUniformOp(_RandomUniformOp):
    def __init__(
        self, seeds: SSAValue | Operation, result_type: Attribute | None = None
    ) -> None: ...

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
