"""Whether the processor of a caller has the features that an exported program uses.

All code but the kernels is for any processor of x86-64, so that another one is refused with a
message instead of an illegal instruction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llvmlite import ir

from ....core.errors import explain
from ....core.target import Target, needs_of
from ..linking import PTR
from .emitter import FLAG, STATUS, FunctionEmitter

BASELINE = "x86-64"
"""The processor, by LLVM's name, that all code but the kernels is for."""

FILE = Path(__file__).with_name("features.ll")

_WORDS: Sequence[Mapping[int, str]] = (
    {
        0: "sse3",
        9: "ssse3",
        12: "fma",
        13: "cx16",
        19: "sse4.1",
        20: "sse4.2",
        22: "movbe",
        23: "popcnt",
        28: "avx",
        29: "f16c",
    },
    {
        3: "bmi",
        5: "avx2",
        8: "bmi2",
        16: "avx512f",
        17: "avx512dq",
        21: "avx512ifma",
        28: "avx512cd",
        30: "avx512bw",
        31: "avx512vl",
    },
    {
        1: "avx512vbmi",
        6: "avx512vbmi2",
        8: "gfni",
        11: "avx512vnni",
        12: "avx512bitalg",
        14: "avx512vpopcntdq",
    },
    {23: "avx512fp16"},
    {4: "avxvnni", 5: "avx512bf16"},
    {5: "lzcnt", 6: "sse4a", 11: "xop", 16: "fma4", 21: "tbm"},
)
"""LLVM's names of the bits of the words of `features.ll`, without features that code generation
does not use by itself, such as those for encryption.

Source: AMD64 Architecture Programmer's Manual, volume 3, appendix E; Intel 64 and IA-32 Software
Developer's Manual, volume 2A, CPUID.
"""


def checked_features(target: Target) -> Sequence[Mapping[int, str]]:
    """The features of a target, by their bits in the words of `features.ll`; none where it is not
    one of x86-64."""
    if not target.triple.startswith("x86_64-"):
        return ()
    needs = needs_of(target) or ()
    found = [{bit: name for bit, name in word.items() if name in needs} for word in _WORDS]
    return found if any(found) else ()


def add_lacks_features(module: ir.Module, target: Target, name: str, *, told: bool) -> None:
    """Add `name() -> flag`: whether this processor lacks any feature of a target.

    If it is `told`, the message of the last error names them.
    """
    emit = FunctionEmitter(module, name, FLAG)
    kind = ir.ArrayType(STATUS, len(_WORDS))
    words = emit.builder.alloca(kind)
    emit.builder.store(ir.Constant(kind, None), words)
    emit.call("read_features", ir.VoidType(), words)
    some, lacking = FLAG(0), []
    for number, bits in enumerate(checked_features(target)):
        word = emit.load(emit.member(words, kind, number), STATUS)
        for bit, name in bits.items():
            lacks = emit.same(emit.builder.and_(word, STATUS(1 << bit)), STATUS(0))
            some = emit.builder.or_(some, lacks)
            lacking.append((lacks, name))
    if told:
        with emit.builder.if_then(some, likely=False):
            _say_lacking(emit, lacking, target)
    emit.builder.ret(some)


def _say_lacking(emit: FunctionEmitter, lacking: Sequence[tuple[Any, str]], target: Target) -> None:
    """Make those of the features that are lacking the message of the last error."""
    before = emit.builder.alloca(PTR)
    emit.say(explain("create", "this processor lacks"))
    emit.builder.store(emit.text(" "), before)
    for lacks, name in lacking:
        with emit.builder.if_then(lacks):
            emit.call("say", ir.VoidType(), emit.load(before, PTR))
            emit.call("say", ir.VoidType(), emit.text(name))
            emit.builder.store(emit.text(", "), before)
    emit.call("say", ir.VoidType(), emit.text(f", which code for {target.cpu} needs"))
