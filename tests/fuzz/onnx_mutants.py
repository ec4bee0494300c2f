"""Changed models of ONNX that are still messages of protobuf."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto

from stepwell import ImportModelError, from_onnx

from .damage import Rng
from .mlir_mutants import NUMBERS, mostly_valid

OPERATORS = (
    *("Relu", "Add", "MatMul", "Gemm", "Conv", "MaxPool", "Softmax", "Reshape", "Transpose"),
    *("Concat", "Slice", "Gather", "Squeeze", "Unsqueeze", "Expand", "Tile", "Pad", "Resize"),
    *("ReduceSum", "TopK", "NonZero", "Where", "Cast", "Shape", "Range", "OneHot", "CumSum"),
    *("LSTM", "Einsum", "ScatterND", "GatherND", "Split", "ConstantOfShape", "Loop", "If"),
    *("QLinearConv", "DequantizeLinear", "BatchNormalization", "LayerNormalization", "Nothing"),
)
FLOATS = (0.0, -1.0, 1e-30, 3.5, 1e38, float("inf"), float("nan"))


def other_messages(data: bytes, rng: Rng) -> bytes:
    """One to four changes of nodes, attributes, tensors or types, most of which are imported."""
    for _ in range(rng.integers(1, 5)):
        data = mostly_valid(partial(_other_messages, data), _is_valid, rng)
    return data


def _is_valid(data: bytes) -> bool:
    try:
        from_onnx(data)
    except ImportModelError:
        return False
    except Exception:  # the case that is made of it finds this
        return True
    return True


def _other_messages(data: bytes, rng: Rng) -> bytes:
    model = ModelProto.FromString(data)
    _CHANGES[rng.integers(len(_CHANGES))](model.graph, rng)
    if rng.integers(20) == 0:
        model.opset_import[0].version = int(rng.integers(1, 25))
    return model.SerializeToString()


T = TypeVar("T")


def _pick(rng: Rng, choices: Sequence[T]) -> T:
    return choices[rng.integers(len(choices))]


def _names(graph: GraphProto) -> list[str]:
    nodes = [name for node in graph.node for name in node.output]
    return ["", *nodes, *(one.name for one in (*graph.input, *graph.initializer))]


def _operator(graph: GraphProto, rng: Rng) -> None:
    node = _pick(rng, list(graph.node))
    others = [other.op_type for other in graph.node]
    node.op_type = _pick(rng, [*OPERATORS, *others])


def _operand(graph: GraphProto, rng: Rng) -> None:
    node = _pick(rng, list(graph.node))
    names = _names(graph)
    if len(node.input) and rng.integers(4):
        node.input[rng.integers(len(node.input))] = _pick(rng, names)
    elif len(node.input) and rng.integers(2):
        node.input.pop()
    else:
        node.input.append(_pick(rng, names))


def _node(graph: GraphProto, rng: Rng) -> None:
    """A node is left out, with its operand in its place, or there twice, or somewhere else."""
    place = int(rng.integers(len(graph.node)))
    node = graph.node[place]
    match rng.integers(3):
        case 0 if len(graph.node) > 1:
            instead = next(iter(node.input), "")
            for other in graph.node:
                for n, name in enumerate(other.input):
                    if name in node.output:
                        other.input[n] = instead
            graph.node.pop(place)
        case 1:
            graph.node.append(node)
        case _:
            graph.node.insert(int(rng.integers(len(graph.node))), graph.node.pop(place))


def _attribute(graph: GraphProto, rng: Rng) -> None:
    node = _pick(rng, [node for node in graph.node if node.attribute] or list(graph.node))
    if not node.attribute:
        return
    place = int(rng.integers(len(node.attribute)))
    attribute, number = node.attribute[place], int(rng.choice(NUMBERS))
    match rng.integers(6):
        case 0:
            node.attribute.pop(place)
        case 1:
            attribute.type = int(rng.choice(AttributeProto.AttributeType.values()))
        case _ if attribute.ints:
            attribute.ints[rng.integers(len(attribute.ints))] = number
        case _ if attribute.type == AttributeProto.INT:
            attribute.i = number
        case _ if attribute.type == AttributeProto.FLOAT:
            attribute.f = float(rng.choice(FLOATS))
        case _:
            attribute.ints.append(number)


def _tensor(graph: GraphProto, rng: Rng) -> None:
    """Another shape, type or content of an initialiser."""
    if not graph.initializer:
        return
    tensor = _pick(rng, list(graph.initializer))
    match rng.integers(5):
        case 0 if tensor.dims:
            tensor.dims[rng.integers(len(tensor.dims))] = int(rng.choice(NUMBERS))
        case 1:
            tensor.data_type = int(rng.choice(TensorProto.DataType.values()))
        case 2:
            tensor.dims[:] = rng.permutation(np.array(tensor.dims, np.int64)).tolist()
        case 3 if tensor.data_type == TensorProto.INT64 and len(tensor.raw_data) >= 8:
            numbers = np.frombuffer(tensor.raw_data, np.int64).copy()
            numbers[rng.integers(len(numbers))] = int(rng.choice(NUMBERS))
            tensor.raw_data = numbers.tobytes()
        case _:
            tensor.raw_data = tensor.raw_data[: rng.integers(len(tensor.raw_data) + 1)]


def _type(graph: GraphProto, rng: Rng) -> None:
    """Another element type, size or rank of an input or output."""
    info = _pick(rng, [*graph.input, *graph.output])
    kind = info.type.tensor_type
    match rng.integers(4):
        case 0:
            kind.elem_type = int(rng.choice(TensorProto.DataType.values()))
        case 1 if kind.shape.dim:
            dim = _pick(rng, list(kind.shape.dim))
            dim.dim_value = int(rng.choice(NUMBERS))
        case 2 if kind.shape.dim:
            _pick(rng, list(kind.shape.dim)).dim_param = str(rng.choice(["n", "m", "", "a b"]))
        case _:
            kind.shape.dim.add().dim_value = int(rng.integers(4))


_CHANGES: list[Callable[[GraphProto, Rng], None]] = [
    *(_operator, _operand, _operand, _node, _attribute, _attribute, _tensor, _tensor, _type),
]
