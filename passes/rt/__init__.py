"""Rewrites of buffer programs: the arena plan, outlining of parallel regions.

It may import: `dialects` and `core`.
In: the `buffers` or the `loops` stage; out: the same, with memory planned, regions outlined.
"""
