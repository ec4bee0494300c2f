"""Standard operations that xDSL lacks, or defines for scalars only, under their own names.

It may import: core and xDSL.
In: IR text in upstream MLIR's form, or constructor calls; out: verified operations.
"""
