"""Rewrites of buffer programs: the arena plan, outlining of parallel regions.

It may import: `dialects` and `core`.
In: the `buffers` stage or the `loops` stage; out: the same stage with memory planned and regions outlined.
"""
