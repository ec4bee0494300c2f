"""Which operators become one kernel, and how they are outlined.

`grouping.py` proposes to merge groups and records the answers, `costs.py` weighs them,
`outlining.py` moves groups into functions. Imports dialects and `core`. In: operators of
a block. Out: groups.
"""
