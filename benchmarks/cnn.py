"""Convolutional networks for one image, beside the engines that people deploy them with.

Weights are random. Networks are those of ONNX's test data, or written to ONNX or exported by torch
here. An error is the largest difference to the same network in double precision, relative to its
largest element. Import and compilation are seconds of the processor.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from harness import Case, Make, Table, arrays_of, run
from image_models import light, resnet18
from onnx import ModelProto, TensorProto, numpy_helper
from peers import OF_IMAGES

import stepwell as sw


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
    return arrays_of(exe(*(x.astype(np.float64) for x in arrays)))[0]


def network(proto: ModelProto, arrays: Sequence[np.ndarray], module: object = None) -> Case:
    """A network, and the module of torch that it was exported from, if any."""
    return Case(
        arrays,
        proto,
        engines=OF_IMAGES,
        torch=(lambda t, x: module(x)) if callable(module) else None,
        tolerance=1e-4,
        exact=lambda: in_double(proto, arrays),
    )


def written(make: Callable[..., ModelProto], *arguments: str) -> Case:
    image = np.random.default_rng(1).standard_normal((1, 3, 224, 224), np.float32)
    return network(make(*arguments), [image])


def exported(file: str, name: str, *sizes: int) -> Case:
    made = getattr(importlib.import_module(file), name)(*sizes)
    return network(made.proto, made.arrays, made.module)


MODELS: dict[str, Make] = {
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
TABLES = [Table("network", MODELS, partial(run, rounds=9))]
