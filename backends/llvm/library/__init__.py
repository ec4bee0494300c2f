"""The C functions of an exported program, in LLVM IR beside its kernels: one object file.

It may import: llvmlite, `backends`, `dialects` and `core`.
In: the `llvm` stage and the interface in C; out: the bytes of an object file.
"""
