"""A perceptron for Fashion-MNIST twice: by the builder, and from ONNX. The results are equal.

python examples/fashion_mnist.py [FOLDER]

The folder, by default that of the variable STEPWELL_DATA, has two files. `fashion_mnist_900.npz`:
images [900, 784] in 0 to 255, and labels. `fashion_mlp_weights.npz`: w0 [128, 784], b0, w1
[10, 128], b1. Without them, `stepwell demo` runs a perceptron on digits that are included.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import stepwell as sw

FOLDER = Path(
    os.environ.get("STEPWELL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)


def load(folder: Path, name: str) -> dict[str, np.ndarray]:
    if not (folder / name).exists():
        raise SystemExit(f"{name} is not in {folder}; give the folder that has it")
    return dict(np.load(folder / name))


def by_hand(w: dict[str, np.ndarray]) -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", ("batch", 784), "f32")
    hidden = b.relu(b.dense(x, w["w0"], bias=w["b0"], name="fc0"), name="relu")
    b.output(b.dense(hidden, w["w1"], bias=w["b1"], name="fc1"), name="y")
    return b.module()


def in_onnx(w: dict[str, np.ndarray]) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Gemm", ["x", "w0", "b0"], ["h"], "fc0", transB=1),
        helper.make_node("Relu", ["h"], ["a"], "relu"),
        helper.make_node("Gemm", ["a", "w1", "b1"], ["y"], "fc1", transB=1),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 784])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 10])
    weights = [numpy_helper.from_array(array, name) for name, array in w.items()]
    return helper.make_model(helper.make_graph(nodes, "mlp", [x], [y], weights))


def main(folder: Path) -> None:
    data, weights = load(folder, "fashion_mnist_900.npz"), load(folder, "fashion_mlp_weights.npz")
    images = data["images"].astype(np.float32) / np.float32(255)
    exes = [sw.compile(m) for m in (by_hand(weights), sw.from_onnx(in_onnx(weights)))]
    print(exes[0].ir("optimized"))

    logits, again = (exe(images) for exe in exes)
    assert np.array_equal(logits, again)
    right = logits.argmax(axis=1) == data["labels"]
    print("the program from ONNX has the same results, bit for bit")
    print(f"accuracy {right.mean():.3f}: {right.sum()} of {right.size} images")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
