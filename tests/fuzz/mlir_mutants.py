"""Changed text of MLIR: by tokens, or by operations, so that much of it still parses."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from stepwell.core.ir.dominance import verify_module
from stepwell.core.ir.module import Module
from stepwell.core.ir.parsing import MlirParser
from stepwell.core.registry import make_context

from .damage import Rng

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[%@#!^]?[\w.$-]+|->|\S')
INTRUDERS = (
    *("0", "-1", "3", "4294967296", "9223372036854775807", "9223372036854775808", "1e400", "nan"),
    *("0x7F800000", "true", "unit", "none", '""', '"n"', "()", "{", "}", "(", ")", "[", "<", ">"),
    *("?", "f32", "f16", "bf16", "i1", "i64", "i128", "index", "tensor<?xf32>", "tensor<*xf32>"),
    *("memref<?xf32>", "vector<4xf32>", "vector<0xf32>", "tensor<4611686018427387904x9xf32>"),
    *("%x", "%0", "@main", "@nobody", "^bb0", "#csr", "!rt.context", "dense<0>", "array<i64>"),
    *("affine_map<(d0) -> (d0 floordiv 0)>", "loc(unknown)", "graph.relu", "func.call", "é", "\0"),
)
TRIES = 8
NUMBERS = (-(1 << 63), -(1 << 31), -7, -2, -1, 0, 1, 2, 3, 7, 64, 1 << 20, 1 << 31, (1 << 63) - 1)


def kind(token: str) -> str:
    """What a token is; another one of its kind often gives text that parses."""
    if token[0] in '%@#!^"':
        return token[0]
    if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", token):
        return "number"
    if re.fullmatch(r"([\d?]+x)*(f16|f32|f64|i\d+)", token):
        return "type"
    return "operation" if "." in token else token


def other_tokens(data: bytes, rng: Rng) -> bytes:
    """One to three tokens become others, most often others of their kind and valid."""
    text = data.decode()
    for _ in range(rng.integers(1, 4)):
        text = mostly_valid(partial(_other_token, text), partial(_is_valid, text), rng)
    return text.encode()


def _other_token(text: str, rng: Rng) -> str:
    """One token becomes another one of its kind, now and then anything.

    The token is any, or first the kind: most tokens are values and types, few of which may change.
    """
    spans = [found.span() for found in TOKEN.finditer(text)]
    kinds: dict[str, list[tuple[int, int]]] = {}
    for start, end in spans:
        kinds.setdefault(kind(text[start:end]), []).append((start, end))
    mixed = [places for places in kinds.values() if len({text[a:b] for a, b in places}) > 1]
    if not mixed or rng.integers(8) == 0:
        start, end = spans[rng.integers(len(spans))]
        token = text[start:end]
        others = ["", f"{token} {token}", INTRUDERS[rng.integers(len(INTRUDERS))]]
        return text[:start] + others[rng.integers(len(others))] + text[end:]
    any_kind = [place for places in mixed for place in places]
    places = mixed[rng.integers(len(mixed))] if rng.integers(2) else any_kind
    start, end = places[rng.integers(len(places))]
    token = text[start:end]
    alike = sorted({text[a:b] for a, b in kinds[kind(token)]} - {token})
    return text[:start] + alike[rng.integers(len(alike))] + text[end:]


def other_operations(data: bytes, rng: Rng) -> bytes:
    """One to three changes of operations, operands, attributes or sizes, most of them valid."""
    text = data.decode()
    for _ in range(rng.integers(1, 4)):
        text = mostly_valid(partial(_other_operations, text), partial(_is_valid, text), rng)
    return text.encode()


T = TypeVar("T")


def mostly_valid(change: Callable[[Rng], T], is_valid: Callable[[T], bool], rng: Rng) -> T:
    """A change that is valid, if one of some tries is, and now and then one that need not be."""
    changed = change(rng)
    for _ in range(TRIES):
        if rng.integers(5 * TRIES) == 0 or is_valid(changed):
            break
        changed = change(rng)
    return changed


def _is_valid(before: str, text: str) -> bool:
    if text == before:
        return False
    try:
        verify_module(MlirParser(make_context(), text).parse_module())
    except Exception:  # whatever xDSL says of text that is not valid
        return False
    return True


def _other_operations(text: str, rng: Rng) -> str:
    if rng.integers(4) == 0:
        return _other_size(text, rng)
    try:
        op = _parsed(text).clone()
        _CHANGES[rng.integers(len(_CHANGES))](op, rng)
        return Module(op).text()
    except Exception:  # the parser and the printer refuse what an earlier change has made
        return text


@lru_cache(1)
def _parsed(text: str) -> ModuleOp:
    return MlirParser(make_context(), text).parse_module()


def _other_size(text: str, rng: Rng) -> str:
    """One of the sizes of types is another one, wherever it stands."""
    sizes = sorted(set(re.findall(r"(?<=[<x])(?:\d+|\?)(?=x)", text)))
    if not sizes:
        return text
    old = sizes[rng.integers(len(sizes))]
    new = str(rng.choice(["?", "0", "1", "2", "5", "64", "4294967296", *sizes]))
    return re.sub(rf"(?<=[<x]){re.escape(old)}(?=x)", new, text)


def _operations(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if op.parent is not None]


def _chosen(module: ModuleOp, rng: Rng) -> Operation:
    operations = _operations(module)
    return operations[rng.integers(len(operations))]


def _values(module: ModuleOp) -> list[SSAValue]:
    found: list[SSAValue] = []
    for op in _operations(module):
        found.extend(op.results)
        for region in op.regions:
            for block in region.blocks:
                found.extend(block.args)
    return found


def _other_operand(module: ModuleOp, rng: Rng) -> None:
    """An operand becomes another value, mostly of its type."""
    users = [op for op in _operations(module) if op.operands]
    op = users[rng.integers(len(users))]
    number = int(rng.integers(len(op.operands)))
    values = _values(module)
    alike = [value for value in values if value.type == op.operands[number].type]
    choices = alike if rng.integers(4) else values
    op.operands[number] = choices[rng.integers(len(choices))]


def _no_operation(module: ModuleOp, rng: Rng) -> None:
    """An operation is left out; what uses its results uses operands of the same type instead."""
    op = _chosen(module, rng)
    for result in op.results:
        alike = [value for value in op.operands if value.type == result.type]
        if alike:
            result.replace_all_uses_with(alike[0])
    if not any(list(result.uses) for result in op.results):
        op.detach()
        op.erase()


def _operation_twice(module: ModuleOp, rng: Rng) -> None:
    op = _chosen(module, rng)
    block = op.parent
    assert isinstance(block, Block)
    block.insert_op_after(op.clone(), op)


def _operation_elsewhere(module: ModuleOp, rng: Rng) -> None:
    """An operation moves to another place of its block."""
    op = _chosen(module, rng)
    block = op.parent
    assert isinstance(block, Block)
    others = [other for other in block.ops if other is not op]
    if others:
        op.detach()
        block.insert_op_before(op, others[rng.integers(len(others))])


def _other_attribute(module: ModuleOp, rng: Rng) -> None:
    """A number, a name or an element of an attribute becomes another one."""
    tables = [
        table for op in _operations(module) for table in (op.properties, op.attributes) if table
    ]
    table = tables[rng.integers(len(tables))]
    name = list(table)[rng.integers(len(table))]
    table[name] = _other(table[name], module, rng)


def _other(attr: Attribute, module: ModuleOp, rng: Rng) -> Attribute:
    match attr:
        case IntegerAttr():
            return IntegerAttr(int(rng.choice(NUMBERS)), attr.type)
        case ArrayAttr() if len(attr.data):
            elements = list(attr.data)
            place = int(rng.integers(len(elements)))
            if rng.integers(3) == 0:
                elements.pop(place)
            else:
                elements[place] = _other(elements[place], module, rng)
            return ArrayAttr(elements)
        case DenseArrayBase():
            numbers: list[Any] = list(cast(Any, attr).get_values())
            if numbers and rng.integers(3):
                numbers[rng.integers(len(numbers))] = int(rng.choice(NUMBERS))
            else:
                numbers = [*numbers[:-1]] if rng.integers(2) else [*numbers, 1]
            return DenseArrayBase.from_list(attr.elt_type, numbers)
        case StringAttr() | SymbolRefAttr():
            alike = sorted(
                {
                    other
                    for op in _operations(module)
                    for other in (*op.properties.values(), *op.attributes.values())
                    if type(other) is type(attr)
                },
                key=str,
            )
            return alike[rng.integers(len(alike))]
        case _:
            return attr


_CHANGES = (
    *(_other_operand, _no_operation, _operation_twice, _operation_elsewhere),
    *(_other_attribute, _other_attribute),
)
