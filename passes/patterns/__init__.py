"""Patterns that users write: terms, matching, rewriting and grouping.

It may import: `dialects`, `core` and the outlining of groups.
In: a Python function over operators, and a module; out: matches, or a rewritten module.
"""
