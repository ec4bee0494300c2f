"""A condition and loops of 1,000 iterations around small kernels, beside onnxruntime and PyTorch.

    python benchmarks/control_flow.py             # everything, on one thread
    python benchmarks/control_flow.py -t 2        # on two
    python benchmarks/control_flow.py --only scan # some cases

What control flow costs above the kernels is the difference to a program of one iteration alone. A
loop in machine code calls both; these are minima, since the difference is small. Calls from Python
are medians of interleaved rounds; a ratio is the best peer's time over ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from call_boundary import kernels
from onnx import ModelProto, parser
from peers import (
    OURS,
    Call,
    Compared,
    installed,
    library_threads,
    missing,
    onnx_runtime,
    torch_call,
)
from rich.console import Console
from rich.table import Table

import stepwell as sw
from stepwell.tools.timing import Timing, duration, measure

ITERATIONS = 1000
REPEAT = 5000
"""How many times machine code runs the kernels for each measurement, in iterations."""
HEADER = '<ir_version: 9, opset_import: ["" : 18]> agraph'
SMALL = "float[64] x, float[64] w, bool p, int64 n"
LARGE = "float[1,128] x, float[128,128] w, bool p, int64 n"
ADD = "a = Mul(h, w) k = Add(a, x)"
PRODUCT = "a = MatMul(h, w) c = Add(a, x) k = Tanh(c)"


def _body(kind: str, nodes: str, more: str = "again = Identity(more)", row: str = "") -> str:
    stacked = ", float[64] r" if row else ""
    results = f"bool again, {kind} k{stacked}"
    return f"body = step (int64 i, bool more, {kind} h) => ({results}) {{ {more} {nodes} {row} }}"


def _loop(inputs: str, body: str, results: str = "y") -> str:
    kind = inputs.partition(" x,")[0]
    outputs = f"{kind} y" + (", float[m,64] s" if results != "y" else "")
    count = f"most = Constant<value = int64 {{{ITERATIONS}}}>()"
    yes = "yes = Constant<value = bool {1}>()"
    return f"({inputs}) => ({outputs}) {{ {count} {yes} {results} = Loop<{body}>(most, yes, x) }}"


def _one(inputs: str, nodes: str, results: str = "k") -> str:
    kind = inputs.partition(" x,")[0]
    outputs = f"{kind} k" + ("" if results == "k" else ", bool again")
    return f"({inputs}) => ({outputs}) {{ h = Identity(x) {nodes} }}"


@dataclass(frozen=True)
class Flow:
    """A program with control flow.

    Attributes:
        model: the text of its ONNX graph.
        step: that of one iteration alone.
        torch: the same in PyTorch, from the inputs.
        iterations: how many there are.
    """

    model: str
    step: str
    torch: Callable[..., Any]
    iterations: int = ITERATIONS

    def arrays(self) -> tuple[np.ndarray, ...]:
        """The inputs: so small that iterations contract, and roundings do not grow."""
        rng, size = np.random.default_rng(0), 64 if SMALL in self.model else 128
        shape = (size,) if size == 64 else (1, size)
        x = rng.standard_normal(shape, np.float32)
        bound = 0.5 if size == 64 else 0.1
        w = rng.uniform(-bound, bound, shape if size == 64 else (size, size)).astype(np.float32)
        return x, w, np.array(True), np.array(3 * ITERATIONS)


def _parsed(text: str) -> ModelProto:
    return parser.parse_model(f"{HEADER} {text}")


def _branch(name: str, nodes: str) -> str:
    return f"{name} = b () => (float[64] k) {{ {nodes} }}"


def _add(h: Any, x: Any, w: Any) -> Any:
    return h * w + x


def _looped(step: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, w: Any, p: Any, n: Any) -> Any:
        h = x
        for _ in range(ITERATIONS):
            h = step(h, x, w)
        return h

    return run


def _while(x: Any, w: Any, p: Any, n: Any) -> Any:
    h, i = x, 0
    while i < ITERATIONS and bool(h[0] < n):
        h, i = _add(h, x, w), i + 1
    return h


def _scan(x: Any, w: Any, p: Any, n: Any) -> Any:
    import torch

    h, rows = x, list[Any]()
    for _ in range(ITERATIONS):
        rows.append(h)
        h = _add(h, x, w)
    return h, torch.stack(rows)


def _chosen(x: Any, w: Any, p: Any, n: Any) -> Any:
    h = x
    for _ in range(ITERATIONS):
        h = _add(h, x, w) if bool(p) else h - w
    return h


_IF = f"k = If<{_branch('then_branch', ADD)}, {_branch('else_branch', 'k = Sub(h, w)')}>(p)"
_LESS = "f = CastLike(n, x) z = Constant<value_ints = [0]>() e = Gather(k, z) l = Less(e, f) "
_FLAG = _LESS + "again = Squeeze(l)"

FLOWS = {
    "if, 64 numbers": Flow(
        _one(SMALL, _IF),
        _one(SMALL, ADD),
        lambda x, w, p, n: _add(x, x, w) if bool(p) else x - w,
        1,
    ),
    "loop, 64 numbers": Flow(
        _loop(SMALL, _body("float[64]", ADD)), _one(SMALL, ADD), _looped(_add)
    ),
    "loop, 1 x 128 by 128 x 128": Flow(
        _loop(LARGE, _body("float[1,128]", PRODUCT)),
        _one(LARGE, PRODUCT),
        _looped(lambda h, x, w: (h @ w + x).tanh()),
    ),
    "loop with a condition, 64 numbers": Flow(
        _loop(SMALL, _body("float[64]", ADD + " " + _FLAG, "")),
        _one(SMALL, ADD + " " + _FLAG, "k, again"),
        _while,
    ),
    "loop that stacks, 64 numbers": Flow(
        _loop(SMALL, _body("float[64]", ADD, row="r = Identity(h)"), "y, s"),
        _one(SMALL, ADD),
        _scan,
    ),
    "if in a loop, 64 numbers": Flow(
        _loop(SMALL, _body("float[64]", _IF)), _one(SMALL, ADD), _chosen
    ),
}


@dataclass(frozen=True)
class Result(Compared):
    """The times of one case: calls, and kernels with and without control flow in machine code."""

    case: str
    iterations: int
    times: dict[str, Timing]
    whole: float
    alone: float


def run(name: str, flow: Flow, threads: int) -> Result:
    """Time one case.

    Raises:
        SystemExit: if no peer is installed, or the result of one differs.
    """
    arrays, model = flow.arrays(), _parsed(flow.model)
    exe, step = (
        sw.compile(sw.from_onnx(proto), threads=threads) for proto in (model, _parsed(flow.step))
    )
    peers = dict[str, Call]()
    if installed("onnxruntime"):
        peers["onnxruntime"] = onnx_runtime(model.SerializeToString(), list(arrays), threads)
    if installed("torch"):
        peers["torch"] = torch_call(flow.torch, arrays, threads)
    if not peers:
        raise SystemExit(f"{name}: neither onnxruntime nor torch is installed to compare with")
    ours = exe(*arrays)
    first = ours[0] if isinstance(ours, tuple) else ours
    for peer, call in peers.items():
        other = call()
        other = np.asarray(other[0] if isinstance(other, (tuple, list)) else other)
        if not np.allclose(first, other, rtol=1e-4, atol=1e-5):
            raise SystemExit(f"{name}: {peer} has a different result")
    count = max(1, REPEAT // flow.iterations)
    calls: dict[str, Call] = {OURS: lambda: exe(*arrays), **peers}
    with library_threads(threads):
        times = measure(calls)
        # The kernels write to the results of the last calls, which have to be there still.
        results = exe(*arrays), step(*arrays)
        alone = measure({"whole": kernels(exe, count), "step": kernels(step, REPEAT)})
    del results
    whole = alone["whole"].minimum / count / flow.iterations
    return Result(name, flow.iterations, times, whole, alone["step"].minimum / REPEAT)


def table(results: list[Result]) -> Table:
    """The results as a table to read."""
    peers = list(dict.fromkeys(peer for r in results for peer in r.times if peer != OURS))
    view = Table("case", OURS, "iteration", "kernels", "above", *peers, "ratio to best")
    for r in results:
        cells = [duration(r.times[peer].median) if peer in r.times else "" for peer in peers]
        own = (f"{seconds * 1e9:.0f} ns" for seconds in (r.whole, r.alone, r.whole - r.alone))
        view.add_row(r.case, str(r.times[OURS]), *own, *cells, f"{r.ratio:.1f}")
    return view


def main(
    threads: Annotated[int, typer.Option("--threads", "-t", help="threads of each")] = 1,
    only: Annotated[str, typer.Option(help="only the cases with this text in their names")] = "",
) -> None:
    """Print the table."""
    console = Console(width=140)
    chosen = {name: flow for name, flow in FLOWS.items() if only in name}
    if not chosen:
        raise typer.BadParameter(f'no case has "{only}" in its name: {", ".join(FLOWS)}')
    if missing():
        console.print(f"not installed, left out: {', '.join(missing())}")
    console.print(table([run(name, flow, threads) for name, flow in chosen.items()]))


if __name__ == "__main__":
    typer.run(main)
