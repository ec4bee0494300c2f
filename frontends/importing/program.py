"""The module of a program whose operators are in a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Block, Region

from ...core.algebra.dims import Shape
from ...core.algebra.multiples import Multiples
from ...core.ir.module import Module
from ...core.ir.public_function import argument_attrs
from ...core.ir.weights import WeightStore
from ...dialects.graph.sizes.attributes import EQUAL, equal_attribute
from .values import Value


def module_of(
    body: Block,
    weights: WeightStore,
    inputs: Sequence[tuple[str, Shape]],
    outputs: Sequence[tuple[str, Value]],
    multiples: Multiples,
    entries: Mapping[str, str] = {},
    labels: Mapping[str, Sequence[str]] = {},
) -> Module:
    """The module with `body` as its program, which ends with the outputs.

    Args:
        body: the operators.
        weights: the store for constants.
        inputs: the names and shapes of the inputs.
        outputs: the names of the outputs, and their values.
        multiples: what the operators demand of sizes that they divide. It outlives them: a pass
            may remove an operator, and still a call with other sizes is an error.
        entries: the names of the numbers of stored entries of sparse inputs, by their names.
        labels: the strings whose numbers inputs and outputs hold, by their names.
    """
    results = [value.ssa for _, value in outputs if value.ssa is not None]
    body.add_op(func.ReturnOp(*results))
    main = func.FuncOp(
        "main",
        ([a.type for a in body.args], [r.type for r in results]),
        Region(body),
        arg_attrs=ArrayAttr(
            argument_attrs(name, _names(shape), entries.get(name), labels.get(name, ()))
            for name, shape in inputs
        ),
        res_attrs=ArrayAttr(
            argument_attrs(name, _names(v.shape), labels=labels.get(name, ()) if v.is_text else ())
            for name, v in outputs
        ),
    )
    names = {name for _, shape in inputs for name in _names(shape)}
    if pairs := [pair for pair in multiples.pairs if names.issuperset(pair[0].symbols)]:
        main.attributes[EQUAL] = equal_attribute(pairs)
    return Module(ModuleOp([main]), weights)


def _names(shape: Shape) -> list[int | str]:
    """A shape for the attributes of the public function; "" is an unnamed dimension."""
    return [
        dim.value if dim.is_static else "" if any(s[0] == "_" for s in dim.symbols) else str(dim)
        for dim in shape
    ]
