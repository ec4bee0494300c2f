"""Which operators become one kernel, and how they are outlined.

`grouping.py` decides, `cutting.py` divides what cannot be one kernel, `outlining.py` moves groups
into primitive functions. Imports dialects and `core`. In: operators of a block. Out: groups.
"""
