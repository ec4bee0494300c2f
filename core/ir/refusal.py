"""Errors that hold the operation that a pass or a verifier refuses."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException, VerifyException

from ..errors import explain
from .provenance import origin


class OperationRefused(PassFailedException):
    """A pass refuses the operation `op`."""

    def __init__(self, message: str, op: Operation) -> None:
        super().__init__(message)
        self.op = op


class FaultyOperator(OperationRefused):
    """The operator `op`, which users wrote, is at fault: the message names it, and no pass."""


class InvalidOperation(VerifyException):
    """The operation `op` does not verify; the verifier of one around it may have found that."""

    def __init__(self, message: str, op: Operation) -> None:
        super().__init__(message)
        self.op = op


class InvalidProgram(VerifyException):
    """A program breaks a rule about whole programs, such as that against recursion.

    Unlike an operation that does not verify, this is not the fault of a pass.
    """


def refused(
    op: Operation,
    fact: str,
    *,
    kind: type[OperationRefused] = OperationRefused,
    subject: str | None = None,
    expected: object = None,
    got: object = None,
    hint: str | None = None,
) -> OperationRefused:
    """The error of a pass that refuses an operation, worded by `explain`.

    Args:
        op: the operation, whose origin is reported.
        fact: the reason.
        kind: the class of the error.
        subject: the beginning of the message; by default the name of the operation.
        expected: the expected value.
        got: the actual value.
        hint: a way out.
    """
    words = explain(
        subject or op.name, fact, expected=expected, got=got, origin=origin(op), hint=hint
    )
    return kind(words, op)


def operation_of(error: BaseException | None) -> Operation | None:
    """The operation that an error, or its cause, is about, if known."""
    while error is not None:
        if isinstance(error, OperationRefused | InvalidOperation):
            return error.op
        error = error.__cause__
    return None
