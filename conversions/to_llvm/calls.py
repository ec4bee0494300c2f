"""Calls of functions of the LLVM dialect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, SSAValue

from .types import NO_FLAGS, numbers_attr


def plain_call(
    callee: SymbolRefAttr | None, operands: Sequence[SSAValue], result_type: Attribute | None
) -> llvm.CallOp:
    """`llvm.call` of a function, by default its first operand.

    The constructor of the operation would take longer than all of its lowering.
    """
    return llvm.CallOp.create(
        operands=operands,
        result_types=[] if result_type is None else [result_type],
        properties={
            **({} if callee is None else {"callee": callee}),
            "fastmathFlags": NO_FLAGS,
            "CConv": llvm.CallingConventionAttr("ccc"),
            "TailCallKind": llvm.TailCallKindAttr(llvm.TailCallKind.NONE),
            "op_bundle_sizes": numbers_attr(),
            "operandSegmentSizes": numbers_attr(len(operands), 0),
        },
    )
