"""The dependence test against all pairs of iterations, and the kernels that it refuses."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.utils.exceptions import PassFailedException, VerifyException

import stepwell as sw
from stepwell.core.registry import make_context
from stepwell.dialects.loop.nests import ScheduleError
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.proofs.dependences import dependences, unwritten
from stepwell.passes.loop.scheduler.replay import replay
from stepwell.passes.loop.steps.vectorize import vectorize


def module_of(kernel: Callable[..., None]) -> sw.Module:
    """A call of a kernel on x of shape (4, 6), whose result has that shape as well."""
    b = sw.Builder("main")
    x = b.input("x", (4, 6), "f32")
    spec = sw.TensorSpec((4, 6), "f32")
    b.output(b.call_kernel(sw.kernel(kernel), x, results=spec), name="y")
    return b.module()


def carried(k: Any, x: Any, y: Any) -> None:
    with k.loops(4, 5) as (i, j):
        y[i, j + 1] = y[i, j] + x[i, j + 1]


def one_place(k: Any, x: Any, y: Any) -> None:
    with k.loops(6) as i:
        y[0, 0] = x[0, i]


def overlapping(k: Any, x: Any, y: Any) -> None:
    with k.loops(2, 3) as (i, j):
        y[0, 2 * i + j] = x[0, 2 * i + j]


def indirect(k: Any, x: Any, y: Any) -> None:
    with k.loops(4) as i:
        y[0, k.cast(x[0, i], "i32")] = x[0, i]


def fresh(k: Any, x: Any, y: Any) -> None:
    with k.loops(*y.shape) as (i, j):
        y[i, j] = y[i, j] + x[i, j]


def beside(k: Any, x: Any, y: Any) -> None:
    with k.loops(4, 3) as (i, j):
        y[i, 2 * j] = x[i, j]
        y[i, 2 * j] = y[i, 2 * j + 1]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (carried, r'loop "j" may .*: one stores y\[i, j \+ 1\], another loads y\[i, j\], expected'),
        (one_place, r'loop "i" may .*: one stores y\[0, 0\], another stores y\[0, 0\], expected'),
        (overlapping, r'loop "i" may depend on one another: one stores y\[0, i \* 2 \+ j\]'),
        (indirect, r'loop "i" may depend on one another: one stores y\[0, \(computed\)\], another'),
        (fresh, r"loop.load: y\[i, j\] is read, but nothing is stored there before"),
        (beside, r"loop.load: y\[i, j \* 2 \+ 1\] is read, but nothing is stored there before"),
    ],
)
def test_refused(kernel: Callable[..., None], message: str) -> None:
    with pytest.raises(sw.StepwellError, match=f'kernel "{kernel.__name__}": .*{message}'):
        module_of(kernel)


def cut(k: Any, x: Any, y: Any) -> None:
    with k.loops(24) as i:
        y[i // 6, i % 6] = x[i // 6, i % 6]


def tiled(k: Any, x: Any, y: Any) -> None:
    with k.loops(4, 2, 3) as (i, j, m):
        y[i, 3 * j + m] = x[i, 3 * j + m]


def reordered(k: Any, x: Any, y: Any) -> None:
    """The outer loop takes the smaller steps; it misses 0, 3 and 6 from any other of its places."""
    with k.loops(3, 4, 2) as (m, i, j):
        y[i, 3 * j + m] = x[i, 3 * j + m]


def cut_in_three(k: Any, x: Any, y: Any) -> None:
    with k.loops(12, 2) as (i, j):
        y[i // 3, 2 * (i % 3) + j] = x[i // 3, 2 * (i % 3) + j]


def numbered(k: Any, x: Any, y: Any) -> None:
    """Two rows at a time, each element by its row-major number in them."""
    with k.loops(2, 12) as (i, j):
        y[2 * i + j // 6, j % 6] = x[2 * i + j // 6, j % 6]


def skewed(k: Any, x: Any, y: Any) -> None:
    with k.loops(4, 6) as (i, j):
        y[3 - i, j] = x[i, j]
    with k.loops(2, 2) as (i, j):
        y[i + j, j] = x[i, j]


def again(k: Any, x: Any, y: Any) -> None:
    with k.loops(4, 3) as (i, j):
        y[i, j] = x[i, j]
        y[i, j + 3] = y[i, j] + 1
    with k.loops(4) as i:
        y[i, 0] = y[i, 0] + y[i, 5]


def scattered(k: Any, x: Any, y: Any) -> None:
    """Another index shows that iterations store apart."""
    with k.loops(4, 6) as (i, j):
        y[i, j] = x[i, j]
    with k.loops(4) as i:
        y[i, k.minimum(k.maximum(k.cast(x[i, 0], "i32"), 0), 5)] = 7


def idle(k: Any, x: Any, y: Any) -> None:
    """What a loop without iterations would store is at one place."""
    with k.loops(4, 6) as (i, j):
        y[i, j] = x[i, j]
    with k.loops(4, 0) as (i, j):
        y[0, 0] = x[i, j]


@pytest.mark.parametrize(
    "kernel", [cut, tiled, reordered, cut_in_three, numbered, skewed, again, scattered, idle]
)
def test_legal_kernels_run(kernel: Callable[..., None]) -> None:
    module = module_of(kernel)
    x = np.random.default_rng(3).integers(0, 6, (4, 6)).astype(np.float32)
    np.testing.assert_array_equal(sw.compile(module, threads=1)(x), module.run_reference(x))


TERM = st.integers(-3, 3)
SIZE = st.integers(1, 5)


@settings(deadline=None, max_examples=settings().max_examples * 80 // 100)
@given(
    store=st.tuples(TERM, TERM, TERM),
    load=st.tuples(TERM, TERM, TERM),
    divisor=st.integers(1, 4),
    factors=st.tuples(TERM, TERM, TERM),
    sizes=st.tuples(SIZE, SIZE),
)
def test_every_dependence_is_found(store, load, divisor, factors, sizes) -> None:
    """Iterations that meet are found for all coefficients; quotients and remainders included."""
    p, q, more = factors

    def place(terms: tuple[int, int, int], i: int, j: int) -> tuple[int, int]:
        index = terms[0] * i + terms[1] * j + terms[2]
        return index // divisor * p, index % divisor * q + j * more

    def text(terms: tuple[int, int, int]) -> str:
        index = f"d0 * {terms[0]} + d1 * {terms[1]} + {terms[2]}"
        high, low = f"({index}) floordiv {divisor}", f"({index}) mod {divisor}"
        return f"(d0, d1) -> (({high}) * {p}, ({low}) * {q} + d1 * {more})(%i, %j)"

    kind = "memref<?x?xf32>"
    module = parse(
        f"""
