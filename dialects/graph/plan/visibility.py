"""Whether the rounding of a value shows: whether it comes to an operator that jumps.

`Visibility` follows uses; `StoredRounding` says by it which values a kernel rounds to 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.ir import Block, Operation, SSAValue, Use

from ....core.ir.walks import operations_in
from ....core.pipelines.exactness import Rounding, rounding_of
from ..attrs import is_float, is_half
from ..interfaces import GraphOp, element_type
from ..traits import Discontinuous


def jumps(op: GraphOp, operand: int) -> bool:
    """Whether a result may jump where the operand of this number moves by a rounding."""
    if not is_float(element_type(op.operands[operand])):
        return False
    stated = op.get_trait(Discontinuous)
    if stated is None:
        return not all(is_float(element_type(result)) for result in op.results)
    return stated.operands is None or operand in stated.operands


class Visibility:
    """Which values of a module have a rounding that shows.

    That of a value shows if a path of uses leads from it to an operand with which a result jumps
    (`jumps`): there another rounding is another truth value or another integer, and
    no longer an error of the size of a rounding. A path goes through every operator, through
    functions that are called and back to their callers. An operation that is not known jumps; what
    the program returns does not.

    Each value is answered once, so that all answers together take time linear in the module.
    They stay true while operators are replaced by others of the same operands, since an operand
    shows wherever the result does. Merging equal values needs a new object.
    """

    def __init__(self) -> None:
        self._shows: dict[SSAValue, bool] = {}
        self._links: dict[Operation, _Links] = {}

    def shows(self, value: SSAValue) -> bool:
        """Whether another rounding of a value would show."""
        waiting, begun = [value], set[SSAValue]()
        while waiting:
            current = waiting[-1]
            if current not in self._shows:
                after = self._after(current)
                if after is not None and current not in begun:
                    begun.add(current)
                    new = [v for v in after if v not in self._shows and v not in begun]
                    if new:
                        waiting += new
                        continue
                self._shows[current] = after is None or any(self._shows.get(v) for v in after)
            waiting.pop()
        return self._shows[value]

    def _after(self, value: SSAValue) -> list[SSAValue] | None:
        """The values that a value goes into; None where one of its uses jumps."""
        found: list[SSAValue] = []
        for use in value.uses:
            following = self._following(use)
            if following is None:
                return None
            found += following
        return found

    def _following(self, use: Use) -> list[SSAValue] | None:
        op = use.operation
        if isinstance(op, GraphOp):
            return None if jumps(op, use.index) else list(op.results)
        if isinstance(op, func.ReturnOp):
            return [call.results[use.index] for call in self._calls_of(op)]
        if isinstance(op, func.CallOp):
            entry = self._entry(op)
            return None if entry is None else [entry.args[use.index]]
        return None

    def _calls_of(self, op: func.ReturnOp) -> list[func.CallOp]:
        """The calls of the function that an operation returns from."""
        function = op.parent_op()
        if not isinstance(function, func.FuncOp):
            return []
        return self._links_of(op).calls.get(function.sym_name.data, [])

    def _entry(self, call: func.CallOp) -> Block | None:
        """The first block of the function that is called; None if it is not in the module."""
        function = self._links_of(call).functions.get(call.callee.string_value())
        return None if function is None else function.body.first_block

    def _links_of(self, op: Operation) -> _Links:
        """The functions and calls of the module that an operation is in."""
        root = op
        while (parent := root.parent_op()) is not None:
            root = parent
        if root not in self._links:
            self._links[root] = _Links.of(root)
        return self._links[root]


class StoredRounding:
    """Which values of f16 and bf16 are rounded where a kernel computes them and stores none.

    A kernel computes in f32, and need not round what it only passes from operator to operator.
    It does so where the rounding shows, and everywhere where roundings are kept.
    """

    def __init__(self, module: Operation) -> None:
        self._rounding, self._visibility = rounding_of(module), Visibility()

    def needs(self, value: SSAValue) -> bool:
        """Whether a value has 16 bits, and is rounded to them."""
        if self._rounding == Rounding.FREE or not is_half(element_type(value)):
            return False
        return self._rounding == Rounding.KEPT or self._visibility.shows(value)


@dataclass(frozen=True)
class _Links:
    """The functions of a module by their names, and the calls by what they call."""

    functions: dict[str, func.FuncOp]
    calls: dict[str, list[func.CallOp]]

    @staticmethod
    def of(module: Operation) -> _Links:
        links = _Links({}, {})
        # Operations derive from an ABC, for which isinstance is slow.
        for op in operations_in(module):
            if type(op) is func.FuncOp:
                links.functions[op.sym_name.data] = op
            elif type(op) is func.CallOp:
                links.calls.setdefault(op.callee.string_value(), []).append(op)
        return links
