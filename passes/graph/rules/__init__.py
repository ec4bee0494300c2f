"""The identities by which `graph-simplify` rewrites, by subject.

It may import: `dialects` and `core`.
In: operators; out: fewer or cheaper ones of the same meaning.
"""
