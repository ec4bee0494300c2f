"""`stepwell demo`: two models of this package, from their weights to machine code.

A graph convolutional network that separates the two sides of Zachary's karate club, and a
multilayer perceptron that reads handwritten digits. `demo_data/README.md` names the sources.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ..core.ir.module import Module
from .timing import duration, measure

DATA = Path(__file__).resolve().parent / "demo_data"
TRAINED_DIGITS = 1297
"""The number of images at the start of digits.npz on which the weights were trained."""
LEADERS = [0, 33]
"""The members of the club whose side was known in training."""


@dataclass(frozen=True)
class DemoCase:
    """One model with data to score it on."""

    name: str
    title: str
    module: Module
    inputs: tuple[Any, ...]
    scored: np.ndarray
    labels: np.ndarray
    numpy: Callable[[], np.ndarray]
    """The same model written by hand in NumPy and SciPy."""

    def right(self, logits: np.ndarray) -> int:
        """The number of scored rows whose largest logit is at their label."""
        return int((logits.argmax(axis=1) == self.labels)[self.scored].sum())


def karate() -> DemoCase:
    """GCNConv 34-16, relu, GCNConv 16-2 on the karate club; features are one-hot."""
    import networkx as nx
    from scipy.sparse import csr_array

    from .. import TensorSpec
    from ..frontends import gnn

    club = nx.karate_club_graph()
    graph = gnn.Graph.from_networkx(club)
    features = np.eye(len(club), dtype=np.float32)
    with np.load(DATA / "karate_gcn.npz") as w:
        w1, b1, w2, b2 = w["w1"], w["b1"], w["w2"], w["b2"]
    model = gnn.Sequential(gnn.GCNConv(w1, b1), gnn.ReLU(), gnn.GCNConv(w2, b2))
    module = model.to_module(graph, features=TensorSpec(features.shape, "f32"))
    loops = graph.to_csr().toarray() + features
    scale = 1 / np.sqrt(loops.sum(axis=1))
    p = csr_array(scale[:, None] * loops * scale[None, :])
    return DemoCase(
        "karate",
        "GCN 34-16-2 on Zachary's karate club",
        module,
        (features,),
        np.delete(np.arange(len(club)), LEADERS),
        np.array([int(side == "Officer") for _, side in club.nodes(data="club")]),
        lambda: p @ (np.maximum(p @ (features @ w1) + b1, 0) @ w2) + b2,
    )


def digits() -> DemoCase:
    """Dense 64-128, relu, dense 128-10 on 8x8 handwritten digits; any batch."""
    from .. import Builder

    with np.load(DATA / "digits_mlp.npz") as w:
        w0, b0, w1, b1 = w["w0"], w["b0"], w["w1"], w["b1"]
    b = Builder("main")
    x = b.input("x", (None, 64), "f32")
    hidden = b.relu(b.dense(x, w0, bias=b0))
    b.output(b.dense(hidden, w1, bias=b1), name="logits")
    with np.load(DATA / "digits.npz") as data:
        images = (data["images"].reshape(-1, 64) / np.float32(16))[TRAINED_DIGITS:]
        labels = data["labels"][TRAINED_DIGITS:]
    return DemoCase(
        "digits",
        f"MLP 64-128-10 on handwritten digits, batch {len(images)}",
        b.module(),
        (images,),
        np.arange(len(images)),
        labels,
        lambda: np.maximum(images @ w0.T + b0, 0) @ w1.T + b1,
    )


def demonstrate(console: Console, save: Path | None) -> None:
    """Compile both models, run them, and print how right and how fast they are."""
    table = Table("model", "right", "compile", "best call", "NumPy/SciPy", "difference")
    titles = []
    for make in (karate, digits):
        with console.status(f"{make.__name__}: compiling and running"):
            case = make()
            row, kernels = _run(case)
        table.add_row(*row)
        titles.append(f"{case.name}: {case.title}; {kernels} kernels")
        if save is not None:
            save.mkdir(parents=True, exist_ok=True)
            case.module.save(save / f"{case.name}.mlir")
    console.print(table)
    for title in titles:
        console.print(title, highlight=False)
    folder = save or Path("models")
    first = "" if save else f"stepwell demo --save {folder}; "
    console.print(
        f"Now try: {first}stepwell explain {folder / 'karate.mlir'}; "
        f"stepwell compile {folder / 'digits.mlir'} --emit scheduled",
        soft_wrap=True,
        highlight=False,
    )


def _run(case: DemoCase) -> tuple[list[str], int]:
    """A row of the table, and the number of kernels."""
    from .. import compile as compile_module

    start = time.perf_counter()
    exe = compile_module(case.module)
    compiled = time.perf_counter() - start
    logits, expected = exe(*case.inputs), case.numpy()
    times = measure({"ours": lambda: exe(*case.inputs), "numpy": case.numpy})
    row = [
        case.name,
        f"{case.right(logits)} of {case.scored.size} ({case.right(logits) / case.scored.size:.1%})",
        duration(compiled),
        duration(times["ours"].minimum),
        duration(times["numpy"].minimum),
        f"{np.abs(logits - expected).max():.1e}",
    ]
    return row, exe.ir("kernels").count("loop.kernel @")
