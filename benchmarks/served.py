"""The application that `serving.py` starts: a model behind HTTP, with FastAPI.

    SERVED=stepwell,MLP,model.stepwell,pool uvicorn served:application --factory

The variable has the run time, the model, its file, and "loop" for calls in the event loop or "pool"
for calls in FastAPI's pool of threads. A request to `/predict` has arrays as bytes, one after the
other; the response has those of the result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.concurrency import run_in_threadpool

FEATURES, PIXELS = 32, 784
Call = Callable[..., np.ndarray]


def stepwell(path: str) -> Call:
    import stepwell as sw

    return sw.load(path)


def onnxruntime(path: str) -> Call:
    """A model of ONNX, on one thread for each call."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session: Any = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [spec.name for spec in session.get_inputs()]
    return lambda *inputs: session.run(None, dict(zip(names, inputs, strict=True)))[0]


def nothing(path: str) -> Call:
    """No model: what the server takes by itself."""
    return lambda *inputs: np.zeros((len(inputs[-1]), 10), np.float32)


def pixels(body: bytes) -> list[np.ndarray]:
    return [np.frombuffer(body, np.float32).reshape(-1, PIXELS)]


def graph(body: bytes) -> list[np.ndarray]:
    """The inputs of the GCN: a number of edges, their sources and targets, features."""
    (count,) = np.frombuffer(body, np.int64, 1)
    edges = np.frombuffer(body, np.int64, 2 * count, 8).reshape(2, count)
    return [edges, np.frombuffer(body, np.float32, -1, 8 + 16 * count).reshape(-1, FEATURES)]


RUN_TIMES: Mapping[str, Callable[[str], Call]] = {
    "no model": nothing,
    "stepwell": stepwell,
    "onnxruntime": onnxruntime,
}
INPUTS: Mapping[str, Callable[[bytes], list[np.ndarray]]] = {"MLP": pixels, "GCN": graph}


def application() -> FastAPI:
    run_time, model, path, where = os.environ["SERVED"].split(",")
    call, inputs = RUN_TIMES[run_time](path), INPUTS[model]
    app = FastAPI()

    @app.post("/predict")
    async def answer(request: Request) -> Response:
        arrays = inputs(await request.body())
        y = await run_in_threadpool(call, *arrays) if where == "pool" else call(*arrays)
        return Response(y.tobytes(), media_type="application/octet-stream")

    return app
