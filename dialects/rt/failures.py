"""The ways in which a call can fail, and the operations that report them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation

from ...core.indices import explained, explained_index, explained_offset
from ...core.walks import operations_in


@dataclass(frozen=True)
class Failure:
    """A way in which a call can fail, as reported to its caller.

    `subject` is the registered function, the message of a check, or what was checked. So many
    `details` stand in a message as `{0}`, `{1}`, `{2}`.
    """

    kind: str
    subject: str
    details: int = 0

    KINDS: ClassVar = ("function", "check", "csr", "index", "place", "offsets")

    def explain(self, details: Sequence[int]) -> str:
        """What went wrong; `details` are the words left in the context."""
        match self.kind:
            case "function":
                return f'registered function "{self.subject}" failed'
            case "check":
                text = self.subject
                for number in range(self.details):
                    text = text.replace(f"{{{number}}}", str(details[number]))
                return text
            case "csr":
                return f"{self.subject}: {explained(*details)}"
            case "index":
                return f"{self.subject}: {explained_index(*details)}"
            case "place":
                return f"{self.subject}: {explained_index(*details, from_front=True)}"
            case _:
                return f"{self.subject}: {explained_offset(*details)}"


class FailingOp(IRDLOperation, ABC):
    """An operation of the public function that can end the call with an error number."""

    @property
    @abstractmethod
    def failure(self) -> Failure:
        """What its failure means to the caller."""


def failing_operations(function: Operation) -> list[FailingOp]:
    """The operations that can end a call of `function`; number n is entry n - 1."""
    return [op for op in operations_in(function) if isinstance(op, FailingOp)]
