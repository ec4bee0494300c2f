"""How `convert-loop-to-scf` works: blocks become machine vectors, emitted on demand.

It may import: core, dialects and xDSL.
In: the body of a loop kernel; out: operations of scf, memref, one-dimensional vector and arith.
"""
