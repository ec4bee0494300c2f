"""Writes models of ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Writer:
    """A model of ONNX under construction; each node has one result, whose name is returned."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, *operands: str, **attributes: Any) -> str:
        name = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, operands, [name], name, **attributes))
        return name

    def model(
        self,
        inputs: Mapping[str, tuple[int, Sequence[int | str]]],
        result: str,
        rank: int = 2,
        opset: int = 18,
    ) -> ModelProto:
        """The model of inputs of these element types and shapes, and of a result of this rank."""
        graph = helper.make_graph(
            self._nodes,
            "main",
            [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()],
            [helper.make_tensor_value_info(result, FLOAT, (None,) * rank)],
            self._constants,
        )
        # An intermediate representation that all peers read.
        imports = [helper.make_opsetid("", opset)]
        model = helper.make_model(graph, opset_imports=imports, ir_version=9)
        checker.check_model(model)
        return model


def onnx_perceptron(
    layers: Sequence[tuple[np.ndarray, np.ndarray]], shape: Sequence[int | str]
) -> ModelProto:
    """Layers (weights [out, in], bias) with relu between them, of an input x."""
    writer, value = Writer(), "x"
    for i, operands in enumerate(layers):
        value = writer.node("Relu", value) if i else value
        value = writer.node("Gemm", value, *map(writer.constant, operands), transB=1)
    return writer.model({"x": (FLOAT, shape)}, value)
