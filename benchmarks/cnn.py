"""Convolutional networks for one image, beside the engines that people deploy them with.

Weights are random. Networks are those of ONNX's test data, or written to ONNX or exported by torch
here. Results are compared with those of the peers, within 1e-4 of the largest element; an error is
the largest difference to the same network in double precision, relative to its largest element.
Rounds are interleaved. A ratio is the best peer's time over ours, medians, and minima in
parentheses. Import and compilation are seconds of the processor.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from harness import LeftOutError, Row, Table, difference, leading, timed
from image_models import light, resnet18
from onnx import ModelProto, TensorProto, numpy_helper
from onnx_models import TOLERANCE, compiled
from peers import OF_IMAGES, OURS, Call, torch_call

import stepwell as sw
from stepwell.tools.timing import measure

Loaded = tuple[ModelProto, list[np.ndarray], Any]
"""A network, an image for it, and the module of torch that it was exported from, if any."""


def written(make: Callable[..., ModelProto], *arguments: str) -> Loaded:
    """A network for an image of 224 x 224."""
    image = np.random.default_rng(1).standard_normal((1, 3, 224, 224), np.float32)
    return make(*arguments), [image], None


def exported(file: str, name: str, *sizes: int) -> Loaded:
    """A network made by a function of a module that imports torch."""
    made = getattr(importlib.import_module(file), name)(*sizes)
    return made.proto, made.arrays, made.module


MODELS: dict[str, Callable[[], Loaded]] = {
    "ResNet-18": partial(written, resnet18),
    "ResNet-50": partial(written, light, "resnet50"),
    "MobileNetV2": partial(exported, "mobile_networks", "mobile_net_v2"),
    "MobileNetV3 large": partial(exported, "mobile_networks", "mobile_net_v3"),
    "EfficientNet-B0": partial(exported, "mobile_networks", "efficient_net"),
    "ShuffleNet": partial(written, light, "shufflenet"),
    "SqueezeNet": partial(written, light, "squeezenet"),
    "DenseNet-121": partial(written, light, "densenet121"),
    "Inception v1": partial(written, light, "inception_v1"),
    "Inception v2": partial(written, light, "inception_v2"),
    "AlexNet": partial(written, light, "bvlc_alexnet"),
    "ZFNet": partial(written, light, "zfnet512"),
    "VGG-19": partial(written, light, "vgg19"),
    "U-Net, 256 x 256": partial(exported, "exported_models", "segmenter", 32, 4, 2, 256),
}


def in_double(proto: ModelProto, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The result of a network in double precision, computed in the order that it is written in."""
    double = ModelProto.FromString(proto.SerializeToString())
    for weight in double.graph.initializer:
        if weight.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(weight).astype(np.float64)
            weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    del double.graph.value_info[:]
    for value in [*double.graph.input, *double.graph.output]:
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    exe = sw.compile(sw.from_onnx(double), rounding="kept")
    return leading(exe(*(x.astype(np.float64) for x in arrays)))


def errors(exact: np.ndarray, calls: Mapping[str, Call]) -> Row:
    """The error of our result, and the range of those of the peers."""
    found = {who: difference(leading(call()), exact) for who, call in calls.items()}
    row = {"error": f"{found.pop(OURS):.0e}"}
    return row | {"errors of peers": f"{min(found.values()):.0e} to {max(found.values()):.0e}"}


def run(name: str, make: Callable[[], Loaded], *, threads: int = 1, rounds: int = 9) -> Row:
    """Import, compile and time one network.

    Raises:
        LeftOutError: if what makes the network, or each peer, is not installed.
        SystemExit: if no peer has the same result.
    """
    try:
        proto, arrays, module = make()
    except ModuleNotFoundError as error:
        raise LeftOutError(str(error)) from error
    calls, facts, refused = compiled(proto, arrays, threads, OF_IMAGES)
    if module is not None:
        calls["torch"] = torch_call(module, arrays, threads)
    result = timed(name, calls, threads, TOLERANCE, partial(measure, rounds=rounds))
    facts |= errors(in_double(proto, arrays), {who: calls[who] for who in result.times})
    return replace(result, missing=refused | dict(result.missing)).row(facts)


TABLES = [Table("network", MODELS, run)]
