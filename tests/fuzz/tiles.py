"""Random modules of the rt level: arenas, checks, calls, tiles in tiles, threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import stepwell as sw
from stepwell.core.distances import distance
from stepwell.core.ir.module import Module
from stepwell.core.ir.weights import WeightStore
from stepwell.core.pipelines.staircase import pipeline, run_passes
from stepwell.core.registry import make_context
from stepwell.runtime.interpreted import interpreted
from stepwell.runtime.lowered import lowered

from .choices import Choices
from .outcomes import Counts, DifferenceError, Outcome
from .schedules import lowering
from .structures import NEGATED

TYPES = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64"}
FLOAT_STEPS = ("addf %v, %k", "mulf %v, %k", "subf %k, %v", "maximumf %v, %k", "minimumf %k, %v")
INTEGER_STEPS = ("addi %v, %k", "muli %v, %k", "subi %k, %v", "maxsi %v, %k", "xori %v, %k")
MOST_ULP = 4
"""A product may be contracted with a sum, in each of the functions."""


@dataclass
class Tiles:
    """A chain of functions on rows of `columns` elements of one type, over several buffers."""

    choices: Choices

    def __post_init__(self) -> None:
        choices = self.choices
        self.kind = choices.choice(list(TYPES))
        self.columns = choices.among(1, 2, 3, 5, 8)
        self.matrix, self.row = f"memref<?x{self.columns}x{self.kind}>", f"memref<{self.columns}"
        self.row += f"x{self.kind}>"
        self.functions: list[str] = []
        self.count = choices.randint(1, 4)

    @property
    def is_float(self) -> bool:
        """Whether the elements are floats."""
        return self.kind.startswith("f")

    def text(self) -> str:
        """The module."""
        width = np.dtype(TYPES[self.kind]).itemsize
        buffers = [f"%b{n}" for n in range(self.count - 1)]
        lines = [
            "%c0 = arith.constant 0 : index",
            "%c1 = arith.constant 1 : index",
            "%c63 = arith.constant 63 : index",
            "%c64 = arith.constant 64 : index",
            f"%row = arith.constant {self.columns * width} : index",
            f"%n = memref.dim %x, %c0 : {self.matrix}",
            "%bytes0 = arith.muli %n, %row : index",
            "%bytes1 = arith.addi %bytes0, %c63 : index",
            "%bytes2 = arith.divui %bytes1, %c64 : index",
            "%bytes = arith.muli %bytes2, %c64 : index",
            f"%all = arith.constant {len(buffers) + 1} : index",
            "%total = arith.muli %bytes, %all : index",
            "%arena = rt.arena %ctx, %total : memref<?xi8>",
        ]
        for n, name in enumerate(buffers):
            lines += [
                f"%f{n} = arith.constant {n} : index",
                f"%o{n} = arith.muli %bytes, %f{n} : index",
                f"{name} = memref.view %arena[%o{n}][%n] : memref<?xi8> to {self.matrix}",
            ]
        lines += self._checks()
        for source, target in zip(["%x", *buffers], [*buffers, "%y"], strict=True):
            lines += self._stage(source, target)
        lines += ["%zero = arith.constant 0 : i32", "func.return %zero : i32"]
        tensor = self.matrix.replace("memref", "tensor")
        face = f"""graph.signature = ({tensor}, tensor<?xi64>) -> {tensor}, graph.arguments = [
    {{graph.name = "x", graph.dims = ["n", ""], graph.sizes = ["n", "{self.columns}"]}},
    {{graph.name = "ids", graph.dims = ["k"], graph.sizes = ["k"]}}], graph.results = [
    {{graph.name = "y", graph.dims = ["n", ""], graph.sizes = ["n", "{self.columns}"]}}]"""
        body = "\n  ".join(lines)
        return (
            f"func.func @main(%ctx: !rt.context, %x: {self.matrix}, %ids: memref<?xi64>, "
            f"%y: {self.matrix}) -> i32 attributes {{{face}}} {{\n  {body}\n}}\n"
            + "\n".join(self.functions)
        )

    def _checks(self) -> list[str]:
        choices, lines = self.choices, list[str]()
        if choices.chance(0.4):
            front = choices.among("", " from_front")
            lines.append(f'rt.check_index %ctx, %ids, %n "ids"{front} : memref<?xi64>')
        if choices.chance(0.3):
            lines.append('rt.check_offsets %ctx, %ids, %n "ids" : memref<?xi64>')
        if choices.chance(0.5):
            compare = choices.among("sge", "ult", "ne", "eq")
            lines += [
                f"%least = arith.constant {choices.randint(0, 4)} : index",
                f"%ok = arith.cmpi {compare}, %n, %least : index",
                'rt.check %ctx, %ok, "x: rows, expected {0}, got {1}"(%least, %n)',
            ]
        if choices.chance(0.4):
            lines += [
                f"%last = arith.constant {choices.randint(1, 40)} : index",
                "scf.for %i = %c0 to %n step %c1 {",
                '  %inner = rt.iteration %ctx, %i "rows"',
                "  %below = arith.cmpi ult, %i, %last : index",
                '  rt.check %inner, %below, "row {0}"(%i)',
                "}",
            ]
        return lines

    def _stage(self, source: str, target: str) -> list[str]:
        """A call that writes a buffer from another one."""
        choices = self.choices
        if choices.chance(0.1):
            ins, outs = (f"({buffer} : {self.matrix})" for buffer in (source, target))
            return [f'rt.call_packed %ctx, 0 "{NEGATED}" ins{ins} outs{outs}']
        number = len(self.functions)
        name, weight = f"f{number}", f"%w{number}"
        self.functions.append(self._function(name))
        types = f"{self.matrix}, {self.row}, {self.matrix}"
        return [
            f'{weight} = rt.constant %ctx, 0 "w" : {self.row}',
            f"rt.call @{name}({source}, {weight}, {target}) : {types}",
        ]

    def _function(self, name: str) -> str:
        around = self.choices.among("tiles", "tiles", "nested", "slices", "loop", "chunks")
        inner = {
            "tiles": self._columns("%t", "%aa", "%bb"),
            "chunks": self._chunk(),
            "nested": self._nested(),
            "slices": self._slices(),
            "loop": self._columns("%t", "%a", "%b"),
        }[around]
        if around == "loop":
            body = f"scf.for %t = %c0 to %n step %c1 {{\n{inner}\n}}"
        else:
            alternating = self.choices.among("", "", "alternating ")
            count = "%chunks" if around == "chunks" else "%n"
            body = f"""rt.parallel_tiles {count} {alternating}captures(%a, %w, %b : {self.matrix},
    {self.row}, {self.matrix}) {{
^bb0(%t: index, %aa: {self.matrix}, %ww: {self.row}, %bb: {self.matrix}):
{inner}
  rt.yield
}}"""
        arguments = f"%a: {self.matrix}, %w: {self.row}, %b: {self.matrix}"
        return f"""func.func private @{name}({arguments}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %n = memref.dim %a, %c0 : {self.matrix}
  %more = arith.addi %n, %c2 : index
  %chunks = arith.divui %more, %c3 : index
  {body}
  func.return
}}"""

    def _element(self, load: str, weight: str, store: str) -> str:
        """Load an element, compute, and store."""
        steps = self.choices.some(FLOAT_STEPS if self.is_float else INTEGER_STEPS, 3)
        lines, value = [f"%v0 = {load}", f"%k = {weight}"], "%v0"
        for n, step in enumerate(steps, 1):
            lines.append(f"%v{n} = arith.{step.replace('%v', value)} : {self.kind}")
            value = f"%v{n}"
        return "\n".join([*lines, store.replace("%r", value)])

    def _columns(self, row: str, a: str, b: str) -> str:
        inside = "w" if a == "%a" else "ww"
        element = self._element(
            f"memref.load {a}[{row}, %j] : {self.matrix}",
            f"memref.load %{inside}[%j] : {self.row}",
            f"memref.store %r, {b}[{row}, %j] : {self.matrix}",
        )
        # A tile sees nothing but its captures.
        return f"""%j0 = arith.constant 0 : index
