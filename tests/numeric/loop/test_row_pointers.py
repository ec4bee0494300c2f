"""Rows are apart where a kernel reads the row pointers of a matrix, which calls check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

import stepwell as sw
from stepwell.core.registry import make_context


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


def test_row_pointers_are_not_written_over() -> None:
    text = """
loop.kernel @next(%ends: memref<8xi32> {loop.indptr}) -> (%y: memref<8xi32> {loop.in_place = [0]}) {
  %zero = arith.constant 0 : i32
  loop.for "i" %i to 8 {
    loop.store %zero, %y (d0) -> (d0)(%i) : i32, memref<8xi32>
  }
}"""
    message = r"loop\.kernel: the rows of a matrix are not those that the kernel was given"
    for wrong in (text, text.replace("{loop.in_place = [0]}", "{loop.indptr}")):
        with pytest.raises(VerifyException, match=message):
            parse(wrong).verify()
    parse(text.replace(" {loop.in_place = [0]}", "")).verify()


def test_integers_of_a_tensor_are_no_row_pointers() -> None:
    """Such as [0, 6, 2, 8, 8], whose rows 0 and 1 have places in common."""

    @sw.kernel
    def spread(k: Any, off: Any, x: Any, y: Any) -> None:
        with k.loops(*x.shape) as i:
            start = k.index(off[i])
            with k.loops(k.index(off[i + 1]) - start) as j:
                y[start + j] = x[i]

    b = sw.Builder("main")
    off, x = b.input("off", (5,), "i32"), b.input("x", (4,), "f32")
    message = r'iterations of loop "i" may depend on one another: one stores y\[\(computed\) \+ j\]'
    with pytest.raises(sw.StepwellError, match=message):
        b.call_kernel(spread, off, x, results=sw.TensorSpec((8,), "f32"))


SPREAD = """
#csr = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed),
    posWidth = 32, crdWidth = 32 }>
func.func @main(%a: tensor<4x9xf32, #csr>, %x: tensor<4xf32>) -> tensor<8xf32> {
  %y = graph.call_dps @spread(%a, %x) : (tensor<4x9xf32, #csr>, tensor<4xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}
loop.kernel @spread(%ends: memref<5xi32> {loop.indptr}, %columns: memref<?xi32>,
    %values: memref<?xf32>, %x: memref<4xf32>) -> (%y: memref<8xf32>) {
  loop.for "i" %i to 4 tiles {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
    %0 = loop.load %ends (d0) -> (d0)(%i) : memref<5xi32>, i32
    %1 = loop.load %ends (d0) -> (d0 + 1)(%i) : memref<5xi32>, i32
    %start = arith.index_cast %0 : i32 to index
    %end = arith.index_cast %1 : i32 to index
    %count = arith.subi %end, %start : index
    loop.for "l" %l to %count {
      loop.store %v, %y (d0, d1) -> (d0 + d1)(%start, %l) : f32, memref<8xf32>
    }
  }
}
"""

ROWS = """
    loop.for "l" %p, %c of %ends, %columns row (d0) -> (d0)(%i) : memref<5xi32>, memref<?xi32> {
      loop.store %v, %y (d0) -> (d0)(%p) : f32, memref<8xf32>
    }
  }
}
"""


def test_row_pointers_come_from_a_matrix_that_is_checked() -> None:
    exe = sw.compile(sw.from_mlir(SPREAD, trusted=True), threads=2)
    x, entries = np.arange(4, dtype=np.float32), (np.ones(8, np.float32), np.arange(8) % 3)
    a = csr_array((*entries, [0, 3, 3, 7, 8]), shape=(4, 9))
    assert exe(a, x).tolist() == [0, 0, 0, 2, 2, 2, 2, 3]
    a.indptr[:] = [0, 6, 2, 8, 8]
    with pytest.raises(sw.InputError, match="indptr"):
        exe(a, x)


@pytest.mark.parametrize("visited", [False, True])
def test_a_tensor_of_integers_is_not_passed_for_row_pointers(visited: bool) -> None:
    parts = "tensor<5xi32>", "tensor<?xi32>", "tensor<?xf32>"
    named = [f"%{name}: {kind}" for name, kind in zip("abc", parts, strict=True)]
    text = SPREAD.replace("%a: tensor<4x9xf32, #csr>", ", ".join(named))
    text = text.replace("tensor<4x9xf32, #csr>", ", ".join(parts))
    text = text.replace("@spread(%a,", "@spread(%a, %b, %c,")
    if visited:
        text = text.partition("    %0 =")[0].replace(" {loop.indptr}", "") + ROWS
    message = (
        "argument 0 of @spread is the row pointers of a matrix, "
        "expected a tensor in CSR, got tensor<5xi32>"
    )
    # `from_mlir` refuses places that no matrix bounds.
    module = sw.Module(parse(text), sw.WeightStore())
    with pytest.raises(sw.CompileError, match=message):
        sw.compile(module, threads=1)
