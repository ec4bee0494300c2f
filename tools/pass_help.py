"""The list of passes, with what each does and its options."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.passes import ModulePass
from xdsl.utils.hints import type_repr

from ..core.pipelines.text import check_known
from ..core.registry import own_passes, passes


@dataclass(frozen=True)
class Option:
    """An option of a pass: name, type and default as written, and its purpose."""

    name: str
    type: str
    default: str | None
    text: str

    def __str__(self) -> str:
        default = "required" if self.default is None else f"default {self.default}"
        text = f": {self.text}" if self.text else ""
        return f"{self.name} ({self.type}, {default}){text}"


def list_of_passes() -> str:
    """Every pass with the first sentence of its documentation, and its options with defaults."""
    own, available = own_passes(), passes()
    lines = ["passes of stepwell:"]
    for name in own:
        lines += _entry(name, available[name]())
    lines.append("passes of xDSL and of installed plug-ins:")
    for name in sorted(available.keys() - own.keys()):
        lines += _entry(name, available[name]())
    return "\n".join(lines)


def help_of_pass(name: str) -> str:
    """The whole documentation of a pass.

    Raises:
        CompileError: if there is no such pass, with the nearest names.
    """
    available = passes()
    check_known([name], available, "--help-pass")
    kind = available[name]()
    lines = [name, ""]
    lines += textwrap.indent(_documentation(kind) or "not documented", "  ").splitlines()
    options = list(options_of(kind))
    lines += ["", "options:"] if options else ["", "no options"]
    return "\n".join([*lines, *(f"  {option}" for option in options)])


def options_of(kind: type[ModulePass]) -> Iterator[Option]:
    """The options of a pass, in the order in which it declares them."""
    # The string literal under each field of the class, inherited fields included; that of a field
    # made from a parameter is beside it.
    texts = dict[str, str]()
    for base in reversed(kind.__mro__[: kind.__mro__.index(ModulePass)]):
        texts |= _texts_in(base)
    for field in dataclasses.fields(kind):
        if field.name == "name" or not field.init:
            continue
        default = None
        if field.default is not dataclasses.MISSING:
            default = _written(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            default = _written(field.default_factory())
        name = field.name.replace("_", "-")
        written = field.type if isinstance(field.type, str) else type_repr(field.type)
        text = field.metadata.get("help", texts.get(field.name, ""))
        yield Option(name, written, default, text)


def _written(value: object) -> str:
    """A default as it is written on the command line."""
    if value is None or value == ():
        return "none"
    return json.dumps(value) if isinstance(value, str | bool) else str(value)


def _entry(name: str, kind: type[ModulePass]) -> Iterator[str]:
    yield f"  {name:32} {_summary(kind)}".rstrip()
    for option in options_of(kind):
        yield f"      {option}"


def _documentation(kind: type[ModulePass]) -> str:
    """The docstring of a pass itself, not one made by `dataclass` or inherited."""
    text = inspect.cleandoc(kind.__doc__ or "")
    return "" if text.startswith(f"{kind.__name__}(") else text


def _summary(kind: type[ModulePass]) -> str:
    """The first paragraph of the documentation, or the first sentence of it."""
    paragraph = " ".join(_documentation(kind).partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".")


def _texts_in(kind: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, SyntaxError):
        return {}
    assert isinstance(tree.body[0], ast.ClassDef)
    body, texts = tree.body[0].body, dict[str, str]()
    for field, text in itertools.pairwise(body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            texts[field.target.id] = " ".join(str(text.value.value).split())
    return texts
