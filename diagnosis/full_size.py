"""Checks of large programs: machine code against the reference, function by function.

It takes too long to interpret them after each pass. This is done with smaller sizes instead (see
`smaller`); what depends on sizes shows here. The pass is then found by interpreting only the call
whose results are wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from ..backends.reference.interpreter import run
from ..backends.reference.numbers import unknown
from ..core.errors import MiscompilationError
from ..core.ir.context import Change, CompilerContext
from ..core.ir.module import Module
from ..core.ir.typed import tensor_type
from ..core.ir.walks import is_same
from ..core.pipelines.budgets import Budget, budget_of, together
from ..dialects.graph.ops import CallDpsOp
from ..dialects.graph.sizes.shapes import SymbolicShapes
from ..driver.compilation import CODE_GENERATION, Compilation, Observer
from ..runtime.executable import Executable
from .checking import OF_MACHINE_CODE, ON_TENSORS, Checker
from .limits import ValueLimits
from .machine_calls import called_alone, natives_of
from .single_call import SingleCall
from .traces import Contents, Trace, dense, results_of


class FullSize(Observer):
    """Compare the results of a program, and what its functions write, with those of the reference.

    Args:
        module: the program, of operators.
        samples: inputs to run it on, one or more sets.
        max_ulp: see `Checker`.
        changes: the effects of passes, as found with smaller sizes.

    Raises:
        InputError: if the inputs do not fit.
    """

    def __init__(
        self,
        module: Module,
        samples: Sequence[Sequence[Any]],
        max_ulp: float | None,
        changes: tuple[Change, ...] = (),
    ) -> None:
        self._module, self._samples, self._max_ulp = module.clone(), samples, max_ulp
        self._limits, self._changes = ValueLimits(module, max_ulp), changes
        self._wanted = [_reference(module, arrays) for arrays in samples]
        self._state = module.op.clone()
        self._budgets: tuple[list[Budget], list[Budget]] = ([], [OF_MACHINE_CODE])
        """Those of passes on tensors that changed something, and of all others."""
        self._suspect: tuple[SingleCall, Sequence[Any]] | None = None

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Note how far the pass may move results."""
        self._limits.narrow(op)
        if ctx.stage not in ON_TENSORS:
            self._budgets[1].append(budget_of(ctx.step))
        elif not is_same(op, self._state):
            self._budgets[0].append(budget_of(ctx.step))
            self._state = op.clone()

    def compiled(self, exe: Executable, compilation: Compilation) -> None:
        """Compare.

        Raises:
            MiscompilationError: if something differs. It blames code generation: see `checker`.
        """
        fused, scheduled, last = _stages(compilation)
        natives = natives_of(last, compilation.target)
        change = Change("asm", CODE_GENERATION, 0.0, 0, CODE_GENERATION)
        early = replace(change, stage="fused", pass_name="passes on tensors")
        on_tensors, on_buffers = ((together(all_of), len(all_of)) for all_of in self._budgets)
        references = [_reference(fused, arrays) for arrays in self._samples]
        for arrays, wanted, reference in zip(self._samples, self._wanted, references, strict=True):
            self._suspect = SingleCall(reference, None), arrays
            self._limits.compare(early, wanted, reference, list(arrays), *on_tensors)
        self._limits.follow(fused)
        for arrays, reference in zip(self._samples, references, strict=True):
            self._suspect = SingleCall(reference, None), arrays
            _align(reference, scheduled)
            found = called_alone(last, compilation.target, arrays, natives, reference)
            found.results = results_of(exe, arrays)
            try:
                self._limits.compare(change, reference, found, list(arrays), *on_buffers)
            except MiscompilationError as error:
                if error.function is not None:
                    key = error.function, error.call
                    self._suspect = SingleCall(reference, key, self._may_replay), arrays
                raise
        self._suspect = None
        exe.changes = self._changes

    def checker(self) -> Checker | None:
        """What finds the pass to blame, None if nothing is wrong."""
        if self._suspect is None:
            return None
        call, arrays = self._suspect
        return Checker(self._module, arrays, self._max_ulp, single=call)

    @property
    def _may_replay(self) -> bool:
        """Whether a function has as much memory as it writes: it has more if it computes sizes."""
        return not SymbolicShapes(self._module.main).computed


class LocatingFullSize(FullSize):
    """Blames the pass."""

    def compiled(self, exe: Executable, compilation: Compilation) -> None:
        """Compare, and look for the pass if something differs.

        Raises:
            MiscompilationError: if something differs.
        """
        try:
            super().compiled(exe, compilation)
        except MiscompilationError:
            checker = self.checker()
            assert checker is not None
            again = replace(compilation, observers=(checker,))
            work, ctx = again.begin()
            for _ in again.descend(work, ctx):
                pass
            raise


def _reference(module: Module, arrays: Sequence[Any]) -> Trace:
    trace = Trace()
    trace.results = tuple(map(dense, run(module, arrays, trace.observe)))
    return trace


def _align(trace: Trace, module: Module) -> None:
    """Give arrays that functions write the longer rows that they have at stage `scheduled`.

    Elements beyond the end of a row are undefined: no call changes them.
    """
    calls = [op for op in module.op.walk() if isinstance(op, CallDpsOp)]
    kinds = {op.callee.root_reference.data: [tensor_type(r) for r in op.results] for op in calls}
    for (name, _), (_, contents) in trace.calls.items():
        for place, (part, kind) in enumerate(zip(contents, kinds.get(name, ()), strict=False)):
            *rows, columns = (0, *part.values.shape)
            width = (columns, *kind.get_shape())[-1]
            if width > columns:
                longer = unknown((*rows[1:], width), kind.element_type)
                before = longer.copy()
                longer[..., :columns] = part.values
                # Every bit of the other elements has changed.
                before[..., :columns].view(np.uint8)[...] = ~part.values.view(np.uint8)
                contents[place] = Contents(longer, before.reshape(-1).view(np.uint8))


def _stages(compilation: Compilation) -> list[Module]:
    """The modules at stages `fused`, `scheduled` and `llvm`."""
    unobserved = replace(compilation, observers=())
    work, ctx = unobserved.begin()
    wanted = ("fused", "scheduled", "llvm")
    return [work.clone() for stage in unobserved.descend(work, ctx) if stage in wanted]
