"""Results of functions that are known from an earlier run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.interpreter import PythonValues
from xdsl.ir import Operation
from xdsl.parser import Parser

from stepwell.backends.reference import writes
from stepwell.backends.reference.listeners import CallListener
from stepwell.backends.reference.machine import ReferenceMachine, call
from stepwell.backends.reference.remembered import Remembered
from stepwell.backends.reference.replayed import Replayed
from stepwell.core.errors import UnsupportedError
from stepwell.core.registry import make_context

TEXT = """
loop.kernel @twice(%n: index, %x: memref<?xf32>) -> (%y: memref<?xf32>) {
  loop.for "i" %i to %n {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<?xf32>, f32
    %w = arith.addf %v, %v : f32
    loop.store %w, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}
func.func @first(%n: index, %x: memref<?xf32>, %y: memref<?xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %a = memref.load %x[%c0] : memref<?xf32>
  func.return %a : f32
}
func.func @both(%n: index, %x: memref<?xf32>, %y: memref<?xf32>) {
  rt.call @twice(%n, %x, %y) : index, memref<?xf32>, memref<?xf32>
  func.return
}
"""


def parsed(text: str = TEXT) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


class Runs:
    """Runs functions with one memory of results, and counts the runs of each."""

    def __init__(self) -> None:
        self.remembered = Remembered()
        self.ran: list[str] = []

    def __call__(
        self, module: ModuleOp, name: str, x: Sequence[float], before: Sequence[float] = ()
    ) -> list[float]:
        counted = self.ran

        class Counting(ReferenceMachine):
            def _call(self, callee: Operation, inputs: PythonValues) -> PythonValues:
                counted.append(str(callee.properties["sym_name"]))
                return super()._call(callee, inputs)

        machine = Counting(module, remembered=self.remembered)
        y = np.array(before or [np.nan] * len(x), np.float32)
        call(machine, machine.get_op_for_symbol(name), [len(x), np.array(x, np.float32), y])
        return y.tolist()


def test_equal_functions_with_equal_arguments_run_once() -> None:
    run, x = Runs(), [1.0, 2.0]
    for _ in range(2):
        assert run(parsed(), "twice", x) == [2.0, 4.0]
        run.remembered.begin()
    assert run.ran == ['"twice"']
    assert run(parsed(), "twice", [1.0, 3.0]) == [2.0, 6.0]
    assert run(parsed(), "twice", [1.0]) == [2.0]
    assert run.ran == ['"twice"'] * 3


def test_elements_that_a_call_does_not_write_stay() -> None:
    run = Runs()
    assert run(parsed(), "twice", [1.0, 2.0], [7.0, 8.0, 9.0]) == [2.0, 4.0, 9.0]
    assert run(parsed(), "twice", [1.0, 2.0], [7.0, 8.0, 5.0]) == [2.0, 4.0, 5.0]


def test_a_function_that_changes_in_place_runs_again() -> None:
    run, x, module = Runs(), [1.0, 3.0], parsed()
    assert run(module, "twice", x) == [2.0, 6.0]
    (add,) = (op for op in module.walk() if isinstance(op, arith.AddfOp))
    product = arith.MulfOp(add.lhs, add.rhs)
    add.parent_block().insert_op_before(product, add)  # type: ignore[union-attr]
    add.result.replace_all_uses_with(product.result)
    add.detach()
    run.remembered.begin()
    assert run(module, "twice", x) == [1.0, 9.0]
    assert run(parsed(), "twice", x) == [2.0, 6.0]


def test_a_function_that_calls_another_one_runs_each_time() -> None:
    """The other one may have changed, or may be a new one of the same name."""
    run, other = Runs(), parsed(TEXT.replace("addf", "mulf"))
    assert run(parsed(), "both", [3.0]) == [6.0]
    assert run(other, "both", [3.0]) == [9.0]
    assert run.ran == ['"both"', '"twice"'] * 2


def test_a_function_with_a_result_runs_each_time() -> None:
    run = Runs()
    for _ in range(2):
        run(parsed(), "first", [3.0])
    assert run.ran == ['"first"'] * 2


def test_what_watches_operations_sees_all_of_them() -> None:
    """Nothing is remembered for it."""
    seen: list[Any] = []

    class Watching(CallListener):
        def did_interpret_op(self, op: Operation, results: PythonValues) -> None:
            seen.append(op)

    remembered, x = Remembered(), np.ones(3, np.float32)
    for listeners in ((), (Watching(),)):
        machine = ReferenceMachine(parsed(), remembered=remembered)
        machine.listen(listeners)
        call(machine, machine.get_op_for_symbol("twice"), [3, x, np.zeros_like(x)])
    assert len(seen) == 3 * 3 + 1


def test_calls_of_another_run_are_replayed() -> None:
    """All but one; each by its name and number, in each run anew."""
    known = {
        ("twice", 1): [np.array([7, 8], np.float32)],
        ("twice", 2): [np.array([5, 6], np.float32)],
        ("twice", 3): [np.zeros(1, np.float32)],
    }
    results: list[list[float]] = []
    for replayed in (Replayed(known, None), Replayed(known, ("twice", 1))):
        for _ in range(2):
            replayed.begin()
            for _ in range(3):
                machine, y = (
                    ReferenceMachine(parsed(), remembered=replayed),
                    np.zeros(2, np.float32),
                )
                arguments = [2, np.ones(2, np.float32), y]
                call(machine, machine.get_op_for_symbol("twice"), arguments)
                results.append(y.tolist())
    # The third one had other memory.
    assert results == 2 * [[7, 8], [5, 6], [2, 2]] + 2 * [[2, 2], [5, 6], [2, 2]]


def test_replayed_calls_are_not_watched_and_long_ones_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = {("twice", 1): [np.array([7, 8], np.float32)]}
    for except_for, most in ((None, 0), (("twice", 1), 10), (("twice", 1), 3)):
        monkeypatch.setattr(writes, "MOST", most)
        machine = ReferenceMachine(parsed(), remembered=Replayed(known, except_for))
        watching = writes.Writes("twice", 1)
        machine.listen([watching])
        function, y = machine.get_op_for_symbol("twice"), np.zeros(2, np.float32)
        if most == 3:
            with pytest.raises(UnsupportedError, match="@twice: the call takes more than 3 oper"):
                call(machine, function, [2, y + 1, y])
            continue
        call(machine, function, [2, y + 1, y])
        assert (watching.numbers(-1, 2, 4) >= 0).all() == (except_for is not None)


def test_changed_bytes_are_found_by_words() -> None:
    for size in (0, 1, 7, 8, 9, 24, 31):
        before = np.zeros(size, np.uint8)
        for places in ([], [0], [size - 1], [*range(size)], [0, size // 2]):
            now = before.copy()
            now[[place for place in places if size]] = 1
            expected = np.flatnonzero(now != before)
            np.testing.assert_array_equal(writes._changed(now, before), expected)
