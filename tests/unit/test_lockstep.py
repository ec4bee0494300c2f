"""Loops whose iterations the interpreter runs together, compared with runs one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.interpreter import Interpreter
from xdsl.ir import Operation
from xdsl.parser import Parser

from stepwell.backends.reference import lockstep, lockstep_core
from stepwell.backends.reference.machine import run_kernel
from stepwell.backends.reference.writes import Writes
from stepwell.core.errors import CompileError
from stepwell.core.registry import make_context
from stepwell.dialects.loop.ops import KernelOp

from ..harness import RNG, floats


class Watching(Interpreter.Listener):
    """Listens to operations, which runs them one by one."""

    def did_interpret_op(self, op: Operation, results: Any) -> None:
        """Do nothing."""


def kernel(text: str) -> KernelOp:
    """The kernel of a module, not verified: some are wrong on purpose."""
    module = Parser(make_context(), text).parse_module()
    (found,) = (op for op in module.ops if isinstance(op, KernelOp))
    return found


def writers(writes: Writes, place: int, array: np.ndarray) -> list[str]:
    """The operation that wrote each element of an array."""
    numbers = writes.numbers(place, array.size, array.itemsize)
    return [str(writes.operation(number)) for number in numbers.tolist()]


def both(text: str, *arrays: Any, together: bool = True) -> list[np.ndarray]:
    """The arrays after a run of the kernel: the same in either way, and by the same stores."""
    found: list[list[Any]] = []
    ran: list[bool] = []
    name = kernel(text).sym_name.data
    one_by_one, jointly = Writes(name, 1), Writes(name, 1)

    def run(interpreter: Interpreter, op: Any, serial: set[Operation]) -> bool:
        ran.append(lockstep_run(interpreter, op, serial))
        return ran[-1]

    lockstep_run = lockstep.run
    for listeners in ((), (Watching(), one_by_one), (jointly,)):
        own = [a.copy() if isinstance(a, np.ndarray) else a for a in arrays]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lockstep, "run", run)
            run_kernel(kernel(text), own, listeners)
        found.append(own)
    for first, *others in zip(*found, strict=True):
        for other in others:
            np.testing.assert_array_equal(first, other)
    for place, array in enumerate(reversed(found[0])):
        if isinstance(array, np.ndarray):
            stores = [writers(writes, -1 - place, array) for writes in (one_by_one, jointly)]
            assert stores[0] == stores[1]
    assert ran
    assert ran[0] is together
    return found[0]


PRODUCT = """
loop.kernel @product(%n: index, %k: index, %x: memref<?x?xf32>, %w: memref<?x7xf32>)
    -> (%y: memref<?x7xf32>) {
  %zero = arith.constant 0.0 : f32
  loop.for "i" %i to %n {
    loop.for "j" %j to 7 {
      %sum = loop.for "k" %l to %k reduction carry(%s = %zero : f32 add) {
        %a = loop.load %x (d0, d1) -> (d0, d1)(%i, %l) : memref<?x?xf32>, f32
        %b = loop.load %w (d0, d1) -> (d0, d1)(%l, %j) : memref<?x7xf32>, f32
        %m = arith.mulf %a, %b : f32
        %t = arith.addf %s, %m : f32
        loop.yield %t : f32
      }
      loop.store %sum, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x7xf32>
    }
  }
}
"""


@pytest.mark.parametrize("most", [5, 1 << 16])
def test_loops_in_loops(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once, and some iterations at a time."""
    monkeypatch.setattr(lockstep_core, "MOST_LANES", most)
    for n, k in ((9, 4), (1, 3), (0, 3), (3, 0)):
        x, w = floats(n, k), floats(k, 7)
        *_, y = both(PRODUCT, n, k, x, w, np.full((n, 7), np.nan, np.float32))
        np.testing.assert_allclose(y, x @ w, rtol=1e-5, atol=1e-6)


