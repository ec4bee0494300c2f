"""The compile cache: programs and kernels of earlier compilations, in a folder of the user.

It may import: `runtime`, `backends`, `dialects`, `core`; what a hit takes, no LLVM and no passes.
In: modules with the arguments of their compilation; out: programs and kernels of earlier ones.
"""
