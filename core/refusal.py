"""The error of a pass that refuses an operation: it knows which one."""

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
    """A program breaks a rule about the whole of it, such as that against recursion.

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
    """The error of a pass that refuses an operation, worded by `explain`.

    Args:
        op: the operation, whose origin is reported.
        fact: what is wrong.
        subject: what the message begins with; by default the name of the operation.
        expected: what was expected.
        got: what was found.
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
