"""A format of lit that forks the tools of this project instead of starting Python for each.

A process needs a second to import what `stepwell-opt` needs, and a tenth of that to run one test.
Here each worker of lit imports it once; each command is a fork of the worker, with its own
arguments, files and environment, so that no command sees what another one did. RUN lines that
need more than pipes of these tools run in lit's own shell, each line in a new one.
"""

from __future__ import annotations

import gc
import io
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from functools import cache
from typing import Any

import lit.Test
import lit.TestRunner
from lit.formats import ShTest
from lit.ShCommands import Pipeline
from lit.ShUtil import ShParser

Tool = Callable[[Sequence[str]], object]

TOOLS = {"stepwell-opt", "filecheck"}
MERGED = [((">&", 2), "1")]
"""The redirects of a command that says `2>&1`, as lit's parser gives them."""
ERRORS = [*MERGED, ((">",), os.devnull)]
"""Those of one that says `2>&1 >/dev/null`: the pipe takes standard error and nothing else."""


@cache
def tools() -> dict[str, Tool]:
    """The entry points by name; all that they import or cache lazily is made here.

    The collector leaves all of it alone, so that forks do not copy the memory that it would mark.
    """
    from filecheck.main import main as filecheck

    from stepwell.core.registry import make_context, own_dialects, passes
    from stepwell.tools.stepwell_opt import main as stepwell_opt

    for load in (*passes().values(), *own_dialects().values()):
        load()
    make_context()
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(b"builtin.module {}"))
    with redirect_stdout(io.StringIO()):
        stepwell_opt(["-"])
    sys.stdin = stdin
    gc.collect()
    gc.freeze()
    return {"stepwell-opt": stepwell_opt, "filecheck": lambda args: filecheck(["", *args])}


@dataclass(frozen=True)
class Stage:
    """One command of a pipe."""

    tool: str
    args: tuple[str, ...]
    negated: bool
    """Whether `not` precedes it: then it has to exit with an error, and not to crash."""
    merged: bool
    """Whether standard error goes where standard output goes."""
    dropped: bool
    """Whether what it writes to standard output itself is dropped."""

    @staticmethod
    def of(command: Any) -> Stage | None:
        """A command of lit's parser; None if it is for lit's shell."""
        negated = command.args[0] == "not"
        words = command.args[negated:]
        if not all(isinstance(word, str) for word in words) or words[0] not in TOOLS:
            return None
        if command.redirects not in ([], MERGED, ERRORS):
            return None
        merged, dropped = bool(command.redirects), command.redirects == ERRORS
        return Stage(words[0], tuple(words[1:]), negated, merged, dropped)

    def run(self, stdin: int, stdout: int, stderr: int, folder: str, env: dict[str, str]) -> bool:
        """Run it in a fork on these files; whether it ends as it has to."""
        child = os.fork()
        if not child:
            written = os.open(os.devnull, os.O_WRONLY) if self.dropped else stdout
            files = stdin, written, stdout if self.merged else stderr
            os._exit(self._in_child(files, folder, env))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return code > 0 if self.negated else code == 0

    def _in_child(self, files: Sequence[int], folder: str, env: dict[str, str]) -> int:
        for target, file in enumerate(files):
            os.dup2(file, target)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        gc.disable()
        sys.argv = [self.tool, *self.args]
        os.environ.clear()
        os.environ.update(env)
        os.chdir(folder)
        try:
            tools()[self.tool](self.args)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        return code


class ForkedShTest(ShTest):
    """lit's format for shell commands, quicker where they are pipes of this project's tools."""

    def execute(self, test: Any, litConfig: Any) -> Any:
        """Run the RUN lines of a file up to the first one that fails."""
        script = lit.TestRunner.parseIntegratedTestScript(test)
        timed = bool(litConfig.maxIndividualTestTime)
        if isinstance(script, lit.Test.Result) or litConfig.noExecute or timed:
            return super().execute(test, litConfig)
        folder, base = lit.TestRunner.getTempPaths(test)
        substitutions = lit.TestRunner.getDefaultSubstitutions(test, folder, base)
        conditions = dict.fromkeys(test.config.available_features, True)
        limit = test.config.recursiveExpansionLimit
        lines = lit.TestRunner.applySubstitutions(script, substitutions, conditions, limit)
        os.makedirs(folder, exist_ok=True)
        tools()
        for line in lines:
            command = re.sub(r"^%dbg\([^)]*\)", "", line).strip()
            stages = _stages(command)
            if stages is None:
                done = lit.TestRunner._runShTest(test, litConfig, False, [line], base)
                if done.code != lit.Test.PASS:
                    return done
            elif (said := _run(stages, folder, test.config.environment)) is not None:
                return lit.Test.Result(lit.Test.FAIL, f"{command}\n{said}")
        return lit.Test.Result(lit.Test.PASS, "")


def _stages(command: str) -> list[Stage] | None:
    """The commands of a pipe; None if it is for lit's shell."""
    parsed = ShParser(command, pipefail=True).parse()
    if not isinstance(parsed, Pipeline) or parsed.negate:
        return None
    stages = [stage for one in parsed.commands if (stage := Stage.of(one)) is not None]
    return stages if len(stages) == len(parsed.commands) else None


def _run(stages: Sequence[Stage], folder: str, env: dict[str, str]) -> str | None:
    """Run a pipe, one command after another; what it said, if one of them fails."""
    said: list[str] = []
    fine = True
    with ExitStack() as opened:
        given = opened.enter_context(tempfile.TemporaryFile())
        for stage in stages:
            out = opened.enter_context(tempfile.TemporaryFile())
            errors = opened.enter_context(tempfile.TemporaryFile())
            files = given.fileno(), out.fileno(), errors.fileno()
            fine = stage.run(*files, folder, env) and fine
            for file, name in ((out, "stdout"), (errors, "stderr")):
                file.seek(0)
                said.append(f"-- {name} of {stage.tool}:\n{file.read().decode(errors='replace')}")
            out.seek(0)
            given = out
    return None if fine else "\n".join(said)
