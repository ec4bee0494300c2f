"""The header of a program: its C functions, with what callers have to know."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from .interface import CInterface, Code, Field, c_type, shown

_STORED = {
    "f16": "half precision, as its bits",
    "bf16": "bfloat16, as its bits",
    "i1": "0 or 1",
}


def header(interface: CInterface) -> str:
    """The text of the header."""
    prefix = interface.prefix
    guard = f"{prefix.upper()}_H"
    lines = [f"  {interface.code(code)} = {code.value}, /* {code.meaning} */" for code in Code]
    parts = [
        _beginning(interface, guard),
        "/* What functions return. */\nenum {\n" + "\n".join(lines) + "\n};",
        _allocator(interface),
        _struct(interface, "inputs", interface.inputs, _INPUTS),
        _struct(interface, "outputs", interface.outputs, _OUTPUTS),
        _lives(interface),
        _calls(prefix),
        f"#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {guard} */",
    ]
    return "\n\n".join(parts) + "\n"


def _beginning(interface: CInterface, guard: str) -> str:
    prefix = interface.prefix
    threads = (
        "A call runs on threads of a pool,\n * which serves one call at a time; another one runs "
        "on the thread of its caller meanwhile."
        if interface.pooled
        else "A call runs on the thread of its caller."
    )
    return f"""\
/* The model "{shown(interface.model)}" as C functions,
 * for {interface.target_names} ({interface.target.triple}).
 *
 * Create a program, run it as often as you like, from several threads at the same time if you
 * like, and destroy it. {threads}
 *
 * A function that fails returns a code other than 0, or a null pointer. {prefix}_last_error()
 * then says what was wrong.
 */
