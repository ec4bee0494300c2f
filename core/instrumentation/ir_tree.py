"""Writing the IR after each pass into a folder."""

from __future__ import annotations

import tempfile
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from ..errors import StepwellError, explain
from ..files.writing import write_atomically
from ..ir.context import CompilerContext, PassHook
from ..ir.printing import module_text
from .ir_text import text_of_wrong


class IRTree(PassHook):
    """Writes one file for each pass: ``folder/stage/003_graph-cse.mlir``, and ``000_input.mlir``.

    Numbers continue from stage to stage. When a pass fails, the module is written to
    ``004_graph-cse.failed.mlir``. Weights are not written.

    Args:
        folder: created if missing; files of the same names are replaced atomically.
        elide: constants of more elements are elided; None writes all.

    Raises:
        StepwellError: before anything runs, if the folder cannot be created or written.
    """

    def __init__(self, folder: str | Path, elide: int | None = None) -> None:
        self.folder, self._elide, self._number = Path(folder), elide, 0
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise self._unwritable(self.folder, error) from error

    def before_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Write the module before the first pass."""
        if self._number == 0:
            self._write(self.folder / "000_input.mlir", module_text(op, elide=self._elide))
        self._number += 1

    def after_pass(self, ctx: CompilerContext, op: ModuleOp) -> None:
        """Write the module."""
        self._write(self._path(ctx, ""), module_text(op, elide=self._elide))

    def pass_failed(self, ctx: CompilerContext, op: ModuleOp, error: Exception) -> None:
        """Write the module as the failed pass left it."""
        self._write(self._path(ctx, ".failed"), text_of_wrong(op, self._elide))

    def _path(self, ctx: CompilerContext, suffix: str) -> Path:
        name = ctx.pass_name.replace("(", "-").replace(")", "")
        return self.folder / ctx.stage / f"{self._number:03}_{name}{suffix}.mlir"

    def _write(self, path: Path, text: str) -> None:
        try:
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, text.encode())
        except OSError as error:
            raise self._unwritable(path, error) from error

    def _unwritable(self, path: Path, error: OSError) -> StepwellError:
        return StepwellError(explain("IR tree", f"cannot write {path}: {error.strerror}"))
