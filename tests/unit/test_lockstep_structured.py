"""Loops of scf that the interpreter runs together, compared with runs one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.interpreter import Interpreter
from xdsl.ir import Operation
from xdsl.parser import Parser

from stepwell.backends.reference import lockstep, lockstep_core
from stepwell.backends.reference.machine import ReferenceMachine, call
from stepwell.core.errors import CompileError
from stepwell.core.registry import make_context

from .test_lockstep import Watching, floats


def ran(text: str, arrays: Any, *listeners: Interpreter.Listener) -> None:
    """Run the first function of a module."""
    module = Parser(make_context(), text).parse_module()
    module.verify()
    machine, function = ReferenceMachine(module), module.body.block.first_op
    assert function is not None
    machine.listen(listeners)
    call(machine, function, arrays)


def both(text: str, *arrays: Any, together: tuple[bool, ...] = (True,)) -> list[Any]:
    """The arrays after a run, which is the same in either way, and which loops ran together."""
    found: list[list[Any]] = []
    tried: dict[Operation, bool] = {}

    def run(interpreter: Interpreter, op: Operation, serial: set[Operation]) -> bool:
        tried[op] = original(interpreter, op, serial)
        return tried[op]

    original = lockstep.run
    for listeners in ((), (Watching(),)):
        own = [a.copy() if isinstance(a, np.ndarray) else a for a in arrays]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lockstep, "run", run)
            ran(text, own, *listeners)
        found.append(own)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert tuple(tried.values()) == together
    return found[0]


INDICES = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 4, 5, 7))

PRODUCT = f"""
func.func @product(%x: memref<?x5xf32>, %w: memref<5x7xf32>, %y: memref<?x7xf32>) {{
  {INDICES}
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %n = memref.dim %x, %c0 : memref<?x5xf32>
  scf.for %i = %c0 to %n step %c1 {{
    scf.for %j = %c0 to %c7 step %c4 {{
      %left = arith.subi %c7, %j : index
      %mask = vector.create_mask %left : vector<4xi1>
      %s = scf.for %k = %c0 to %c5 step %c1 iter_args(%acc = %zeros) -> (vector<4xf32>) {{
        %a = memref.load %x[%i, %k] : memref<?x5xf32>
        %v = vector.broadcast %a : f32 to vector<4xf32>
        %b = vector.maskedload %w[%k, %j], %mask, %zeros
            : memref<5x7xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
        %t = math.fma %v, %b, %acc : vector<4xf32>
        scf.yield %t : vector<4xf32>
      }}
      vector.maskedstore %y[%i, %j], %mask, %s
          : memref<?x7xf32>, vector<4xi1>, vector<4xf32>
    }}
  }}
  func.return
}}
"""


@pytest.mark.parametrize("most", [5, 1 << 16])
def test_loops_in_loops(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once, and some iterations at a time."""
    monkeypatch.setattr(lockstep_core, "MOST_LANES", most)
    for n in (9, 1, 0):
        x, w = floats(n, 5), floats(5, 7)
        *_, y = both(PRODUCT, x, w, np.full((n, 7), np.nan, np.float32))
        np.testing.assert_allclose(y, x @ w, rtol=1e-5, atol=1e-6)


def test_rows_whose_elements_depend_on_each_other() -> None:
    """The rows run together, the elements of each in order; by columns, only the columns do."""
    text = f"""
    func.func @sums(%x: memref<4x5xf32>) {{
      {INDICES}
      scf.for %i = OUTER step %c1 {{
        scf.for %j = INNER step %c1 {{
          %k = arith.subi %BACK, %c1 : index
          %a = memref.load %x[%i, PREVIOUS] : memref<4x5xf32>
          %b = memref.load %x[%i, %j] : memref<4x5xf32>
          %c = arith.addf %a, %b : f32
          memref.store %c, %x[%i, %j] : memref<4x5xf32>
        }}
      }}
      func.return
    }}
    """
    rows = text.replace("OUTER", "%c0 to %c4").replace("INNER", "%c1 to %c5")
    x = floats(4, 5)
    (y,) = both(rows.replace("%BACK", "%j").replace("PREVIOUS", "%k"), x)
    np.testing.assert_allclose(y, np.cumsum(x, axis=1), rtol=1e-5)
    columns = text.replace("OUTER", "%c1 to %c4").replace("INNER", "%c0 to %c5")
    columns = columns.replace("%BACK", "%i").replace("%x[%i, PREVIOUS]", "%x[%k, %j]")
    (y,) = both(columns, x, together=(False, True))
    np.testing.assert_allclose(y, np.cumsum(x, axis=0), rtol=1e-5)


