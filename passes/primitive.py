"""Schedule primitives: functions of a kernel, and what is derived from each.

    @primitive(SUMS, factor=1)
    def split(kernel: Consumed, loop: str, factor: int, tail: str = "peel") -> KernelOp: ...

is the step `split(i, 8)` of traces, the method `split` of schedules, and the pass `loop-split`.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cached_property, partial
from types import ModuleType
from typing import Any, ClassVar, TypeAlias, TypeVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ..core.building.creation import copied
from ..core.errors import explain, first_line
from ..core.ir.context import decide
from ..core.pipelines.budgets import Budget
from ..dialects.loop.handles import Forwarded
from ..dialects.loop.nests import Consumed, ScheduleError, kernel_named, put_in_place
from ..dialects.loop.ops import ForOp, KernelOp
from ..dialects.loop.proofs.levels import check_kernel, is_on_device
from ..dialects.stages import reach_scheduled

Function = TypeVar("Function", bound=Callable[..., KernelOp])
Handles: TypeAlias = Callable[[Mapping[str, ForOp], Forwarded, str], Any]
"""Computes the result of a method of schedules, from the loops of the new kernel by name, the names
that old loops were forwarded to, and the first argument."""

DEFINED: dict[str, Primitive] = {}
"""The primitives whose modules have been imported, by name."""

_ARGUMENT = re.compile(r"^    (\w+): (.+(?:\n {5,}.+)*)", re.MULTILINE)
"""An entry of the section `Args:` of a docstring."""


@dataclass(eq=False)
class Primitive:
    """A step of schedules.

    Attributes:
        function: takes a kernel, which it consumes, and arguments; returns the kernel that replaces
            it. It raises `ScheduleError` where it is not legal, and has then changed nothing.
        handles: what the method of schedules returns; None for nothing.
    """

    function: Callable[..., KernelOp]
    handles: Handles | None

    @property
    def name(self) -> str:
        return self.function.__name__

    @cached_property
    def parameters(self) -> list[inspect.Parameter]:
        """The parameters after the kernel."""
        return list(inspect.signature(self.function).parameters.values())[1:]

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature of the method of schedules; several loops are given one by one."""
        several = inspect.Parameter.VAR_POSITIONAL
        return inspect.Signature(
            [
                parameter.replace(kind=several, annotation="str")
                if is_list(parameter)
                else parameter
                for parameter in self.parameters
            ]
        )

    @property
    def result(self) -> str:
        """The type of its handles."""
        given = self.handles
        return "None" if given is None else inspect.signature(given).return_annotation

    def options(self, defaults: Mapping[str, object]) -> Iterator[tuple[str, str, Any]]:
        """The options of the pass: the name, the type and the field of each."""
        _, _, section = (inspect.getdoc(self.function) or "").partition("\nArgs:\n")
        section, _, _ = section.partition("\n\n")
        texts = {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(section)}
        for parameter in self.parameters:
            name, kind = parameter.name, str(parameter.annotation)
            default: object = 0 if kind == "int" else ""
            if is_list(parameter):
                kind, default = "tuple[str, ...]", ()
            if parameter.default is not parameter.empty:
                default = parameter.default
            text = texts.get(name, "")
            text = text[:1].upper() + text[1:]
            yield name, kind, field(default=defaults.get(name, default), metadata={"help": text})


def is_list(parameter: inspect.Parameter) -> bool:
    """Whether a parameter takes several loops."""
    return str(parameter.annotation).startswith("Sequence")


def primitive(
    budget: Budget | None, handles: Handles | None = None, **defaults: object
) -> Callable[[Function], Function]:
    """Make a function a primitive.

    Its parameters after the kernel are the arguments of the step and the options of the pass, which
    the section `Args:` of its docstring describes. The docstring of its module is that of the pass.

    Args:
        budget: how far the pass may move results; None if the module itself defines the pass.
        handles: what the method of schedules returns; by default nothing.
        defaults: options that a pipeline may omit, although the step needs them, unless they are 0,
            "" or no loops.
    """

    def define(given: Function) -> Function:
        function = _fitting(given)
        step = DEFINED[function.__name__] = Primitive(function, handles)
        if budget is not None:
            module = sys.modules[function.__module__]
            module.__getattr__ = partial(_pass_of, module, step, budget, defaults)
        return function

    return define


def _fitting(function: Function) -> Function:
    """A primitive that refuses what would leave loops where a device cannot have them.

    What a step does to loops around, and to buffers in, those of a device is found by taking the
    step: on a copy, which takes the place of the kernel if it fits.
    """
    name = _pass_name(function.__name__)

    @functools.wraps(function)
    def step(kernel: Consumed, *arguments: Any, **named: Any) -> KernelOp:
        if not is_on_device(kernel):
            return function(kernel, *arguments, **named)
        new = function(copied(kernel), *arguments, **named)
        try:
            check_kernel(new)
        except VerifyException as error:
            fact = f"the levels of a device in @{kernel.sym_name.data} do not allow it"
            hint = "take the step before loops are bound"
            raise ScheduleError(explain(name, f"{fact}: {first_line(error)}", hint=hint)) from error
        return put_in_place(new, kernel)

    return cast(Function, step)


def _pass_name(step: str) -> str:
    return f"loop-{step.replace('_', '-')}"


def _pass_of(
    module: ModuleType, step: Primitive, budget: Budget, defaults: Mapping[str, object], name: str
) -> type[PrimitivePass]:
    """The pass of a step, made when somebody asks its module for it: schedules need none."""
    pass_name = _pass_name(step.name)
    class_name = "".join(word.capitalize() for word in pass_name.split("-")) + "Pass"
    if name != class_name:
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
    body = {
        "__doc__": module.__doc__,
        "__module__": module.__name__,
        "name": pass_name,
        "budget": budget,
        "primitive": step,
    }
    options = list(step.options(defaults))
    made = make_dataclass(class_name, options, bases=(PrimitivePass,), namespace=body, frozen=True)
    setattr(module, class_name, made)
    return made


@dataclass(frozen=True)
class PrimitivePass(ModulePass):
    """Applies a primitive to one kernel; the options of the pass are the primitive's arguments."""

    primitive: ClassVar[Primitive]

    kernel: str | None = None
    """The kernel; may be omitted if the module has only one."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Apply the primitive to the kernel.

        Raises:
            ScheduleError: if there is no such kernel, or the primitive refuses.
        """
        options = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "kernel"}
        kernel = self.primitive.function(kernel_named(self.name, op, self.kernel), **options)
        decide(ctx, kernel, str(self), "the pipeline contains this step")
        reach_scheduled(op)
