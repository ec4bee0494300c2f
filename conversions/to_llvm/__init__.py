"""What the conversions to the LLVM dialect share: addresses, types, and the one walk that lowers.

It may import: core, dialects and xDSL.
In: operations of standard dialects and rt; out: operations of the LLVM dialect.
"""
