"""The operations that report that a call fails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from ...core.ir.definitions import irdl_op_definition
from ...core.ir.walks import operations_in
from .abi import ITERATION_WORDS
from .attrs import ContextType
from .statuses import CallFailure


@irdl_op_definition
class IterationOp(IRDLOperation):
    """The context for an iteration: what fails with it reports the number of that and the loop.

    %inner = rt.iteration %ctx, %i "graph.loop"

    In a program:

    ```mlir
    func.func @main(%ctx: !rt.context, %x: memref<4xi64>, %y: memref<4xi64>) -> i32
        attributes {graph.signature = (tensor<4xi64>) -> tensor<4xi64>} {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %four = arith.constant 4 : index
      %least = arith.constant 1 : i64
      scf.for %i = %zero to %four step %one {
        %inner = rt.iteration %ctx, %i "graph.loop"
        %v = memref.load %x[%i] : memref<4xi64>
        %positive = arith.cmpi sge, %v, %least : i64
        rt.check %inner, %positive, "x: not positive"
        memref.store %v, %y[%i] : memref<4xi64>
      }
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }
    ```
    """

    name = "rt.iteration"

    context = operand_def(ContextType)
    number = operand_def(IndexType)
    subject = prop_def(StringAttr)
    result = result_def(ContextType)

    assembly_format = "$context `,` $number $subject attr-dict"

    irdl_options = (ParsePropInAttrDict(),)

    traits = traits_def(Pure())

    def __init__(
        self, context: SSAValue | Operation, number: SSAValue | Operation, subject: str
    ) -> None:
        super().__init__(
            operands=[context, number],
            result_types=[ContextType()],
            properties={"subject": StringAttr(subject)},
        )


class FailingOp(IRDLOperation, ABC):
    """An operation of the public function that can end the call with an error number.

    Its first operand is the context.
    """

    @property
    def failure(self) -> CallFailure:
        """What its failure means to the caller."""
        loops = tuple(op.subject.data for op in iterations_around(self))
        return replace(self.fault, loops=loops)

    @property
    @abstractmethod
    def fault(self) -> CallFailure:
        """The same without the loops around it."""


def iterations_around(op: FailingOp) -> list[IterationOp]:
    """The iterations that the context of an operation has, the innermost first, as many as fit."""
    found: list[IterationOp] = []
    context = op.operands[0]
    while isinstance(context.owner, IterationOp):
        found.append(context.owner)
        context = context.owner.context
    return found[:ITERATION_WORDS]


def failing_operations(function: Operation) -> list[FailingOp]:
    """The operations that can end a call of `function`; number n is entry n - 1."""
    return [op for op in operations_in(function) if isinstance(op, FailingOp)]
