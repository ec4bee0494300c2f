"""The width of an index is that of an address of the target: 32 bits on wasm32."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from stepwell.backends.llvm import jit
from stepwell.core.errors import CompileError
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import Target, named

WASM = named("wasm32")
KERNELS = """
loop.kernel @spmm(%indptr: memref<?xi32>, %indices: memref<?xi32>, %values: memref<?xf32>,
                  %x: memref<?x8xf32>) -> (%y: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<8xf32>
  %n = memref.dim %y, %c0 : memref<?x8xf32>
  loop.for "i" %i to %n {
    %s = loop.for "e" %p, %j of %indptr, %indices row (d0) -> (d0)(%i) reduction
        carry(%acc = %zero : vector<8xf32> add) : memref<?xi32>, memref<?xi32> {
      %v = loop.load %values (d0) -> (d0)(%p) : memref<?xf32>, f32
      %w = loop.load %x (d0)[s0] -> (d0, s0)(%j) : memref<?x8xf32>, vector<8xf32>
      %vb = vector.broadcast %v : f32 to vector<8xf32>
      %m = arith.mulf %vb, %w : vector<8xf32>
      %t = arith.addf %acc, %m : vector<8xf32>
      loop.yield %t : vector<8xf32>
    }
    loop.store %s, %y (d0)[s0] -> (d0, s0)(%i) : vector<8xf32>, memref<?x8xf32>
  }
}
loop.kernel @tail(%x: memref<?xf32>) -> (%y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  loop.for "i" %i to min (d0) -> (d0 ceildiv 4)(%n) {
    %e = affine.min affine_map<(d0, d1) -> (4, d0 - d1 * 4)>(%n, %i)
    %v = loop.load %x (d0)[s0] -> (d0 * 4 + s0)(%i) valid(0 : %e) : memref<?xf32>, vector<4xf32>
    loop.store %v, %y (d0)[s0] -> (d0 * 4 + s0)(%i) valid(0 : %e) : vector<4xf32>, memref<?xf32>
  }
}
loop.kernel @part(%indptr: memref<?xi32>, %n: index, %t: index, %p: index) -> (%y: memref<?xf32>) {
  %a = arith.constant 1.0 : f32
  %r = loop.partition_point %indptr rows %n part %t of %p weight 4 : memref<?xi32>
  loop.store %a, %y (d0) -> (d0)(%r) : f32, memref<?xf32>
}
"""
FUNCTIONS = """
func.func @copied(%x: memref<?xi32>, %places: memref<4xindex>, %i: index) -> index {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xi32>
  %y = memref.alloca() : memref<4xindex>
  "memref.copy"(%places, %y) : (memref<4xindex>, memref<4xindex>) -> ()
  %place = memref.load %y[%i] : memref<4xindex>
  %v = memref.load %x[%place] : memref<?xi32>
  %w = arith.index_cast %v : i32 to index
  %r = arith.addi %w, %n : index
  func.return %r : index
}
func.func @calling(%x: memref<?xi32>, %places: memref<4xindex>) -> index {
  %c3 = arith.constant 3 : index
  %r = func.call @copied(%x, %places, %c3) : (memref<?xi32>, memref<4xindex>, index) -> index
  func.return %r : index
}
"""
DOWN = "loop-legalize-vectors,convert-loop-to-scf,convert-scf-to-cf,convert-to-llvm"


def lowered(text: str, target: Target, passes: str = DOWN) -> ModuleOp:
    ctx = make_context()
    ctx.target = target
    module = Parser(ctx, text).parse_module()
    module.verify()
    run_passes(ctx, module, passes)
    module.verify()
    return module


@pytest.mark.parametrize("text", [KERNELS, FUNCTIONS], ids=["kernels", "functions"])
def test_addresses_of_32_bits(text: str) -> None:
    ir = jit.llvm_ir(lowered(text, WASM), WASM)
    assert "i32" in ir
    # A constant that says which lane or how large on the stack may be of any width.
    assert not re.findall(r".*\b(?:add|mul|sub|phi|icmp \w+|define[^\n]*) i64.*", ir)
    assert not re.findall(r"shr i32 [^\n]*, 63", ir)
    # LLVM verifies what it is given, and has instructions for all of it.
    assert "function" in jit.assembly(ir, WASM)


def test_elements_are_as_wide_as_they_are_aligned() -> None:
    load = r"llvm.load .*alignment = (\d) : i64.* -> i(\d+)"
    for target, size in ((WASM, "4"), (named("x86-64"), "8")):
        found = re.findall(load, str(lowered(FUNCTIONS, target)))
        assert (size, str(int(size) * 8)) in found


def test_kernels_for_64_bits_are_as_they_were() -> None:
    assert re.search(r"define .*@.?spmm.*i64", jit.llvm_ir(lowered(KERNELS, named("x86-64")), WASM))


CHECKS = """
func.func @main(%ctx: !rt.context, %p: memref<?xi64>, %x: memref<?xi32>, %n: index) -> i32 {
  %arena = rt.arena %ctx, %n : memref<?xi8>
  rt.check_csr %ctx, %p, %x, %n "a" : memref<?xi64>, memref<?xi32>
  rt.check_index %ctx, %p, %n "i" : memref<?xi64>
  rt.check_offsets %ctx, %x, %n "o" : memref<?xi32>
  %ok = arith.cmpi sge, %n, %n : index
  rt.check %ctx, %ok, "got {0}"(%n)
  %0 = arith.constant 0 : i32
  func.return %0 : i32
}
"""


def test_words_of_the_context_have_64_bits() -> None:
    """Whatever an address has: details and sizes are stored as words, and offsets are in words."""
    passes = "convert-rt-to-llvm,convert-scf-to-cf,convert-to-llvm"
    ir = jit.llvm_ir(lowered(CHECKS, WASM, passes), WASM)
    assert 'define i32 @"main"(ptr %".1", ptr %".2", i32 %".3"' in ir
    main = ir[ir.index("define i32") :].partition("\n}")[0]
    assert re.findall(r"sext i32 %\"\.\d+\" to i64", main)
    assert not re.findall(r"store i32 ", main)
    assert "function" in jit.assembly(ir, WASM)


def test_threads_need_64_bits() -> None:
    with pytest.raises(CompileError) as caught:
        lowered("func.func private @f()", WASM, "convert-rt-to-llvm{threads=2}")
    fact = "no threads on a target with addresses of 32 bits, expected threads=1"
    assert str(caught.value) == f"convert-rt-to-llvm: {fact}"