#ifndef {guard}
#define {guard}

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* A program: the model with its weights and the memory of its calls. */
typedef struct {prefix} {prefix};"""


_ALLOCATOR = """\
Where memory comes from. `allocate` returns memory at a multiple of `alignment`, a power of 2, or
null; `release` gets it back. Both may be called by several threads at the same time."""
_OF_KERNELS = "Calls take memory for local arrays, and give it back before they return."
_TRAPS = "Without that memory, WebAssembly traps."


def _allocator(interface: CInterface) -> str:
    prefix, text = interface.prefix, _ALLOCATOR
    if interface.takes_memory:
        text += f" {_OF_KERNELS}" + (f" {_TRAPS}" if interface.is_wasm else "")
    return f"""\
{_comment(text)}
typedef struct {prefix}_allocator {{
  void *(*allocate)(void *state, uint64_t alignment, uint64_t bytes);
  void (*release)(void *state, void *memory, uint64_t bytes);
  void *state;
}} {prefix}_allocator;"""


_INPUTS = """\
The arguments of a call. Arrays are dense and row-major, aligned to their elements, and only read;
an array without elements may be null. Sizes of the same name have to be equal."""
_OUTPUTS = """\
The results of a call: arrays of the caller, none of which shares memory with another one or an
input."""
_COMPUTED = """\
Where there is `room`, the call computes a size: `room` is how many elements the array may take, and
after the call `shape` is what it took."""
_SPARSE = """\
A sparse matrix in CSR: row i has the entries [indptr[i], indptr[i + 1]), `indptr` has shape[0] + 1
elements, `indices` (the columns) and `values` have `entries`."""


def _struct(interface: CInterface, what: str, found: Sequence[Field], text: str) -> str:
    if any(field.is_sparse for field in found):
        text += "\n" + _SPARSE
    if any(field.computed for field in found):
        text += "\n" + _COMPUTED
    members = [line for field in found for line in _member(field, what == "inputs")]
    body = "\n".join(members or ["  char unused;"])
    name = f"{interface.prefix}_{what}"
    return f"{_comment(text)}\ntypedef struct {name} {{\n{body}\n}} {name};"


def _member(field: Field, is_input: bool) -> Iterator[str]:
    kind = c_type(field.spec.dtype)
    kind = f"const {kind}" if is_input else kind
    yield f"  /* {described(field)} */"
    rank = len(field.shape)
    if field.is_sparse:
        indptr, indices = (f"const {dtype.name}_t" for dtype in field.index_dtypes)
        yield f"  struct {{ {indptr} *indptr; {indices} *indices; {kind} *values;"
        yield f"           int64_t shape[2]; int64_t entries; }} {field.name};"
    elif not field.has_shape:
        yield f"  {kind} *{field.name};"
    elif field.computed:
        yield f"  struct {{ {kind} *data; int64_t room; int64_t shape[{rank}]; }} {field.name};"
    else:
        yield f"  struct {{ {kind} *data; int64_t shape[{rank}]; }} {field.name};"


def created(interface: CInterface) -> str:
    """The C expression for a new program."""
    prefix = interface.prefix
    if interface.linked_weights:
        return f"{prefix}_create(NULL)"
    return f'{prefix}_open("{prefix}.weights", NULL)'


def described(field: Field) -> str:
    """An input or a result in words: its name, sizes and element type."""
    spec = field.spec
    sizes = " x ".join(str(dim) for dim in field.exact) or "a scalar"
    sparse = f", CSR with {field.entries} entries" if field.is_sparse else ""
    stored = f" ({_STORED[spec.dtype]})" if spec.dtype in _STORED else ""
    return f'"{shown(spec.name)}": {sizes} of {spec.dtype}{stored}{sparse}'.replace("*/", "* /")


def _lives(interface: CInterface) -> str:
    prefix = interface.prefix
    hooks = "`allocator` is copied; null stands for aligned_alloc() and free()."
    if interface.linked_weights:
        create = _comment(f"Make a program; null on failure. {hooks}")
        functions = [f"{create}\n{prefix} *{prefix}_create(const {prefix}_allocator *allocator);"]
    else:
        text = (
            f"Make a program with weights in memory: all of {prefix}.weights, at a multiple of 64 "
            f"bytes, which stay until the program is destroyed. Null on failure. {hooks}"
        )
        arguments = f"const void *weights, uint64_t bytes, const {prefix}_allocator *allocator"
        functions = [f"{_comment(text)}\n{prefix} *{prefix}_create({arguments});"]
        if interface.maps_files:
            text = (
                f"Make a program with weights in a file, {prefix}.weights, which is mapped into "
                "memory that processes share. It must not be written to. Null on failure."
            )
            functions.append(
                f"{_comment(text)}\n{prefix} *{prefix}_open(const char *path, "
                f"const {prefix}_allocator *allocator);"
            )
    if interface.chooses:
        text = (
            "The target whose code a program runs: of those that this processor can run, the one "
            "that needs the most of its features. Null for null."
        )
        functions.append(f"{_comment(text)}\nconst char *{prefix}_target(const {prefix} *program);")
    text = "Delete a program that no call is using; null is allowed."
    functions.append(f"{_comment(text)}\nvoid {prefix}_destroy({prefix} *program);")
    return "\n\n".join(functions)


def _calls(prefix: str) -> str:
    arguments = f"const {prefix}_inputs *inputs, {prefix}_outputs *outputs"
    shapes = _comment(
        "Fill in the shapes of results from those of inputs; addresses are not looked at."
    )
    run = _comment("Run the program on buffers of the caller.")
    last = _comment(
        "What was wrong with the last call of this thread that failed; valid until the next one."
    )
    return (
        f"{shapes}\nint32_t {prefix}_shapes({arguments});\n\n"
        f"{run}\nint32_t {prefix}_run({prefix} *program, {arguments});\n\n"
        f"{last}\nconst char *{prefix}_last_error(void);"
    )


def _comment(text: str) -> str:
    """A comment in lines of at most 100 columns."""
    lines = textwrap.wrap(" ".join(text.split()), 94)
    return "/* " + "\n * ".join(lines) + " */"
