"""Additions to xDSL's `math`."""

AT_MOST_64 = "stepwell.at_most_64"
"""An attribute of `math.exp`: the argument is not above 64. NaN and -inf may be arguments.

An operator states it where it follows from the maximum that the operator subtracts. A lane whose
result is not used may have any argument.
"""
