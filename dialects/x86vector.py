"""Operations of upstream MLIR's `x86vector` that code generation uses, in upstream's own text form.

Upstream defines them in C++ only. They are instructions of one family of processors, and are
emitted where `core.target` says that the target has them; `convert-vector-to-llvm` makes LLVM's
intrinsics of them.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerType, VectorType, f32, i32
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, eq, operand_def, result_def, traits_def
from xdsl.traits import Pure

from ..core.ir.definitions import irdl_op_definition

LANES = VectorType(f32, [16])
"""What the operations here work on."""
SCALE = "llvm.x86.avx512.mask.scalef.ps.512"
"""What LLVM calls the scaling of 16 lanes: (a, b, src, k, rounding)."""


@irdl_op_definition
class Avx512MaskScalefOp(IRDLOperation):
    """a * 2^floor(b), rounded once; in lanes that the mask `k` leaves out, `src`.

    `%r = x86vector.avx512.mask.scalef %src, %a, %b, %k, %rounding : vector<16xf32>`

    Upstream has f64 and other numbers of lanes as well. A rounding of 4 is that of everything else.
    """

    name = "x86vector.avx512.mask.scalef"

    _VECTOR: ClassVar = eq(LANES)

    src = operand_def(_VECTOR)
    a = operand_def(_VECTOR)
    b = operand_def(_VECTOR)
    k = operand_def(eq(IntegerType(16)))
    rounding = operand_def(eq(i32))
    dst = result_def(_VECTOR)

    traits = traits_def(Pure())

    assembly_format = "$src `,` $a `,` $b `,` $k `,` $rounding attr-dict `:` type($dst)"


X86Vector = Dialect("x86vector", [Avx512MaskScalefOp])
