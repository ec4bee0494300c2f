"""The example of a WebAssembly module: a call from JavaScript, in Node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .interface import (
    EXAMPLE_SIZE,
    CInterface,
    Field,
    c_type,
    shown,
    symbol_in_example,
    symbols_of,
)

_ADDRESS, _SIZE = 4, 8
"""The bytes of an address, and of a size in a struct."""
_ARRAYS = {
    "float": "Float32Array",
    "double": "Float64Array",
    "int64_t": "BigInt64Array",
    "uint64_t": "BigUint64Array",
    **{f"int{bits}_t": f"Int{bits}Array" for bits in (8, 16, 32)},
    **{f"uint{bits}_t": f"Uint{bits}Array" for bits in (8, 16, 32)},
}
"""JavaScript's arrays of C's types."""


def example(interface: CInterface) -> str:
    """A program in JavaScript that calls the model on zeros."""
    prefix, first = interface.prefix, interface.outputs[0]
    sizes = [
        f"const {symbol_in_example(n)} = {EXAMPLE_SIZE};" for n in symbols_of(interface.inputs)
    ]
    inputs = [line for f, at in _placed(interface.inputs) for line in _input(f, at)]
    outputs = [line for f, at in _placed(interface.outputs) for line in _output(f, at)]
    weights = [] if interface.linked_weights else _weights(prefix)
    functions = ", ".join(name for name in interface.functions if not name.endswith("destroy"))
    result = f"new {_ARRAYS[c_type(first.spec.dtype)]}(memory.buffer, address(outputs), 1)[0]"
    created = f"{prefix}_create(loaded, BigInt(weights.length), 0)"
    if interface.linked_weights:
        created = f"{prefix}_create(0)"
    return f"""\
// Calls the model in {prefix}.wasm once, on zeros. In structs, an address has 32 bits, a size 64.
import {{ readFileSync }} from "node:fs";
import {{ WASI }} from "node:wasi";

const system = new WASI({{ version: "preview1" }});
const code = readFileSync("{prefix}.wasm");
const {{ instance }} = await WebAssembly.instantiate(code, system.getImportObject());
system.initialize(instance);
const {{ memory, aligned_alloc, {functions} }} = instance.exports;

// Memory moves when it grows, so each access begins with its buffer.
const view = () => new DataView(memory.buffer);
const array = (bytes) => {{
  const at = aligned_alloc(64, (bytes + 64) & -64);
  new Uint8Array(memory.buffer, at, bytes).fill(0);
  return at;
}};
const address = (at) => view().getUint32(at, true);
const setAddress = (at, value) => view().setUint32(at, value, true);
const size = (at) => Number(view().getBigInt64(at, true));
const setSize = (at, value) => view().setBigInt64(at, BigInt(value), true);
const check = (good) => {{
  if (good) return;
  const text = new Uint8Array(memory.buffer, {prefix}_last_error());
  throw new Error(new TextDecoder().decode(text.subarray(0, text.indexOf(0))));
}};

{joined([*sizes, *weights])}const program = {created};
check(program);
const inputs = array({_bytes(interface.inputs)});
const outputs = array({_bytes(interface.outputs)});
{joined(inputs)}check({prefix}_shapes(inputs, outputs) === 0);
{joined(outputs)}check({prefix}_run(program, inputs, outputs) === 0);
console.log(`{shown(first.spec.name)}[0] = ${{{result}}}`);
"""


def joined(lines: Sequence[str]) -> str:
    """Lines as text, each with its end."""
    return "".join(f"{line}\n" for line in lines)


def _weights(prefix: str) -> list[str]:
    """Lines that read the weights into the memory of the module."""
    return [
        f'const weights = readFileSync("{prefix}.weights");',
        "const loaded = array(weights.length);",
        "new Uint8Array(memory.buffer).set(weights, loaded);",
    ]


def _words(field: Field) -> int:
    """The number of sizes in a member."""
    if not field.has_shape:
        return 0
    return len(field.shape) + (1 if field.is_sparse or field.computed else 0)


def _addresses(field: Field) -> int:
    return 3 if field.is_sparse else 1


def _placed(fields: Sequence[Field]) -> list[tuple[Field, int]]:
    """Fields with their offsets in a struct."""
    found: list[tuple[Field, int]] = []
    place = 0
    for field in fields:
        if _words(field):
            place = _rounded(place)
        found.append((field, place))
        place = _end(field, place)
    return found


def _end(field: Field, place: int) -> int:
    """Where a member ends that begins at a place."""
    after = place + _ADDRESS * _addresses(field)
    return _rounded(after) + _SIZE * _words(field) if _words(field) else after


def _bytes(fields: Sequence[Field]) -> int:
    last = _placed(fields)[-1:]
    return _rounded(_end(*last[0])) if last else _SIZE


def _rounded(place: int) -> int:
    return -(-place // _SIZE) * _SIZE


def _input(field: Field, place: int) -> Iterator[str]:
    """Lines that fill in an input."""
    dims = [str(d.value) if d.is_static else symbol_in_example(d.symbols[0]) for d in field.shape]
    count = " * ".join([*dims, str(field.item_bytes)])
    sizes = _rounded(place + _ADDRESS * _addresses(field))
    if field.has_shape:
        for axis, dim in enumerate(dims):
            yield f"setSize(inputs + {sizes + _SIZE * axis}, {dim});"
    if not field.is_sparse:
        yield f"setAddress(inputs + {place}, array({count})); // {shown(field.spec.name)}"
        return
    entries = field.entries
    assert entries is not None
    number = str(entries.value) if entries.is_static else symbol_in_example(entries.symbols[0])
    pointer, index = (dtype.itemsize for dtype in field.index_dtypes)
    kind, wide = _ARRAYS[f"{field.index_dtypes.indptr.name}_t"], pointer == _SIZE
    yield f"setSize(inputs + {sizes + 2 * _SIZE}, {number}); // all in the first row and column"
    yield f"const {field.name} = array({pointer} * ({dims[0]} + 1));"
    value = f"BigInt({number})" if wide else number
    yield f"new {kind}(memory.buffer, {field.name}, {dims[0]} + 1).fill({value}, 1);"
    yield f"setAddress(inputs + {place}, {field.name}); // {shown(field.spec.name)}"
    yield f"setAddress(inputs + {place + _ADDRESS}, array({index} * {number}));"
    yield f"setAddress(inputs + {place + 2 * _ADDRESS}, array({field.item_bytes} * {number}));"


def _output(field: Field, place: int) -> Iterator[str]:
    """Lines that make an array for a result."""
    sizes = _rounded(place + _ADDRESS)
    if not field.has_shape:
        count = " * ".join([str(field.item_bytes), *(str(dim) for dim in field.shape)])
    elif field.computed:
        yield f"if (!size(outputs + {sizes})) setSize(outputs + {sizes}, 1024);"
        count = f"{field.item_bytes} * size(outputs + {sizes})"
    else:
        places = [f"size(outputs + {sizes + _SIZE * axis})" for axis in range(len(field.shape))]
        count = " * ".join([str(field.item_bytes), *places])
    yield f"setAddress(outputs + {place}, array({count})); // {shown(field.spec.name)}"
