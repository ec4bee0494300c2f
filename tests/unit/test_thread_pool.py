"""The pool that runs tiles: every tile once, whoever calls, forks or leaves."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.parser import Parser

from stepwell.backends.llvm import thread_pool
from stepwell.backends.llvm.jit import CompiledModule, compile_module
from stepwell.core.errors import CompileError
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import host

PROGRAM = """
func.func @count(%x: memref<?xi64> {llvm.noalias}, %by: i64, %v: vector<4xi64>, %n: index) {
  rt.parallel_tiles %n captures(%x, %by, %v : memref<?xi64>, i64, vector<4xi64>) {
  ^bb0(%t: index, %a: memref<?xi64>, %b: i64, %w: vector<4xi64>):
    %old = memref.load %a[%t] : memref<?xi64>
    %one = arith.addi %old, %b : i64
    %lane = vector.extract %w[2] : i64 from vector<4xi64>
    %two = arith.addi %one, %lane : i64
    memref.store %two, %a[%t] : memref<?xi64>
    rt.yield
  }
  func.return
}
func.func @main(%x: memref<?xi64>, %n: index) {
  %by = arith.constant 1 : i64
  %v = arith.constant dense<[5, 6, 10, 7]> : vector<4xi64>
  func.call @count(%x, %by, %v, %n) : (memref<?xi64>, i64, vector<4xi64>, index) -> ()
  func.return
}
func.func @nested(%x: memref<?xi64>, %n: index) {
  rt.parallel_tiles %n captures(%x, %n : memref<?xi64>, index) {
  ^bb0(%t: index, %a: memref<?xi64>, %m: index):
    %start = arith.muli %t, %m : index
    rt.parallel_tiles %m captures(%a, %start : memref<?xi64>, index) {
    ^bb1(%u: index, %b: memref<?xi64>, %s: index):
      %at = arith.addi %s, %u : index
      %old = memref.load %b[%at] : memref<?xi64>
      %one = arith.constant 1 : i64
      %new = arith.addi %old, %one : i64
      memref.store %new, %b[%at] : memref<?xi64>
      rt.yield
    }
    rt.yield
  }
  func.return
}
"""


RECORD = """
func.func @record(%x: memref<?xi64>, %n: index) {
  rt.parallel_tiles %n alternating captures(%x : memref<?xi64>) {
  ^bb0(%t: index, %a: memref<?xi64>):
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i64
    %old = memref.load %a[%c0] : memref<?xi64>
    %new = arith.addi %old, %one : i64
    memref.store %new, %a[%c0] : memref<?xi64>
    %place = arith.index_cast %new : i64 to index
    %tile = arith.index_cast %t : index to i64
    memref.store %tile, %a[%place] : memref<?xi64>
    rt.yield
  }
  func.return
}
"""


def in_turn(program: str) -> str:
    """A program whose tiles alternate."""
    return program.replace(" captures", " alternating captures")


@functools.cache
def compiled(threads: int, program: str = PROGRAM) -> CompiledModule:
    ctx = make_context()
    module = Parser(ctx, program).parse_module()
    run_passes(
        ctx,
        module,
        f"rt-outline-tiles,convert-rt-to-llvm{{threads={threads}}},convert-to-llvm",
    )
    return compile_module(module, host())


def function(code: CompiledModule, name: str) -> Callable[[np.ndarray, int], None]:
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        code.address(name)
    )
    return lambda x, n: call(x.ctypes.data, x.size, n)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("tiles", [0, 1, 2, 3, 100, 5000])
@pytest.mark.parametrize("program", [PROGRAM, in_turn(PROGRAM)], ids=["any", "alternating"])
def test_every_tile_runs_once(threads: int, tiles: int, program: str) -> None:
    code = compiled(threads, program)
    x = np.zeros(5000, np.int64)
    for round in range(1, 4):
        function(code, "main")(x, tiles)
        assert (x[:tiles] == 11 * round).all()
        assert (x[tiles:] == 0).all()


def test_alternating_tiles_turn_around() -> None:
    code = compiled(1, RECORD)
    x = np.zeros(16, np.int64)
    for tiles in (5, 5, 4, 1):
        function(code, "record")(x, tiles)
    assert x.tolist() == [15, 0, 1, 2, 3, 4, 4, 3, 2, 1, 0, 0, 1, 2, 3, 0]


def test_one_region_after_the_other() -> None:
    """Thousands of short regions: a tile of one is never taken for a tile of the next."""
    programs = [compiled(3), compiled(3, in_turn(PROGRAM)), compiled(2, in_turn(PROGRAM))]
    runs = [function(code, "main") for code in programs]
    for size in (2, 3, 17):
        x = np.zeros(size, np.int64)
        for _ in range(2000):
            for run in runs:
                run(x, size)
        assert (x == 3 * 2000 * 11).all()


def test_workers_wake_up() -> None:
    code = compiled(3)
    run = function(code, "main")
    x = np.zeros(64, np.int64)
    for round in range(20):
        time.sleep(0.002)
        run(x, 64)
        assert (x == 11 * (round + 1)).all()


def test_callers_at_once() -> None:
    code = compiled(3)
    run = function(code, "main")
    results: list[np.ndarray] = []

    def caller() -> None:
        x = np.zeros(50, np.int64)
        for _ in range(2000):
            run(x, 50)
        results.append(x)

    callers = [threading.Thread(target=caller) for _ in range(4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert len(results) == 4
    assert all((x == 2000 * 11).all() for x in results)


@pytest.mark.parametrize("program", [PROGRAM, in_turn(PROGRAM)], ids=["any", "alternating"])
def test_tiles_may_have_tiles(program: str) -> None:
    code = compiled(4, program)
    x = np.zeros(30 * 30, np.int64)
    for _ in range(50):
        function(code, "nested")(x, 30)
    assert (x == 50).all()


SCRIPT = """
import ctypes, os, sys
import numpy as np
from xdsl.parser import Parser
from stepwell.backends.llvm.jit import compile_module
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import host

