"""`convert-loop-to-scf`: what it refuses, index arithmetic, and that mlir-opt takes its result."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation
from xdsl.ir.affine import AffineExpr
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

from stepwell.conversions.convert_loop_to_scf import ConvertLoopToScfPass
from stepwell.conversions.loop_to_scf.indices import Indices, fixed
from stepwell.conversions.loop_to_scf.scopes import ScopedEmitter
from stepwell.core.algebra.expressions import Affine
from stepwell.core.building.arithmetic import INDEX
from stepwell.core.registry import make_context
from stepwell.passes.loop.legalize_vectors import LoopLegalizeVectorsPass

from ..harness import tool


def converted(text: str, target: str | None = "x86-64-v4") -> ModuleOp:
    """The functions of some kernels, for a machine; with None as they are, without legalisation."""
    ctx = make_context()
    module = Parser(ctx, text).parse_module()
    module.verify()
    if target is not None:
        LoopLegalizeVectorsPass(target=target).apply(ctx, module)
        module.verify()
    ConvertLoopToScfPass().apply(ctx, module)
    module.verify()
    return module


REFUSED = {
    'loop.for: loop "i" cannot be unrolled, expected a constant bound, got none (node "fc1")': """
        loop.kernel @k(%n: index) -> (%y: memref<4xf32>) {
          loop.for "i" %i to %n unroll {
          } loc("fc1")
        }""",
    "loop.local: is in no kernel, expected a loop.kernel around it": """
        func.func @f() {
          %x = loop.local : memref<4xf32>
          func.return
        }""",
    "loop.local: the buffer is in no block, expected a loop of blocks around it, "
    "got #loop<space shared>": """
        loop.kernel @k() -> () {
          %x = loop.local : memref<4xf32, #loop<space shared>>
        }""",
    "memref.dim: dimension is not known, expected a constant": """
        loop.kernel @k(%x: memref<?xf32>, %n: index) -> (%y: memref<4xf32>) {
          %d = memref.dim %x, %n : memref<?xf32>
        }""",
    "memref.dim: no such dimension, expected below 1, got 7": """
        loop.kernel @k(%x: memref<?xf32>) -> (%y: memref<4xf32>) {
          %n = arith.constant 7 : index
          %d = memref.dim %x, %n : memref<?xf32>
        }""",
    "vector.extract: position is not that of an element, expected one constant for each axis": """
        loop.kernel @k(%x: memref<2x4xf32>) -> (%y: memref<4xf32>) {
          %v = loop.load %x ()[s0, s1] -> (s0, s1)() : memref<2x4xf32>, vector<2x4xf32>
          %w = vector.extract %v[0] : vector<4xf32> from vector<2x4xf32>
        }""",
    "vector.shuffle: cannot be broken into machine vectors, expected one shape for all blocks": """
        loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
          %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
          %w = vector.shuffle %v, %v [0, 1] : vector<4xf32>, vector<4xf32>
        }""",
    "loop.load: cannot divide by what is not a positive constant in (d0 floordiv 0)": """
        loop.kernel @k(%x: memref<4xf32>, %n: index) -> (%y: memref<4xf32>) {
          %v = loop.load %x (d0) -> (d0 floordiv 0)(%n) : memref<4xf32>, f32
        }""",
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals_name_the_operation(message: str) -> None:
    with pytest.raises(PassFailedException) as caught:
        converted(REFUSED[message])
    assert str(caught.value) == f"convert-loop-to-scf: {message}"


NOT_LEGAL = {
    "loop.kernel: vector<2x4xf32> in @k is not legalised; run loop-legalize-vectors first": """
        loop.kernel @k(%x: memref<2x4xf32>) -> (%y: memref<2x4xf32>) {
          %v = loop.load %x ()[s0, s1] -> (s0, s1)() : memref<2x4xf32>, vector<2x4xf32>
        }""",
    "loop.kernel: vector<4xf32> in @k is not legalised; run loop-legalize-vectors first": """
        loop.kernel @k(%x: memref<8xf32>) -> (%y: memref<8xf32>)
            attributes {loop.vectors = #loop.vectors<hoist 0, 8 = [8]>} {
          %v = loop.load %x ()[s0] -> (s0)() : memref<8xf32>, vector<4xf32>
        }""",
    "loop.load: lanes are limited along merged axes, expected machine vectors of each row": """
        loop.kernel @k(%x: memref<2x4xf32>, %n: index) -> (%y: memref<4xf32>)
            attributes {loop.vectors = #loop.vectors<hoist 0, merged [2, 4]>} {
          %v = loop.load %x ()[s0, s1] -> (s0, s1)() valid(0 : %n)
            : memref<2x4xf32>, vector<2x4xf32>
        }""",
    "loop.instruction: its intrinsics are not known; run loop-legalize-vectors before": """
        loop.kernel @k(%x: memref<8xi16>) -> (%y: memref<4xi32>)
            attributes {loop.vectors = #loop.vectors<hoist 0, 8 = [8], 4 = [4]>} {
          %v = loop.load %x ()[s0] -> (s0)() : memref<8xi16>, vector<8xi16>
          %p = loop.instruction "vpmaddwd"(%v, %v) : (vector<8xi16>, vector<8xi16>) -> vector<4xi32>
        }""",
    "loop.instruction: merges axes, expected machine vectors of each row": """
        loop.kernel @k(%x: memref<2x4xi16>) -> (%y: memref<4xi32>)
            attributes {loop.vectors = #loop.vectors<hoist 0, 2 = [2], merged [2, 4]>} {
          %v = loop.load %x ()[s0, s1] -> (s0, s1)() : memref<2x4xi16>, vector<2x4xi16>
          %p = loop.instruction "vpmaddwd"(%v, %v) {loop.intrinsics = {}}
            : (vector<2x4xi16>, vector<2x4xi16>) -> vector<2x2xi32>
        }""",
    "math.exp: wrong loop.interleave, expected a number above 0, got 0 : i64": """
        loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>)
            attributes {loop.vectors = #loop.vectors<hoist 0, 4 = [4]>} {
          %v = loop.load %x ()[s0] -> (s0)() : memref<4xf32>, vector<4xf32>
          %e = math.exp %v {loop.interleave = 0 : i64} : vector<4xf32>
        }""",
}


@pytest.mark.parametrize("message", NOT_LEGAL)
def test_what_is_not_legal_is_refused(message: str) -> None:
    with pytest.raises(PassFailedException) as caught:
        converted(NOT_LEGAL[message], target=None)
    assert str(caught.value) == f"convert-loop-to-scf: {message}"


def test_a_vector_of_too_many_lanes_is_refused() -> None:
    """It would be cut into billions of machine vectors."""
    fact = "a vector has too many lanes, expected at most 65536, got 4294967296"
    with pytest.raises(PassFailedException, match=f"^loop-legalize-vectors: {fact}$"):
        converted("""
            loop.kernel @k(%x: memref<4294967296xf32>) -> (%y: memref<4xf32>) {
              %v = loop.load %x ()[s0] -> (s0)() : memref<4294967296xf32>, vector<4294967296xf32>
            }""")


def test_a_vector_without_an_axis_is_refused() -> None:
    with pytest.raises(PassFailedException, match=r"^loop-legalize-vectors: a vector has no axis$"):
        converted("""
            loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
              %v = loop.load %x () -> (0)() : memref<4xf32>, vector<f32>
            }""")


def test_scalars_need_no_legalisation() -> None:
    module = converted(
        """
        loop.kernel @k(%x: memref<4xf32>) -> (%y: memref<4xf32>) {
          loop.for "i" %i to 4 {
            %v = loop.load %x (d0) -> (d0)(%i) : memref<4xf32>, f32
            loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<4xf32>
          }
        }""",
        target=None,
    )
    assert len(operations(module, "scf.for")) == 1


def test_vectors_are_cut_as_the_attribute_says() -> None:
    module = converted(
        """
        loop.kernel @k(%x: memref<11xf32>) -> (%y: memref<11xf32>)
            attributes {loop.vectors = #loop.vectors<hoist 0, 11 = [4, 4, 3 of 4]>} {
          %v = loop.load %x ()[s0] -> (s0)() : memref<11xf32>, vector<11xf32>
          %e = math.exp %v {loop.interleave = 2 : i64} : vector<11xf32>
          loop.store %e, %y ()[s0] -> (s0)() : vector<11xf32>, memref<11xf32>
        }""",
        target=None,
    )
    exps = operations(module, "math.exp")
    assert [str(op.results[0].type) for op in exps] == ["vector<4xf32>"] * 3
    assert exps[0].next_op is exps[1]
    assert exps[1].next_op is not exps[2]
    assert not any(op.attributes for op in exps)
    assert len(operations(module, "vector.maskedstore")) == 1


def operations(module: ModuleOp, name: str) -> list[Operation]:
    return [op for op in module.walk() if op.name == name]


@pytest.mark.parametrize(
    ("target", "types"),
    [
        ("x86-64-v4", ["vector<16xf32>", "vector<8xf32>"]),
        ("x86-64-v3", ["vector<8xf32>"] * 2 + ["vector<4xf32>", "vector<2xf32>", "f32"]),
        ("neoverse-n1", ["vector<4xf32>"] * 5 + ["vector<2xf32>", "f32"]),
    ],
)
def test_a_row_is_cut_for_the_machine(target: str, types: list[str]) -> None:
    module = converted(
        """
        loop.kernel @k(%x: memref<23xf32>) -> (%y: memref<23xf32>) {
          %v = loop.load %x ()[s0] -> (s0)() : memref<23xf32>, vector<23xf32>
          %w = arith.addf %v, %v : vector<23xf32>
          loop.store %w, %y ()[s0] -> (s0)() : vector<23xf32>, memref<23xf32>
        }""",
        target,
    )
    assert [str(op.results[0].type) for op in operations(module, "arith.addf")] == types


def test_a_local_buffer_that_stays_in_registers_is_not_made() -> None:
    module = converted("""
        loop.kernel @k(%x: memref<16xf32>) -> (%y: memref<16x16xf32>) {
          %h = loop.local : memref<16xf32>
          %v = loop.load %x ()[s0] -> (s0)() : memref<16xf32>, vector<16xf32>
          %w = arith.addf %v, %v : vector<16xf32>
          loop.store %w, %h ()[s0] -> (s0)() : vector<16xf32>, memref<16xf32>
          loop.for "i" %i to 16 unroll {
            %s = loop.load %h (d0) -> (d0)(%i) : memref<16xf32>, f32
            %b = vector.broadcast %s : f32 to vector<16xf32>
            loop.store %b, %y (d0)[s0] -> (d0, s0)(%i) : vector<16xf32>, memref<16x16xf32>
          }
        }""")
    assert not operations(module, "memref.alloca")
    assert not operations(module, "vector.extract")
    assert len(operations(module, "vector.load")) == 1
    assert len(operations(module, "vector.shuffle")) == 16


GEMM = """
loop.kernel @gemm(%x: memref<?x9xf32>, %w: memref<9x40xf32>) -> (%y: memref<?x40xf32>) {
  %c0 = arith.constant 0 : index
  %m = arith.constant 40 : index
  %zero = arith.constant dense<0.0> : vector<3x48xf32>
  %n = memref.dim %x, %c0 : memref<?x9xf32>
  loop.for "i0" %i to min (d0) -> (d0 ceildiv 3)(%n) {
    %e = affine.min affine_map<(d0, d1) -> (3, d0 - d1 * 3)>(%n, %i)
    %s = loop.for "k" %k to 9 reduction unroll 2 carry(%acc = %zero : vector<3x48xf32> add) {
      %p = loop.load %x (d0, d1)[s0, s1] -> (d0 * 3 + s0, d1)(%i, %k) valid(0 : %e)
        : memref<?x9xf32>, vector<3x1xf32>
      %q = loop.load %w (d0)[s0, s1] -> (d0, s1)(%k) valid(1 : %m)
        : memref<9x40xf32>, vector<1x48xf32>
      %pb = vector.broadcast %p : vector<3x1xf32> to vector<3x48xf32>
      %qb = vector.broadcast %q : vector<1x48xf32> to vector<3x48xf32>
      %t = math.fma %pb, %qb, %acc : vector<3x48xf32>
      loop.yield %t : vector<3x48xf32>
    }
    loop.store %s, %y (d0)[s0, s1] -> (d0 * 3 + s0, s1)(%i) valid(0 : %e, 1 : %m)
      : vector<3x48xf32>, memref<?x40xf32>
  }
}
loop.kernel @spmm(%ip: memref<?xi32>, %ix: memref<?xi32>, %v: memref<?xf16>)
    -> (%y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %y, %c0 : memref<?xf32>
  loop.for "i" %i to %n {
    %h = loop.local : memref<4x4xf32>
    %s = loop.for "e" %p, %j of %ip, %ix row (d0) -> (d0)(%i) reduction unroll 3
        carry(%acc = %zero : f32 max) : memref<?xi32>, memref<?xi32> {
      %a = loop.load %v (d0) -> (d0)(%p) : memref<?xf16>, f16
      %b = arith.extf %a : f16 to f32
      %t = arith.maximumf %b, %acc : f32
      loop.yield %t : f32
    }
    loop.for "u" %u to 4 {
      loop.store %s, %h (d0, d1) -> (d0, d1 mod 4)(%u, %i) : f32, memref<4x4xf32>
    }
    %w = loop.load %h ()[s0, s1] -> (s1, s0)() : memref<4x4xf32>, vector<4x4xf32>
    %f = loop.fold %w axis 1 min : vector<4x4xf32> -> vector<4x1xf32>
    %g = loop.fold %f axis 0 mul : vector<4x1xf32> -> vector<1x1xf32>
    %r = vector.extract %g[0, 0] : f32 from vector<1x1xf32>
    loop.store %r, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}
"""


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64-v3"])
def test_mlir_opt_takes_the_result(target: str) -> None:
    found = shutil.which("mlir-opt-22") or tool("mlir-opt", "mlir-22-tools")
    lowering = (
        "--convert-scf-to-cf --convert-vector-to-llvm --expand-strided-metadata "
        "--convert-math-to-llvm --convert-arith-to-llvm --finalize-memref-to-llvm "
        "--convert-func-to-llvm --convert-cf-to-llvm --reconcile-unrealized-casts"
    )
    text = str(converted(GEMM, target))
    done = subprocess.run(
        [found, *lowering.split()], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "unrealized_conversion_cast" not in done.stdout


# Index arithmetic.

EXPRESSIONS = st.recursive(
    st.one_of(
        st.integers(0, 2).map(AffineExpr.dimension),
        st.integers(-9, 9).map(AffineExpr.constant),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
        st.tuples(inner, st.integers(-5, 5)).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, st.integers(1, 7)).map(lambda pair: pair[0] // pair[1]),
        st.tuples(inner, st.integers(1, 7)).map(lambda pair: pair[0].ceil_div(pair[1])),
        st.tuples(inner, st.integers(1, 7)).map(lambda pair: pair[0] % pair[1]),
    ),
    max_leaves=8,
)


def _run(block: Block, known: dict[object, int]) -> None:
    """Compute the index operations of a block on Python integers."""
    for op in block.ops:
        a = [known[operand] for operand in op.operands]
        match op.name:
            case "arith.constant":
                value = op.properties["value"].value.data  # type: ignore[attr-defined]
            case "arith.addi":
                value = a[0] + a[1]
            case "arith.subi":
                value = a[0] - a[1]
            case "arith.muli":
                value = a[0] * a[1]
            case "arith.divui":
                assert a[0] >= 0
                value = a[0] // a[1]
            case "arith.divsi":
                value = abs(a[0]) // a[1] * (1 if a[0] >= 0 else -1)
            case "arith.cmpi":
                value = int(a[0] < a[1])
            case "arith.select":
                value = a[1] if a[0] else a[2]
            case name:
                raise AssertionError(name)
        known[op.results[0]] = value


@given(EXPRESSIONS, st.tuples(st.integers(0, 40), st.integers(0, 6), st.integers(-40, 40)))
def test_index_arithmetic_is_that_of_affine_expressions(
    expr: AffineExpr, values: tuple[int, int, int]
) -> None:
    block = Block(arg_types=[INDEX] * 3)
    emitter = ScopedEmitter(block)
    indices = Indices(emitter)
    first, second, third = block.args
    dims = [indices.atom(first, nonnegative=True), indices.atom(second, True, 6)]
    dims.append(indices.atom(third))
    form = indices.evaluate(expr, dims)
    result = indices.value(form)
    emitter.close()
    known: dict[object, int] = dict(zip(block.args, values, strict=True))
    _run(block, known)
    expected = expr.eval(list(values), [])
    assert known[result] == expected
    low, high = indices.ranges.of(form)
    assert low is None or low <= expected
    assert high is None or expected <= high


def _variables(count: int) -> tuple[Indices, list[Affine], tuple[BlockArgument, ...]]:
    block = Block(arg_types=[INDEX] * count)
    indices = Indices(ScopedEmitter(block))
    return indices, [indices.atom(arg, nonnegative=True) for arg in block.args], block.args


def test_a_chunk_of_a_loop_that_runs_is_not_empty() -> None:
    indices, (n, i, j), _ = _variables(3)
    indices.assume_below(i, [indices.divide(n + 11, 12)])
    assert indices.is_positive(n - i * 12)
    assert indices.is_positive(indices.least([fixed(12), n - i * 12]))
    assert not indices.is_positive(n - i * 13)
    assert not indices.is_positive(n - j * 12)
    assert not indices.is_positive(j)


def test_what_holds_in_a_loop() -> None:
    indices, (n, m, i), _ = _variables(3)
    assert not indices.is_positive(n)
    indices.assume_below(i, [n])
    assert indices.is_positive(n - i)
    assert indices.is_positive(n)
    assert not indices.is_positive(n - i - 1)
    assert not indices.is_positive(indices.least([n, m]))
    # i < m floordiv 4  ==>  m - 4 * i - 3 >= 1
    indices.assume_below(i, [indices.divide(m, 4)])
    assert indices.is_positive(m - i * 4 - 3)
    assert not indices.is_positive(m - i * 4 - 4)
    assert indices.is_positive(indices.least([n, m]))
    assert indices.is_positive(indices.greatest([n, fixed(-3)]))


def test_a_tail_that_runs_is_not_empty() -> None:
    indices, (n, i), _ = _variables(2)
    rest = indices.remainder(n, 12)
    assert not indices.is_positive(rest)
    indices.assume_below(i, [indices.divide(rest + 11, 12)])
    assert indices.is_positive(rest)
