"""`Executable`: a compiled program that is called with NumPy arrays."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import InputError, StepwellError, explain
from ..core.explanation import explanation
from ..core.module import ValueSpec
from ..dialects.graph.signature import Signature
from ..dialects.rt import ARENA_TOO_SMALL, DETAIL_WORDS, WORDS, Word
from . import arguments
from .functions import take_error

if TYPE_CHECKING:
    from ..core.context import Decision

_ALIGNMENT = 64
_LARGEST = 1 << 62
"""An arena of more bytes is none: sizes are signed and have 64 bits."""


@dataclass(frozen=True)
class Program:
    """Compiled code as the run time needs it.

    `entry` is the address of the public function, `keep` whatever owns that code and the
    constants. `constants` and `functions` are the tables of addresses. `messages` words
    failure n from its details as entry n - 1.
    """

    entry: int
    constants: tuple[np.ndarray, ...]
    functions: tuple[Any, ...]
    messages: tuple[Callable[[Sequence[int]], str], ...]
    keep: Any


class Executable:
    """A compiled program. Call it with one argument for each input, in order.

    Dense arguments are arrays of exactly the dtype of the input, sparse ones `scipy.sparse`
    matrices, graphs or ``(indptr, indices, values)``. One result is an array, several are a
    tuple. Arguments are only read; results are new arrays. Threads may call at once.

    Raises:
        InputError: when called with arguments that do not fit `inputs`.
    """

    def __init__(
        self,
        signature: Signature,
        program: Program,
        stage_text: Callable[[str], str],
        stages: Sequence[str],
        decisions: Sequence[Decision],
    ) -> None:
        self._signature = signature
        self._program = program
        self._stage_text = stage_text
        self._decisions = tuple(decisions)
        self.stages: tuple[str, ...] = tuple(stages)
        self._constants = _table(arguments.address(a) for a in program.constants)
        self._functions = _table(
            ctypes.cast(f, ctypes.c_void_p).value or 0 for f in program.functions
        )
        self._local = threading.local()
        self._call = _entry(program.entry, signature)

    @property
    def inputs(self) -> list[ValueSpec]:
        """Names, shapes and dtypes of the arguments, in order."""
        return list(self._signature.inputs)

    @property
    def outputs(self) -> list[ValueSpec]:
        """Names, shapes and dtypes of the results, in order."""
        return list(self._signature.outputs)

    def ir(self, stage: str) -> str:
        """The text of one stage of the staircase, see `stages`.

        Raises:
            CompileError: if there is no stage of this name.
        """
        return self._stage_text(stage)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions that passes took, in order."""
        return self._decisions

    def explain(self, format: str = "text") -> str:
        """The decisions that passes took, by stage and pass.

        Args:
            format: "text", or "json" for programs: `docs/pipeline.md` says what is in it.

        Raises:
            InputError: if there is no such format.
        """
        return explanation(self._decisions, format)

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self._signature.inputs))
        outputs = ", ".join(map(str, self._signature.outputs))
        return f"Executable({inputs} -> {outputs})"

    def __call__(self, *inputs: object) -> Any:
        signature = self._signature
        if len(inputs) != len(signature.inputs):
            names = ", ".join(spec.name for spec in signature.inputs) or "none"
            raise InputError(
                explain(
                    "call",
                    "wrong number of inputs",
                    expected=f"{len(signature.inputs)} ({names})",
                    got=len(inputs),
                )
            )
        checked = [
            arguments.dense(spec, value) if dtype is None else arguments.sparse(spec, value, dtype)
            for spec, value, dtype in zip(
                signature.inputs, inputs, signature.index_dtypes, strict=True
            )
        ]
        sizes = self._sizes(checked)
        self._check_arena(sizes)
        results = [
            _result(spec, [dim.evaluate(sizes) for dim in shape])
            for spec, shape in zip(signature.outputs, signature.output_shapes, strict=True)
        ]
        self._run(checked, results)
        return results[0] if len(results) == 1 else tuple(results)

    def _sizes(self, checked: Sequence[np.ndarray | arguments.Csr]) -> dict[str, int]:
        """The sizes that the symbols have in this call.

        Raises:
            InputError: if two dimensions of one name differ.
        """
        signature = self._signature
        sizes: dict[str, int] = {}
        owner: dict[str, str] = {}
        for spec, shape, entries, value in zip(
            signature.inputs, signature.input_shapes, signature.entries, checked, strict=True
        ):
            got = value.shape
            facts = list(zip(shape, got, strict=True))
            if entries is not None and isinstance(value, arguments.Csr):
                facts.append((entries, len(value.values)))
            for dim, size in facts:
                if dim.is_static:
                    continue
                name = dim.symbols[0]
                if sizes.setdefault(name, size) != size:
                    raise InputError(
                        explain(
                            f'input "{spec.name}"',
                            f'dimension "{name}" differs from that of "{owner[name]}"',
                            expected=sizes[name],
                            got=size,
                        )
                    )
                owner.setdefault(name, spec.name)
        self._check_equal(sizes)
        return sizes

    def _check_equal(self, sizes: Mapping[str, int]) -> None:
        for left, right in self._signature.equal:
            if left.evaluate(sizes) != right.evaluate(sizes):
                raise InputError(
                    explain(
                        "call",
                        f"dimensions {left} and {right} must agree",
                        expected=left.evaluate(sizes),
                        got=right.evaluate(sizes),
                    )
                )

    def _check_arena(self, sizes: Mapping[str, int]) -> None:
        """Refuse sizes with which the arithmetic of compiled code would overflow."""
        size = self._signature.arena.evaluate(sizes)
        if size > _LARGEST:
            raise _no_memory(f"an arena of {size} bytes")

    def _run(
        self, checked: Sequence[np.ndarray | arguments.Csr], results: Sequence[np.ndarray]
    ) -> None:
        words: list[int] = []
        for spec, value in zip(self._signature.inputs, checked, strict=True):
            words += _words(spec, value)
        for spec, value in zip(self._signature.outputs, results, strict=True):
            words += _words(spec, value)
        memory = self._take_memory()
        context = memory.context
        try:
            status = self._call(ctypes.addressof(context), *words)
            if status == ARENA_TOO_SMALL:
                memory.grow(context[Word.DETAILS])
                status = self._call(ctypes.addressof(context), *words)
            if status:
                self._fail(status, context[Word.DETAILS : Word.DETAILS + DETAIL_WORDS])
        finally:
            self._local.memory = memory

    def _fail(self, status: int, details: Sequence[int]) -> None:
        raised = take_error()
        if raised is not None:
            raise raised
        if not 0 < status <= len(self._program.messages):
            raise StepwellError(explain("call", "unknown status", got=status))
        raise InputError(self._program.messages[status - 1](details))

    def _take_memory(self) -> _Memory:
        """The memory of the calling thread; a new one where a call of it is still going on.

        A registered function may call the program that has called it.
        """
        memory = getattr(self._local, "memory", None)
        self._local.memory = None
        return memory or _Memory(self._constants, self._functions)


