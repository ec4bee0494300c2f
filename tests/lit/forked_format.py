"""A format of lit that forks the tools of this project instead of starting Python for each.

A process needs a second to import what `stepwell-opt` needs, and a tenth of that to run one test.
Here lit imports it once for all workers; the RUN lines of a test run in a fork of a worker, so
that no test sees what another one did. Other commands of a pipe are processes. RUN lines that need
more than pipes run in lit's own shell, each line in a new one.
"""

from __future__ import annotations

import gc
import io
import os
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO

import lit.Test
import lit.TestRunner
from lit.formats import ShTest
from lit.ShCommands import Pipeline
from lit.ShUtil import ShParser

Tool = Callable[[Sequence[str]], object]

TOOLS = {"stepwell-opt", "filecheck"}
"""The tools of this project, which a fork runs itself."""
OF_A_SHELL = {"cd", "export", "umask"}
"""Commands that no process can run: they change the shell for what follows."""
MERGED = [((">&", 2), "1")]
"""The redirects of a command that says `2>&1`, as lit's parser gives them."""
ERRORS = [*MERGED, ((">",), os.devnull)]
"""Those of one that says `2>&1 >/dev/null`: the pipe takes standard error and nothing else."""

PROGRAM = b"""func.func @main(%x: tensor<?x8xf32>, %y: tensor<8xf32>) -> tensor<?x8xf32> {
  %0 = graph.add %x, %y : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %1 = graph.softmax %0 axis = 1 : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %1 : tensor<?x8xf32>
}
"""
"""A program that is lowered through all stages before the first fork: parsers, constraints and
accessors are made when they are first used."""


@cache
def tools() -> dict[str, Tool]:
    """The entry points by name; all that they import or cache lazily is made here.

    The collector leaves all of it alone, so that forks do not copy the memory that it would mark.
    """
    from filecheck.main import main as filecheck
    from xdsl.universe import Universe

    from stepwell.core.pipelines.staircase import pipeline, pipeline_text
    from stepwell.core.registry import make_context, own_dialects, passes
    from stepwell.tools.stepwell_opt import main as stepwell_opt

    Universe.get_multiverse = cache(Universe.get_multiverse)  # entry points are read once
    for load in (*passes().values(), *own_dialects().values()):
        load()
    make_context()
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(PROGRAM))
    with redirect_stdout(io.StringIO()):
        stepwell_opt(["-", "-p", pipeline_text(pipeline())])
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
        if not all(isinstance(word, str) for word in words) or words[0] in OF_A_SHELL:
            return None
        if command.redirects not in ([], MERGED, ERRORS):
            return None
        merged, dropped = bool(command.redirects), command.redirects == ERRORS
        return Stage(words[0], tuple(words[1:]), negated, merged, dropped)

    def runs(self, stdin: int, stdout: int, stderr: int) -> bool:
        """Run it on these files; whether it ends as it has to."""
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.dup2(stdout if self.merged else stderr, 2)
        if self.dropped:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout, sys.stderr = (open(file, "w", closefd=False) for file in (1, 2))  # noqa: SIM115
        sys.argv = [self.tool, *self.args]
        try:
            code = 0
            if self.tool in TOOLS:
                tools()[self.tool](self.args)
            else:
                code = subprocess.run(sys.argv, check=False).returncode
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        return code > 0 if self.negated else code == 0


@dataclass(frozen=True)
class Line:
    """A RUN line that is a pipe."""

    text: str
    stages: tuple[Stage, ...]

    @staticmethod
    def of(text: str) -> Line | None:
        """The line of some text; None if it is for lit's shell."""
        parsed = ShParser(text, pipefail=True).parse()
        if not isinstance(parsed, Pipeline) or parsed.negate:
            return None
        stages = [stage for one in parsed.commands if (stage := Stage.of(one)) is not None]
        return Line(text, tuple(stages)) if len(stages) == len(parsed.commands) else None

    def runs(self, report: BinaryIO) -> bool:
        """Run one command after another; whether all end as they have to.

        The report is what the line is, and what was written if not.
        """
        report.seek(0)
        report.truncate()
        report.write(f"{self.text}\n".encode())
        report.flush()  # a crash is one of this line
        said: list[tuple[str, BinaryIO]] = []
        fine = True
        with ExitStack() as opened:
            given = opened.enter_context(tempfile.TemporaryFile())
            for stage in self.stages:
                out = opened.enter_context(tempfile.TemporaryFile())
                errors = opened.enter_context(tempfile.TemporaryFile())
                fine = stage.runs(given.fileno(), out.fileno(), errors.fileno()) and fine
                said += [(f"stdout of {stage.tool}", out), (f"stderr of {stage.tool}", errors)]
                out.seek(0)
                given = out
            for what, file in () if fine else said:
                file.seek(0)
                report.write(f"-- {what}:\n".encode() + file.read() + b"\n")
        return fine


def _failure(lines: Sequence[Line], folder: str, env: dict[str, str]) -> str | None:
    """The first line that fails, and what it wrote; all run in one fork."""
    with tempfile.TemporaryFile() as report:
        child = os.fork()
        if not child:
            code = 1
            try:
                gc.disable()
                os.environ.clear()
                os.environ.update(env)
                os.chdir(folder)
                code = int(not all(line.runs(report) for line in lines))
                report.flush()
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if not code:
            return None
        report.seek(0)
        died = f"died of signal {-code}\n" if code < 0 else ""
        return report.read().decode(errors="replace") + died


class ForkedShTest(ShTest):
    """lit's format for shell commands, quicker where they are pipes of this project's tools."""

    def __init__(self) -> None:
        super().__init__()
        tools()  # for all workers, which are forks

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
        waiting: list[Line] = []
        for text in lines:
            command = re.sub(r"^%dbg\([^)]*\)", "", text).strip()
            if (line := Line.of(command)) is not None:
                waiting.append(line)
                continue
            if (failure := _failure(waiting, folder, test.config.environment)) is not None:
                return lit.Test.Result(lit.Test.FAIL, failure)
            waiting.clear()
            done = lit.TestRunner._runShTest(test, litConfig, False, [text], base)
            if done.code != lit.Test.PASS:
                return done
        if (failure := _failure(waiting, folder, test.config.environment)) is not None:
            return lit.Test.Result(lit.Test.FAIL, failure)
        return lit.Test.Result(lit.Test.PASS, "")
