"""The names that users give: of sizes in the `dynamic_shapes` of an export, and of arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from ...core.boundary.specs import Key
from .library import library


def automatic_shapes(module: Any, args: Any, kwargs: Any) -> Any:
    """The `dynamic_shapes` in which each dimension of a tensor differs between calls if it can."""
    torch = library()

    def shapes(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return dict.fromkeys(range(value.dim()), torch.export.Dim.AUTO)
        return None

    try:
        arguments = inspect.signature(module.forward).bind(*(args or ()), **(kwargs or {}))
    except (AttributeError, TypeError):
        return {}  # The export says what is wrong.
    return torch.utils._pytree.tree_map(shapes, dict(arguments.arguments))


def given_sizes(
    module: Any,
    program: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
) -> dict[str, Any]:
    """Symbol of torch -> its `torch.export.Dim`, for the sizes that have one with a name."""
    tree = library().utils._pytree
    specs = [s for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    leaves, _ = tree.tree_flatten_with_path((tuple(args), dict(kwargs)))
    dims: dict[str, Any] = {}
    for spec, (path, _) in zip(specs, leaves, strict=False):
        value = values.get(getattr(spec.arg, "name", None))
        given = _at(dynamic_shapes, _steps(module, path))
        for axis, dim in _named_axes(given):
            shape = getattr(value, "shape", ())
            size = shape[axis] if axis < len(shape) else None
            expression = getattr(getattr(size, "node", None), "expr", None)
            if expression is not None and expression.is_Symbol:
                dims.setdefault(str(expression), dim)
    return dims


def argument_paths(program: Any) -> dict[str, tuple[Key, ...]]:
    """The places of the inputs that are parts of dictionaries and sequences, by their names."""
    tree, spec = library().utils._pytree, program.call_spec.in_spec
    arguments = program.module_call_graph[0].signature.forward_arg_names or ()
    leaves, _ = tree.tree_flatten_with_path(tree.tree_unflatten(list(range(spec.num_leaves)), spec))
    inputs = [s.arg for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    found: dict[str, tuple[Key, ...]] = {}
    for given, (path, _) in zip(inputs, leaves, strict=False):
        kind, first, *rest = map(_key, path)
        name = arguments[first] if kind == 0 and first < len(arguments) else first
        keys = (name, *rest)
        if rest and hasattr(given, "name") and all(map(_is_key, keys)):
            found[given.name] = keys
    return found


def _is_key(key: object) -> TypeGuard[Key]:
    texts = isinstance(key, tuple) and all(isinstance(part, str) for part in key)
    return texts or isinstance(key, (str, int))


def _steps(module: Any, path: Sequence[Any]) -> list[Any]:
    """The way from all shapes to those of a leaf: a name or number of an argument comes first."""
    keys = [_key(step) for step in path]
    if keys[0] == 1:
        return keys[1:]
    parameters = list(inspect.signature(module.forward).parameters.values())
    for number, parameter in enumerate(parameters):
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            return [(parameter.name, number), keys[1] - number, *keys[2:]]
        if number == keys[1]:
            return [(parameter.name, number), *keys[2:]]
    return keys[1:]


def _key(step: Any) -> Any:
    """The index, key or attribute that a step of a path stands for."""
    for name in ("idx", "key", "name"):
        if hasattr(step, name):
            return getattr(step, name)
    return None


def _at(shapes: Any, steps: Sequence[Any]) -> Any:
    """What is given for a leaf; None if nothing is."""
    for step in steps:
        choices = step if isinstance(step, tuple) else (step,)
        if isinstance(shapes, Mapping):
            shapes = next((shapes[key] for key in choices if key in shapes), None)
        elif isinstance(shapes, (tuple, list)):
            number = choices[-1]
            fits = isinstance(number, int) and number < len(shapes)
            shapes = shapes[number] if fits else None
        else:
            return None
    return shapes


def _named_axes(given: Any) -> Iterator[tuple[int, Any]]:
    """The axes of a tensor for which a size with a name is given."""
    if not isinstance(given, (Mapping, tuple, list)):
        return
    items = given.items() if isinstance(given, Mapping) else enumerate(given)
    for axis, size in items:
        name = getattr(size, "__name__", None)
        if isinstance(axis, int) and isinstance(name, str) and re.fullmatch(r"[A-Za-z]\w*", name):
            yield axis, size
