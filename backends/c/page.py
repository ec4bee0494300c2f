"""The page about an exported program, with how to use it from C, C++ and Rust."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .header import created, described
from .interface import CInterface, Field, c_type, shown

_RUST = {
    "float": "f32",
    "double": "f64",
    **{
        f"{sign}int{bits}_t": f"{sign or 'i'}{bits}"
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
"""Rust's names of C's types."""
_RUST_KEYWORDS = frozenset(
    """
    abstract as async await become box dyn final fn gen impl in let loop macro match mod move mut
    override priv pub ref trait try type unsafe unsized use where yield
    """.split()  # noqa: SIM905
)
"""Words of Rust that are no names, beside those of C."""


def readme(interface: CInterface, files: Mapping[str, str]) -> str:
    """A page about the folder.

    Args:
        interface: the interface of the program.
        files: what each file is, by name.
    """
    threads = " and threads" if interface.pooled else ""
    chosen = (
        f" A new program takes the code\nthat makes the most of the processor, which "
        f"`{interface.function('target')}` names."
        if interface.chooses
        else ""
    )
    listed = "\n".join(f"- `{name}`: {what}" for name, what in files.items())
    takes = "\n".join(f"- takes {described(field)}" for field in interface.inputs)
    gives = "\n".join(f"- returns {described(field)}" for field in interface.outputs)
    weights = (
        f"The weights are in `{interface.prefix}.weights`, which is mapped into memory. They "
        "belong to this object file and to no other.\n\n"
    )
    return f"""\
# {shown(interface.model)}

A model as a C library for {interface.target_names} ({interface.target.triple}), which needs the C
library, its mathematical functions{threads}, and nothing else.{chosen}

{listed}

The model

{takes}
{gives}

{"" if interface.linked_weights else weights}{_languages(interface)}"""


def _languages(interface: CInterface) -> str:
    """The sections about programming languages."""
    prefix = interface.prefix
    libraries = "-lm -pthread" if interface.pooled else "-lm"
    rust = "\n".join(f"    {line}".rstrip() for line in _rust(interface))
    return f"""\
## C

    cc example.c {prefix}.o {libraries} -o example && ./example

With CMake, `add_subdirectory` of this folder gives the targets `{prefix}` (static) and
`{prefix}_shared`. Both libraries can be made of `{prefix}.o`:

    ar rcs lib{prefix}.a {prefix}.o
    cc -shared {prefix}.o {libraries} -o lib{prefix}.so

`{prefix}.h` says what every function does. A program may be used by several threads at the same
time; the buffers of two calls at the same time are different ones, unless they are only read.

## C++

Include `{prefix}.h`: it is a header for C++ as well. A program is owned by

    struct Delete {{ void operator()({prefix} *program) const {{ {prefix}_destroy(program); }} }};
    std::unique_ptr<{prefix}, Delete> program({created(interface)});

## Rust

In `build.rs`:

    println!("cargo:rustc-link-search=native=FOLDER");
    println!("cargo:rustc-link-lib=static={prefix}");

`bindgen` reads `{prefix}.h`; by hand, its declarations are

{rust}
"""


def _rust(interface: CInterface) -> Iterator[str]:
    prefix = interface.prefix
    names = {"inputs": "Inputs", "outputs": "Outputs"}
    yield "use std::ffi::{c_char, c_void};"
    yield ""
    for what, fields in (("inputs", interface.inputs), ("outputs", interface.outputs)):
        for field in fields:
            yield from _rust_struct(field, what == "inputs")
        yield "#[repr(C)]"
        yield f"pub struct {names[what]} {{"
        for field in fields:
            name = f"r#{field.name}" if field.name in _RUST_KEYWORDS else field.name
            yield f"    pub {name}: {_rust_member(field, what == 'inputs')},"
        yield "}"
    yield 'extern "C" {'
    hooks = "allocator: *const c_void"
    if interface.linked_weights:
        yield f"    pub fn {prefix}_create({hooks}) -> *mut c_void;"
    else:
        yield f"    pub fn {prefix}_open(path: *const c_char, {hooks}) -> *mut c_void;"
    yield f"    pub fn {prefix}_destroy(program: *mut c_void);"
    buffers = "inputs: *const Inputs, outputs: *mut Outputs"
    yield f"    pub fn {prefix}_shapes({buffers}) -> i32;"
    yield f"    pub fn {prefix}_run(program: *mut c_void, {buffers}) -> i32;"
    yield f"    pub fn {prefix}_last_error() -> *const c_char;"
    if interface.chooses:
        yield f"    pub fn {prefix}_target(program: *const c_void) -> *const c_char;"
    yield "}"


def _rust_member(field: Field, is_input: bool) -> str:
    """The type of a member: that of its struct, or of an address."""
    if field.has_shape:
        words = "".join(word.capitalize() for word in field.name.split("_"))
        return f"{words}{'Input' if is_input else 'Output'}"
    return f"*{'const' if is_input else 'mut'} {_RUST[c_type(field.spec.dtype)]}"


def _rust_struct(field: Field, is_input: bool) -> Iterator[str]:
    if not field.has_shape:
        return
    pointer = "*const" if is_input else "*mut"
    kind = f"{pointer} {_RUST[c_type(field.spec.dtype)]}"
    members = {"data": kind, "shape": f"[i64; {len(field.shape)}]"}
    if field.is_sparse:
        indptr, indices = (f"*const {_RUST[f'{dtype.name}_t']}" for dtype in field.index_dtypes)
        arrays = {"indptr": indptr, "indices": indices, "values": kind}
        members = {**arrays, "shape": "[i64; 2]", "entries": "i64"}
    elif field.computed:
        members = {"data": kind, "room": "i64", "shape": members["shape"]}
    yield "#[repr(C)]"
    yield f"pub struct {_rust_member(field, is_input)} {{"
    yield from (f"    pub {name}: {text}," for name, text in members.items())
    yield "}"
