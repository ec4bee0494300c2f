"""Checks that end a call with an error number."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I1, IndexType, IntegerAttr, MemRefType, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern
from xdsl.traits import ConstantLike, HasCanonicalizationPatternsTrait
from xdsl.utils.exceptions import VerifyException

from ...core.ir.definitions import irdl_op_definition
from ...core.ir.typed import memref_type
from ...core.pipelines.exactness import EXACT, states
from .abi import DETAIL_WORDS
from .attrs import ContextType
from .buffers import verify_index_buffer
from .failures import FailingOp
from .statuses import CallFailure


class _CheckCanonicalization(HasCanonicalizationPatternsTrait):
    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (DropTrueCheck(),)


@irdl_op_definition
class CheckOp(FailingOp):
    """Ends the call where `condition` is false. `{0}`, `{1}`, `{2}` in the message are details.

    rt.check %ctx, %ok, "x: sizes of dimension 0 differ, expected {0}, got {1}"(%m, %n)

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<i64>, %y: memref<i64>) -> i32
        attributes {graph.signature = (tensor<i64>) -> tensor<i64>} {
      %limit = arith.constant 2 : index
      %v = memref.load %x[] : memref<i64>
      %got = arith.index_cast %v : i64 to index
      %below = arith.cmpi slt, %got, %limit : index
      rt.check %ctx, %below, "x: too large, expected below {0}, got {1}"(%limit, %got)
      memref.store %v, %y[] : memref<i64>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    ```
    """

    name = "rt.check"

    context = operand_def(ContextType)
    condition = operand_def(I1)
    details = var_operand_def(IndexType)
    message = prop_def(StringAttr)

    assembly_format = "$context `,` $condition `,` $message (`(` $details^ `)`)? attr-dict"

    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(_CheckCanonicalization())

    def __init__(
        self,
        context: SSAValue | Operation,
        condition: SSAValue | Operation,
        message: str,
        details: Sequence[SSAValue | Operation] = (),
    ):
        super().__init__(
            operands=[context, condition, details],
            properties={"message": StringAttr(message)},
        )

    def verify_(self) -> None:
        if len(self.details) > DETAIL_WORDS:
            raise VerifyException(
                f"{self.name}: too many details, expected at most {DETAIL_WORDS}, "
                f"got {len(self.details)}"
            )

    @property
    def fault(self) -> CallFailure:
        return CallFailure("check", self.message.data, len(self.details))


@irdl_op_definition
class CheckCsrOp(FailingOp):
    """Ends the call where a CSR matrix is malformed, so that no loop over it leaves a buffer.

    rt.check_csr %ctx, %indptr, %indices, %columns "graph" : memref<?xi32>, memref<?xi32>

    Row pointers start at 0, never decrease and end at the number of entries; column indices
    lie in [0, columns). Indices need not be sorted.

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %indptr: memref<4xi32>, %indices: memref<6xi32>,
        %entries: memref<i32>) -> i32
        attributes {graph.signature = (tensor<4xi32>, tensor<6xi32>) -> tensor<i32>} {
      %columns = arith.constant 3 : index
      rt.check_csr %ctx, %indptr, %indices, %columns "graph" : memref<4xi32>, memref<6xi32>
      %last = arith.constant 3 : index
      %n = memref.load %indptr[%last] : memref<4xi32>
      memref.store %n, %entries[] : memref<i32>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    ```
    """

    name = "rt.check_csr"

    context = operand_def(ContextType)
    indptr = operand_def(MemRefType)
    indices = operand_def(MemRefType)
    columns = operand_def(IndexType)
    subject = prop_def(StringAttr)

    assembly_format = (
        "$context `,` $indptr `,` $indices `,` $columns $subject attr-dict `:` "
        "type($indptr) `,` type($indices)"
    )

    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self,
        context: SSAValue | Operation,
        indptr: SSAValue | Operation,
        indices: SSAValue | Operation,
        columns: SSAValue | Operation,
        subject: str,
    ):
        super().__init__(
            operands=[context, indptr, indices, columns],
            properties={"subject": StringAttr(subject)},
        )

    def verify_(self) -> None:
        for operand in (self.indptr, self.indices):
            buffer = memref_type(operand)
            verify_index_buffer(self, buffer)
            if buffer.get_num_dims() != 1:
                raise VerifyException(f"{self.name}: wrong rank, expected 1, got {buffer}")

    @property
    def fault(self) -> CallFailure:
        return CallFailure("csr", self.subject.data)


@irdl_op_definition
class CheckIndexOp(FailingOp):
    """Ends the call where an index i does not satisfy -extent <= i < extent.

    With `from_front`, an index does not count from the back: 0 <= i < extent.

    rt.check_index %ctx, %indices, %extent "ids" : memref<?x?xi64>

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %ids: memref<4xi64>, %first: memref<i64>) -> i32
        attributes {graph.signature = (tensor<4xi64>) -> tensor<i64>} {
      %extent = arith.constant 3 : index
      rt.check_index %ctx, %ids, %extent "ids" : memref<4xi64>
      %zero = arith.constant 0 : index
      %v = memref.load %ids[%zero] : memref<4xi64>
      memref.store %v, %first[] : memref<i64>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    ```
    """

    name = "rt.check_index"

    context = operand_def(ContextType)
    indices = operand_def(MemRefType)
    extent = operand_def(IndexType)
    subject = prop_def(StringAttr)
    from_front = opt_prop_def(UnitAttr)

    assembly_format = (
        "$context `,` $indices `,` $extent $subject (`from_front` $from_front^)? attr-dict `:` "
        "type($indices)"
    )

    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self,
        context: SSAValue | Operation,
        indices: SSAValue | Operation,
        extent: SSAValue | Operation,
        subject: str,
        from_front: bool = False,
    ):
        properties = {
            "subject": StringAttr(subject),
            "from_front": UnitAttr() if from_front else None,
        }
        super().__init__(operands=[context, indices, extent], properties=properties)

    def verify_(self) -> None:
        verify_index_buffer(self, memref_type(self.indices))

    @property
    def fault(self) -> CallFailure:
        return CallFailure("place" if self.from_front else "index", self.subject.data)


@irdl_op_definition
class CheckOffsetsOp(FailingOp):
    """Ends the call where an offset is not in [0, extent], or is above the next one.

    rt.check_offsets %ctx, %offsets, %extent "ids" : memref<?xi64>

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %offsets: memref<4xi64>, %first: memref<i64>) -> i32
        attributes {graph.signature = (tensor<4xi64>) -> tensor<i64>} {
      %extent = arith.constant 3 : index
      rt.check_offsets %ctx, %offsets, %extent "parts" : memref<4xi64>
      %zero = arith.constant 0 : index
      %v = memref.load %offsets[%zero] : memref<4xi64>
      memref.store %v, %first[] : memref<i64>
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    ```
    """

    name = "rt.check_offsets"

    context = operand_def(ContextType)
    offsets = operand_def(MemRefType)
    extent = operand_def(IndexType)
    subject = prop_def(StringAttr)

    assembly_format = "$context `,` $offsets `,` $extent $subject attr-dict `:` type($offsets)"

    irdl_options = (ParsePropInAttrDict(),)

    def __init__(
        self,
        context: SSAValue | Operation,
        offsets: SSAValue | Operation,
        extent: SSAValue | Operation,
        subject: str,
    ):
        super().__init__(
            operands=[context, offsets, extent], properties={"subject": StringAttr(subject)}
        )

    def verify_(self) -> None:
        buffer = memref_type(self.offsets)
        verify_index_buffer(self, buffer)
        if buffer.get_num_dims() != 1:
            raise VerifyException(f"{self.name}: wrong rank, expected 1, got {buffer}")

    @property
    def fault(self) -> CallFailure:
        return CallFailure("offsets", self.subject.data)


@states(EXACT, "check(true) ==")
class DropTrueCheck(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CheckOp, rewriter: PatternRewriter) -> None:
        value = ConstantLike.get_constant_value(op.condition)
        if not isinstance(value, IntegerAttr) or not value.value.data:
            return
        rewriter.erase(op)
