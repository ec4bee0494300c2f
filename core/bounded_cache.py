"""`bounded_cache`: what functions of types and numbers returned, as often as a program needs it.

An unbounded cache, or one for thousands of entries, grows with each program that a process compiles
that has sizes of its own.
"""

from __future__ import annotations

import functools

MOST = 512
"""The entries of a cache: programs rarely have more sizes and offsets."""

bounded_cache = functools.lru_cache(maxsize=MOST)
