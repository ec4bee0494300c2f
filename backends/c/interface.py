"""The C interface of a program: the names and types of its arguments, and its error codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

from ...core.algebra.dims import Dim, Shape, product
from ...core.boundary.signature import Signature
from ...core.boundary.specs import ValueSpec
from ...core.dtype_names import dtype_named
from ...core.errors import CompileError, explain
from ...core.target import Target
from ...dialects.rt.statuses import CallFailure


class Code(IntEnum):
    """What a C function returns."""

    OK = 0
    NULL = 1
    """A pointer is null."""
    SIZE = 2
    """A size is not that of the program, contradicts another one, or is too large."""
    ALIGNMENT = 3
    """A buffer is not aligned to its elements."""
    OVERLAP = 4
    """A result shares memory with another buffer."""
    MEMORY = 5
    """There is not enough memory."""
    VALUE = 6
    """A value is wrong, such as an index out of range."""
    ROOM = 7
    """A buffer is too small for a result whose size was computed."""

    @property
    def meaning(self) -> str:
        """A line about it for the header."""
        return _MEANINGS[self]


_MEANINGS = {
    Code.OK: "success",
    Code.NULL: "a pointer is null",
    Code.SIZE: "a size is wrong, or contradicts another one",
    Code.ALIGNMENT: "a buffer is not aligned to its elements",
    Code.OVERLAP: "a result shares memory with another buffer",
    Code.MEMORY: "there is not enough memory",
    Code.VALUE: "a value is wrong, such as an index out of range",
    Code.ROOM: "a buffer is too small for a result; its shape says how large it is",
}

_TYPES = {"f32": "float", "f64": "double", "f16": "uint16_t", "bf16": "uint16_t", "i1": "uint8_t"}
_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl
    const constexpr continue decltype default delete do double else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not
    not_eq nullptr operator or or_eq private protected public register restrict return short
    signed sizeof static struct switch template this throw true try typedef typename union
    unsigned using virtual void volatile wchar_t while xor xor_eq main
    """.split()  # noqa: SIM905
)
"""Words of C and C++ that are no names, and `main`."""


def c_type(dtype: str) -> str:
    """The C type that holds an element; half precision, booleans and low-bit types are bits."""
    if dtype in _TYPES:
        return _TYPES[dtype]
    kind = dtype_named(dtype)
    if re.fullmatch(r"u?i(8|16|32|64)", dtype):
        return f"{kind.name}_t"
    return "int8_t" if dtype in ("i4", "i2") else "uint8_t"


def identifier(name: str) -> str:
    """A name as C spells it: `input.1` is `input_1`."""
    found = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    return f"_{found}" if found[0].isdigit() or found in _KEYWORDS else found


def identifiers(names: Iterable[str]) -> list[str]:
    """Different identifiers for names."""
    found: list[str] = []
    for name in names:
        first = chosen = identifier(name)
        number = 2
        while chosen in found:
            chosen, number = f"{first}_{number}", number + 1
        found.append(chosen)
    return found


def shown(name: str) -> str:
    """A name in comments and texts: what could end one, or is an escape in it, is `_`."""
    return re.sub(r"[^\w .:,/()\[\]-]", "_", name)


@dataclass(frozen=True)
class Field:
    """An input or a result, as a member of a C struct.

    `shape` is over the symbols of the program: of a result whose size it computes, the upper
    bounds. `exact` is the shape after the call. `computed` and `unbounded` say of a result that
    the program computes its size, and that this has no upper bound.
    """

    name: str
    spec: ValueSpec
    shape: Shape
    exact: Shape
    entries: Dim | None = None
    index_dtypes: Any = None
    computed: bool = False
    unbounded: bool = False

    @property
    def is_sparse(self) -> bool:
        """Whether it is a CSR matrix, three arrays."""
        return self.entries is not None

    @property
    def has_shape(self) -> bool:
        """Whether the caller passes its sizes: those of any other one are fixed."""
        return self.is_sparse or any(isinstance(size, str) for size in self.spec.shape)

    @property
    def item_bytes(self) -> int:
        """The size of an element, and its alignment."""
        return dtype_named(self.spec.dtype).itemsize

    @property
    def passed(self) -> list[bool]:
        """Whether the size of each dimension is an argument of the program."""
        return [isinstance(size, str) for size in self.spec.shape]

    @property
    def elements(self) -> Dim:
        """The number of elements of a dense one."""
        return product(self.shape)


