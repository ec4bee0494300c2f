"""Examples that are whole programs: from the text of a module in a docstring to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.boundary.functions import register_function
from ...core.boundary.specs import ValueSpec
from ...core.dtype_names import dtype_named
from ...core.dtypes import dtype_of
from ...core.errors import StepwellError
from ...core.ir.module import Module
from ...core.ir.parsing import MlirParser
from ...core.ir.typed import memref_type
from ...core.ir.walks import operations_in
from ...core.ir.weights import WeightStore
from ...core.registry import make_context
from ...dialects.program import is_on_buffers
from ...dialects.rt.ops import ConstantOp
from ...frontends.mlir import from_mlir
from ...runtime.interpreted import interpreted
from ...runtime.lowered import lowered
from .examples import UNKNOWN, ModuleExample, array_named, numbers


@register_function("env.double")
def _double(x: np.ndarray, y: np.ndarray) -> None:
    """The registered function that examples call."""
    np.multiply(x, 2, out=y)


def program_example_of(text: str) -> ModuleExample | None:
    """Interpret an example that is a program on made-up inputs and weights; None for any other.

    Raises:
        CompileError: if it makes an invalid access.
        ImportModelError: if it is malformed or invalid.
    """
    if not text.startswith("func.func "):
        return None
    weights = _weights(text)
    module = from_mlir(text, weights)
    inputs, outputs = _names(module)
    arrays = [
        _array(*of, place) for place, of in enumerate(zip(inputs, module.inputs, strict=True))
    ]
    given = dict(zip(inputs, arrays, strict=True)) | {name: weights[name] for name in weights}
    try:
        got = _run(module, arrays)
    except StepwellError as error:
        return ModuleExample(given, {}, f"{type(error).__name__}: {error}", module=module)
    results = got if isinstance(got, tuple) else (got,)
    return ModuleExample(given, dict(zip(outputs, results, strict=True)), module=module)


def _run(module: Module, arrays: Sequence[np.ndarray]) -> Any:
    """The results of a program at any stage, interpreted."""
    if is_on_buffers(module.program):
        return interpreted(module.op, lowered(module))(*arrays)
    return module.run_reference(*arrays)


def _weights(text: str) -> WeightStore:
    """An array for each constant that a program names."""
    store = WeightStore()
    module = MlirParser(make_context(WeightStore()), text).parse_module()
    for op in operations_in(module):
        if isinstance(op, ConstantOp):
            kind = memref_type(op.result)
            array = numbers(kind.get_shape(), dtype_of(kind.element_type), 1)
            store.add(op.weight.data, array)
    return store


def _array(name: str, spec: ValueSpec, place: int) -> np.ndarray:
    shape = tuple(size if isinstance(size, int) else UNKNOWN for size in spec.shape)
    return array_named(name, shape, dtype_named(spec.dtype), place)


def _names(module: Module) -> tuple[list[str], list[str]]:
    """The names of inputs and results, as in the text where it has some."""
    block, specs = module.program.body.block, [*module.inputs, *module.outputs]
    if is_on_buffers(module.program):
        values = block.args[1:]
    else:
        assert block.last_op is not None
        values = (*block.args, *block.last_op.operands)
    names = [value.name_hint or spec.name for value, spec in zip(values, specs, strict=True)]
    count = len(module.inputs)
    return names[:count], names[count:]