class _Memory:
    """What one call at a time works on: the context that it is given, and the arena in it."""

    def __init__(self, constants: Any, functions: Any) -> None:
        self.context = (ctypes.c_int64 * WORDS)()
        self.context[Word.CONSTANTS] = ctypes.addressof(constants)
        self.context[Word.FUNCTIONS] = ctypes.addressof(functions)
        self.arena: np.ndarray | None = None

    def grow(self, size: int) -> None:
        """Get an arena of at least `size` bytes.

        Raises:
            StepwellError: if there is not enough memory.
        """
        try:
            self.arena = np.empty(size + _ALIGNMENT, np.uint8)
        except MemoryError as error:
            raise _no_memory(f"an arena of {size} bytes") from error
        base = self.arena.ctypes.data
        self.context[Word.ARENA] = -(-base // _ALIGNMENT) * _ALIGNMENT
        self.context[Word.ARENA_BYTES] = size


def _result(spec: ValueSpec, shape: Sequence[int]) -> np.ndarray:
    """A new array for a result.

    Raises:
        StepwellError: if there is not enough memory.
    """
    try:
        return np.empty(shape, arguments.dtype_of(spec))
    except (MemoryError, ValueError) as error:
        raise _no_memory(f'result "{spec.name}" of shape {list(shape)}') from error


def _no_memory(what: str) -> StepwellError:
    return StepwellError(explain("call", f"not enough memory for {what}"))


def _table(addresses: Any) -> Any:
    values = list(addresses)
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def _symbolic(spec: ValueSpec) -> list[bool]:
    """For each dimension whether its size is an argument of compiled code."""
    return [isinstance(dim, str) for dim in spec.shape]


def _words(spec: ValueSpec, value: np.ndarray | arguments.Csr) -> list[int]:
    """A buffer as compiled code takes it: its address, then its symbolic sizes."""
    symbolic = _symbolic(spec)
    if isinstance(value, arguments.Csr):
        entries = len(value.values)
        return [
            arguments.address(value.indptr),
            *([len(value.indptr)] if symbolic[0] else []),
            arguments.address(value.indices),
            entries,
            arguments.address(value.values),
            entries,
            *([value.shape[1]] if symbolic[1] else []),
        ]
    sizes = [size for size, passed in zip(value.shape, symbolic, strict=True) if passed]
    return [arguments.address(value), *sizes]


def _entry(address: int, signature: Signature) -> Callable[..., int]:
    """The public function as ctypes calls it; every word is 64 bits wide."""
    count = 1
    for spec in (*signature.inputs, *signature.outputs):
        count += sum(_symbolic(spec)) + (1 if spec.format is None else 5)
    return ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * count)(address)
