"""The interface of a program on buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from ..core.module import Module
from ..dialects.graph.signature import Signature
from ..dialects.program import buffers_of, checked_signature, needs_of
from .constants import materialised
from .functions import callback


@dataclass(frozen=True)
class Interface:
    """The inputs and results of a program, and the tables of its context.

    `name` is the name of the public function, `buffers` are the types of its arguments after the
    context. Entry n of `constants` and `functions` is for slot n; entry n of `messages` turns the
    details of status n + 1 into an error text.
    """

    name: str
    signature: Signature
    buffers: tuple[Attribute, ...]
    constants: tuple[np.ndarray, ...]
    functions: tuple[Any, ...]
    messages: tuple[Callable[[Sequence[int]], str], ...]


def interface_of(module: Module) -> Interface:
    """The interface of a module at a stage from `buffers` on.

    Raises:
        CompileError: if its public function lacks the attributes of its signature, or constants or
            functions are missing.
    """
    main = module.program
    needs = needs_of(module.op, main)
    return Interface(
        name=main.sym_name.data,
        signature=checked_signature(main),
        buffers=tuple(buffers_of(main)),
        constants=materialised(needs.constants, module.weights),
        functions=tuple(map(callback, needs.functions)),
        messages=tuple(failure.explain for failure in needs.failures),
    )
