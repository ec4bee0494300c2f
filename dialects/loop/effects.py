"""The memory effects of loops and stores."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from xdsl.ir import Operation
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind, RecursiveMemoryEffect


class LoopEffects(MemoryEffect):
    """The effects of the body of a loop; one over entries also reads the row pointers."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance] | None:
        effects = RecursiveMemoryEffect.get_effects(op)
        if effects is None or "entries" not in op.properties:
            return effects
        return {*effects, EffectInstance(MemoryEffectKind.READ)}


class StoreEffects(MemoryEffect):
    """A store writes; one that accumulates also reads."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        kinds = [MemoryEffectKind.WRITE]
        if "combine" in op.properties:
            kinds.append(MemoryEffectKind.READ)
        return {EffectInstance(kind) for kind in kinds}
