"""The threads that run tiles: a pool in LLVM IR, compiled once per process.

`stepwell_parallel_tiles(body, context, count, threads, order)` calls `body(context, tile)` for
each tile in [0, count) on at most `threads` threads, the caller's included, and returns when all
are done. `order` is a `TileOrder`.

The code is in `thread_pool.ll`, which explains it, and `thread_pool_linux.ll`.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from ...core.exclusive import exclusive
from ...core.target import host, named
from ...core.threads import MOST_THREADS
from ...dialects.rt.abi import PARALLEL_TILES
from . import pool
from .elf import image_of
from .images import Image, can_be_mapped
from .linking import Definitions, linked
from .machine import machine
from .pool import FORGET

SPIN = 4000
"""The number of times that an idle worker looks for a tile before it sleeps: some 50 us."""

_ARM_YIELD = 1
"""The hint of AArch64 that another thread of the core may run."""


def files(triple: str) -> list[Path]:
    """The files of the pool on a system."""
    system = "linux" if "linux" in triple else "elsewhere"
    return [Path(__file__).with_name(f"thread_pool{part}.ll") for part in ("", f"_{system}")]


def define(made: Definitions, triple: str) -> None:
    """Add the definitions that the files of the pool declare."""
    made.number("most_spins", SPIN)
    made.number("most_threads", MOST_THREADS)
    made.number("set_signal_mask", 2 if "linux" in triple else 3, 32)
    builder, _ = made.function("pause", ir.VoidType())
    none, hint = ir.VoidType(), ir.IntType(32)
    if triple.startswith("x86"):
        pause = ir.Function(made.module, ir.FunctionType(none, ()), "llvm.x86.sse2.pause")
        builder.call(pause, ())
    elif triple.startswith(("aarch64", "arm64")):
        wait = ir.Function(made.module, ir.FunctionType(none, (hint,)), "llvm.aarch64.hint")
        builder.call(wait, (hint(_ARM_YIELD),))
    builder.ret_void()


@functools.cache
@exclusive
def install() -> int:
    """Register the pool for compiled code; return the address of its entry."""
    made = pool.entry(lambda: pool.mapped(image()) if can_be_mapped() else _linked())
    llvm.add_symbol(PARALLEL_TILES, made)
    return made


@functools.cache
@exclusive
def image() -> Image:
    """The pool as an image, for any processor of x86-64."""
    target_machine = machine(named("x86-64"))
    return image_of(target_machine.emit_object(_module(target_machine)))


def _module(target_machine: Any) -> Any:
    """The pool as a module of LLVM."""
    triple, made = target_machine.triple, Definitions()
    define(made, triple)
    module = linked(files(triple), made, (PARALLEL_TILES, FORGET), target_machine)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    tuning = llvm.create_pipeline_tuning_options()
    passes.run(module, llvm.create_pass_builder(target_machine, tuning))
    return module


def _linked() -> tuple[int, int]:
    """The pool, loaded by LLVM: the addresses of its two functions."""
    target_machine = machine(host(), jit=True)
    engine = llvm.create_mcjit_compiler(_module(target_machine), target_machine)
    engine.finalize_object()
    addresses = engine.get_function_address(PARALLEL_TILES), engine.get_function_address(FORGET)
    # Workers run this code until the process ends, so it is never freed.
    engine.detach()
    return addresses
