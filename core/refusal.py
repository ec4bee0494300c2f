"""What a pass raises when it cannot take an operation: the error knows which one."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException, VerifyException

from .errors import explain
from .provenance import origin


class OperationRefused(PassFailedException):
    """What a pass says of the operation `op`."""

    def __init__(self, message: str, op: Operation) -> None:
        super().__init__(message)
        self.op = op


class InvalidProgram(VerifyException):
    """A program breaks a rule that only shows when all of it is looked at, such as recursion.

    No pass is to blame for it, unlike for an operation that does not verify.
    """


def refused(
    op: Operation,
    fact: str,
    *,
    subject: str | None = None,
    expected: object = None,
    got: object = None,
    hint: str | None = None,
) -> OperationRefused:
    """The error that a pass cannot take an operation, worded as `explain` does.

    Args:
        op: the operation; its origin is told.
        fact: what is wrong.
        subject: what the message begins with; by default the name of the operation.
        expected: what was expected.
        got: what there is.
        hint: what may help.
    """
    words = explain(
        subject or op.name, fact, expected=expected, got=got, origin=origin(op), hint=hint
    )
    return OperationRefused(words, op)


def operation_of(error: BaseException | None) -> Operation | None:
    """The operation that an error, or what caused it, is about, if that is known."""
    while error is not None:
        if isinstance(error, OperationRefused):
            return error.op
        error = error.__cause__
    return None
