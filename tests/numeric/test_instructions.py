"""Each instruction of the table computes its body, on random bits and on special values."""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute
from xdsl.parser import Parser

from stepwell.backends.llvm.jit import CompiledModule, compile_module
from stepwell.backends.reference.instructions import computed
from stepwell.backends.reference.numbers import dtype_of
from stepwell.core.instructions import INSTRUCTIONS, SCALE, Form, Instruction
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.registry import make_context
from stepwell.core.target import host, named
from stepwell.dialects.bodies import body_of, depth_of
from stepwell.dialects.loop.ops import block_shape, element_type

OPERATIONS = {
    "fma": "%r = math.fma %a0, %a1, %a2 : {result}",
    "extend_f16": "%r = arith.extf %a0 : {a0} to {result}",
    "truncate_f16": "%r = arith.truncf %a0 : {a0} to {result}",
    "scale": """
    %all = arith.constant -1 : i16
    %nearest = arith.constant 4 : i32
    %r = x86vector.avx512.mask.scalef %a0, %a0, %a1, %all, %nearest : {result}""",
}
"""The operations that stand for instructions without an intrinsic."""
MNEMONICS = {
    "fma": "vfmadd",
    "extend_f16": "vcvtph2ps",
    "truncate_f16": "vcvtps2ph",
    "scale": "vscalefps",
    "vpmaddwd": "vpmaddwd",
    "vpdpbusd": "vpdpbusd",
}
SPECIAL = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan, 1e-45, 6e-8, 3e38, 65520.0, 1100, -1100]
ROUNDS = 1000

FORMS = [(row, form) for row in INSTRUCTIONS.values() for form in row.forms]
here = pytest.mark.parametrize(
    ("row", "form"),
    [
        pytest.param(
            row,
            form,
            id=f"{row.name}-{form.architecture}-{form.lanes or 'any'}",
            marks=() if form in host().forms(row) else pytest.mark.skip("not on this processor"),
        )
        for row, form in FORMS
    ],
)


def types(row: Instruction, lanes: int) -> list[Attribute]:
    """The machine vectors of the operands and of the result."""
    kinds = body_of(row).function_type
    depth = depth_of(row)
    return [
        VectorType(element_type(kind), [lanes * (depth if isinstance(kind, VectorType) else 1)])
        for kind in (*kinds.inputs, *kinds.outputs)
    ]


def compiled(row: Instruction, form: Form, lanes: int) -> CompiledModule:
    *operands, result = types(row, lanes)
    names = [f"a{number}" for number in range(len(operands))]
    values = {**dict(zip(names, map(str, operands), strict=True)), "result": str(result)}
    if form.intrinsic is None:
        operation = OPERATIONS[row.name].format_map(values)
    else:
        given = ", ".join(f"%{name}" for name in names)
        signature = f"({', '.join(map(str, operands))}) -> {result}"
        operation = f'%r = llvm.call_intrinsic "{form.intrinsic}"({given}) : {signature}'
    buffers = {name: f"memref<1x{kind[7:-1]}>" for name, kind in values.items()}
    loads = "\n".join(
        f"%{name} = vector.load %m{name}[%0, %0] : {buffers[name]}, {values[name]}"
        for name in names
    )
    text = f"""
    func.func @f({", ".join(f"%m{name}: {kind}" for name, kind in buffers.items())}) {{
      %0 = arith.constant 0 : index
      {loads}
      {operation}
      vector.store %r, %mresult[%0, %0] : {buffers["result"]}, {result}
      func.return
    }}"""
    ctx = make_context(target=host())
    module = Parser(ctx, text).parse_module()
    run_passes(ctx, module, "convert-math-to-arith,convert-to-llvm")
    return compile_module(module, host())


def samples(row: Instruction, lanes: int) -> list[np.ndarray]:
    """Operands of many calls: random bits, and all combinations of special values."""
    random = np.random.default_rng(0)
    dtypes = [dtype_of(kind) for kind in types(row, lanes)[:-1]]
    widths = [block_shape(kind)[0] for kind in types(row, lanes)[:-1]]
    found = [
        random.integers(0, 256, (ROUNDS, width * dtype.itemsize), np.uint8).view(dtype)
        for width, dtype in zip(widths, dtypes, strict=True)
    ]
    special = [
        [np.iinfo(dtype).min, np.iinfo(dtype).max, -1, 0, 1] if dtype.kind == "i" else SPECIAL
        for dtype in dtypes
    ]
    together = [np.array(values) for values in zip(*itertools.product(*special), strict=True)]
    for operand, values in zip(found, together, strict=True):
        with np.errstate(over="ignore"):
            given = values.astype(operand.dtype)
        operand.reshape(-1)[: min(operand.size, given.size)] = given[: operand.size]
    return found


@here
def test_computes_its_body(row: Instruction, form: Form) -> None:
    lanes = form.lanes or 8
    code, operands = compiled(row, form, lanes), samples(row, lanes)
    expected = computed(row, operands)
    found = np.empty_like(expected)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(operands) + 1))(code.address("f"))
    for number in range(ROUNDS):
        function(*(array[number].ctypes.data for array in (*operands, found)))
    np.testing.assert_array_equal(found, expected)
    if found.dtype.kind == "f":
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])
    if form.architecture == "x86_64":
        assert MNEMONICS[row.name] in code.assembly()


def test_targets_have_them_by_their_features() -> None:
    fma, half = INSTRUCTIONS["fma"], INSTRUCTIONS["extend_f16"]
    having = {name: (named(name).has(fma), named(name).has(half)) for name in ("wasm32", "rv64gcv")}
    assert having == {"wasm32": (False, False), "rv64gcv": (True, False)}
    having = {name: named(name).has(SCALE) for name in ("znver3", "znver4", "apple-m1")}
    assert having == {"znver3": False, "znver4": True, "apple-m1": False}
    assert [named(name).has(fma) for name in ("x86-64-v2", "haswell")] == [False, True]
    without = replace(named("haswell"), features="-fma")
    assert not without.has(fma)
