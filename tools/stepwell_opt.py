"""`stepwell-opt`: xDSL's driver with the dialects and passes of this project.

Every pass of xDSL, of this project and of installed plug-ins goes into one `-p` list. Weights
that lie beside the input (`m.safetensors` beside `m.mlir`) are loaded with it, and written
beside the output where `-o` names one.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from io import StringIO
from pathlib import Path
from typing import IO, ClassVar, NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer
from xdsl.targets.mlir import MLIRTarget
from xdsl.utils.exceptions import ArgSpecParseError, PassFailedException
from xdsl.xdsl_opt_main import xDSLOptMain

from ..core.archives import read_archive
from ..core.context import CompilerContext, PassHook
from ..core.errors import InputError, StepwellError, explain
from ..core.module import Module
from ..core.parsing import MlirParser
from ..core.pass_manager import run_steps
from ..core.pipelines import parse_passes
from ..core.printing import module_text
from ..core.registry import make_context, own_passes, passes
from ..core.weights import WeightStore, write_atomically
from ..reproducer import defects_named, defects_told, differing_versions, from_metadata
from .messages import worded

_DESCRIPTION = """\
Reads MLIR text, runs passes on it, and prints the result.

  stepwell-opt m.mlir -p "graph-fold-constant,graph-fuse-ops,convert-graph-to-loop"

`stepwell pipeline` prints the passes of `stepwell.compile` as text to edit and to give to `-p`.
Weights beside the input (m.safetensors beside m.mlir) are loaded with it; `-o out.mlir`
writes them beside the output. `--list-passes` names the passes, `--check` finds the one that
changes what a program computes."""


class _KeptText(StringIO):
    """Text that outlives `close`: the driver closes its output before it knows of success."""

    def close(self) -> None:
        pass


class ListPassesAction(argparse.Action):
    """Prints every pass with the first line of its documentation, and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        own = own_passes()
        print("passes of stepwell:")
        for name, load in own.items():
            summary = (inspect.getdoc(load()) or "").partition("\n")[0]
            print(f"  {name:32} {summary}")
        print("passes of xDSL and of installed plug-ins:")
        for name in sorted(passes().keys() - own.keys()):
            print(f"  {name}")
        parser.exit()


@dataclass(frozen=True)
class AliasedMlirTarget(MLIRTarget):
    """xDSL's target `mlir`, with the aliases of sparse encodings."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the module."""
        if self.syntax_highlight:
            super().emit(ctx, module, output)
            return
        text = module_text(
            module,
            locations=self.print_debuginfo,
            print_generic_format=self.print_generic_format,
            print_properties_as_attributes=self.print_properties_as_attributes,
        )
        output.write(text)
        Printer(stream=output).print_metadata(ctx.loaded_dialects)


