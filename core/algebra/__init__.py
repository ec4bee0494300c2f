"""The algebra of indices and sizes: expressions over named unknowns, and what follows about them.

It may import `core.bounded_cache` only. In: expressions of maps and values, what is known of the
unknowns in them; out: expressions in a normal form, and proofs that one is below 0.
"""
