"""The threads that run tiles: a pool in LLVM IR, compiled once per process.

`stepwell_parallel_tiles(body, context, count, threads, order)` calls `body(context, tile)` for
each tile in [0, count) on at most `threads` threads, the caller's included, and returns when all
are done. `order` is a `TileOrder`.

The code is in `thread_pool.ll`, which explains it, and `thread_pool_linux.ll`.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

import llvmlite.binding as llvm
from llvmlite import ir

from ...core.target import host
from ...dialects.rt.abi import PARALLEL_TILES
from .linking import Definitions, linked
from .machine import machine

MOST_THREADS = 256
"""There are as many tickets in `thread_pool.ll`."""
SPIN = 4000
"""The number of times that an idle worker looks for a tile before it sleeps: some 50 us."""

_SIG_SETMASK = 3 if sys.platform == "darwin" else 2

_FORGET = "stepwell_forget_workers"
_SYSTEM = "linux" if sys.platform == "linux" else "elsewhere"
_FILES = [Path(__file__).with_name(f"thread_pool{part}.ll") for part in ("", f"_{_SYSTEM}")]


def _definitions(triple: str) -> Definitions:
    """Definitions that the files of the pool declare."""
    made = Definitions()
    made.number("most_spins", SPIN)
    made.number("most_threads", MOST_THREADS)
    made.number("set_signal_mask", _SIG_SETMASK, 32)
    builder, _ = made.function("pause", ir.VoidType())
    instruction = "pause" if triple.startswith("x86") else "yield"
    builder.asm(ir.FunctionType(ir.VoidType(), ()), instruction, "", (), side_effect=True)
    builder.ret_void()
    return made


@functools.cache
def install() -> int:
    """Register the pool for compiled code; return the address of its entry."""
    target_machine = machine(host(), jit=True)
    module = linked(_FILES, _definitions(host().triple), (PARALLEL_TILES, _FORGET), target_machine)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    tuning = llvm.create_pipeline_tuning_options()
    passes.run(module, llvm.create_pass_builder(target_machine, tuning))
    engine = llvm.create_mcjit_compiler(module, target_machine)
    engine.finalize_object()
    entry = engine.get_function_address(PARALLEL_TILES)
    forget = engine.get_function_address(_FORGET)
    llvm.add_symbol(PARALLEL_TILES, entry)
    os.register_at_fork(after_in_child=ctypes.CFUNCTYPE(None)(forget))
    # Workers run this code until the process ends, so it is never freed.
    engine.detach()
    return entry