%j1 = arith.constant 1 : index
%jn = arith.constant {self.columns} : index
scf.for %j = %j0 to %jn step %j1 {{
{element}
}}"""

    def _chunk(self) -> str:
        """Three rows for each tile, fewer in the last one."""
        return f"""%three = arith.constant 3 : index
%z = arith.constant 0 : index
%one = arith.constant 1 : index
%m = memref.dim %aa, %z : {self.matrix}
%first = arith.muli %t, %three : index
%left = arith.subi %m, %first : index
%own = arith.minsi %left, %three : index
scf.for %q = %z to %own step %one {{
%p = arith.addi %first, %q : index
{self._columns("%p", "%aa", "%bb")}
}}"""

    def _nested(self) -> str:
        element = self._element(
            f"memref.load %a3[%t3, %u] : {self.matrix}",
            f"memref.load %w3[%u] : {self.row}",
            f"memref.store %r, %b3[%t3, %u] : {self.matrix}",
        )
        return f"""%un = arith.constant {self.columns} : index
rt.parallel_tiles %un captures(%aa, %ww, %bb, %t
    : {self.matrix}, {self.row}, {self.matrix}, index) {{
^bb1(%u: index, %a3: {self.matrix}, %w3: {self.row}, %b3: {self.matrix}, %t3: index):
{element}
rt.yield
}}"""

    def _slices(self) -> str:
        element = self._element(
            f"memref.load %own[%j] : {self.row}",
            f"memref.load %ww[%j] : {self.row}",
            f"memref.store %r, %out[%j] : {self.row}",
        )
        return f"""%own = rt.slice %aa, %t : {self.matrix} to {self.row}
