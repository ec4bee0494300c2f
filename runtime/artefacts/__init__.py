"""Artefacts: compiled programs as files, which are loaded without the compiler.

It may import: `runtime`, `backends`, `dialects`, `core`; what loads, neither xDSL nor LLVM.
In: programs, their code and weights; out: a file, and programs that run from it.
"""
