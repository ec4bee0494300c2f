"""Where a node of an exported program comes from: the module, and the line of the user."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import LocationAttr

from ...core.ir.provenance import named, placed

_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+), in .*(?:\n\s+(.+))?', re.MULTILINE)
_OWN = str(Path(__file__).parent)
_INSTALLED = map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))
_LIBRARIES = (*dict.fromkeys(_INSTALLED), _OWN, "<")


def module_path(node: Any) -> str:
    """The path of the innermost module that a node belongs to, such as ``layers.0.conv``; the name
    of the node where that is the model itself."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [entry[0] for entry in stack.values()]
    path = paths[-1] if paths else ""
    return re.sub(r"@\d+$", "", path) or node.name


def line_of(node: Any) -> tuple[str, int, str] | None:
    """File, line and text of the innermost line of the user's code; None if unknown.

    Code of installed packages is not the user's, unless there is no other, nor is what torch makes
    of graphs.
    """
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    others = [frame for frame in frames if not frame[0].startswith(_OWN)]
    own = [frame for frame in others if is_of_user(frame[0])]
    if not others:
        return None
    file, line, text = (own or others)[-1]
    return file, int(line), text.strip()


def is_of_user(file: str) -> bool:
    """Whether a file is the user's own: neither of Python or a package, nor made by one."""
    made = Path(file).name.startswith("torch_geometric.")  # a layer's `propagate`
    return not made and not file.startswith(_LIBRARIES)


def location_of(node: Any) -> LocationAttr:
    """The location of the operators of a node: the module path, at the user's line."""
    location, line = named(module_path(node)), line_of(node)
    return location if line is None else placed(location, Path(line[0]).name, line[1], 1)


def described(node: Any) -> str:
    """The module path and the line of a node in an error message."""
    line = line_of(node)
    where = "" if line is None else f" ({Path(line[0]).name}:{line[1]}: {line[2]})"
    return f'"{module_path(node)}"{where}'


_MOVES = (
    *("alias", "clone", "_to_copy", "expand", "flip", "getitem", "permute", "reshape", "select"),
    *("slice", "split", "squeeze", "t", "transpose", "unbind", "unsqueeze", "view"),
)


def source_of(node: Any) -> Any:
    """The node whose elements a node only moves: itself where it computes them."""
    while node.op == "call_function" and _function(node.target) in _MOVES:
        node = node.args[0]
    return node


def _function(target: Any) -> str:
    """The name of an operator without its overload, or of a function of Python."""
    return str(getattr(target, "overloadpacket", target.__name__)).rpartition(".")[2]