%out = rt.slice %bb, %t : {self.matrix} to {self.row}
%j0 = arith.constant 0 : index
%j1 = arith.constant 1 : index
%jn = arith.constant {self.columns} : index
scf.for %j = %j0 to %jn step %j1 {{
{element}
}}"""

    def inputs(self) -> list[np.ndarray]:
        """Arrays, and indices of which some are out of range."""
        choices, random = self.choices, np.random.default_rng(self.choices.getrandbits(32))
        rows = choices.among(0, 1, 2, 3, 7, 30)
        x = self.numbers(random, (rows, self.columns))
        ids = random.integers(-rows, max(rows, 1), choices.randint(0, 4))
        if choices.chance(0.5):
            ids = np.sort(np.concatenate([[0], np.abs(ids), [rows]]))
        return [x, ids.astype(np.int64)]

    def numbers(self, random: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
        """Random elements."""
        values = random.standard_normal(shape) * 3
        return values.astype(TYPES[self.kind])


def check_tiles(seed: int) -> Outcome:
    """Compare a module of the rt level, compiled, with itself, interpreted.

    Raises:
        DifferenceError: if results or errors differ.
    """
    choices = Choices(f"rt {seed}")
    tiles = Tiles(choices)
    text, weights = tiles.text(), WeightStore()
    weights.add("w", tiles.numbers(np.random.default_rng(seed), (tiles.columns,)))
    module = sw.from_mlir(text, weights)
    counts, inputs = Counts(), [tiles.inputs() for _ in range(2)]
    counts.occur(module.op)
    expected = [_outcome(interpreted(module.op, lowered(module)), arrays) for arrays in inputs]
    exe = _compiled(module, choices, counts)
    for wanted, arrays in zip(expected, inputs, strict=True):
        got = _outcome(exe, arrays)
        if isinstance(wanted, str) or isinstance(got, str):
            if str(wanted) != str(got):
                raise DifferenceError(f"expected {wanted}, got {got}")
        elif distance(got, wanted)[0] > MOST_ULP * tiles.count:
            raise DifferenceError(f"expected {wanted}, got {got}")
    return Outcome("same", counts.passes, counts.operations)


def _compiled(module: Module, choices: Choices, counts: Counts) -> sw.Executable:
    """Machine code, after some cleaning passes."""
    threads = choices.among(1, 2, 2)
    texts = lowering(choices, pipeline(3, threads))
    first = ",".join(choices.some(["canonicalize", "cse", "canonicalize"], 2))
    work = module.clone()
    try:
        if choices.chance(0.5):
            run_passes(make_context(work.weights), work.op, first)
        later = {stage: texts[stage] for stage in ("loops", "llvm")}
        if choices.chance(0.3):
            later["llvm"] = f"rt-profile,{later['llvm']}"
        target = choices.among("host", "x86-64-v2")
        return sw.compile(work, target, pipeline=later, hooks=[counts], records=False)
    except sw.StepwellError as error:
        raise DifferenceError(f"{type(error).__name__}: {error}") from error


def _outcome(run: sw.Executable, inputs: Sequence[np.ndarray]) -> np.ndarray | str:
    try:
        return run(*inputs)
    except sw.InputError as error:
        return str(error)
