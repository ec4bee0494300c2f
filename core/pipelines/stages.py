"""The names of the stages of the staircase, in order."""

from __future__ import annotations

from ..errors import CompileError, explain

IR_STAGES = (
    "graph",
    "optimized",
    "fused",
    "kernels",
    "scheduled",
    "buffers",
    "loops",
    "llvm",
)
"""The stages that are modules, each lowered from the one before it."""

TEXT_STAGES = ("llvm-ir", "asm")
"""The stages that are text for people, written by the backend."""

STAGES = IR_STAGES + TEXT_STAGES

DEVICE_STAGES = ("ptx",)
"""The texts that programs for a device have beside these."""

EVERY_STAGE = STAGES + DEVICE_STAGES


def stages_from(stage: str) -> tuple[str, ...]:
    """The stages of a program for the host, from `stage` on."""
    return STAGES[STAGES.index(stage) :]


def stages_after(stage: str) -> tuple[str, ...]:
    """The stages that are modules, from the one after `stage` on."""
    return IR_STAGES[IR_STAGES.index(stage) + 1 :]


def check_stage(stage: str) -> str:
    """Return `stage` if it is the name of a stage.

    Raises:
        CompileError: if it is not, naming the nearest stage.
    """
    if stage in EVERY_STAGE:
        return stage
    import difflib

    near = difflib.get_close_matches(str(stage), STAGES, 1)
    hint = f'did you mean "{near[0]}"' if near else None
    raise CompileError(
        explain("stage", "unknown name", expected=", ".join(STAGES), got=f'"{stage}"', hint=hint)
    )
