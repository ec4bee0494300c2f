"""Deployment: an ONNX model becomes a file that loads at once, and is checked where it runs."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

import stepwell as sw

w = np.random.default_rng(0).standard_normal((16, 4), np.float32)
kinds = [helper.make_tensor_value_info(n, 1, ["batch", k]) for n, k in (("x", 16), ("y", 4))]
nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Softmax", ["h"], ["y"])]
weights = [numpy_helper.from_array(w, "w")]
graph = helper.make_graph(nodes, "m", [kinds[0]], [kinds[1]], weights)
onnx.save(helper.make_model(graph), "m.onnx")

module = sw.from_onnx("m.onnx")
sw.compile(module).save("m.stepwell")
exe = sw.load("m.stepwell")  # neither LLVM nor onnx is needed from here on
print(exe.verify())
result = exe.call_named(x=np.ones((3, 16), np.float32))["y"]
try:
    exe(np.ones((3, 15), np.float32))
except sw.InputError as error:
    print("refused:", error)
print("probabilities sum to", result.sum(1))
