"""What passes that apply one schedule primitive have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..core.context import decide
from ..dialects.loop.nests import kernel_named
from ..dialects.loop.ops import KernelOp


@dataclass(frozen=True)
class PrimitivePass(ModulePass):
    """Applies a primitive to one kernel; the options of the pass are the primitive's arguments.

    A primitive takes a kernel, which it consumes, and returns the one that replaces it. It raises
    `ScheduleError` where it is not legal, and has then changed nothing.
    """

    primitive: ClassVar[Callable[..., KernelOp]]

    kernel: str | None = None
    """The kernel; may be omitted if the module has only one."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Apply the primitive to the kernel.

        Raises:
            ScheduleError: if there is no such kernel, or the primitive refuses.
        """
        options = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "kernel"}
        kernel = type(self).primitive(kernel_named(self.name, op, self.kernel), **options)
        decide(ctx, kernel, str(self), "the pipeline contains this step")
