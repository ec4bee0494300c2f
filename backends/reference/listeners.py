"""Which of the operations that run a listener is notified of; of all, if it is none of these."""

from __future__ import annotations

from xdsl.interpreter import Interpreter, PythonValues


class CallingOperations(Interpreter.Listener):
    """Is notified of the operations that call functions and kernels, and of no others."""

    def begins(self) -> None:
        """The program begins, or begins again, with more memory."""


class CallListener(Interpreter.Listener):
    """Is also notified of calls of functions and kernels."""

    def will_call(self, name: str, args: PythonValues) -> None:
        """A call begins."""

    def did_call(self, name: str) -> None:
        """The call has ended."""


class JointListener(Interpreter.Listener):
    """Is notified once of an operation that runs in several iterations together.

    It is notified of the end alone, without results: these are arrays, of all iterations.
    """
