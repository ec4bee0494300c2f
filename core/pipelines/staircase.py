"""The staircase: its stages, and the passes that lead from each to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from ..boundary.arrays import is_integer
from ..errors import CompileError, explain
from ..ir.context import CompilerContext
from ..threads import SOME_THREADS, are_threads
from .pass_manager import run_steps
from .stages import IR_STAGES, stages_after
from .text import PassEntry, check_known, entries, parse_passes

OPT_LEVELS = (0, 1, 2, 3)

LATE = "graph-open-composites{late=true}"
"""The pass after which no composite is left that is better opened."""

_OPTIMIZED = {
    0: ("graph-decompose-sparse", "graph-legalize"),
    1: (
        "graph-open-composites",
        "graph-cse",
        "graph-raise-quantized",
        "graph-fold-constant",
        "canonicalize",
        "graph-canonicalize-ops",
        "graph-simplify",
        "graph-cancel-transposes",
        "graph-simplify",
        "graph-raise-messages",
        "graph-compute-before-gather",
        "graph-raise-attention",
        "graph-fold-scale-axis",
        "graph-fold-constant",
        "graph-order-contractions",
        "graph-sparsify-constant",
        "graph-order-contractions",
        "graph-decompose-sparse",
        "graph-hoist-invariant",
        "graph-batch-slices",
        "graph-unroll-loops",
        "canonicalize",
        "graph-canonicalize-ops",
        "graph-simplify",
        "graph-fold-scale-axis",
        "graph-fold-constant",
        "graph-canonicalize-ops",
        "graph-fold-constant",
        "graph-combine-parallel-dense",
        "graph-combine-parallel-conv2d",
        "graph-fold-constant",
        "graph-alter-op-layout",
        "graph-winograd-conv2d",
        "graph-simplify",
        "graph-fold-constant",
        "graph-legalize",
        "canonicalize",
        "graph-cse",
        "graph-dce",
        LATE,
        "graph-canonicalize-cast",
    ),
}
_OPTIMIZED[2] = _OPTIMIZED[3] = _OPTIMIZED[1]
"""The passes to stage `optimized`, in an order that their `Order:` lines state."""
_FUSED = {
    0: "graph-fuse-ops{max-ops=1}",
    1: "graph-fuse-ops",
    2: "graph-fuse-ops",
    3: "graph-fuse-ops",
}
_SCHEDULED = {
    0: "",
    1: "loop-schedule",
    2: "loop-align-rows,loop-schedule",
    3: "loop-align-rows,loop-schedule",
}

_MAKES = {
    "graph-fuse-ops": "fused",
    "convert-graph-to-loop": "kernels",
    "convert-graph-to-rt": "buffers",
    "loop-legalize-vectors": "loops",
    "convert-loop-to-scf": "loops",
    "convert-to-llvm": "llvm",
}
"""The stage of each pass that begins one, in a text of all passes."""

_ENDS = ("convert-graph-to-loop", "convert-loop-to-scf")
"""The passes that end their stage."""

_OPTIONAL = ("graph-fuse-ops", "loop-legalize-vectors")
"""Passes that a stage can do without: operators by themselves and scalars are legal."""


def pipeline(opt_level: int = 3, threads: int = 1, copy_indices: bool = False) -> dict[str, str]:
    """The pass list that leads to each stage, by stage name, as `stepwell-opt -p` takes it.

    Raises:
        CompileError: if there is no such level, or `threads` is not from 1 to 256.
    """
    if isinstance(opt_level, bool) or opt_level not in OPT_LEVELS:
        raise CompileError(
            explain("compile", "unknown opt_level", expected="0, 1, 2 or 3", got=repr(opt_level))
        )
    if not are_threads(threads):
        fact = "wrong threads"
        raise CompileError(explain("compile", fact, expected=SOME_THREADS, got=repr(threads)))
    from ..plugins import placements

    texts = own_pipeline(opt_level, threads, copy_indices)
    # Other packages add passes to each compilation.
    for name, side, anchor, error in placements():
        if not any(anchor in passes_in(own_pipeline(level)) for level in OPT_LEVELS):
            expected = "one of `stepwell pipeline`"
            raise error(f"places {name} {side} an unknown pass", expected=expected, got=anchor)
        texts = _placed(texts, name, side, anchor)
    return texts


def own_pipeline(
    opt_level: int = 3, threads: int = 1, copy_indices: bool = False
) -> dict[str, str]:
    """The pass list that leads to each stage, without passes of other packages."""
    copying = "{copy-indices=true}" if copy_indices else ""
    on_threads = f"{{threads={threads}}}" if threads > 1 else ""
    return {
        "optimized": ",".join(_OPTIMIZED[opt_level]),
        "fused": _FUSED[opt_level],
        "kernels": "convert-graph-to-loop",
        "scheduled": _SCHEDULED[opt_level].replace("loop-schedule", f"loop-schedule{on_threads}"),
        "buffers": f"convert-graph-to-rt{copying}",
        "loops": "loop-legalize-vectors,convert-loop-to-scf",
        "llvm": (
            "rt-outline-tiles,convert-math-to-arith,convert-scf-to-cf,"
            f"convert-rt-to-llvm{on_threads},convert-to-llvm"
        ),
    }


def _placed(texts: dict[str, str], name: str, side: str, anchor: str) -> dict[str, str]:
    """The passes with one more after the last, or before the first, of a name."""
    found = [stage for stage, text in texts.items() if anchor in passes_in({stage: text})]
    if not found:
        return texts
    stage = found[-1 if side == "after" else 0]
    passes = [str(entry) for entry in entries(texts[stage])]
    places = [n for n, entry in enumerate(entries(texts[stage])) if entry.name == anchor]
    passes.insert(places[-1] + 1 if side == "after" else places[0], name)
    return {**texts, stage: ",".join(passes)}


def pipeline_text(texts: Mapping[str, str]) -> str:
    """The passes of all stages as one text to read, to edit, and to pass to `stepwell-opt -p`.

    Each pass is on its own line; a comment names the stage that the passes below it lead to.
    """
    lines: list[str] = []
    for stage, text in texts.items():
        passes = [f"{entry}," for entry in entries(text)]
        lines += [f"# {stage}", *passes] if passes else []
    return "\n".join(lines).removesuffix(",") + "\n"


def split_pipeline(text: str, start: str = "graph") -> dict[str, str]:
    """The passes that lead to each stage after `start`, from the text of all passes.

    Conversions determine where a stage begins; comments are ignored.

    Raises:
        CompileError: if the text is malformed, has a pass of a stage that the module is past, or
            stops short of the last stage.
    """
    stages = stages_after(start)
    found: dict[str, list[str]] = {stage: [] for stage in stages}
    stage, names = stages[0] if stages else start, set()
    for entry in entries(text):
        if not stages:
            fact = f'no pass is left for a module of stage "{start}"'
            raise CompileError(explain("pipeline", fact, got=entry.name))
        names.add(entry.name)
        begun = _MAKES.get(entry.name, stage)
        if IR_STAGES.index(begun) < IR_STAGES.index(stage):
            expected = f'a pass that leads to stage "{stage}" or beyond'
            raise CompileError(
                explain("pipeline", "a pass comes too late", expected=expected, got=entry.name)
            )
        stage = begun
        found[stage].append(str(entry))
        if entry.name in _ENDS:
            stage = stages_after(stage)[0]
    for name, made in _MAKES.items():
        if made in stages and name not in (*_OPTIONAL, *names):
            # Without a pass of another name, the misspelt one is what is wrong.
            from ..registry import passes

            check_known(sorted(names), passes())
            raise CompileError(
                explain("pipeline", f'it stops short of stage "{made}"', expected=name)
            )
    return {stage: ",".join(passes) for stage, passes in found.items()}


def passes_in(texts: Mapping[str, str]) -> set[str]:
    """The names of the passes of all stages.

    Raises:
        CompileError: if a text is malformed.
    """
    return {entry.name for text in texts.values() for entry in entries(text)}


def threads_of(texts: Mapping[str, str]) -> set[int]:
    """The numbers of threads that the passes of all stages have as an option, 1 if none has.

    Raises:
        CompileError: if a text is malformed.
    """
    given = [e.spec.parameters.get("threads") for t in texts.values() for e in entries(t)]
    return {count for counts in given if counts for count in counts if is_integer(count)} or {1}


def without(text: str, passes: str) -> str:
    """A pipeline text without some passes, which have these options, wherever they run.

    Raises:
        CompileError: if a text is malformed.
    """
    gone = list(entries(passes))
    return ",".join(str(one) for one in entries(text) if one not in gone)


_SCHEDULES = "loop-schedule"
"""The pass that schedules kernels."""


def with_traces(texts: Mapping[str, str], traces: str) -> dict[str, str]:
    """The passes of all stages with traces of schedules, ``@kernel: steps @other: steps``.

    Raises:
        CompileError: if they schedule nothing, or have traces.
    """
    stage, place = _scheduling(texts)
    passes = list(entries(texts[stage]))
    spec = passes[place].spec
    if given := {"trace", "trace-file"} & spec.parameters.keys():
        fact = f"the pipeline has a schedule: {_SCHEDULES}{{{min(given)}=...}}"
        raise CompileError(explain("schedule", fact, expected="a pipeline without"))
    spec = replace(spec, parameters={**spec.parameters, "trace": (traces,)})
    passes[place] = PassEntry(spec, passes[place].anchors)
    return {**texts, stage: ",".join(map(str, passes))}


def until_schedules(texts: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The stage that schedules, and the passes of all stages, of this one those before it only.

    Raises:
        CompileError: if they schedule nothing.
    """
    stage, place = _scheduling(texts)
    return stage, {**texts, stage: ",".join(map(str, entries(texts[stage])[:place]))}


def _scheduling(texts: Mapping[str, str]) -> tuple[str, int]:
    """The stage of the pass that schedules, and its place there."""
    for stage, text in texts.items():
        for place, entry in enumerate(entries(text)):
            if entry.name == _SCHEDULES:
                return stage, place
    expected = f"an earlier stage, opt_level 1 to 3, a pipeline with {_SCHEDULES}"
    raise CompileError(explain("schedule", "nothing is scheduled", expected=expected))


def run_passes(ctx: CompilerContext, op: ModuleOp, text: str, stage: str = "") -> None:
    """Run a pipeline text on a module in place, as `pass_manager.run_steps` does.

    Raises:
        CompileError: if the text is wrong or a pass refuses; see `parse_passes`, `run_steps`.
    """
    from ..registry import passes

    run_steps(ctx, op, parse_passes(text, passes()), stage)