@dataclass(frozen=True)
class CInterface:
    """The C functions of a program and what they know of it.

    `prefix` begins all names, `model` is the name of the program for people. There is code for each
    of `targets`, those that need the most first; status n + 1 of a call of one is entry n of its
    `failures`. `pooled` says whether calls use a pool of threads, `takes_memory` whether kernels
    allocate local buffers, `linked_weights` whether the weights are in the object file.
    """

    prefix: str
    model: str
    targets: tuple[Target, ...]
    signature: Signature
    failures: tuple[tuple[CallFailure, ...], ...]
    pooled: bool
    takes_memory: bool
    linked_weights: bool

    @property
    def target(self) -> Target:
        """The target that needs the least; all have the same triple."""
        return self.targets[-1]

    @property
    def chooses(self) -> bool:
        """Whether there is code for several targets, of which a new program takes one."""
        return len(self.targets) > 1

    @property
    def target_names(self) -> str:
        """The targets in words."""
        *names, last = (target.name for target in self.targets)
        return f"{', '.join(names)} and {last}" if names else last

    @cached_property
    def inputs(self) -> Sequence[Field]:
        """The inputs in order."""
        arguments = self.signature.arguments
        names = identifiers(argument.spec.name for argument in arguments)
        return [
            Field(name, a.spec, a.shape, a.shape, a.entries, a.index_dtypes)
            for name, a in zip(names, arguments, strict=True)
        ]

    @cached_property
    def outputs(self) -> Sequence[Field]:
        """The results in order."""
        signature = self.signature
        specs = signature.outputs
        return [
            Field(name, spec, most, own, computed=own != most or free, unbounded=free)
            for name, spec, own, most, free in zip(
                identifiers(spec.name for spec in specs),
                specs,
                signature.output_shapes,
                signature.largest_shapes,
                signature.in_arena,
                strict=True,
            )
        ]

    @property
    def maps_files(self) -> bool:
        """Whether weights in a file can be mapped into memory on the target's system."""
        return any(system in self.target.triple for system in ("linux", "macosx", "darwin"))

    @property
    def is_wasm(self) -> bool:
        """Whether the library is a WebAssembly module."""
        return self.target.triple.startswith("wasm")

    @property
    def functions(self) -> list[str]:
        """The names of all C functions."""
        opens = ["open"] if self.maps_files and not self.linked_weights else []
        names = ["create", *opens, "shapes", "run", "last_error", "destroy"]
        names += ["target"] * self.chooses
        return [self.function(name) for name in names]

    def function(self, name: str) -> str:
        """The name of a C function."""
        return f"{self.prefix}_{name}"

    def code(self, code: Code) -> str:
        """The name of an error code."""
        return f"{self.prefix.upper()}_{code.name}"


EXAMPLE_SIZE = 2
"""What an example takes for a size that is not fixed."""


def symbol_in_example(name: str) -> str:
    """What an example calls a size."""
    return f"n_{identifier(name)}"


def symbols_of(fields: Iterable[Field]) -> Iterator[str]:
    """The symbols of shapes, each once, in order."""
    seen: Mapping[str, None] = {}
    for field in fields:
        dims = [*field.shape, *([] if field.entries is None else [field.entries])]
        seen = {**seen, **{name: None for dim in dims for name in dim.symbols}}
    return iter(seen)


def checked_prefix(prefix: str) -> str:
    """A prefix that C functions may have.

    Raises:
        CompileError: if it is not an identifier of C.
    """
    if not re.fullmatch(r"[A-Za-z]\w*", prefix, re.ASCII) or prefix in _KEYWORDS:
        fact, expected = "wrong name", "letters, digits and underscores, and no keyword of C"
        raise CompileError(explain("export", fact, expected=expected, got=f'"{prefix}"'))
    return prefix
