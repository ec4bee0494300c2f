"""Load a model from bytes or a `ModelProto`, and check everything around its graph."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from google.protobuf.message import DecodeError
from onnx import ModelProto, NodeProto
from onnx.defs import onnx_opset_version

from .diagnostics import broken

_OLDEST_OPSET = 1


def load(source: object, name: str) -> ModelProto:
    """A model that was given as a `ModelProto`, or as the bytes of one.

    Args:
        source: the model.
        name: what the bytes are, for errors.

    Raises:
        ImportModelError: if it is not an ONNX model.
    """
    if isinstance(source, ModelProto):
        return _checked(source, "model")
    if isinstance(source, bytes | bytearray | memoryview):
        return _parsed(bytes(source), name)
    raise broken("unknown source", expected="path, bytes or ModelProto", got=type(source).__name__)


def _parsed(data: bytes, what: str) -> ModelProto:
    model = ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        fact = f"{what}: truncated or not an ONNX model ({len(data)} bytes)"
        raise broken(fact) from error
    return _checked(model, what)


def _checked(model: ModelProto, what: str) -> ModelProto:
    if not model.HasField("graph"):
        raise broken(f"{what}: not an ONNX model: it has no graph")
    if not all(isinstance(text, str) for text in _texts(model)):
        raise broken(f"{what}: a name is not UTF-8 text")
    opsets(model.opset_import)
    return model


def _texts(model: ModelProto) -> Iterator[object]:
    """All texts of a model that the importer uses; protobuf returns bytes for invalid UTF-8."""
    graph = model.graph
    for entry in model.opset_import:
        yield entry.domain
    for value in itertools.chain(graph.input, graph.output):
        yield value.name
        yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
    for tensor in itertools.chain(graph.initializer, (s.values for s in graph.sparse_initializer)):
        yield tensor.name
        yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))
    yield from _texts_of_nodes(graph.node)
    for function in model.functions:
        yield from (function.name, function.domain, function.overload)
        yield from (entry.domain for entry in function.opset_import)
        yield from itertools.chain(function.input, function.output)
        yield from (attribute.name for attribute in function.attribute_proto)
        yield from _texts_of_nodes(function.node)


def _texts_of_nodes(nodes: Iterable[NodeProto]) -> Iterator[object]:
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, node.overload)
        yield from itertools.chain(node.input, node.output)
        yield from (text for a in node.attribute for text in (a.name, a.ref_attr_name))


def opsets(imports: object) -> dict[str, int]:
    """Domain -> opset version for a list of imports, with the default domain as "".

    Raises:
        ImportModelError: if a domain is imported in two versions, or the default domain in an
            unsupported one.
    """
    result: dict[str, int] = {}
    for entry in imports:  # type: ignore[attr-defined]
        domain = default_domain(entry.domain)
        if result.get(domain, entry.version) != entry.version:
            raise broken(f'opset of domain "{entry.domain}" is imported in two versions')
        result[domain] = entry.version
    newest = onnx_opset_version()
    version = result.get("")
    if version is not None and not _OLDEST_OPSET <= version <= newest:
        raise broken(
            "opset version is not supported",
            expected=f"{_OLDEST_OPSET} to {newest}",
            got=version,
        )
    return result


def default_domain(domain: str) -> str:
    """A domain by its canonical name: "" for both spellings of ONNX's own."""
    return "" if domain == "ai.onnx" else domain
