"""Rewrites of buffer programs: the arena plan, outlining of parallel regions.

It may import: `dialects` and `core`.
In: the `buffers` or `loops` stage; out: the same stage, with planned memory, outlined regions.
"""
