"""The driver: a compilation, which lowers a module stage by stage and assembles its program.

It may import: what conversions and `runtime` import, and these.
In: a module, and everything that decides how it is lowered; out: a program that runs.
"""