class StepwellOptMain(xDSLOptMain):
    """The driver: xDSL's, on a `CompilerContext`, with errors of one line."""

    version_format: ClassVar[str] = (
        f"stepwell-opt {metadata.version('stepwell')}, on xdsl {{xdsl_version}}"
    )

    def __init__(self, args: Sequence[str] | None = None) -> None:
        super().__init__(description=_DESCRIPTION, args=args)

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        """The arguments of `xdsl-opt`, a list of passes, and tracebacks on demand."""
        arg_parser.formatter_class = argparse.RawDescriptionHelpFormatter
        super().register_all_arguments(arg_parser)
        for action in arg_parser._actions:
            if action.dest == "passes":
                action.help = 'passes to run in order, such as "canonicalize,graph-fuse-ops"'
        arg_parser.add_argument(
            "--list-passes", nargs=0, action=ListPassesAction, help="name every pass and exit"
        )
        arg_parser.add_argument(
            "--check",
            nargs="?",
            const="",
            metavar="INPUTS.npz",
            help="run the module after each pass, on these inputs or on made-up ones; end at the "
            "first pass that changes a result, else tell what each did to the last bits (stderr)",
        )
        arg_parser.add_argument(
            "--run-reproducer",
            action="store_true",
            help="run the passes that the input names in its metadata, on the target it names: "
            "a file that was written when a pass failed",
        )
        arg_parser.add_argument(
            "--traceback", action="store_true", help="show where in the compiler an error arose"
        )

    def register_all_dialects(self) -> None:
        """Replace the plain context by one that carries weights and decisions."""
        self.ctx = make_context()

    def register_all_frontends(self) -> None:
        """Read MLIR text by the parser of this project."""
        super().register_all_frontends()

        def parse(stream: IO[bytes]) -> ModuleOp:
            text = stream.read().decode()
            parser = MlirParser(self.ctx, text, self.get_input_name())
            module = parser.parse_module(not self.args.no_implicit_module)
            self.resources = parser.external_resources
            return module

        self.available_frontends["mlir"] = parse

    def register_all_targets(self) -> None:
        """xDSL's targets, of which `mlir` prints aliases."""
        super().register_all_targets()
        self.available_targets["mlir"] = lambda: AliasedMlirTarget

    def register_all_passes(self) -> None:
        """The passes of xDSL, of plug-ins and of this project."""
        available: dict[str, Callable[[], type[ModulePass]]] = passes()
        for name, load in available.items():
            self.register_pass(name, load)

    def setup_pipeline(self) -> None:
        """Build the pipeline.

        Raises:
            CompileError: for a malformed text, an unknown pass (with the nearest names) or option.
        """
        self.steps = parse_passes(self.args.passes, self.available_passes)

    def prepare_input(self) -> tuple[list[tuple[IO[bytes], int]], str]:
        """Open the input, with the weights that lie beside it."""
        if self.args.input_file == "-":
            self.args.input_file = None
        if self.args.input_file is not None:
            beside = Path(self.args.input_file).with_suffix(".safetensors")
            if beside.exists():
                self.context.weights = WeightStore.load(beside)
        return super().prepare_input()

    @property
    def context(self) -> CompilerContext:
        """The context, under its own type."""
        assert isinstance(self.ctx, CompilerContext)
        return self.ctx

    def prepare_output(self) -> IO[str]:
        """Collect what goes into a file: it is written when everything has succeeded."""
        self.collected = _KeptText() if self.args.output_file not in (None, "-") else None
        return sys.stdout if self.collected is None else self.collected

    def apply_passes(self, prog: ModuleOp) -> None:
        """Run the pipeline; what a pass raises as ours counts as a diagnostic like xDSL's."""
        ctx = self.context
        ctx.verify = "never" if self.args.disable_verify else "pass"
        if ctx.verify == "pass":
            prog.verify()
        ctx.hooks = [] if self.args.check is None else [self._checker(prog)]
        try:
            if self.args.run_reproducer:
                self._reproduce(prog)
                return
            ctx.applied = {}
            with defects_told(ctx, Module(prog.clone(), ctx.weights.copy())):
                run_steps(ctx, prog, self.steps)
        except StepwellError as error:
            raise PassFailedException(str(error)) from error

    def _reproduce(self, prog: ModuleOp) -> None:
        """Run what the input says, to see it fail again."""
        if self.args.passes:
            fact, expected = "the file says which passes run", "no -p beside it"
            raise InputError(explain("--run-reproducer", fact, expected=expected))
        ctx = self.context
        module = Module(prog, ctx.weights)
        found = from_metadata(module, self.resources, Path(self.get_input_name()))
        for line in (*differing_versions(self.resources), *found.warnings()):
            print(f"stepwell-opt: note: {line}", file=sys.stderr)
        ctx.target = found.target
        if found.machine_code:
            found.compile()
            return
        if found.inputs is not None:
            ctx.hooks.append(found.checker())
        with defects_named(ctx):
            run_steps(ctx, prog, parse_passes(found.pipeline, self.available_passes))

    def _checker(self, prog: ModuleOp) -> PassHook:
        """What runs the module after each pass."""
        from ..checking import Checker

        module = Module(prog, self.context.weights)
        inputs = read_archive(self.args.check, module.inputs) if self.args.check else None
        return Checker(module, inputs, None, tell=lambda c: print(c, file=sys.stderr))

    def run(self) -> None:
        """Read, transform, write."""
        super().run()
        if self.collected is None:
            return
        output = Path(self.args.output_file)
        try:
            if len(self.context.weights) and self.args.target == "mlir":
                self.context.weights.save(output.with_suffix(".safetensors"))
            write_atomically(output, self.collected.getvalue().encode())
        except OSError as error:
            raise StepwellError(f"cannot write {output}: {error.strerror}") from error


def main(args: Sequence[str] | None = None) -> None:
    """Run the command; exits with 1 after an error, of which it prints one line."""
    arguments = sys.argv[1:] if args is None else list(args)
    try:
        StepwellOptMain(arguments).run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has left (`| head`): what Python would flush at exit goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (Exception, ArgSpecParseError) as error:
        # The boundary of the process: whatever happened inside, a user sees what it means.
        if "--traceback" in arguments:
            raise
        print(f"stepwell-opt: error: {worded(error)}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
