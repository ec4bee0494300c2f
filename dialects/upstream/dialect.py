"""Standard operations that xDSL lacks, or defines for scalars only, under their own names.

xDSL's `arith`, `vector` and `llvm` dialects cover most of what is needed. What they miss is
in this folder and nowhere else, in upstream MLIR's text form, so that `mlir-opt` reads what we
print. `Arith`, `MemRef`, `Scf`, `Vector` and `Llvm` are xDSL's dialects with these operations
added; a context that holds them parses `arith.select` as `SelectOp` of `ops_arith`. An operation
that xDSL itself builds (the `arith.cmpi` of a lowered loop, say) may still be xDSL's class: code
that must take both looks at the name, not at the class.

Nothing is defined in this folder that xDSL already has right. Each class says what xDSL's lacks.
"""

from __future__ import annotations

from xdsl.dialects import arith, llvm, memref, scf, vector
from xdsl.ir import Dialect, Operation

from . import ops

_ADDED: list[type[Operation]] = [
    value
    for value in (*vars(ops).values(), *ops.INTRINSICS.values())
    if isinstance(value, type) and issubclass(value, Operation) and "name" in vars(value)
]
"""The operations that `ops` exports; bases that several of them have in common have no name."""


def _extended(dialect: Dialect) -> Dialect:
    """`dialect` with our operations, which replace its own of the same names."""
    operations = {op.name: op for op in dialect.operations}
    operations |= {op.name: op for op in _ADDED if op.name.startswith(f"{dialect.name}.")}
    return Dialect(
        dialect.name,
        list(operations.values()),
        list(dialect.attributes),
        list(dialect._interfaces),  # xDSL has no public way to read them
    )


Arith = _extended(arith.Arith)
MemRef = _extended(memref.MemRef)
Scf = _extended(scf.Scf)
Vector = _extended(vector.Vector)
Llvm = _extended(llvm.LLVM)
