"""The order in which a call gives the arguments of a program: by position, and by name.

That is the order of the inputs. Where the first input is a graph, the features that follow it may
come before it: ``exe(x, edge_index)``, as torch-geometric's models are called. What is meant is
never in doubt, since a matrix of features is not an argument for a graph.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..dtype_names import dtype_named
from ..errors import InputError, explain
from .edge_index import is_edge_index
from .specs import ValueSpec


def in_order(
    specs: Sequence[ValueSpec], inputs: Sequence[object], named: Mapping[str, object]
) -> list[object]:
    """The arguments of a call in the order of the inputs: first those given by position.

    Raises:
        InputError: if a name is unknown, an input is given twice, or one is missing.
    """
    names = [spec.name for spec in specs]
    for name in named:
        if name not in names:
            expected = ", ".join(names) or "none"
            raise InputError(explain("call", "unknown input", expected=expected, got=f'"{name}"'))
    positions = [names[number] for number in _positions(specs, inputs, named)]
    by_position, rest = positions[: len(inputs)], positions[len(inputs) :]
    for name in named:
        if name in by_position:
            raise InputError(explain("call", f'input "{name}" is given by position and by name'))
    missing = [name for name in rest if name not in named]
    if missing:
        given = ", ".join([*by_position, *named]) or "none"
        raise InputError(explain("call", f'input "{missing[0]}" is missing', got=given))
    every = {**dict(zip(by_position, inputs, strict=False)), **named}
    return [*(every[name] for name in names), *inputs[len(names) :]]


def graph_first(specs: Sequence[ValueSpec], inputs: Sequence[object]) -> list[object] | None:
    """The arguments in the order of the inputs; None where they are in that order already."""
    if len(inputs) != len(specs):
        return None
    positions = _positions(specs, inputs)
    if positions[:1] in ([], [0]):
        return None
    return [inputs[positions.index(number)] for number in range(len(specs))]


def _positions(
    specs: Sequence[ValueSpec], inputs: Sequence[object], named: Collection[str] = ()
) -> list[int]:
    """The number of the input that the argument at each position is for."""
    own = list(range(len(specs)))
    features = _features(specs)
    is_matrix = bool(inputs) and len(getattr(inputs[0], "shape", ())) == 2
    if features is None or not is_matrix or _is_graph(specs[0], inputs[0]):
        return own
    others = inputs[1:2]
    if not (_is_graph(specs[0], others[0]) if others else specs[0].name in named):
        return own
    own.remove(features)
    return [features, *own]


def _features(specs: Sequence[ValueSpec]) -> int | None:
    """The number of the features, if they follow a graph, and perhaps its weights."""
    if not specs or not (_is_sparse(specs[0]) or _is_edge_list(specs[0])):
        return None
    for number, spec in enumerate(specs[1:], 1):
        if _is_edge_list(spec) or (_is_sparse(spec) and _is_sparse(specs[0])):
            return None
        if len(spec.shape) == 2:
            return number
    return None


def _is_sparse(spec: ValueSpec) -> bool:
    return spec.format is not None


def _is_edge_list(spec: ValueSpec) -> bool:
    integers = dtype_named(spec.dtype).kind in "iu"
    return not _is_sparse(spec) and integers and len(spec.shape) == 2 and spec.shape[0] == 2


def _is_graph(spec: ValueSpec, value: object) -> bool:
    """Whether an argument is a graph, in a form that an input takes."""
    if not _is_sparse(spec):
        return is_edge_index(value)
    is_matrix = hasattr(value, "tocsr") or hasattr(value, "to_csr")
    return is_matrix or isinstance(value, tuple) or is_edge_index(value)
