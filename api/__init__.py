"""Functions that users call as `stepwell.<name>`: compile, load, export and their like.

It may import: `driver`, `diagnosis`, `caching` and what these import.
In: modules, files and options; out: programs, libraries and modules.
"""
