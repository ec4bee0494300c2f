"""The path from Python into compiled code, in LLVM IR that is compiled once per process.

It may import: llvmlite, `dialects` and `core`.
In: plans of executables (`plan.py`) and Python objects; out: addresses of the functions.
"""