def test_blocks_limits_and_bounds_of_each_iteration() -> None:
    """Triangles of rows in vectors, the last of which is cut off."""
    text = """
    loop.kernel @rows(%n: index, %x: memref<?x19xf32>)
        -> (%y: memref<?x19xf32>, %z: memref<?xf32>) {
      %zero = arith.constant 0.0 : f32
      loop.for "i" %i to %n {
        %last = loop.for "l" %l to %i serial carry(%a = %zero : f32) {
          %v = loop.load %x (d0, d1) -> (d0, d1)(%i, %l) : memref<?x19xf32>, f32
          %w = arith.maximumf %v, %a : f32
          loop.yield %w : f32
        }
        loop.store %last, %z (d0) -> (d0)(%i) : f32, memref<?xf32>
        loop.for "j" %j to 5 {
          %left = affine.apply affine_map<(d0) -> (19 - d0 * 4)> (%j)
          %b = loop.load %x (d0, d1)[s0] -> (d0, d1 * 4 + s0)(%i, %j) valid(0 : %left)
              : memref<?x19xf32>, vector<4xf32>
          %e = math.absf %b : vector<4xf32>
          %f = vector.broadcast %last : f32 to vector<4xf32>
          %g = arith.addf %e, %f : vector<4xf32>
          loop.store %g, %y (d0, d1)[s0] -> (d0, d1 * 4 + s0)(%i, %j) valid(0 : %left)
              : vector<4xf32>, memref<?x19xf32>
        }
      }
    }
    """
    x = floats(6, 19)
    *_, y, z = both(text, 6, x, np.zeros_like(x), np.zeros(6, np.float32))
    last = [max([0.0, *x[i, :i]]) for i in range(6)]
    np.testing.assert_allclose(z, last)
    np.testing.assert_allclose(y, np.abs(x) + z[:, None], rtol=1e-6)


