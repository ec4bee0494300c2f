"""Patterns over operators of any dialect: their terms, and what they match.

They may import `core` only, and name operators of dialects by text. In: terms and IR; out: the
values that terms are bound to, or why they are not.
"""
