"""What a process keeps of the programs that it has compiled: entries of caches with a bound."""

from __future__ import annotations

import ctypes
import gc
import inspect
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

import stepwell as sw
from stepwell.backends.llvm.jit import CompiledModule, Effort
from stepwell.core.bounded_cache import MOST
from stepwell.core.target import host
from stepwell.dialects.program import EFFORT, UNROLL
from stepwell.runtime.executable import Executable
from stepwell.runtime.loaded import Loaded

LIBC = ctypes.CDLL(None)


class HeapState(ctypes.Structure):
    """What `mallinfo2` returns."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks"),
            *("fordblks", "keepcost"),
        )
    )


if hasattr(LIBC, "mallinfo2"):
    LIBC.mallinfo2.restype = HeapState

KEPT = (Operation, Block, Region, SSAValue, sw.Module, Executable, Loaded, CompiledModule)


def compiled(width: int) -> None:
    """Compile a program of sizes of its own, call it, and forget it."""
    b = sw.Builder("main")
    x = b.input("x", ("n", width), "f32")
    weights = np.ones((width + 1, width), np.float32)
    b.output(b.softmax(b.relu(b.dense(x, weights)), axis=1))
    sw.compile(b.module())(np.ones((3, width), np.float32))


def live() -> Counter[str]:
    gc.collect()
    of_types = Counter(map(type, gc.get_objects()))
    return Counter({kind.__name__: n for kind, n in of_types.items() if issubclass(kind, KEPT)})


def test_programs_leave_neither_ir_nor_code() -> None:
    compiled(19)
    before = live()
    for width in (20, 21):
        compiled(width)
    assert live() - before == Counter()


@pytest.mark.skipif(not hasattr(LIBC, "mallinfo2"), reason="glibc alone tells what is in use")
@pytest.mark.parametrize("effort", [Effort.NONE, Effort.O2])
def test_compilations_leave_nothing_in_the_heap(effort: Effort) -> None:
    """They had left 10 KiB each, in pass managers of LLVM. Other threads may use some bytes."""
    target, marks = host(), f'"{EFFORT}" "{UNROLL}"'
    text = f"define i64 @f(i64 %x) {marks} {{ %y = add i64 %x, 1 ret i64 %y }}"

    def heap_after(times: int) -> int:
        for _ in range(times):
            CompiledModule(text, target, effort)
        gc.collect()
        return LIBC.mallinfo2().uordblks

    # What is lost is lost each time; a table that grows does so once.
    heap = [heap_after(4), *(heap_after(6) for _ in range(3))]
    assert min(after - before for before, after in pairwise(heap)) < 8 << 10


def test_caches_of_types_and_numbers_have_a_bound() -> None:
    """A cache without one, or with a large one, grows with each program of other sizes."""
    compiled(23)
    few = ("known_limits",)  # numbers of threads
    found = {
        function
        for name, module in list(sys.modules.items())
        if name.startswith("stepwell.")
        for function in vars(module).values()
        if hasattr(function, "cache_parameters") and function.__name__ not in few
    }
    assert found
    for function in found:
        kinds = inspect.signature(function).parameters.values()
        depends = any(_is_of_programs(str(kind.annotation)) for kind in kinds)
        size = function.cache_parameters()["maxsize"]
        where = f"{function.__module__}.{function.__qualname__}"
        assert not depends or (size is not None and size <= 2 * MOST), where


def _is_of_programs(annotation: str) -> bool:
    """Whether values of a type may differ between any two programs."""
    classes = (name for name, _ in inspect.getmembers(sys.modules[Attribute.__module__]))
    names = {"int", "tuple[int, ...]", "AffineMap", "AffineExpr", "TensorType", *classes}
    return annotation in names
