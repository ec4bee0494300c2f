"""What a program looks like in C: names and types, and the files around its object file.

It may import: `core` and `dialects`.
In: the signature of a program; out: a header, an example, build files, and linked libraries.
"""