loop.kernel @k(%z: f32, %n: index) -> (%y: {kind}) {{
  loop.for "i" %i to {sizes[0]} {{
    loop.for "j" %j to {sizes[1]} {{
      %v = loop.load %y {text(load)} : {kind}, f32
      loop.store %v, %y {text(store)} : f32, {kind}
    }}
  }}
}}""".replace("%z: f32, ", "")
    )
    body = kernel_in(module).body.block
    found = {d.loop.loop_name.data for d in dependences(body, {})}
    assert {d.loop.loop_name.data for d in dependences(body, {}, ["j"])} == found & {"j"}
    everywhere = list(itertools.product(range(sizes[0]), range(sizes[1])))
    for one, other in itertools.product(everywhere, everywhere):
        meets = place(store, *one) in (place(load, *other), place(store, *other))
        if meets and one[0] != other[0]:
            assert "i" in found
        if meets and one[0] == other[0] and one[1] != other[1]:
            assert "j" in found


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


def kernel_in(module: ModuleOp) -> KernelOp:
    return next(op for op in module.walk() if isinstance(op, KernelOp))


def stores(type: str, size: str, place: str) -> str:
    """A kernel whose loop stores vectors of 4 lanes, of which those below a size are valid."""
    buffer = f"memref<{type}xf32>"
    return f"""
