"""All operations added to xDSL's dialects, under the one name by which others import them.

from stepwell.dialects.upstream import ops as upstream

chosen = upstream.SelectOp(mask, a, b)
"""

from __future__ import annotations

from .element_types import FLOAT_TYPES, with_element_type
from .ops_arith import (
    CmpfOp,
    CmpiOp,
    ExtFOp,
    ExtSIOp,
    ExtUIOp,
    FPToSIOp,
    FPToUIOp,
    IndexCastOp,
    IndexCastUIOp,
    RemfOp,
    SelectOp,
    SIToFPOp,
    TruncFOp,
    TruncIOp,
    UIToFPOp,
)
from .ops_llvm import (
    ExtractElementOp,
    FCmpOp,
    GEPOp,
    LlvmCastOp,
    LlvmFPToSIOp,
    LlvmFPToUIOp,
    LlvmSelectOp,
    LlvmUIToFPOp,
    PoisonOp,
)
from .ops_llvm_intrinsics import (
    INTRINSICS,
    FloatIntrinsicOp,
    FloatReduceOp,
    IntIntrinsicOp,
    IntReduceOp,
    MaskedGatherOp,
    MaskedLoadOp,
    MaskedStoreOp,
)
from .ops_math import AT_MOST_64
from .ops_memref import PrefetchOp, ReinterpretCastOp, prefetch_properties
from .ops_scf import WhileOp
from .ops_vector import BroadcastOp, GatherOp, ReductionOp

__all__ = [
    "AT_MOST_64",
    "FLOAT_TYPES",
    "INTRINSICS",
    "BroadcastOp",
    "CmpfOp",
    "CmpiOp",
    "ExtFOp",
    "ExtSIOp",
    "ExtUIOp",
    "ExtractElementOp",
    "FCmpOp",
    "FPToSIOp",
    "FPToUIOp",
    "FloatIntrinsicOp",
    "FloatReduceOp",
    "GEPOp",
    "GatherOp",
    "IndexCastOp",
    "IndexCastUIOp",
    "IntIntrinsicOp",
    "IntReduceOp",
    "LlvmCastOp",
    "LlvmFPToSIOp",
    "LlvmFPToUIOp",
    "LlvmSelectOp",
    "LlvmUIToFPOp",
    "MaskedGatherOp",
    "MaskedLoadOp",
    "MaskedStoreOp",
    "PoisonOp",
    "PrefetchOp",
    "ReductionOp",
    "ReinterpretCastOp",
    "RemfOp",
    "SIToFPOp",
    "SelectOp",
    "TruncFOp",
    "TruncIOp",
    "UIToFPOp",
    "WhileOp",
    "prefetch_properties",
    "with_element_type",
]
