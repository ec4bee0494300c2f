"""Rewrites of `graph` modules: folding, simplification, association order, fusion into primitive functions.

It may import: `dialects` and `core`.
In: the `graph` stage; out: the `optimized` and `fused` stages.
"""
