"""Rewrite rules of the graph passes, by subject, and when they pay off.

It may import: `dialects` and `core`.
In: operators; out: equivalent ones that are fewer or cheaper.
"""
