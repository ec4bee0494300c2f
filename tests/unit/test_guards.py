"""Buffers against unmapped pages: what leaves one is seen."""

from __future__ import annotations

import ctypes
import faulthandler
import itertools
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.parser import Parser

import stepwell as sw
from stepwell.backends.llvm.jit import compile_module
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import host
from stepwell.dialects.rt.abi import ALIGNMENT, Word
from stepwell.runtime.frames import Frame

from ..guards.memory import PAGE, Memory, Place, memory
from ..guards.programs import STRIDE, install
from ..harness import cases

Apart = Callable[[Callable[[], object]], str]
FAULT = "the process died of signal 11"
PLACES = pytest.mark.parametrize("place", ["front", "back"])


def byte(address: int) -> int:
    return ctypes.c_uint8.from_address(address).value


def faults(apart: Apart, action: Callable[[], object]) -> None:
    def quietly() -> object:
        # The trace of this fault would look like one of the tests.
        faulthandler.disable()
        return action()

    with pytest.raises(AssertionError, match=FAULT):
        apart(quietly)


@PLACES
def test_bytes_around_a_buffer_cannot_be_read(place: Place, apart: Apart) -> None:
    found = memory(place)
    for size in (1, 12, 4096, 5000):
        address = found.allocate(4, size - size % 4 or 4)
        end = address + (size - size % 4 or 4)
        assert {byte(at) for at in (address, end - 1)} == {255}
        faults(apart, lambda at=end if place == "back" else address - 1: byte(at))
        found.free(address)


def test_bytes_that_are_written_around_a_buffer_are_counted() -> None:
    found, before = memory("back"), memory("back").damaged
    for distance in (-1, 100):
        address = found.allocate(64, 100)
        ctypes.c_uint8.from_address(address + distance).value = 1
        found.free(address)
    assert found.damaged == before + 2
    ctypes.c_int64.from_address(found._engine.get_global_value_address("damaged")).value = before


def arrays(found: Memory) -> None:
    """Arrays of NumPy are guarded, keep their elements when they grow, and are freed."""
    found.take_numpy()
    before = found.buffers
    for array in (np.arange(1000), np.zeros((3, 7), np.float32), np.empty(5, np.int8)):
        at, end = array.ctypes.data, array.ctypes.data + array.nbytes
        assert (end if found.at_end else at) % PAGE == 0
    grown = np.arange(10)
    grown.resize(3000, refcheck=False)
    assert grown[:10].tolist() == list(range(10))
    assert not grown[10:].any()
    assert found.buffers > before
    del array, grown
    assert found.buffers == before
    assert not np.zeros(1 << 23).any()


@PLACES
def test_arrays_are_guarded(place: Place, apart: Apart) -> None:
    assert apart(lambda: arrays(memory(place))) == "works"


def program(place: Place) -> sw.Executable:
    """A program with constants and a slot in its arena, called once."""
    install(place)
    b = sw.Builder("main")
    x = b.input("x", ("n", 16), "f32")
    h = b.softmax(b.dense(x, np.ones((16, 16), np.float32)), axis=1)
    b.output(b.dense(h, np.ones((16, 16), np.float32)), name="y")
    exe = sw.compile(b.module(), threads=1, opt_level=1)
    exe(np.ones((5, 16), np.float32))
    return exe


@pytest.mark.parametrize("place", cases(["front", "back"], ["back"]))
def test_buffers_of_programs_are_guarded(place: Place, apart: Apart) -> None:
    """Those bytes can be read that are in them, and no others."""

    def inner() -> None:
        exe, at_end = program(place), place == "back"
        frame = next(iter(exe._loaded.frames._known.values()))
        words, array = frame.words, exe._loaded.program.constants[0]
        slots, length = words[Word.ARENA], words[Word.ARENA_BYTES]
        assert length % STRIDE == ALIGNMENT
        slot = slots + (STRIDE - PAGE if at_end else PAGE - 1)
        constant = array.ctypes.data + (array.nbytes if at_end else -1)
        outside = {
            "slot": (slot, slot - 1 if at_end else slot + 1),
            "constant": (constant, constant - 1 if at_end else constant + 1),
            "frame": (frame.address + (8 * len(words) if at_end else -1), frame.address),
        }
        for at, inside in outside.values():
            byte(inside)
            faults(apart, lambda at=at: byte(at))

    assert apart(inner) == "works"


def arena(place: Place, size: int) -> tuple[int, int]:
    """Where an arena of a size begins and ends."""
    frame = Frame(40, 0, 0)
    frame.grow(size)
    return frame.words[Word.ARENA], frame.words[Word.ARENA] + size


@PLACES
def test_an_arena_without_slots_is_guarded(place: Place, apart: Apart) -> None:
    def outside() -> None:
        install(place)
        begin, end = arena(place, 192)
        assert byte(begin) == byte(end - 1) == 0
        byte(end if place == "back" else begin - 1)

    faults(apart, outside)


KERNELS = """
func.func @local(%x: memref<4xf32>, %i: index) {
  %0 = memref.alloca() : memref<16xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1.0 : f32
  memref.store %c1, %0[%c0] : memref<16xf32>
  %1 = memref.load %0[%i] : memref<16xf32>
  memref.store %1, %x[%c0] : memref<4xf32>
  func.return
}
func.func @heap(%x: memref<4xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %0 = memref.alloc() : memref<16xf32>
  %1 = memref.load %0[%i] : memref<16xf32>
  memref.store %1, %x[%c0] : memref<4xf32>
  memref.dealloc %0 : memref<16xf32>
  func.return
}
"""


def kernel(name: str, place: Place, index: int) -> float:
    """What a kernel reads at an index of a buffer that it allocates."""
    install(place)
    ctx = make_context()
    module = Parser(ctx, KERNELS).parse_module()
    run_passes(ctx, module, "convert-to-llvm")
    code = compile_module(module, host())
    x = np.zeros(4, np.float32)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address(name))
    call(x.ctypes.data, index)
    return float(x[0])


GUARDED = list(itertools.product(("local", "heap"), ("back", "front")))


@pytest.mark.parametrize("case", cases(GUARDED, [("local", "back"), ("heap", "front")]), ids=str)
def test_buffers_of_kernels_are_guarded(case: tuple[str, Place], apart: Apart) -> None:
    name, place = case
    outside = -1 if place == "front" else 16 if name == "local" else 32
    faults(apart, lambda: kernel(name, place, outside))
    assert apart(lambda: kernel(name, place, 0)) == "works"