ctx = make_context()
module = Parser(ctx, {program!r}).parse_module()
run_passes(ctx, module, "rt-outline-tiles,convert-rt-to-llvm{{threads=3}},convert-to-llvm")
code = compile_module(module, host())
kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
call = kind(code.address("main"))

def run():
    x = np.zeros(1000, np.int64)
    call(x.ctypes.data, x.size, x.size)
    return bool((x == 11).all())
"""


def in_a_process(body: str) -> subprocess.CompletedProcess[str]:
    script = SCRIPT.format(program=in_turn(PROGRAM)) + textwrap.dedent(body)
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_child_of_a_fork_has_threads_of_its_own() -> None:
    done = in_a_process("""
    assert run()
    child = os.fork()
    if child == 0:
        fine = run() and run()
        threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 3
        os._exit(0 if fine and threads == 3 else 1)
    assert run()
    assert os.waitpid(child, 0)[1] == 0
    """)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say where threads run")
def test_workers_may_run_where_they_could() -> None:
    """A worker that is woken beside its caller makes way, for a moment only."""
    done = in_a_process("""
    import time
    before = set(os.listdir("/proc/self/task"))
    assert run()
    workers = [int(thread) for thread in set(os.listdir("/proc/self/task")) - before]
    assert len(workers) == 2
    everywhere = os.sched_getaffinity(0)
    here = min(everywhere)
    os.sched_setaffinity(0, {here})
    for allowed in ({here}, everywhere):
        for worker in workers:
            os.sched_setaffinity(worker, {here})
        time.sleep(0.01)
        for worker in workers:
            os.sched_setaffinity(worker, allowed)
        for _ in range(20):
            assert run()
            time.sleep(0.005)
        end = time.monotonic() + 10
        while any(os.sched_getaffinity(worker) != allowed for worker in workers):
            assert time.monotonic() < end
    """)
    assert done.returncode == 0, done.stderr


def test_interrupt_reaches_python_and_the_process_ends() -> None:
    """Workers block signals: the handler of the main thread runs; at the end, workers wait."""
    done = in_a_process("""
    import signal
    assert run()
    seen = []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    os.kill(os.getpid(), signal.SIGUSR1)
    assert run() and seen == [1]
    print("done")
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_pool_is_made_once() -> None:
    assert thread_pool.install() == thread_pool.install()


def test_missing_function_is_an_error() -> None:
    """LLVM itself would end the process."""
    ctx = make_context()
    module = Parser(ctx, "func.func private @nowhere()").parse_module()
    run_passes(ctx, module, "convert-to-llvm")
    message = "llvm: function nowhere is declared but nowhere defined"
    with pytest.raises(CompileError, match=message):
        compile_module(module, host())


@pytest.mark.parametrize("threads", [0, 257])
def test_number_of_threads_is_checked(threads: int) -> None:
    ctx = make_context()
    module = Parser(ctx, PROGRAM).parse_module()
    message = f"convert-rt-to-llvm: wrong threads, expected 1 to 256, got {threads}"
    with pytest.raises(CompileError, match=message):
        run_passes(ctx, module, f"rt-outline-tiles,convert-rt-to-llvm{{threads={threads}}}")