def test_entries_of_rows_and_buffers_of_iterations() -> None:
    text = """
    loop.kernel @sums(%n: index, %indptr: memref<?xi32>, %indices: memref<?xi32>, %v: memref<?xf32>)
        -> (%y: memref<?xf32>) {
      %zero = arith.constant 0.0 : f32
      loop.for "i" %i to %n {
        %own = loop.local : memref<4xf32>
        loop.for "c" %c to 4 serial {
          loop.store %zero, %own (d0) -> (d0)(%c) : f32, memref<4xf32>
        }
        loop.for "e" %p, %q of %indptr, %indices row (d0) -> (d0)(%i) serial
            : memref<?xi32>, memref<?xi32> {
          %a = loop.load %v (d0) -> (d0)(%p) : memref<?xf32>, f32
          %b = loop.load %own (d0) -> (d0)(%q) : memref<4xf32>, f32
          %c = arith.addf %a, %b : f32
          loop.store %c, %own (d0) -> (d0)(%q) : f32, memref<4xf32>
        }
        %r = loop.load %own () -> (2)() : memref<4xf32>, f32
        loop.store %r, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
      }
    }
    """
    indptr, indices = (
        np.array([0, 3, 3, 7, 8], np.int32),
        np.array([2, 1, 2, 0, 1, 2, 3, 2], np.int32),
    )
    values = floats(8)
    *_, y = both(text, 4, indptr, indices, values, np.zeros(4, np.float32))
    expected = [values[0] + values[2], 0, values[5], values[7]]
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_buffers_that_are_too_large_together(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    loop.kernel @copy(%n: index, %x: memref<?xf32>) -> (%y: memref<?xf32>) {
      loop.for "i" %i to %n {
        %own = loop.local : memref<4xf32>
        %v = loop.load %x (d0) -> (d0)(%i) : memref<?xf32>, f32
        loop.store %v, %own () -> (1)() : f32, memref<4xf32>
        %w = loop.load %own () -> (1)() : memref<4xf32>, f32
        loop.store %w, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
      }
    }
    """
    x = floats(5)
    for most, together in ((20, True), (19, False)):
        monkeypatch.setattr(lockstep_core, "MOST_ELEMENTS", most)
        *_, y = both(text, 5, x, np.zeros_like(x), together=together)
        np.testing.assert_array_equal(y, x)


def test_conditions() -> None:
    text = """
    loop.kernel @choose(%n: index, %x: memref<?xi64>) -> (%y: memref<?xi64>, %z: memref<?xi64>) {
      %three = arith.constant 3 : i64
      loop.for "i" %i to %n {
        %v = loop.load %x (d0) -> (d0)(%i) : memref<?xi64>, i64
        %is = arith.cmpi slt, %v, %three : i64
        %w = scf.if %is -> (i64) {
          %a = arith.muli %v, %v : i64
          loop.store %a, %z (d0) -> (d0)(%i) : i64, memref<?xi64>
          scf.yield %a : i64
        } else {
          scf.yield %three : i64
        }
        loop.store %w, %y (d0) -> (d0)(%i) : i64, memref<?xi64>
      }
    }
    """
    x = RNG.integers(-9, 9, 20)
    *_, y, z = both(text, 20, x, np.zeros(20, np.int64), np.full(20, 7))
    np.testing.assert_array_equal(y, np.where(x < 3, x * x, 3))
    np.testing.assert_array_equal(z, np.where(x < 3, x * x, 7))


@pytest.mark.parametrize(
    ("load", "store"), [("d0 + 1", "d0"), ("d0 floordiv 2", "d0"), ("d0", "d0 floordiv 2")]
)
def test_iterations_that_depend_on_each_other(load: str, store: str) -> None:
    """They run one by one, so that the dependence shows as it always does."""
    text = f"""
    loop.kernel @shift(%n: index) -> (%y: memref<?xf32>) {{
      loop.for "i" %i to %n {{
        %v = loop.load %y (d0) -> ({load})(%i) : memref<?xf32>, f32
        %w = arith.addf %v, %v : f32
        loop.store %w, %y (d0) -> ({store})(%i) : f32, memref<?xf32>
      }}
    }}
    """
    both(text, 8, floats(9), together=False)


def test_iterations_that_read_what_others_wrote() -> None:
    text = """
    loop.kernel @copy(%n: index, %x: memref<?xf32>) -> (%y: memref<?xf32>, %z: memref<?xf32>) {
      loop.for "i" %i to %n {
        %v = loop.load %x (d0) -> (d0)(%i) : memref<?xf32>, f32
        loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
        %w = loop.load %y (d0) -> (d0 floordiv 2)(%i) : memref<?xf32>, f32
        loop.store %w, %z (d0) -> (d0)(%i) : f32, memref<?xf32>
      }
    }
    """
    both(text, 8, floats(8), floats(8), floats(8), together=False)


def test_iterations_may_use_what_those_around_them_and_before_them_wrote() -> None:
    """Each row is written, read by all elements, and written again."""
    text = """
    loop.kernel @rows(%n: index, %m: index) -> (%y: memref<?x?xf32>, %t: memref<?xf32>) {
      loop.for "r" %r to 3 serial {
        loop.for "i" %i to %n {
          %f = loop.load %y (d0) -> (d0, 0)(%i) : memref<?x?xf32>, f32
          loop.store %f, %t (d0) -> (d0)(%i) : f32, memref<?xf32>
          loop.for "j" %j to %m {
            %v = loop.load %y (d0, d1) -> (d0, d1)(%i, %j) : memref<?x?xf32>, f32
            %u = loop.load %t (d0) -> (d0)(%i) : memref<?xf32>, f32
            %w = arith.addf %v, %u : f32
            loop.store %w, %y (d0, d1) -> (d0, d1)(%i, %j) : f32, memref<?x?xf32>
          }
          %g = loop.load %y (d0) -> (d0, 1)(%i) : memref<?x?xf32>, f32
          loop.store %g, %t (d0) -> (d0)(%i) : f32, memref<?xf32>
        }
      }
    }
    """
    both(text, 4, 3, floats(4, 3), floats(4))
    # All elements of a row read the first one while one of them writes it.
    first = "loop.load %y (d0) -> (d0, 0)(%i) : memref<?x?xf32>"
    wrong = text.replace("loop.load %t (d0) -> (d0)(%i) : memref<?xf32>", first)
    both(wrong, 4, 3, floats(4, 3), floats(4), together=False)


def test_errors_are_those_of_runs_one_by_one() -> None:
    arrays = 5, 4, floats(5, 4), floats(4, 7), np.zeros((5, 7), np.float32)
    for place, number in (("d0 + 1", 4), ("d0 - 1", -1)):
        text = PRODUCT.replace("(d0, d1)(%l, %j)", f"({place}, d1)(%l, %j)")
        found: list[str] = []
        for listeners in ((), (Watching(),), (Writes("product", 1),)):
            with pytest.raises(CompileError) as error:
                run_kernel(kernel(text), arrays, listeners)
            found.append(str(error.value))
        assert found[0] == found[1]
        assert f"is outside of the buffer, expected 0 <= index < 4, got {number}" in found[0]


def test_division_by_zero() -> None:
    """An error of scalars, and not of arrays."""
    text = """
    loop.kernel @divide(%n: index) -> (%y: memref<?xi64>) {
      loop.for "i" %i to %n {
        %v = arith.index_cast %i : index to i64
        %w = arith.divsi %v, %v : i64
        loop.store %w, %y (d0) -> (d0)(%i) : i64, memref<?xi64>
      }
    }
    """
    both(text, 4, np.zeros(4, np.int64), together=False)


def test_a_result_in_the_memory_of_an_operand() -> None:
    text = """
    loop.kernel @twice(%n: index, %x: memref<?xf32>) -> (%y: memref<?xf32>) {
      loop.for "i" %i to %n {
        %v = loop.load %x (d0) -> (PLACE)(%i) : memref<?xf32>, f32
        %w = arith.addf %v, %v : f32
        loop.store %w, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
      }
    }
    """
    for place, elements in (("d0", [0.0, 2, 4, 6]), ("d0 floordiv 2", [0.0, 0, 2, 2])):
        x = np.arange(4, dtype=np.float32)
        run_kernel(kernel(text.replace("PLACE", place)), [4, x, x])
        np.testing.assert_array_equal(x, elements)
