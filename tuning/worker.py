"""Work in another process, which may crash or hang without affecting this one."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from ..core.errors import CompileError, explain


class WorkerProcess:
    """A process that answers lines of JSON, and is restarted if it dies or hangs.

    Args:
        command: the command line of the process.
        timeout_s: the time limit of an answer, in seconds.
    """

    def __init__(self, command: Sequence[str], timeout_s: float) -> None:
        self.command, self.timeout_s = command, timeout_s
        self.process: subprocess.Popen[bytes] | None = None
        self._read = b""

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process.

        Raises:
            CompileError: with its error message, if it does not become ready.
        """
        pipe = subprocess.PIPE
        # In a new session, where interrupts do not reach it: the search handles them.
        self.process = subprocess.Popen(
            self.command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._read = b""
        ready = self._answer(3 * self.timeout_s)
        if "ready" not in ready:
            self.stop()
            raise CompileError(explain("tune", f"the program does not run: {ready['error']}"))

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a question; an `error` if the process dies or hangs."""
        if self.process is None:
            self.start()
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
            return self._answer(self.timeout_s)
        except BrokenPipeError:
            self.stop()
            return {"error": "the process is gone"}

    def _answer(self, timeout_s: float) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdout is not None
        end = time.monotonic() + timeout_s
        while b"\n" not in self._read:
            left = max(0.0, end - time.monotonic())
            if not select.select([self.process.stdout], [], [], left)[0]:
                self.stop()
                return {"error": f"no answer within {timeout_s:g} s"}
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                status = self.process.wait()
                self.stop()
                return {"error": f"the process died ({status})"}
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return json.loads(line)

    def stop(self) -> None:
        """End the process."""
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