loop.kernel @k(%n: index) -> (%y: {buffer}) {{
  %f = arith.constant 0.0 : f32
  %v = vector.broadcast %f : f32 to vector<4xf32>
  loop.for "i" %i to min (d0) -> (({size}) ceildiv 4)(%n) {{
    %valid = affine.min affine_map<(d0, d1) -> (4, {size} - d1 * 4)>(%n, %i)
    loop.store %v, %y (d0)[s0] -> ({place})(%i) valid(0 : %valid) : vector<4xf32>, {buffer}
  }}
}}"""


@pytest.mark.parametrize(
    ("type", "place", "meets"),
    [
        ("?x2x3", "(e floordiv 3) floordiv 2, (e floordiv 3) mod 2, e mod 3", False),
        ("?x2x3", "e floordiv 6, (e mod 6) floordiv 3, (e mod 6) mod 3", False),
        ("?x2x3", "(e floordiv 3) floordiv 2, (e floordiv 3) mod 2, e mod 2", True),
        ("?x2x3", "(e floordiv 5) floordiv 2, (e floordiv 3) mod 2, e mod 3", True),
        ("?x2x3", "e floordiv 6, (e mod 6) floordiv 4, (e mod 6) mod 3", True),
        ("?x2x?", "e floordiv 6, (e mod 6) floordiv 3, (e mod 3) mod 2", True),
    ],
)
def test_three_loops_that_are_fused(type: str, place: str, meets: bool) -> None:
    text = stores(type, "d0 * 6", place.replace("e", "(d0 * 4 + s0)"))
    assert bool(list(dependences(kernel_in(parse(text)).body.block, {}))) == meets


def test_a_serial_loop_may_carry_a_dependence() -> None:
    text = """
loop.kernel @scan(%x: memref<8xf32>) -> (%y: memref<8xf32>) {
  %v = loop.load %x () -> (0)() : memref<8xf32>, f32
  loop.store %v, %y () -> (0)() : f32, memref<8xf32>
  loop.for "i" %i to 7 serial {
    %a = loop.load %y (d0) -> (d0)(%i) : memref<8xf32>, f32
    %b = loop.load %x (d0) -> (d0 + 1)(%i) : memref<8xf32>, f32
    %s = arith.addf %a, %b : f32
    loop.store %s, %y (d0) -> (d0 + 1)(%i) : f32, memref<8xf32>
  }
}"""
    parse(text).verify()
    message = r'loop "i" may depend on one another: one stores y\[i \+ 1\], another loads y\[i\]'
    with pytest.raises(VerifyException, match=message):
        parse(text.replace(" serial", "")).verify()


def test_an_output_over_an_input_counts_as_that() -> None:
    text = """
