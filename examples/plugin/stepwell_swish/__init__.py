"""A plug-in: the dialect `swish`, with the operator x * sigmoid(x) and a pass that finds it."""

from stepwell import Universe


def _dialect():
    from .dialect import Swish

    return Swish


def _raise_pass():
    from .raise_silu import SwishRaiseSiluPass

    return SwishRaiseSiluPass


UNIVERSE = Universe(
    interface=1,  # the version of Stepwell's plug-in interface that this is written for
    all_dialects={"swish": _dialect},
    all_passes={"swish-raise-silu": _raise_pass},
)
