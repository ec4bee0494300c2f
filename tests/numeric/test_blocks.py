"""Blocks of threads of a device: shared memory, parts of threads, barriers, at every stage."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.parser import Parser

import stepwell as sw
from stepwell.core.registry import make_context
from stepwell.diagnosis.barriers import unordered

from ..harness import cases, floats

DEVICE = "cuda:sm_90,emulated"
STAGES = ("scheduled", "loops", "llvm", "ptx")

NEIGHBOURS = """
loop.kernel @neighbours(%x: memref<6x5x40xf32>) -> (%y: memref<6x5x40xf32>) {
  loop.for "b" %b to 6 blocks {
    %s = loop.local : memref<40xf32, #loop<space shared>>
    %r = loop.local : memref<40x2xf32, #loop<space threads>>
    loop.for "a" %a to 40 threads {
      %zero = arith.constant 0.0 : f32
      loop.store %zero, %r (d0) -> (d0, 1)(%a) : f32, memref<40x2xf32, #loop<space threads>>
    }
    loop.for "k" %k to 5 serial {
      loop.for "t" %t to 40 threads {
        %v = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%b, %k, %t) : memref<6x5x40xf32>, f32
        loop.store %v, %s (d0) -> (d0)(%t) : f32, memref<40xf32, #loop<space shared>>
      }
      loop.for "u" %u to 40 threads {
        %v = loop.load %s (d0) -> (39 - d0)(%u) : memref<40xf32, #loop<space shared>>, f32
        %o = loop.load %r (d0) -> (d0, 1)(%u) : memref<40x2xf32, #loop<space threads>>, f32
        %w = arith.addf %o, %v : f32
        loop.store %w, %r (d0) -> (d0, 1)(%u) : f32, memref<40x2xf32, #loop<space threads>>
        loop.store %w, %y (d0, d1, d2) -> (d0, d1, d2)(%b, %k, %u) : f32, memref<6x5x40xf32>
      }
    }
  }
}
"""
"""Running sums of rows that run backwards: what a thread reads, another one has written."""

PROGRAM = """
builtin.module attributes {stepwell.version = 1 : i64, stepwell.stage = "scheduled"} {
  func.func @main(%x: tensor<6x5x40xf32> {graph.name = "x"})
      -> (tensor<6x5x40xf32> {graph.name = "y"}) {
    %0 = graph.call_dps @neighbours(%x) : (tensor<6x5x40xf32>) -> tensor<6x5x40xf32>
    func.return %0 : tensor<6x5x40xf32>
  }
  KERNEL
}
"""


def program(kernel: str = NEIGHBOURS) -> sw.Module:
    return sw.from_mlir(PROGRAM.replace("KERNEL", kernel))


def test_every_stage() -> None:
    x = floats(6, 5, 40)
    wanted = np.cumsum(x[:, :, ::-1], axis=1)
    exe = sw.compile(program(), target=DEVICE)
    for stage in STAGES:
        np.testing.assert_array_equal(exe.run_at(stage, x), wanted, err_msg=stage)
    np.testing.assert_array_equal(exe(x), wanted)
    (launch,) = exe.launches
    assert (launch.blocks, launch.threads) == (6, 64)
    assert launch.mix["barrier"] == 6 * 2 * 5 * 2
    assert launch.total("conflicts") == 0
    text = exe.ir("ptx")
    assert ".shared .align 64 .b8 shared[160];" in text
    assert ".local" not in text, "the part of a thread is in a register"


def test_on_a_host() -> None:
    """Without a device a block is a tile, and its threads are iterations."""
    x = floats(6, 5, 40)
    exe = sw.compile(program())
    np.testing.assert_array_equal(exe(x), np.cumsum(x[:, :, ::-1], axis=1))
    assert "space" not in exe.ir("loops")


def test_bound_by_hand() -> None:
    """The rows of a block are a part of the last one that is smaller."""
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (None, 70), "f32")), name="y")
    steps = "@fused_relu: split(j, 32, tail=mask); bind(i, j0, level=blocks); bind(j1)"
    exe = sw.compile(b.module(), target=DEVICE, schedule=steps)
    for rows in (0, 1, 7):
        x = floats(rows, 70)
        for stage in STAGES:
            np.testing.assert_array_equal(exe.run_at(stage, x), np.maximum(x, 0), err_msg=stage)
        exe(x)
        assert [(done.blocks, done.threads) for done in exe.launches] == [(rows * 3, 32)][:rows]


def test_a_block_of_one_thread() -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (5, 3), "f32")), name="y")
    exe = sw.compile(b.module(), target=DEVICE, schedule="@fused_relu: bind(i, level=blocks)")
    x = floats(5, 3)
    np.testing.assert_array_equal(exe(x), np.maximum(x, 0))
    assert (exe.launches[0].blocks, exe.launches[0].threads) == (5, 1)


def test_more_threads_than_a_block_has() -> None:
    """Of n threads, each takes every n-th iteration."""
    kernel = NEIGHBOURS.replace("%w = arith.addf %o, %v : f32", "%w = arith.negf %v : f32")
    kernel = re.sub(r".*%[ro]\b.*\n", "", kernel).replace("40", "2500").replace("39", "2499")
    text = PROGRAM.replace("KERNEL", kernel).replace("x40x", "x2500x")
    exe, x = sw.compile(sw.from_mlir(text), target=DEVICE), floats(6, 5, 2500)
    np.testing.assert_array_equal(exe(x), -x[:, :, ::-1])
    assert exe.launches[0].threads == 1024


@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_barrier_is_a_race(number: int) -> None:
    """Each of the two: before memory is written again, and before it is read."""
    exe, x = sw.compile(program(), target=DEVICE), floats(6, 5, 40)
    first, *rest = exe.ir("loops").split("rt.barrier\n")
    assert len(rest) == 2
    rest.insert(1 - number, "rt.barrier\n")
    text = re.sub(r"(memref\.(load|store) .*)", r'\1 loc("act")', "".join([first, *rest]))
    wrong = sw.compile(sw.from_mlir(text), target=DEVICE)
    with pytest.raises(sw.EmulationError, match=r"race: byte \d+ of the shared memory") as caught:
        wrong(x)
    assert caught.value.kind == "race"
    assert re.fullmatch(r"main\.loops\.mlir:\d+", caught.value.source or "")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("(39 - d0)(%u)", "(40 - d0)(%u)"), "outside"),
        (
            (
                "(d0)(%t) : f32, memref<40xf32, #loop<space shared>>",
                "(0)(%t) : f32, memref<40xf32, #loop<space shared>>",
            ),
            "independent",
        ),
        (('"t" %t to 40', '"t" %t to 41'), "outside"),
    ],
)
def test_a_wrong_place_is_refused(change: tuple[str, str], says: str) -> None:
    """Iterations of threads are proved independent, and accesses inside, as those of any loop."""
    with pytest.raises(sw.StepwellError, match=says):
        sw.compile(program(NEIGHBOURS.replace(*change)), target=DEVICE)


def test_too_much_shared_memory() -> None:
    kernel = NEIGHBOURS.replace(
        "memref<40xf32, #loop<space shared>>", "memref<13000xf32, #loop<space shared>>"
    )
    says = "a block has too little shared memory, expected at most 49152, got 52000"
    with pytest.raises(sw.CompileError, match=says):
        sw.compile(program(kernel), target=DEVICE)


SUM_OF_A_ROW = """
loop.kernel @neighbours(%x: memref<6x5x40xf32>) -> (%y: memref<6x5x40xf32>) {
  %zero = arith.constant 0.0 : f32
  loop.for "b" %b to 6 blocks {
    loop.for "c" %c to 5 blocks {
      %p = loop.local : memref<8xf32, #loop<space shared>>
      loop.for "t" %t to 8 threads {
        %s = loop.for "k0" %k to 5 reduction carry(%a = %zero : f32 add) {
          %v = loop.load %x (d0, d1, d2, d3) -> (d0, d1, d2 * 8 + d3)(%b, %c, %k, %t)
            : memref<6x5x40xf32>, f32
          %u = arith.addf %a, %v : f32
          loop.yield %u : f32
        }
        loop.store %s, %p (d0) -> (d0)(%t) : f32, memref<8xf32, #loop<space shared>>
      }
      %all = loop.for "k1" %k to 8 reduction carry(%a = %zero : f32 add) {
        %v = loop.load %p (d0) -> (d0)(%k) : memref<8xf32, #loop<space shared>>, f32
        %u = arith.addf %a, %v : f32
        loop.yield %u : f32
      }
      loop.for "j" %j to 40 threads {
        %v = loop.load %x (d0, d1, d2) -> (d0, d1, d2)(%b, %c, %j) : memref<6x5x40xf32>, f32
        %w = arith.divf %v, %all : f32
        loop.store %w, %y (d0, d1, d2) -> (d0, d1, d2)(%b, %c, %j) : f32, memref<6x5x40xf32>
      }
    }
  }
}
"""
"""A block normalises a row: each thread sums a part of it, and then all sum the parts."""


def test_a_row_for_each_block() -> None:
    x = floats(6, 5, 40) + 2
    exe = sw.compile(program(SUM_OF_A_ROW), target=DEVICE)
    for stage in STAGES:
        found = exe.run_at(stage, x)
        np.testing.assert_allclose(found, x / x.sum(-1, keepdims=True), 1e-5, err_msg=stage)
    exe(x)
    (launch,) = exe.launches
    assert launch.mix["barrier"] == launch.blocks * launch.threads // 32, "once, before the loop"


def test_too_many_parts() -> None:
    kernel = NEIGHBOURS.replace("40", "2500").replace("39", "2499")
    text = PROGRAM.replace("KERNEL", kernel).replace("x40x", "x2500x")
    says = "a block has too few threads, expected at most 1024 parts, got 2500"
    with pytest.raises(sw.CompileError, match=says):
        sw.compile(sw.from_mlir(text), target=DEVICE)


def small_program() -> sw.Module:
    small = {"6x5x40": "2x3x8", "to 6": "to 2", "to 5": "to 3", "40": "8", "39": "7"}
    text = PROGRAM.replace("KERNEL", NEIGHBOURS)
    for old, new in small.items():
        text = text.replace(old, new)
    return sw.from_mlir(text)


def test_checked_and_bisected() -> None:
    x = floats(2, 3, 8)
    exe = sw.compile(small_program(), target=DEVICE, check=True)
    np.testing.assert_array_equal(exe(x), np.cumsum(x[:, :, ::-1], axis=1))


def softmax() -> sw.Module:
    b = sw.Builder("main")
    b.output(b.softmax(b.input("x", (3, 40), "f32")), name="y")
    return b.module()


@pytest.mark.parametrize(
    ("make", "missing"), [(small_program, 0), (small_program, 1), (softmax, 0)]
)
def test_a_conversion_that_forgets_a_barrier_is_blamed(
    forget_barrier: Callable[[int], None], make: Callable[[], sw.Module], missing: int
) -> None:
    """And not code generation, although no interpreter needs a barrier."""
    forget_barrier(missing)
    found = sw.bisect(make(), target=DEVICE)
    assert found is not None
    assert found.pass_name == "convert-loop-to-scf"
    says = r"it leaves threads of a block unordered in @\w+ at \S+( of \S+)?, expected rt.barrier"
    assert re.search(says, found.failure.message)
    assert '"convert kernel"' in str(found.action)


PLACES = """
func.func @f(%n: index, %c: i1, %y: memref<4xf32>) {
  rt.parallel_tiles %n device block 32 captures(%n, %c, %y : index, i1, memref<4xf32>) {
  ^bb0(%b: index, %m: index, %d: i1, %z: memref<4xf32>):
    %s = memref.alloca() {rt.shared} : memref<4xf32>
    %p = memref.alloca() {rt.parts = 4 : i64} : memref<4xf32>
    BODY
    rt.yield
  }
  func.return
}
"""
WRITE = """
rt.parallel_tiles %m device captures(%s : memref<4xf32>) {
^bb0(%t: index, %a: memref<4xf32>):
  %v = arith.constant 0.0 : f32
  memref.store %v, %a[%t] : memref<4xf32>
  rt.yield
}
"""
READ = """
rt.parallel_tiles %m device captures(%s, %p : memref<4xf32>, memref<4xf32>) {
^bb0(%t: index, %a: memref<4xf32>, %q: memref<4xf32>):
  %v = memref.load %a[%t] : memref<4xf32>
  %own = rt.slice %q, %t {rt.parts = 4 : i64} : memref<4xf32> to memref<f32>
  memref.store %v, %own[] : memref<f32>
  rt.yield
}
"""
WAIT = "rt.barrier"
AGAIN = "%o = arith.constant 1 : index scf.for %i = %o to %m step %o {{ {} }}".format
IF = "scf.if %d {{ {} }}".format


@pytest.mark.parametrize(
    ("body", "late"),
    [
        (READ + READ, False),
        (WRITE + WAIT + READ + WAIT + WRITE, False),
        (WRITE + READ, True),
        (READ + WRITE, True),
        (WRITE + WRITE, True),
        (WRITE + "%o = arith.constant 1 : index %v = memref.load %s[%o] : memref<4xf32>", True),
        (AGAIN(WAIT + WRITE + WAIT + READ), False),
        (AGAIN(WRITE + WAIT + READ), True),
        (AGAIN(WRITE + WAIT + READ + WAIT), False),
        (WRITE + AGAIN(WAIT) + READ, True),
        (IF(WRITE), False),
        (IF(WRITE) + READ, True),
    ],
)
def test_where_threads_have_to_wait(body: str, late: bool) -> None:
    """Parts of threads are of no others; a loop may have no iterations, or several."""
    text = PLACES.replace("BODY", body)
    module = Parser(make_context(), text).parse_module()
    assert (unordered(module) is not None) == late
    one = Parser(make_context(), text.replace("block 32", "block 1")).parse_module()
    assert unordered(one) is None


COPIES = """
loop.kernel @neighbours(%x: memref<6x5x40xf32>) -> (%y: memref<6x5x40xf32>) {
  loop.for "b" %b to 6 blocks {
    %s = loop.local : memref<40xf32, #loop<space shared>>
    loop.for "k" %k to 5 serial {
      loop.for "t" %t to 10 threads {
        loop.for "c" %c to 4 async {
          %v = loop.load %x (d0, d1, d2, d3) -> (d0, d1, d2 * 4 + d3)(%b, %k, %t, %c)
            : memref<6x5x40xf32>, f32
          loop.store %v, %s (d0, d1) -> (d0 * 4 + d1)(%t, %c)
            : f32, memref<40xf32, #loop<space shared>>
        }
      }
      loop.for "u" %u to 40 threads {
        %v = loop.load %s (d0) -> (39 - d0)(%u) : memref<40xf32, #loop<space shared>>, f32
        loop.store %v, %y (d0, d1, d2) -> (d0, d1, d2)(%b, %k, %u) : f32, memref<6x5x40xf32>
      }
    }
  }
}
"""
"""Rows backwards, which are copied asynchronously."""


@pytest.mark.parametrize("processor", ["sm_75", "sm_80"])
def test_asynchronous_copies(processor: str) -> None:
    """Older devices have none; on a host a copy is unrolled."""
    x = floats(6, 5, 40)
    exe = sw.compile(program(COPIES), target=f"cuda:{processor},emulated")
    for stage in STAGES:
        np.testing.assert_array_equal(exe.run_at(stage, x), x[:, :, ::-1], err_msg=stage)
    exe(x)
    (launch,) = exe.launches
    copies = [row for row in launch.lines if row.group == "copy" and row.sectors]
    assert sum(row.threads for row in copies) == (6 * 5 * 10 if processor == "sm_80" else 0)
    assert launch.coalescing == 1
    host = sw.compile(program(COPIES))
    np.testing.assert_array_equal(host(x), x[:, :, ::-1])
    assert "async" not in host.ir("loops")


def test_a_copy_is_not_read_before_it_is_waited_for() -> None:
    x = floats(6, 5, 40)
    exe = sw.compile(program(COPIES), target="cuda:sm_80,emulated")
    wrong = exe.ir("ptx").replace("cp.async.wait_all;", "")
    with pytest.raises(sw.EmulationError, match=r"race: an asynchronous copy .* is not complete"):
        sw.emulate(wrong, [6, x, np.zeros_like(x)], grid=6, block=64)


SHUFFLES = """
loop.kernel @neighbours(%x: memref<6x5x64xf32>) -> (%y: memref<6x5x64xf32>) {
  loop.for "b" %b to 6 blocks {
    loop.for "c" %c to 5 blocks {
      %p = loop.local : memref<2x32xf32, #loop<space threads>>
      loop.for "w" %w to 2 threads {
        loop.for "l" %l to 32 threads {
          %v = loop.load %x (d0, d1, d2, d3) -> (d0, d1, d2 * 32 + d3)(%b, %c, %w, %l)
            : memref<6x5x64xf32>, f32
          loop.store %v, %p (d0, d1) -> (d0, d1)(%w, %l)
            : f32, memref<2x32xf32, #loop<space threads>>
        }
      }
      loop.for "v" %w to 2 threads {
        loop.for "m" %l to 32 threads {
          %v = loop.load %p (d0, d1) -> (d0, (d1 + 5) mod 32)(%w, %l)
            : memref<2x32xf32, #loop<space threads>>, f32
          loop.store %v, %y (d0, d1, d2, d3) -> (d0, d1, d2 * 32 + d3)(%b, %c, %w, %l)
            : f32, memref<6x5x64xf32>
        }
      }
    }
  }
}
"""
"""Each thread reads what the fifth one after it has, in its warp."""


@pytest.mark.parametrize("kind", cases(["f32", "i64", "f64"], ["f32", "i64"]))
def test_shuffles(kind: str) -> None:
    dtype = {"f32": np.float32, "i64": np.int64, "f64": np.float64}[kind]
    x = (floats(6, 5, 64) * 2**20).astype(dtype)
    wanted = np.roll(x.reshape(6, 5, 2, 32), -5, axis=-1).reshape(x.shape)
    text = PROGRAM.replace("KERNEL", SHUFFLES).replace("x40x", "x64x").replace("xf32", f"x{kind}")
    text = text.replace(">, f32", f">, {kind}").replace(": f32", f": {kind}")
    exe = sw.compile(sw.from_mlir(text), target=DEVICE)
    for stage in STAGES:
        np.testing.assert_array_equal(exe.run_at(stage, x), wanted, err_msg=stage)
    exe(x)
    (launch,) = exe.launches
    assert launch.mix["shuffle"] == 6 * 5 * 2 * (1 if kind == "f32" else 2)
    assert "barrier" not in launch.mix
    assert ".local" not in exe.ir("ptx")
    np.testing.assert_array_equal(sw.compile(sw.from_mlir(text))(x), wanted)


def test_a_shuffle_of_some_threads_is_an_error() -> None:
    """Threads of a warp that are elsewhere are missing."""
    text = PROGRAM.replace("KERNEL", SHUFFLES).replace("x40x", "x64x")
    ptx = sw.compile(sw.from_mlir(text), target=DEVICE).ir("ptx")
    line = next(line for line in ptx.splitlines() if "shfl" in line)
    thread = re.search(r"mov.u32 \t(%r\d+), %tid.x", ptx)
    assert thread is not None
    result = line.split()[1].rstrip(",")
    some = f"mov.b32 {result}, 0;\nsetp.lt.u32 %p1, {thread[1]}, 7;\n@%p1 {line.strip()}"
    wrong = ptx.replace(line, some).replace(".reg .b32", ".reg .pred %p<2>;\n.reg .b32", 1)
    x = floats(6, 5, 64)
    with pytest.raises(sw.EmulationError, match="7 of the 32 threads of a warp wait"):
        sw.emulate(wrong, [30, x, np.zeros_like(x)], grid=30, block=64)


def test_what_one_thread_has_is_read_by_its_warp() -> None:
    """A shuffle reaches one warp, and the threads of another one would have something else."""
    kernel = """
