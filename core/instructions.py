"""The instructions that only some processors have: one table, a row for each.

A row says what its instruction computes, as a function in IR, and on which processors it is. From
it follow what a target has (`core.target.Target.has`), what the reference interpreters compute,
which reductions the schedule step `tensorize` replaces, and the intrinsic that is called.

The body is that of one lane. An operand that is a vector there, of `depth` elements, is a group of
neighbours in a machine vector: lane n of the result is computed from group n. `dialects/bodies.py`
reads the bodies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

X86, ARM, RISCV = "x86_64", "aarch64", "riscv64"


@dataclass(frozen=True)
class Form:
    """An instruction on one kind of processor."""

    architecture: str
    """As `architecture_of` has it."""
    needs: Sequence[str] = ()
    """The features that the processor must have, by LLVM's names."""
    lanes: int | None = None
    """The lanes of the result; None for any number."""
    intrinsic: str | None = None
    """LLVM's name of it, which takes the operands of the body; None where an operation, such as
    `math.fma`, stands for it."""


@dataclass(frozen=True)
class Instruction:
    """A row of the table."""

    name: str
    body: str
    """The computation of a lane: a `func.func` of operations of `arith`, `math` and `vector`."""
    forms: Sequence[Form]

    def on(self, architecture: str, features: frozenset[str]) -> list[Form]:
        """Its forms on a processor."""
        return [
            form
            for form in self.forms
            if form.architecture == architecture and features.issuperset(form.needs)
        ]


FMA = Instruction(
    "fma",
    """
    func.func @fma(%a: f32, %b: f32, %c: f32) -> f32 {
      %r = math.fma %a, %b, %c : f32
      func.return %r : f32
    }
    """,
    (Form(X86, ("fma",)), Form(ARM), Form(RISCV)),
)
EXTEND_F16 = Instruction(
    "extend_f16",
    """
    func.func @extend_f16(%a: f16) -> f32 {
      %r = arith.extf %a : f16 to f32
      func.return %r : f32
    }
    """,
    (Form(X86, ("f16c",)), Form(ARM)),
)
TRUNCATE_F16 = Instruction(
    "truncate_f16",
    """
    func.func @truncate_f16(%a: f32) -> f16 {
      %r = arith.truncf %a : f32 to f16
      func.return %r : f16
    }
    """,
    (Form(X86, ("f16c",)), Form(ARM)),
)
# In f64 the power is exact, and so is the product, which the conversion to f32 rounds. Beyond 600 a
# power makes 0 or infinity of any f32 alike. What is special is that of Intel's manual: infinities
# are powers of their own, of which a NaN takes the value.
SCALE = Instruction(
    "scale",
    """
    func.func @scale(%a: f32, %b: f32) -> f32 {
      %high = arith.constant 600.0 : f32
      %low = arith.constant -600.0 : f32
      %one = arith.constant 1.0 : f32
      %infinity = arith.constant 0x7F800000 : f32
      %n = math.floor %b : f32
      %size = math.absf %n : f32
      %endless = arith.cmpf oeq, %size, %infinity : f32
      %below = arith.minimumf %n, %high : f32
      %bounded = arith.maximumf %below, %low : f32
      %exponent = arith.select %endless, %n, %bounded : f32
      %nan = arith.cmpf uno, %a, %a : f32
      %ignored = arith.andi %nan, %endless : i1
      %factor = arith.select %ignored, %one, %a : f32
      %wide = arith.extf %exponent : f32 to f64
      %power = math.exp2 %wide : f64
      %x = arith.extf %factor : f32 to f64
      %y = arith.mulf %x, %power : f64
      %r = arith.truncf %y : f64 to f32
      func.return %r : f32
    }
    """,
    (Form(X86, ("avx512f", "avx512vl"), 16),),
)

# A sum of two products of i16 wraps around only as all four are -2^15, and then to what i32 has.
VPMADDWD = Instruction(
    "vpmaddwd",
    """
    func.func @vpmaddwd(%a: vector<2xi16>, %b: vector<2xi16>) -> i32 {
      %x = arith.extsi %a : vector<2xi16> to vector<2xi32>
      %y = arith.extsi %b : vector<2xi16> to vector<2xi32>
      %products = arith.muli %x, %y : vector<2xi32>
      %r = vector.reduction <add>, %products : vector<2xi32> into i32
      func.return %r : i32
    }
    """,
    (
        Form(X86, (), 4, "llvm.x86.sse2.pmadd.wd"),
        Form(X86, ("avx2",), 8, "llvm.x86.avx2.pmadd.wd"),
        Form(X86, ("avx512f", "avx512bw"), 16, "llvm.x86.avx512.pmaddw.d.512"),
    ),
)

# Unlike `vpdpbusds`, it does not saturate: the sum is that of i32.
VPDPBUSD = Instruction(
    "vpdpbusd",
    """
    func.func @vpdpbusd(%c: i32, %a: vector<4xi8>, %b: vector<4xi8>) -> i32 {
      %x = arith.extui %a : vector<4xi8> to vector<4xi32>
      %y = arith.extsi %b : vector<4xi8> to vector<4xi32>
      %products = arith.muli %x, %y : vector<4xi32>
      %r = vector.reduction <add>, %products, %c : vector<4xi32> into i32
      func.return %r : i32
    }
    """,
    (
        Form(X86, ("avx512vl", "avx512vnni"), 4, "llvm.x86.avx512.vpdpbusd.128"),
        Form(X86, ("avx512vl", "avx512vnni"), 8, "llvm.x86.avx512.vpdpbusd.256"),
        Form(X86, ("avx512f", "avx512vnni"), 16, "llvm.x86.avx512.vpdpbusd.512"),
        Form(X86, ("avxvnni",), 4, "llvm.x86.avx512.vpdpbusd.128"),
        Form(X86, ("avxvnni",), 8, "llvm.x86.avx512.vpdpbusd.256"),
    ),
)

INSTRUCTIONS: Mapping[str, Instruction] = {
    row.name: row for row in (FMA, EXTEND_F16, TRUNCATE_F16, SCALE, VPMADDWD, VPDPBUSD)
}
"""All rows, by name."""


def architecture_of(triple: str) -> str:
    """The architecture that a triple names, by one name for each."""
    first = triple.partition("-")[0]
    return {"arm64": ARM}.get(first, first)


def of_intrinsic(name: str) -> Instruction | None:
    """The row with a form that LLVM calls by this name."""
    rows = INSTRUCTIONS.values()
    return next((row for row in rows if any(f.intrinsic == name for f in row.forms)), None)
