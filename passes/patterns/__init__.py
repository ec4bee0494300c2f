"""The vocabulary of patterns, rewriting by them, and grouping.

It may import: `dialects`, `core` and the outlining of groups.
In: a Python function over operators, and a module; out: a rewritten module.
"""
