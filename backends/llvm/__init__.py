"""The LLVM dialect to machine code through llvmlite, and the text of LLVM IR and assembly.

It may import: llvmlite (inside functions only), `dialects` and `core`.
In: the `llvm` stage; out: addresses of compiled functions, `llvm-ir` and `asm` text.
"""
