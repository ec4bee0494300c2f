"""A plug-in: the dialect `swish` with the operator x * sigmoid(x), and what may go with one."""

from stepwell import Universe


def _dialect():
    from .dialect import Swish

    return Swish


def _raise_pass():
    from .raise_silu import SwishRaiseSiluPass

    return SwishRaiseSiluPass


def _onnx():
    from .converters import load_onnx

    return load_onnx()


def _torch():
    from .converters import load_torch

    return load_torch()


def _layer():
    from .layers import Swish

    return Swish


def _rule():
    from .machine import two_vectors

    return two_vectors


def _target():
    from .machine import large_cache

    return large_cache()


UNIVERSE = Universe(
    interface=2,  # the version of Stepwell's plug-in interface that this is written for
    all_dialects={"swish": _dialect},
    all_passes={"swish-raise-silu": _raise_pass},
    placements={"swish-raise-silu": "after graph-simplify"},
    all_importers={"onnx": _onnx, "torch": _torch},
    all_layers={"Swish": _layer},
    all_schedule_rules={"two-vectors": _rule},
    all_processors={"swish-large-cache": _target},
)
