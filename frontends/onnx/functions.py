"""Functions: those of a model, and those by which ONNX defines operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TypeProto
from onnx.defs import OpSchema
from onnx.helper import make_tensor_type_proto, np_dtype_to_tensor_dtype

from ..importing.values import Value
from .diagnostics import broken
from .loading import default_domain


class _Definitions(Protocol):
    """What the type stubs of onnx leave out of `OpSchema`."""

    has_function: bool
    has_context_dependent_function: bool
    function_opset_versions: Sequence[int]
    context_dependent_function_opset_versions: Sequence[int]

    def get_function_with_opset_version(self, version: int, /) -> bytes: ...
    def get_context_dependent_function_with_opset_version(
        self, version: int, node: bytes, types: Sequence[bytes], /
    ) -> bytes: ...


def functions_of(model: ModelProto) -> dict[tuple[str, str, str], FunctionProto]:
    """The functions of a model by domain, name and overload."""
    result: dict[tuple[str, str, str], FunctionProto] = {}
    for function in model.functions:
        key = (default_domain(function.domain), function.name, function.overload)
        if key in result:
            raise broken(f'function "{function.name}" is defined twice')
        result[key] = function
    return result


def definition(
    schema: OpSchema,
    proto: NodeProto,
    attributes: Mapping[str, AttributeProto],
    inputs: Sequence[Value | None],
    opset: int,
) -> FunctionProto | None:
    """The function by which ONNX defines an operator, None if it has none for these operands.

    It depends on the types of operands for some operators; None stands for an omitted operand.
    """
    defined = cast("_Definitions", schema)
    version = _newest(defined.function_opset_versions, opset)
    if defined.has_function and version is not None:
        return FunctionProto.FromString(defined.get_function_with_opset_version(version))
    version = _newest(defined.context_dependent_function_opset_versions, opset)
    if not defined.has_context_dependent_function or version is None:
        return None
    node = NodeProto()
    node.CopyFrom(proto)
    del node.attribute[:]
    for name, attribute in attributes.items():
        node.attribute.add().CopyFrom(attribute)
        node.attribute[-1].name = name
    types = [_type(value).SerializeToString() for value in inputs]
    made = defined.get_context_dependent_function_with_opset_version(
        version, node.SerializeToString(), types
    )
    function = FunctionProto.FromString(made)
    return function if function.node else None


def with_defaults(
    schema: OpSchema, attributes: Mapping[str, AttributeProto]
) -> dict[str, AttributeProto]:
    """The attributes of a node, and the defaults of those that it does not give."""
    defaults = {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type != AttributeProto.UNDEFINED
    }
    return defaults | dict(attributes)


def _newest(versions: Sequence[int], opset: int) -> int | None:
    return max((version for version in versions if version <= opset), default=None)


def _type(value: Value | None) -> TypeProto:
    """The type of an operand; that of an omitted one, or of a sequence, is empty."""
    if value is None or value.items is not None:
        return TypeProto()
    sizes = [dim.value if dim.is_static else str(dim) for dim in value.shape]
    return make_tensor_type_proto(np_dtype_to_tensor_dtype(value.dtype), sizes)
