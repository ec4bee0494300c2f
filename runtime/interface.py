"""The interface of a program on buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from ..core.module import Module
from ..core.weights import WeightStore
from ..dialects.graph.signature import Signature
from ..dialects.program import Constant, buffers_of, checked_signature, needs_of
from .constants import materialised, renewed
from .functions import callback


@dataclass(frozen=True)
class Interface:
    """The inputs and results of a program, and the tables of its context.

    `name` is the name of the public function, `buffers` are the types of its arguments after the
    context. Entry n of `constants` and `functions` is for slot n; entry n of `sources` says which
    weight constant n is; entry n of `messages` turns the details of status n + 1 into an error
    text.
    """

    name: str
    signature: Signature
    buffers: tuple[Attribute, ...]
    constants: tuple[np.ndarray, ...]
    sources: tuple[Constant, ...]
    functions: tuple[Any, ...]
    messages: tuple[Callable[[Sequence[int]], str], ...]

    def with_weights(self, weights: WeightStore) -> Interface:
        """The interface of the same code with new weights; constants that are no weights stay.

        Raises:
            CompileError: if an array does not fit.
        """
        return replace(self, constants=renewed(self.sources, self.constants, weights))


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
        sources=needs.constants,
        functions=tuple(map(callback, needs.functions)),
        messages=tuple(failure.explain for failure in needs.failures),
    )
