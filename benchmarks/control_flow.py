"""A condition and loops of 1,000 iterations around small kernels, beside onnxruntime and PyTorch.

What control flow costs above the kernels is the difference to a program of one iteration alone. A
loop in machine code calls both; these are minima, since the difference is small. Calls from Python
are medians of interleaved rounds; a ratio is the best peer's time over ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from call_boundary import kernels
from harness import Row, Table, timed
from onnx import ModelProto, parser
from peers import OURS, Call, in_onnx, in_torch

import stepwell as sw
from stepwell.tools.timing import ROUNDS, measure

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
        torch: the same in PyTorch, given the module and the inputs.
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
    def run(t: Any, x: Any, w: Any, p: Any, n: Any) -> Any:
        h = x
        for _ in range(ITERATIONS):
            h = step(h, x, w)
        return h

    return run


def _while(t: Any, x: Any, w: Any, p: Any, n: Any) -> Any:
    h, i = x, 0
    while i < ITERATIONS and bool(h[0] < n):
        h, i = _add(h, x, w), i + 1
    return h


def _scan(t: Any, x: Any, w: Any, p: Any, n: Any) -> Any:
    h, rows = x, list[Any]()
    for _ in range(ITERATIONS):
        rows.append(h)
        h = _add(h, x, w)
    return h, t.stack(rows)


def _chosen(t: Any, x: Any, w: Any, p: Any, n: Any) -> Any:
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
        lambda t, x, w, p, n: _add(x, x, w) if bool(p) else x - w,
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


def run(name: str, flow: Flow, *, threads: int = 1, rounds: int = ROUNDS) -> Row:
    """Time one case: calls, and kernels with and without control flow in machine code.

    Raises:
        LeftOutError: if no peer is installed.
        SystemExit: if none has the same result.
    """
    arrays, model = flow.arrays(), _parsed(flow.model)
    exe, step = (
        sw.compile(sw.from_onnx(proto), threads=threads) for proto in (model, _parsed(flow.step))
    )
    calls: dict[str, Call] = {OURS: lambda: exe(*arrays)}
    calls |= in_onnx(model, arrays, threads) | in_torch(flow.torch, arrays, threads)
    result = timed(name, calls, threads, measured=partial(measure, rounds=rounds))
    count = max(1, REPEAT // flow.iterations)
    # The kernels write to the results of the last calls, which have to be there still.
    results = exe(*arrays), step(*arrays)
    found = measure({"whole": kernels(exe, count), "step": kernels(step, REPEAT)}, rounds=rounds)
    del results
    whole = found["whole"].minimum / count / flow.iterations
    alone = found["step"].minimum / REPEAT
    seconds = {"iteration": whole, "kernels": alone, "above": whole - alone}
    facts = {title: f"{value * 1e9:.0f} ns" for title, value in seconds.items()}
    return result.row(facts, goal=None)


TABLES = [Table("case", FLOWS, run)]
