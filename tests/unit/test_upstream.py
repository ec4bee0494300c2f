"""Standard operations that xDSL lacks: text form, verifiers, and upstream's opinion."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from xdsl.dialects import arith, func, llvm
from xdsl.dialects.builtin import (
    IntegerType,
    MemRefType,
    ModuleOp,
    VectorType,
    bf16,
    f32,
    f64,
    i1,
    i32,
)
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from stepwell.conversions.convert_arith_to_llvm import ConvertArithToLlvmPass
from stepwell.core.registry import make_context
from stepwell.dialects.upstream import ops as upstream

from ..harness import tool

STANDARD = """
func.func @f(%v: vector<4xf32>, %i: vector<4xi32>, %m: memref<?xf32>, %at: index, %c: i1, %s: i32) {
  %0 = arith.cmpf olt, %v, %v fastmath<nnan> : vector<4xf32>
  %1 = arith.select %0, %v, %v : vector<4xi1>, vector<4xf32>
  %2 = arith.select %c, %v, %v : vector<4xf32>
  %3 = arith.cmpi eq, %i, %i : vector<4xi32>
  %4 = arith.select %3, %i, %i : vector<4xi1>, vector<4xi32>
  %5 = arith.sitofp %i : vector<4xi32> to vector<4xf32>
  %6 = arith.uitofp %i : vector<4xi32> to vector<4xf32>
  %7 = arith.fptosi %v : vector<4xf32> to vector<4xi32>
  %8 = arith.fptoui %v : vector<4xf32> to vector<4xi32>
  %9 = arith.extsi %i : vector<4xi32> to vector<4xi64>
  %10 = arith.extui %i : vector<4xi32> to vector<4xi64>
  %11 = arith.trunci %i : vector<4xi32> to vector<4xi8>
  %12 = arith.index_cast %i : vector<4xi32> to vector<4xindex>
  %13 = arith.index_castui %s : i32 to index
  %19 = arith.remf %v, %v : vector<4xf32>
  %14 = vector.broadcast %v : vector<4xf32> to vector<2x4xf32>
  %15 = vector.reduction <add>, %v fastmath<reassoc> : vector<4xf32> into f32
  %16 = vector.reduction <maxsi>, %i, %s : vector<4xi32> into i32
  %17 = vector.gather %m[%at] [%i], %0, %v
      : memref<?xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  %18 = scf.while (%a = %at) : (index) -> index {
    scf.condition(%c) %a : index
  } do {
  ^bb0(%b: index):
    scf.yield %b : index
  } attributes {note = "kept"}
  func.return
}
"""

LLVM = """
llvm.func @f(%v: vector<4xf32>, %i: vector<4xi32>, %p: !llvm.ptr, %at: i64, %m: vector<4xi1>) {
  %0 = llvm.fcmp "olt" %v, %v : vector<4xf32>
  %1 = llvm.select %0, %v, %v : vector<4xi1>, vector<4xf32>
  %2 = llvm.intr.masked.load %p, %m, %v {alignment = 4 : i32}
      : (!llvm.ptr, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
  llvm.intr.masked.store %i, %p, %m {alignment = 4 : i32}
      : vector<4xi32>, vector<4xi1> into !llvm.ptr
  %3 = llvm.getelementptr %p[%i] : (!llvm.ptr, vector<4xi32>) -> vector<4x!llvm.ptr>, f32
  %4 = llvm.intr.masked.gather %3, %m, %v {alignment = 4 : i32}
      : (vector<4x!llvm.ptr>, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
  %5 = llvm.extractelement %v[%at : i64] : vector<4xf32>
  %6 = llvm.mlir.poison : vector<4xf32>
  %7 = llvm.fptosi %v : vector<4xf32> to vector<4xi32>
  %8 = llvm.fptoui %v : vector<4xf32> to vector<4xi32>
  %9 = llvm.uitofp %i : vector<4xi32> to vector<4xf32>
  %10 = llvm.intr.maximum(%v, %v) {fastmathFlags = #llvm.fastmath<nnan>}
      : (vector<4xf32>, vector<4xf32>) -> vector<4xf32>
  %11 = llvm.intr.tanh(%v) : (vector<4xf32>) -> vector<4xf32>
  %12 = llvm.intr.smax(%i, %i) : (vector<4xi32>, vector<4xi32>) -> vector<4xi32>
  %13 = llvm.intr.vector.reduce.fmax(%v) : (vector<4xf32>) -> f32
  %14 = "llvm.intr.vector.reduce.umin"(%i) : (vector<4xi32>) -> i32
  llvm.return
}
"""


@pytest.mark.parametrize("text", [STANDARD, LLVM], ids=["standard", "llvm"])
class TestText:
    def test_round_trip(self, text: str) -> None:
        module = Parser(make_context(), text).parse_module()
        module.verify()
        again = Parser(make_context(), str(module)).parse_module()
        assert module.is_structurally_equivalent(again)
        for op in module.walk():
            name = type(op).__module__
            assert not name.startswith("xdsl.dialects.arith"), f"{op.name} is xDSL's"

    def test_upstream_reads_it(self, text: str) -> None:
        found = shutil.which("mlir-opt-22") or tool("mlir-opt", "mlir-22-tools")
        module = Parser(make_context(), text).parse_module()
        done = subprocess.run(
            [found], input=str(module), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


V4, V8 = VectorType(f32, [4]), VectorType(f32, [8])
I4 = VectorType(i32, [4])


def values(*types: Attribute) -> Sequence[SSAValue]:
    return AnyOp(result_types=types).results


def bad_select() -> Operation:
    mask, one, other = values(VectorType(i1, [8]), V4, V4)
    return upstream.SelectOp(mask, one, other)


def bad_broadcast() -> Operation:
    return upstream.BroadcastOp(values(V4)[0], V8)


def bad_rank() -> Operation:
    return upstream.BroadcastOp(values(VectorType(f32, [2, 4]))[0], V4)


def bad_element() -> Operation:
    return upstream.BroadcastOp(values(i32)[0], V4)


def bad_cast() -> Operation:
    return upstream.SIToFPOp(values(I4)[0], V8)


def bad_truncation() -> Operation:
    return upstream.TruncIOp(values(i32)[0], IntegerType(64))


def bad_index_cast() -> Operation:
    return upstream.IndexCastOp(values(i32)[0], IntegerType(64))


def bad_extension() -> Operation:
    return upstream.ExtFOp(values(f32)[0], VectorType(f64, [2]))


def bad_width() -> Operation:
    return upstream.TruncFOp(values(f32)[0], f64)


def bad_count() -> Operation:
    return upstream.INTRINSICS["maximum"].create(operands=values(f32, f32, f32), result_types=[f32])


def bad_indices() -> Operation:
    (address,) = values(llvm.LLVMPointerType())
    return upstream.GEPOp(address, [llvm.GEP_USE_SSA_VAL], f32)


def cast_with(
    offsets: Sequence[int], strides: Sequence[int], element_type: Attribute = f32
) -> Operation:
    (source,) = values(MemRefType(element_type, [6]))
    kind = MemRefType(f32, [2, 3])
    return upstream.ReinterpretCastOp(source, [], [], [], offsets, [2, 3], strides, kind)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            bad_select,
            "arith.select: shapes differ, expected that of vector<4xf32>, got vector<8xi1",
        ),
        (bad_broadcast, "vector.broadcast: cannot stretch vector<4xf32> to vector<8xf32>"),
        (bad_rank, "vector.broadcast: cannot stretch vector<2x4xf32> to vector<4xf32>"),
        (bad_element, "vector.broadcast: element types differ, expected f32, got i32"),
        (
            bad_cast,
            "arith.sitofp: shapes differ, expected that of vector<4xi32>, got vector<8xf32>",
        ),
        (bad_truncation, "arith.trunci: wrong width of the result, expected narrower than i32"),
        (
            bad_extension,
            "arith.extf: shapes differ, expected that of f32, got vector<2xf64>",
        ),
        (bad_width, "arith.truncf: wrong width of the result, expected narrower than f32, got f64"),
        (bad_count, "llvm.intr.maximum: wrong number of operands, expected 2, got 3"),
        (bad_indices, "llvm.getelementptr: wrong number of indices, expected 1, got 0"),
        (
            partial(cast_with, [], [3, 1]),
            r"memref.reinterpret_cast: offset of another layout, expected \[0\], got \[\]",
        ),
        (
            partial(cast_with, [0, 0], [3, 1]),
            r"memref.reinterpret_cast: offset of another layout, expected \[0\], got \[0, 0\]",
        ),
        (
            partial(cast_with, [1], [3, 1]),
            r"memref.reinterpret_cast: offset of another layout, expected \[0\], got \[1\]",
        ),
        (
            partial(cast_with, [0], [1, 2]),
            r"memref.reinterpret_cast: strides of another layout, expected \[3, 1\], got \[1, 2\]",
        ),
        (
            partial(cast_with, [0], [3, 1], i32),
            "memref.reinterpret_cast: element types differ, expected i32, got f32",
        ),
        (bad_index_cast, "arith.index_cast: wrong types, expected index on one side, got i32"),
    ],
)
def test_verifiers(make: Callable[[], Operation], message: str) -> None:
    with pytest.raises((VerifyException, DiagnosticException), match=message):
        make().verify()


def test_comparisons_of_vectors_give_vectors() -> None:
    one, other = values(I4, I4)
    assert upstream.CmpiOp(one, other, "slt").result.type == VectorType(i1, [4])
    one, other = values(V4, V4)
    assert upstream.CmpfOp(one, other, "olt").result.type == VectorType(i1, [4])


def test_reduction_gives_an_element() -> None:
    assert upstream.ReductionOp(values(V4)[0], "add").dest.type == f32


def test_select_is_still_xdsls() -> None:
    """xDSL's canonical forms look for its own class."""
    condition, one, other = values(i1, f32, f32)
    assert isinstance(upstream.SelectOp(condition, one, other), arith.SelectOp)


@pytest.mark.parametrize("widens", [arith.ExtFOp, upstream.ExtFOp])
def test_casts_of_both_kinds_are_converted(widens: Callable[..., Operation]) -> None:
    """Those of xDSL, as plug-ins make them, as well as ours, which text is read as."""
    function = func.FuncOp("f", ((bf16,), (f32,)))
    (x,) = function.body.block.args
    cast = widens(x, f32)
    function.body.block.add_ops([cast, func.ReturnOp(cast)])
    module = ModuleOp([function])
    ConvertArithToLlvmPass().apply(make_context(), module)
    assert "arith.extf" not in str(module)
