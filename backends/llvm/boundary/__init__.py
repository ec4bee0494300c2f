"""The way from Python into compiled code, in LLVM IR that is compiled once in a process.

It may import: llvmlite, `dialects` and `core`.
In: plans of executables (`plan.py`) and Python objects; out: addresses of the functions.
"""
