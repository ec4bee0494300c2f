"""The files to read beside the object file of a program, such as an example and a build file."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from . import javascript
from .header import created, header
from .interface import (
    EXAMPLE_SIZE,
    CInterface,
    Field,
    c_type,
    shown,
    symbol_in_example,
    symbols_of,
)
from .page import readme


def possible_files(prefix: str) -> dict[str, str]:
    """The names of all files that an export may write, but README.md, with what each one is."""
    return {
        f"{prefix}.o": "the object file, complete by itself",
        f"{prefix}.weights": "the weights",
        f"lib{prefix}.a": "a static library of it",
        f"lib{prefix}.so": "a shared library of it",
        f"{prefix}.wasm": "a WebAssembly module of it",
        f"{prefix}.h": "the header, which says what every function does",
        "example.c": "a call from C",
        "CMakeLists.txt": "targets for CMake",
        "example.mjs": "a call from JavaScript, for Node",
    }


def texts(interface: CInterface, made: Collection[str]) -> dict[str, str]:
    """The files to read, by name.

    Args:
        interface: the interface of the program.
        made: the names of the files beside them.
    """
    prefix = interface.prefix
    found = {
        f"{prefix}.h": header(interface),
        "example.c": example(interface),
        "CMakeLists.txt": cmake(interface),
    }
    if interface.is_wasm:
        found["example.mjs"] = javascript.example(interface)
    there = {*made, *found}
    listed = {name: what for name, what in possible_files(prefix).items() if name in there}
    return {**found, "README.md": readme(interface, listed)}


def example(interface: CInterface) -> str:
    """A program in C that calls the model on zeros."""
    prefix = interface.prefix
    names = list(symbols_of(interface.inputs))
    sizes = [f"  const int64_t {symbol_in_example(name)} = {EXAMPLE_SIZE};" for name in names]
    inputs = [line for field in interface.inputs for line in _example_input(field)]
    outputs = [line for field in interface.outputs for line in _example_output(field)]
    create = created(interface)
    first = interface.outputs[0]
    data = f"outputs.{first.name}.data" if first.has_shape else f"outputs.{first.name}"
    return f"""\
/* Calls the model "{shown(interface.model)}" once, on zeros. */
#include <stdio.h>
#include <stdlib.h>

#include "{prefix}.h"

static int fail(void) {{
  fprintf(stderr, "%s\\n", {prefix}_last_error());
  return 1;
}}

int main(void) {{
{javascript.joined(sizes)}  {prefix} *program = {create};
  if (!program) return fail();

  {prefix}_inputs inputs = {{0}};
{javascript.joined(inputs)}
  {prefix}_outputs outputs = {{0}};
  if ({prefix}_shapes(&inputs, &outputs)) return fail();
{javascript.joined(outputs)}
  if ({prefix}_run(program, &inputs, &outputs)) return fail();
  printf("{shown(first.spec.name)}[0] = %g\\n", (double)*{data});
  {prefix}_destroy(program);
  return 0;
}}
"""


def _example_input(field: Field) -> Iterator[str]:
    """Lines that fill in an input."""
    kind, place = c_type(field.spec.dtype), f"inputs.{field.name}"
    dims = [
        str(dim.value) if dim.is_static else symbol_in_example(dim.symbols[0])
        for dim in field.shape
    ]
    count = " * ".join(dims) or "1"
    if not field.has_shape:
        yield f"  {place} = calloc({count}, sizeof({kind}));"
        return
    for axis, dim in enumerate(dims):
        yield f"  {place}.shape[{axis}] = {dim};"
    if not field.is_sparse:
        yield f"  {place}.data = calloc({count}, sizeof({kind}));"
        return
    entries = field.entries
    assert entries is not None
    number = str(entries.value) if entries.is_static else symbol_in_example(entries.symbols[0])
    indptr, indices = (f"{dtype.name}_t" for dtype in field.index_dtypes)
    pointers = f"{field.name}_indptr"
    yield f"  {place}.entries = {number}; /* all in the first row and column */"
    yield f"  {indptr} *{pointers} = calloc({dims[0]} + 1, sizeof({indptr}));"
    yield f"  for (int64_t i = 1; i <= {dims[0]}; i++) {pointers}[i] = ({indptr}){number};"
    yield f"  {place}.indptr = {pointers};"
    yield f"  {place}.indices = calloc({number} + 1, sizeof({indices}));"
    yield f"  {place}.values = calloc({number} + 1, sizeof({kind}));"


def _example_output(field: Field) -> Iterator[str]:
    """Lines that make an array for a result."""
    kind, place = c_type(field.spec.dtype), f"outputs.{field.name}"
    if not field.has_shape:
        count = " * ".join(str(dim) for dim in field.shape) or "1"
        yield f"  {place} = calloc({count}, sizeof({kind}));"
    elif field.computed:
        yield f"  if (!{place}.room) {place}.room = 1024;"
        yield f"  {place}.data = calloc((size_t){place}.room, sizeof({kind}));"
    else:
        sizes = " * ".join(f"{place}.shape[{axis}]" for axis in range(len(field.shape)))
        yield f"  {place}.data = calloc((size_t)({sizes}) + 1, sizeof({kind}));"


def cmake(interface: CInterface) -> str:
    """A build file that makes the libraries of the object file, and the example."""
    prefix = interface.prefix
    threads = interface.pooled
    find = (
        "set(THREADS_PREFER_PTHREAD_FLAG ON)\nfind_package(Threads REQUIRED)\n" if threads else ""
    )
    libraries = "m Threads::Threads" if threads else "m"
    stays = (
        f'target_link_options({prefix}_shared PRIVATE "LINKER:-z,nodelete")\n' if threads else ""
    )
    return f"""\
cmake_minimum_required(VERSION 3.13)
project({prefix} C)
{find}
set(object ${{CMAKE_CURRENT_SOURCE_DIR}}/{prefix}.o)
set_source_files_properties(${{object}} PROPERTIES EXTERNAL_OBJECT TRUE)

add_library({prefix} STATIC ${{object}})
add_library({prefix}_shared SHARED ${{object}})
set_target_properties({prefix}_shared PROPERTIES OUTPUT_NAME {prefix})
foreach(library {prefix} {prefix}_shared)
  set_target_properties(${{library}} PROPERTIES LINKER_LANGUAGE C)
  target_include_directories(${{library}} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
  target_link_libraries(${{library}} PUBLIC {libraries})
endforeach()
{stays}
add_executable({prefix}_example example.c)
target_link_libraries({prefix}_example {prefix})
"""
