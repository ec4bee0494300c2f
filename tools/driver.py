"""xDSL's driver on a `CompilerContext`: reads text, runs passes, prints the result or one error."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from io import BytesIO, StringIO
from pathlib import Path
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from ..core.errors import InputError, StepwellError, explain, first_line
from ..core.files.reading import LARGEST_TEXT, ReadingError, read_bytes, read_stream
from ..core.files.writing import is_device, write_atomically
from ..core.ir.context import CompilerContext, PassHook
from ..core.ir.dominance import verify_module
from ..core.ir.invalid import invalid_operations, place_in_text
from ..core.ir.module import Module
from ..core.ir.parsing import MlirParser
from ..core.ir.weights import WeightStore
from ..core.pipelines.pass_manager import run_steps
from ..core.pipelines.text import canonical, parse_passes
from ..core.registry import make_context
from ..core.target import named
from ..runtime.archives import read_archive
from .driver_arguments import DriverArguments
from .driver_options import instrument_options, pipeline_text
from .instruments import Instruments
from .messages import PlacedError, excerpt
from .targets import AliasedMlirTarget


class _KeptText(StringIO):
    """Text that survives `close`: the driver closes its output before it knows of success."""

    def close(self) -> None:
        pass


class StepwellOptMain(DriverArguments):
    """The driver: xDSL's, on a `CompilerContext`, with errors of one line."""

    resources: Mapping[str, Mapping[str, str | bool]]
    """The metadata of the text."""
    _parser: MlirParser
    _text: str

    def __init__(self, args: Sequence[str] | None = None) -> None:
        super().__init__(args)
        self._parts, self._failed = 0, False
        self._diagnostics = None
        if self.args.verify_diagnostics:
            from .diagnostics import Diagnostics

            self._diagnostics = Diagnostics(self.get_input_name())
            self.args.verify_diagnostics = False  # xDSL would print them
        on_remark = None if self._diagnostics is None else self._diagnostics.add_remark
        options = instrument_options(self.args)
        self._instruments = Instruments(options, lambda: self.available_passes, on_remark)

    def register_all_dialects(self) -> None:
        """Replace the plain context by one that carries weights and decisions."""
        self.ctx = make_context()

    def register_all_frontends(self) -> None:
        """Read MLIR text with the parser of this project."""
        super().register_all_frontends()

        def parse(stream: IO[bytes]) -> ModuleOp:
            try:
                self._text = stream.read().decode()
            except UnicodeDecodeError as error:
                raise StepwellError(f"cannot read {self.get_input_name()}: not a text") from error
            # Operations need their lines, for diagnostics.
            remarks = (self.args.remarks, self.args.remarks_filter)
            parser = self._make_parser(
                placed=self._diagnostics is not None
                or any(option is not None for option in remarks)
            )
            module = parser.parse_module(not self.args.no_implicit_module)
            self.resources = parser.external_resources
            return module

        self.available_frontends["mlir"] = parse

    def register_all_targets(self) -> None:
        """xDSL's targets; here `mlir` also prints aliases."""
        super().register_all_targets()
        self.available_targets["mlir"] = lambda: AliasedMlirTarget

    def setup_pipeline(self) -> None:
        """Build the pipeline.

        Raises:
            CompileError: for a malformed text, an unknown pass (with the nearest names) or option.
        """
        self.steps = parse_passes(pipeline_text(self.args), self.available_passes)
        if self.args.dump_pass_pipeline:
            text = canonical(self.steps)
            as_json = json.dumps({"report": "pipeline", "text": text})
            print(as_json if self.args.json else text, file=sys.stderr)

    def prepare_input(self) -> tuple[list[tuple[IO[bytes], int]], str]:
        """Open the input, with the weights beside it.

        Raises:
            StepwellError: if it is not a file of a kind that can be read.
        """
        if self.args.input_file == "-":
            self.args.input_file = None
        if self.args.input_file is not None:
            path = Path(self.args.input_file)
            if path.is_dir():
                raise StepwellError(f"cannot open {path}: Is a directory")
            kind = self.args.frontend or path.suffix.removeprefix(".")
            if kind not in self.available_frontends and path.exists():
                kinds = ", ".join(f".{name}" for name in self.available_frontends)
                hint = "-f mlir reads it anyway"
                if kind == "onnx":
                    hint = f"stepwell compile {path} --emit graph prints it as MLIR text"
                error = explain(
                    str(path), "not a file of MLIR text", expected=kinds, got=path.name, hint=hint
                )
                raise StepwellError(error)
            beside = path.with_suffix(".safetensors")
            if beside.exists():
                self.context.weights = WeightStore.load(beside)
        return super().prepare_input()

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        """The whole input, and the kind of its text.

        Raises:
            StepwellError: if it cannot be read.
        """
        path = self.args.input_file
        try:
            if path is None:
                return BytesIO(read_stream(sys.stdin.buffer, LARGEST_TEXT)), "mlir"
            kind = self.args.frontend or Path(path).suffix.removeprefix(".")
            return BytesIO(read_bytes(path, LARGEST_TEXT)), kind
        except ReadingError as error:
            raise StepwellError(f"cannot open {self.get_input_name()}: {error}") from error

    @property
    def context(self) -> CompilerContext:
        """The context, under its own type."""
        assert isinstance(self.ctx, CompilerContext)
        return self.ctx

    def prepare_output(self) -> IO[str]:
        """Collect the output: a file is written once everything has succeeded."""
        self.collected = _KeptText() if self.args.output_file not in (None, "-") else None
        return sys.stdout if self.collected is None else self.collected

    def parse_chunk(
        self, chunk: IO[bytes], file_extension: str, start_offset: int = 0
    ) -> ModuleOp | None:
        """Parse a part of the input; an error is recorded if diagnostics are verified."""
        part = self._parts if self.args.split_input_file else None
        self._parts, self._offset, self._failed = self._parts + 1, start_offset, False
        ctx = self.context
        ctx.hooks = self._instruments.hooks(part)
        with ctx.phase("parse"):
            if self._diagnostics is None:
                try:
                    return super().parse_chunk(chunk, file_extension, start_offset)
                except DiagnosticException as error:
                    raise self._malformed(error) from error
            text = chunk.read()
            self._diagnostics.expect(text.decode(), start_offset)
            try:
                return super().parse_chunk(BytesIO(text), file_extension, start_offset)
            except ParseError as error:
                error.span = replace(error.span, line_offset=start_offset)
                self._diagnostics.add_parse_error(error)
            except DiagnosticException as error:
                place = self._parser.failed_place
                self._diagnostics.add_malformed(error, None if place is None else place[0])
            return None

    def apply_passes(self, prog: ModuleOp) -> None:
        """Run the pipeline; an error of a pass is recorded if diagnostics are verified."""
        ctx = self.context
        ctx.verify = "never" if self.args.disable_verify else "pass"
        if self._diagnostics is None:
            if ctx.verify == "pass":
                self._verify(prog)
            self._run_passes(prog)
            return
        if ctx.verify == "pass" and self._diagnostics.add_invalid(prog):
            self._failed = True
            return
        try:
            self._run_passes(prog)
        except (StepwellError, DiagnosticException) as error:
            self._failed = True
            if not (_is_of_verifier(error) and self._diagnostics.add_invalid(prog)):
                self._diagnostics.add_error(error)

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """The text of the result, if there is one.

        Raises:
            StepwellError: if the target of xDSL cannot print its operations.
        """
        if self._failed:
            return ""
        with self.context.phase("print"):
            try:
                return super().output_resulting_program(prog)
            except (NotImplementedError, AssertionError) as error:
                if self.args.target == "mlir":
                    raise
                # Targets of xDSL refuse by both; the text of an assertion is the operation.
                told = f": {first_line(error)}" if isinstance(error, NotImplementedError) else ""
                fact = f"it cannot print these operations{told}"
                raise StepwellError(explain(f"--target {self.args.target}", fact)) from error

    def _make_parser(self, *, placed: bool) -> MlirParser:
        """A parser of the current part of the input."""
        self._parser = MlirParser(self.ctx, self._text, self.get_input_name())
        if placed:
            self._parser.keep_places(self._offset)
        return self._parser

    def _verify(self, prog: ModuleOp) -> None:
        """Verify the input.

        Raises:
            StepwellError: if it is not valid; its message names the line.
        """
        try:
            with self.context.phase("verify"):
                verify_module(prog)
        except VerifyException as error:
            for op, text in invalid_operations(prog):
                parser, implicit = self._make_parser(placed=True), not self.args.no_implicit_module
                where = place_in_text(op, prog, parser, implicit_module=implicit)
                if where is None:
                    raise StepwellError(f"{self.get_input_name()}: {text}") from error
                raise self._placed(where, text) from error
            raise

    def _placed(self, where: str, message: str) -> PlacedError:
        """An error at ``file:line:column`` of the current part of the input."""
        line, column = map(int, where.rsplit(":", 2)[1:])
        before = self._text.splitlines(keepends=True)[: line - 1 - self._offset]
        start = sum(map(len, before)) + column - 1
        return PlacedError(f"{where}: {message}", excerpt(self._text, start))

    def _malformed(self, error: DiagnosticException) -> StepwellError:
        """The error for text of which an operation cannot be created."""
        parser = self._make_parser(placed=True)
        with suppress(ParseError, DiagnosticException):
            parser.parse_module(not self.args.no_implicit_module)
        message = f"cannot parse: {first_line(error)}"
        if parser.failed_place is None:
            return StepwellError(f"{self.get_input_name()}: {message}")
        line, column = parser.failed_place
        return self._placed(f"{self.get_input_name()}:{line}:{column}", message)

    def _run_passes(self, prog: ModuleOp) -> None:
        ctx = self.context
        if self.args.check is not None:
            ctx.hooks.insert(0, self._checker(prog))
        if self.args.run_reproducer:
            self._reproduce(prog)
            return
        ctx.applied = {}
        source = Module(prog.clone(), ctx.weights.copy())
        try:
            run_steps(ctx, prog, self.steps)
        except Exception as error:
            # Nothing is kept while passes succeed: after a failure they run again.
            from ..diagnosis.reproducer import internal_error

            wrapped = internal_error(error, ctx, source)
            if wrapped is None:
                raise
            raise wrapped from error

    def _reproduce(self, prog: ModuleOp) -> None:
        """Run the passes that the input names, to reproduce its failure."""
        from ..diagnosis.reproducer import defects_named, differing_versions, from_metadata

        if self.steps:
            fact, expected = "the file says which passes run", "no -p"
            raise InputError(explain("--run-reproducer", fact, expected=expected))
        ctx = self.context
        module = Module(prog, ctx.weights)
        found = from_metadata(module, self.resources, Path(self.get_input_name()))
        for line in (*differing_versions(self.resources), *found.warnings()):
            print(f"stepwell-opt: note: {line}", file=sys.stderr)
        pipeline, ctx.target = found.request.pipeline, named(found.request.target)
        if found.machine_code:
            # Compile the reproducer to machine code.
            from ..api.compiler import compiled

            check = False if found.inputs is None else found.inputs
            compiled(found.request, check=check, max_ulp=found.max_ulp)
            return
        if found.inputs is not None:
            from ..diagnosis.checking import Checker

            ctx.hooks.insert(0, Checker(module, found.inputs, found.max_ulp))
        with defects_named(ctx):
            run_steps(ctx, prog, parse_passes(str(pipeline), self.available_passes))

    def _checker(self, prog: ModuleOp) -> PassHook:
        """The checker that runs the module after each pass."""
        from ..diagnosis.checking import Checker

        module = Module(prog, self.context.weights)
        inputs = read_archive(self.args.check, module.inputs) if self.args.check else None
        return Checker(module, inputs, None, report=self._instruments.report)

    def run(self) -> None:
        """Read, transform, write."""
        try:
            super().run()
        finally:
            self._instruments.finish()
        if self._diagnostics is not None:
            # The diagnostics have to be those that comments of the input expect.
            problems = self._diagnostics.problems()
            for problem in problems:
                print(problem, file=sys.stderr)
            if problems:
                noun = "diagnostic is" if len(problems) == 1 else "diagnostics are"
                raise StepwellError(f"--verify-diagnostics: {len(problems)} {noun} not as expected")
        if self.collected is None:
            return
        output = Path(self.args.output_file)
        try:
            if len(self.context.weights) and self.args.target == "mlir" and not is_device(output):
                self.context.weights.save(output.with_suffix(".safetensors"))
            write_atomically(output, self.collected.getvalue().encode())
        except OSError as error:
            raise StepwellError(f"cannot write {output}: {error.strerror}") from error


def _is_of_verifier(error: BaseException | None) -> bool:
    """Whether an error is one of verification."""
    while error is not None and not isinstance(error, VerifyException):
        error = error.__cause__
    return error is not None
