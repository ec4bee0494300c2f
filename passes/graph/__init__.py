"""Rewrites of `graph` modules: folding, simplification, association order, fusion.

It may import: `dialects` and `core`.
In: the `graph` stage; out: the `optimized` and `fused` stages.
"""
