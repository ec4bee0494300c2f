"""The common part of conversions to the LLVM dialect: addresses, types, and the lowering walk.

It may import: core, dialects and xDSL.
In: operations of standard dialects and rt; out: operations of the LLVM dialect.
"""