loop.kernel @shift(%x: memref<8xf32>) -> (%y: memref<8xf32> {loop.in_place = [0]}) {
  loop.for "i" %i to 7 {
    %v = loop.load %x (d0) -> (d0 + 1)(%i) : memref<8xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}"""
    with pytest.raises(VerifyException, match=r"one stores y\[i\], another loads x\[i \+ 1\]"):
        parse(text).verify()
    parse(text.replace(" {loop.in_place = [0]}", "")).verify()


def test_every_output_over_an_input_counts_as_that() -> None:
    text = """
loop.kernel @two(%x: memref<8xf32>)
    -> (%y: memref<8xf32> {loop.in_place = [0]}, %z: memref<8xf32> {loop.in_place = [0]}) {
  loop.for "i" %i to 7 {
    %v = loop.load %x (d0) -> (d0 + 1)(%i) : memref<8xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
    loop.store %v, %z (d0) -> (d0 + 1)(%i) : f32, memref<8xf32>
  }
}"""
    with pytest.raises(VerifyException, match=r"one stores y\[i\], another loads x\[i \+ 1\]"):
        parse(text).verify()
    parse(text.replace("(d0 + 1)", "(d0)")).verify()


def test_the_rows_of_a_matrix_are_not_written_over() -> None:
    text = """
loop.kernel @next(%ptr: memref<?xi32>, %col: memref<?xi32>)
    -> (%y: memref<?xi32> {loop.in_place = [0]}) {
  %zero = arith.constant 0 : i32
  loop.for "i" %i to 8 {
    %s = loop.for "e" %p, %j of %ptr, %col row (d0) -> (d0)(%i)
        reduction carry(%acc = %zero : i32 max) : memref<?xi32>, memref<?xi32> {
      %q = arith.index_cast %j : index to i32
      %t = arith.maxsi %acc, %q : i32
      loop.yield %t : i32
    }
    loop.store %s, %y (d0) -> (d0)(%i) : i32, memref<?xi32>
  }
}"""
    with pytest.raises(VerifyException, match=r"loop\.for: the rows of a matrix are not those"):
        parse(text).verify()
    parse(text.replace(" {loop.in_place = [0]}", "")).verify()


def test_a_schedule_in_the_text_is_no_proof() -> None:
    text = """
loop.kernel @scan(%x: memref<64xf32>) -> (%y: memref<64xf32>)
    attributes {loop.schedule = "tiles(i)"} {
  loop.for "i" %i to 63 tiles {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<64xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<64xf32>
    loop.store %v, %y (d0) -> (d0 + 1)(%i) : f32, memref<64xf32>
  }
}"""
    message = r'loop "i" may depend on one another: one stores y\[i\], another stores y\[i \+ 1\]'
    with pytest.raises(sw.ImportModelError, match=message):
        sw.from_mlir(text)
    sw.from_mlir(text.replace("(d0 + 1)(%i) : f32", "(d0)(%i) : f32"))


def test_a_local_buffer_is_filled_before_it_is_read() -> None:
    text = """
loop.kernel @local(%x: memref<8xf32>) -> (%y: memref<8xf32>) {
  loop.for "i" %i to 8 {
    %h = loop.local : memref<1xf32>
    %v = loop.load %h () -> (0)() : memref<1xf32>, f32
    loop.store %v, %h () -> (0)() : f32, memref<1xf32>
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}"""
    kernel = kernel_in(parse(text))
    assert len(list(unwritten(kernel.body.block, kernel.outputs))) == 1
    with pytest.raises(VerifyException, match=r"h\[0\] is read, but nothing is stored"):
        parse(text).verify()


def test_a_buffer_without_elements_is_not_read() -> None:
    """A pass may have erased the loops that fill it, which do not run."""
    parse("""
loop.kernel @counts(%x: memref<?xi32>) -> (%y: memref<0xi32>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xi32>
  loop.for "k" %k to %n serial {
    %v = loop.load %x (d0) -> (d0)(%k) : memref<?xi32>, i32
    %i = arith.index_cast %v : i32 to index
    loop.store add %v, %y (d0) -> (d0)(%i) : i32, memref<0xi32>
  }
}""").verify()


def test_lanes_are_not_stored_to_one_place() -> None:
    """Vectorizing looks for itself: it is also given kernels that nobody has verified."""
    text = """
loop.kernel @last(%x: memref<8xf32>) -> (%y: memref<1xf32>) {
  loop.for "a" %i to 8 {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
    loop.store %v, %y () -> (0)() : f32, memref<1xf32>
  }
}"""
    message = 'loop-vectorize: loop "a" of @last: its iterations store to one place'
    with pytest.raises(ScheduleError, match=message):
        vectorize(kernel_in(parse(text)), ["a"])


ENTRIES = """
loop.kernel @entries(%ends: memref<?xi32> {loop.indptr}, %x: memref<?xf32>) -> (%y: memref<?xf32>) {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %n = memref.dim %ends, %zero : memref<?xi32>
  %rows = arith.subi %n, %one : index
  loop.for "i" %i to %rows {
    %0 = loop.load %ends (d0) -> (d0)(%i) : memref<?xi32>, i32
    %1 = loop.load %ends (d0) -> ((d0 + 1))(%i) : memref<?xi32>, i32
    %start = arith.index_cast %0 : i32 to index
    %end = arith.index_cast %1 : i32 to index
    %count = arith.subi %end, %start : index
    loop.for "l" %l to %count {
      %v = loop.load %x (d0, d1) -> ((d0 + d1))(%start, %l) : memref<?xf32>, f32
      loop.store %v, %y (d0, d1) -> ((d0 + d1))(%start, %l) : f32, memref<?xf32>
    }
  }
}
"""


def test_the_rows_of_a_matrix_are_apart() -> None:
    Parser(make_context(), ENTRIES).parse_module().verify()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("((d0 + 1))(%i)", "((d0 + 2))(%i)"),
        ("arith.subi %end, %start", "arith.subi %end, %one"),
        ("-> ((d0 + d1))(%start, %l) : f32", "-> ((d0 + d1 + 1))(%start, %l) : f32"),
        (" {loop.indptr}", ""),
    ],
)
def test_what_is_no_row_may_meet_another(old: str, new: str) -> None:
    assert old in ENTRIES
    module = Parser(make_context(), ENTRIES.replace(old, new)).parse_module()
    with pytest.raises(VerifyException, match='iterations of loop "i" may depend on one another'):
        module.verify()


DIVIDED = """
loop.kernel @f(%x: memref<8xf32>) -> (%y: memref<8xf32>) {
  loop.for "i" %i to 8 {
    %a = loop.load %x (d0) -> (d0 OP BY)(%i) : memref<8xf32>, f32
    loop.store %a, %y (d0) -> (d0)(%i) : f32, memref<8xf32>
  }
}
"""


@pytest.mark.parametrize("op", ["floordiv", "ceildiv", "mod"])
@pytest.mark.parametrize("by", ["0", "-3"])
def test_an_index_that_is_divided_by_no_positive_number(op: str, by: str) -> None:
    text = DIVIDED.replace("OP", op).replace("BY", by)
    message = f"cannot divide by what is not a positive constant in (d0 {op} {by})"
    with pytest.raises(PassFailedException, match=re.escape(message)):
        CanonicalizePass().apply(make_context(), parse(text))
    stored = text.replace("(d0)(%i)", f"(d0 {op} {by})(%i)")
    with pytest.raises(VerifyException, match='iterations of loop "i" may depend on one another'):
        parse(stored).verify()


def test_a_carried_index_has_not_the_range_of_its_loop() -> None:
    text = """
    loop.kernel @k(%x: memref<8xf32>) -> (%y: memref<?xf32>) {
      %five = arith.constant 5 : index
      %one = arith.constant 1 : index
      loop.for "i" %i to 8 {
        %v = loop.load %x (d0) -> (d0)(%i) : memref<8xf32>, f32
        %r = loop.for "j" %j to 2 serial carry(%acc = %five : index) {
          loop.store %v, %y (d0, d1) -> (((d0 * 5) + d1))(%i, %acc) : f32, memref<?xf32>
          %n = arith.addi %acc, %one : index
          loop.yield %n : index
        }
      }
    }
    """
    with pytest.raises(VerifyException, match='iterations of loop "i" may depend on one another'):
        Parser(make_context(), text).parse_module().verify()


COPY = """
loop.kernel @copy(%x: memref<?xf32>) -> (%y: memref<?xf32>) {
  %zero = arith.constant 0 : index
  %n = memref.dim %x, %zero : memref<?xf32>
  loop.for "i" %i to %n {
    %v = loop.load %x (d0) -> (d0)(%i) : memref<?xf32>, f32
    loop.store %v, %y (d0) -> (d0)(%i) : f32, memref<?xf32>
  }
}"""


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        # Tiles that are no multiple of the lanes: masks keep them apart.
        (COPY, "split(i, 100, tail=mask); split(i1, 32, tail=mask); vectorize(i11); tiles(i0)"),
        (COPY, "split(i, 32, tail=split); vectorize(i1); split(i1t, 8, tail=mask)"),
        (COPY, "split(i, 4, tail=cases, cases=5); vectorize(i1)"),
        (ENTRIES, "split(i, 3, tail=mask); tiles(i0)"),
        (ENTRIES, "split(i, 3); split(l, 32, tail=split); vectorize(l1)"),
        (ENTRIES, "split(l, 32, tail=split); split(l1t, 8, tail=mask); vectorize(l1t1); tiles(i)"),
    ],
)
def test_what_steps_make_of_independent_iterations(text: str, steps: str) -> None:
    replay(kernel_in(parse(text)), steps).verify()


def test_balanced_rows(kernel_of, kernels) -> None:
    kernel = replay(kernel_of(kernels.spmm(8)), "balance(i, e, 3, weight=2); tiles(i0)")
    kernel.verify()
    text = str(kernel).replace("d0 * -1) + d1", "d0 * -1) + d1) + 1").replace("(((", "((((")
    with pytest.raises(VerifyException, match='iterations of loop "i0" may depend'):
        parse(text).verify()