loop.kernel @neighbours(%x: memref<6x5x64xf32>) -> (%y: memref<6x5x64xf32>) {
  loop.for "b" %b to 6 blocks {
    %p = loop.local : memref<32xf32, #loop<space threads>>
    loop.for "t" %t to 32 threads {
      %v = loop.load %x (d0, d1) -> (d0, 0, d1)(%b, %t) : memref<6x5x64xf32>, f32
      loop.store %v, %p (d0) -> (d0)(%t) : f32, memref<32xf32, #loop<space threads>>
    }
    %q = loop.local : memref<64xf32, #loop<space threads>>
    %v = loop.load %p () -> (3)() : memref<32xf32, #loop<space threads>>, f32
    loop.for "k" %k to 5 serial {
      loop.for "u" %u to 64 threads {
        loop.store %v, %q (d0) -> (d0)(%u) : f32, memref<64xf32, #loop<space threads>>
        loop.store %v, %y (d0, d1, d2) -> (d0, d1, d2)(%b, %k, %u) : f32, memref<6x5x64xf32>
      }
    }
  }
}
"""
    text = PROGRAM.replace("KERNEL", kernel).replace("x40x", "x64x")
    says = "all threads of a block read what one of a warp has, expected one warp, got 64"
    with pytest.raises(sw.CompileError, match=says):
        sw.compile(sw.from_mlir(text), target=DEVICE)
    one = text.replace("to 64 threads", "to 32 threads").replace("x64x", "x32x")
    one = one.replace("memref<64xf32", "memref<32xf32")
    x = floats(6, 5, 32)
    exe = sw.compile(sw.from_mlir(one), target=DEVICE)
    np.testing.assert_array_equal(exe(x), np.broadcast_to(x[:, :1, 3:4], x.shape))
