"""Writes models of ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, defs, helper, numpy_helper, shape_inference

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Writer:
    """A model of ONNX under construction; nodes give the names of their results."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def nodes(self, count: int, kind: str, *operands: str, **attributes: Any) -> list[str]:
        """A node of so many results."""
        names = [f"v{len(self._nodes)}_{n}" for n in range(count)]
        self._nodes.append(helper.make_node(kind, operands, names, names[0], **attributes))
        return names

    def node(self, kind: str, *operands: str, **attributes: Any) -> str:
        return self.nodes(1, kind, *operands, **attributes)[0]

    def model(
        self,
        inputs: Mapping[str, tuple[int, Sequence[int | str]]],
        *results: str,
        opset: int = 18,
        domain: str = "",
    ) -> ModelProto:
        """The model of inputs of these element types and shapes, and of these results.

        Results have the element type of the first input where ONNX does not infer another one.
        """
        specs = [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()]
        outputs = [helper.make_tensor_value_info(y, TensorProto.UNDEFINED, None) for y in results]
        graph = helper.make_graph(self._nodes, "main", specs, outputs, self._constants)
        imports = [helper.make_opsetid(*one) for one in {domain: 1, "": opset}.items()]
        # An intermediate representation that all peers read.
        model = helper.make_model(graph, opset_imports=imports, ir_version=9)
        model = shape_inference.infer_shapes(model)
        for output in model.graph.output:
            if not output.type.tensor_type.elem_type:
                output.type.CopyFrom(specs[0].type)
                output.type.tensor_type.ClearField("shape")
        return model


@dataclass(frozen=True)
class Node:
    """A node of ONNX; constants follow the inputs.

    It has as many results as the operator demands, unless `results` says how many, as it has to
    for one of another domain than that of ONNX.
    """

    kind: str
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    constants: tuple[np.ndarray, ...] = ()
    opset: int = 18
    domain: str = ""
    results: int | None = None

    def model(self, inputs: Sequence[np.ndarray]) -> ModelProto:
        """A model of this node, with inputs of the shapes and types of these."""
        kinds = [helper.np_dtype_to_tensor_dtype(x.dtype) for x in inputs]
        specs = {f"x{n}": (kinds[n], x.shape) for n, x in enumerate(inputs)}
        count, w = self.results or defs.get_schema(self.kind, self.opset).min_output, Writer()
        operands = *specs, *map(w.constant, self.constants)
        names = w.nodes(count, self.kind, *operands, domain=self.domain, **self.attributes)
        return w.model(specs, *names, opset=self.opset, domain=self.domain)


def onnx_perceptron(
    layers: Sequence[tuple[np.ndarray, np.ndarray]], shape: Sequence[int | str]
) -> ModelProto:
    """Layers (weights [out, in], bias) with relu between them, of an input x."""
    writer, value = Writer(), "x"
    for i, operands in enumerate(layers):
        value = writer.node("Relu", value) if i else value
        value = writer.node("Gemm", value, *map(writer.constant, operands), transB=1)
    return writer.model({"x": (FLOAT, shape)}, value)