def test_buffers_of_iterations_and_lanes_of_vectors() -> None:
    text = f"""
    func.func @mixed(%x: memref<?x4xf32>, %y: memref<?x4xf32>, %z: memref<?xf32>) {{
      {INDICES}
      %off = arith.constant dense<[3, 2, 1, 0]> : vector<4xindex>
      %all = arith.constant dense<1> : vector<4xi1>
      %n = memref.dim %x, %c0 : memref<?x4xf32>
      scf.for %i = %c0 to %n step %c1 {{
        %own = memref.alloca() : memref<4xf32>
        %v = vector.load %x[%i, %c0] : memref<?x4xf32>, vector<4xf32>
        vector.store %v, %own[%c0] : memref<4xf32>, vector<4xf32>
        scf.for %j = %c0 to %c4 step %c1 {{
          %a = memref.load %own[%j] : memref<4xf32>
          %b = memref.load %own[%c0] : memref<4xf32>
          %c = arith.addf %a, %b : f32
          memref.store %c, %own[%j] : memref<4xf32>
        }}
        %back = vector.gather %own[%c0] [%off], %all, %v
            : memref<4xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
        %w = vector.shuffle %back, %v [0, 4, 1, 7] : vector<4xf32>, vector<4xf32>
        %e = vector.extract %w[2] : f32 from vector<4xf32>
        %u = vector.insert %e, %w [3] : f32 into vector<4xf32>
        vector.store %u, %y[%i, %c0] : memref<?x4xf32>, vector<4xf32>
        %s = vector.reduction <add>, %u, %e : vector<4xf32> into f32
        %bits = arith.bitcast %s : f32 to i32
        %same = arith.bitcast %bits : i32 to f32
        %row = memref.reinterpret_cast %z to offset: [%i], sizes: [1], strides: [1]
            : memref<?xf32> to memref<1xf32, strided<[1], offset: ?>>
        memref.store %same, %row[%c0] : memref<1xf32, strided<[1], offset: ?>>
      }}
      func.return
    }}
    """
    x = floats(6, 4)
    _, y, z = both(text, x, np.zeros_like(x), np.zeros(6, np.float32))
    own = x + np.where(np.arange(4), 2 * x[:, :1], x[:, :1])
    np.testing.assert_allclose(y[:, 0], own[:, 3], rtol=1e-6)
    np.testing.assert_allclose(z, y.sum(axis=1) + y[:, 2], rtol=1e-5)


def test_windows_of_one_buffer_that_overlap() -> None:
    text = f"""
    func.func @shifted(%x: memref<9xf32>) {{
      {INDICES}
      scf.for %i = %c0 to %c7 step %c1 {{
        %row = memref.reinterpret_cast %x to offset: [%i], sizes: [2], strides: [1]
            : memref<9xf32> to memref<2xf32, strided<[1], offset: ?>>
        %a = memref.load %row[%c0] : memref<2xf32, strided<[1], offset: ?>>
        memref.store %a, %row[%c1] : memref<2xf32, strided<[1], offset: ?>>
      }}
      func.return
    }}
    """
    x = floats(9)
    (y,) = both(text, x, together=(False,))
    np.testing.assert_array_equal(y, [*[x[0]] * 8, x[8]])


def test_tiles() -> None:
    text = f"""
    func.func @tiles(%x: memref<?x4xf32>, %y: memref<?x4xf32>) {{
      {INDICES}
      %n = memref.dim %x, %c0 : memref<?x4xf32>
      rt.parallel_tiles %n captures(%x, %y : memref<?x4xf32>, memref<?x4xf32>) {{
      ^bb0(%t: index, %a: memref<?x4xf32>, %b: memref<?x4xf32>):
        %z0 = arith.constant 0 : index
        %z1 = arith.constant 1 : index
        %z4 = arith.constant 4 : index
        %row = rt.slice %a, %t : memref<?x4xf32> to memref<4xf32>
        scf.for %j = %z0 to %z4 step %z1 {{
          %v = memref.load %row[%j] : memref<4xf32>
          %w = arith.addf %v, %v : f32
          memref.store %w, %b[PLACE, %j] : memref<?x4xf32>
        }}
        rt.yield
      }}
      func.return
    }}
    """
    x = floats(6, 4)
    _, y = both(text.replace("PLACE", "%t"), x, np.zeros_like(x))
    np.testing.assert_array_equal(y, 2 * x)
    # All tiles write the first row: the order in which they run shows.
    _, y = both(text.replace("PLACE", "%z0"), x, np.zeros_like(x), together=(False, True))
    np.testing.assert_array_equal(y[0], 2 * x[0])


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("%x[%i, %k]", "%x[%k, %i]", "memref.load: index of dimension 0 is outside of the buffer"),
        ("%w[%k, %j]", "%w[%i, %j]", "vector.maskedload: index of dimension 1 is outside"),
        ("%n step %c1", "%n step %c0", "arg 3 must not be zero"),
    ],
)
def test_errors_are_those_of_runs_one_by_one(old: str, new: str, error: str) -> None:
    arrays = floats(4, 5)[:3], floats(5, 7), np.zeros((3, 7), np.float32)
    if "%x" not in old:
        arrays = floats(9, 5), floats(5, 7), np.zeros((9, 7), np.float32)
    text, found = PRODUCT.replace(old, new), list[str]()
    for listeners in ((), (Watching(),)):
        with pytest.raises(CompileError, match=error) as caught:
            ran(text, arrays, *listeners)
        found.append(str(caught.value))
    assert found[0] == found[1]


def test_buffers_that_share_memory() -> None:
    text = f"""
    func.func @copied(%x: memref<7xf32>, %y: memref<7xf32>) {{
      {INDICES}
      scf.for %i = %c0 to %c7 step %c1 {{
        %a = memref.load %x[%i] : memref<7xf32>
        memref.store %a, %y[%i] : memref<7xf32>
      }}
      func.return
    }}
    """
    for shift, expected in ((1, [0.0] * 8), (0, [0.0, 1, 2, 3, 4, 5, 6, 7])):
        memory = np.arange(8, dtype=np.float32)
        ran(text, [memory[:7], memory[shift : shift + 7]])
        np.testing.assert_array_equal(memory, expected)
