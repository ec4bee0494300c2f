"""Settling a request: names of targets, levels and records become what they stand for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.errors import CompileError, explain
from ..core.pipelines import staircase as pipelines
from ..core.pipelines.exactness import with_rounding
from ..core.pipelines.stages import IR_STAGES
from ..core.target import Target, default_threads, named
from ..passes.loop.scheduler.records import default_path, read_records
from .request import Request


def settled(request: Request, start: str) -> Request:
    """The settled request for a copy of the module, which is at a stage.

    Raises:
        CompileError: if the arguments contradict each other.
        TargetError: if the target is unknown.
    """
    target, passes = named(request.target), passes_of(request, start)
    if request.schedule:
        later = IR_STAGES[IR_STAGES.index(start) + 1 :]
        left = {stage: text for stage, text in passes.items() if stage in later}
        passes = pipelines.with_traces(left, request.schedule)
    table = table_of(request, start, passes)
    schedules = _recorded(request, target) if request.schedules is None else request.schedules
    module, rounding = request.module, request.rounding
    begun = module.clone() if rounding is None else with_rounding(module, rounding)
    return Request(begun, target, pipeline=passes, legalize=table, schedules=schedules)


def passes_of(request: Request, start: str) -> Mapping[str, str]:
    """The passes of each stage after `start`.

    Raises:
        CompileError: if the arguments contradict each other, or the pipeline stops short.
    """
    pipeline, threads = request.pipeline, request.threads
    if pipeline is None:
        count = default_threads(named(request.target)) if threads is None else threads
        return pipelines.pipeline(request.opt_level, count, request.copy_indices)
    if request.copy_indices:
        fact = "the pipeline determines whether indices are copied"
        expected = "convert-graph-to-rt{copy-indices=true} in it instead of copy_indices"
        raise CompileError(explain("compile", fact, expected=expected))
    if isinstance(pipeline, str):
        pipeline = pipelines.split_pipeline(pipeline, start)
    if threads is not None and (own := pipelines.threads_of(pipeline)) != {threads}:
        fact, got = "the pipeline has another number of threads", ", ".join(map(str, sorted(own)))
        raise CompileError(explain("compile", fact, expected=threads, got=got))
    stages = IR_STAGES[IR_STAGES.index(start) + 1 :]
    missing = [stage for stage in stages if stage not in pipeline]
    if missing:
        fact = f'the pipeline lacks stage "{missing[0]}"'
        raise CompileError(explain("compile", fact, expected=f"a text for {', '.join(stages)}"))
    return pipeline


def table_of(request: Request, start: str, passes: Mapping[str, str]) -> Mapping[str, Any] | None:
    """A copy of the table for `graph-legalize`, if there is one.

    Raises:
        CompileError: if it is not a mapping, the module is past the stage where operators are
            replaced, or the pipeline lacks the pass.
    """
    legalize = request.legalize
    if legalize is None:
        return None
    if not isinstance(legalize, Mapping):
        fact, expected = "legalize is not a mapping", "a mapping from names of operators"
        got = type(legalize).__name__
        raise CompileError(explain("compile", fact, expected=expected, got=got))
    if start != "graph":
        fact, expected = "operators are replaced before they are grouped", 'stage "graph"'
        got = f'stage "{start}"'
        raise CompileError(explain("compile", fact, expected=expected, got=got))
    if legalize and "graph-legalize" not in pipelines.passes_in(passes):
        fact, expected = "the pipeline does not use legalize", "graph-legalize in it"
        raise CompileError(explain("compile", fact, expected=expected))
    return dict(legalize)


def _recorded(request: Request, target: Target) -> Mapping[str, str]:
    """The traces that tuning has found for a machine, by kernel structure.

    Raises:
        CompileError: if there is no such database, or it is corrupt.
    """
    records, threads = request.records, request.threads
    path = default_path() if records is None or records is True else records
    if path is None or isinstance(path, bool):
        return {}
    if not isinstance(path, str | os.PathLike):
        fact, expected, got = "not a path", "a path, True or False", type(path).__name__
        raise CompileError(explain("tuning records", fact, expected=expected, got=got))
    if records is not None and records is not True and not Path(path).exists():
        raise CompileError(explain("tuning records", "no such file", got=path))
    found = read_records(Path(path))
    if not found:
        return {}
    return found.schedules(target, default_threads(target) if threads is None else threads)
