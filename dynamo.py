"""The backend of `torch.compile`: ``torch.compile(model, backend="stepwell")``.

torch's own compiler traces the program of the user into graphs, checks before each call that a
graph still holds, and makes each a function of its weights and inputs (AOTAutograd). What
`from_torch` can read of such a graph is compiled; the other nodes stay with torch.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from .api.compiler import compile
from .core.errors import InputError, StepwellError, explain
from .core.logs import logger
from .frontends.torch.dtypes import array_of
from .frontends.torch.graphs import TorchGraph, read_graph
from .frontends.torch.joint import decompositions, index_buffers, partition, static_inputs
from .frontends.torch.ops.random import is_seed
from .frontends.torch.partitions import divided
from .frontends.torch.places import described
from .frontends.torch.results import allow_any_strides, results_of

LOG = logger("torch")
"""Names the nodes that stay with torch, and the weights that change."""

_MOST_BINDINGS = 4
"""Weights that change more often are taken as inputs."""

_FORWARDED = ("threads", "opt_level", "rounding")


def stepwell(
    graph: Any,
    inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    **others: Any,
) -> Callable[..., Any]:
    """Compile a graph of `torch.compile`; torch calls this.

    Args:
        graph: the `torch.fx.GraphModule`.
        inputs: its inputs, as fake tensors and symbolic sizes.
        mode: must be None or "default".
        options: ``threads``, ``opt_level`` and ``rounding`` as `stepwell.compile` takes them, and
            ``freezing``, whether weights are constants of programs without gradients until they
            change. See `docs/torch.md`.
        others: has no meaning here.

    Raises:
        InputError: if the mode or an option is unknown.
    """
    chosen = dict(options or {})
    freezing = chosen.pop("freezing", True)
    if mode not in (None, "default"):
        raise InputError(explain("torch.compile", "wrong mode", expected="None", got=f'"{mode}"'))
    for name in chosen:
        if name not in _FORWARDED:
            expected = ", ".join((*_FORWARDED, "freezing"))
            raise InputError(
                explain("torch.compile", "unknown option", expected=expected, got=f'"{name}"')
            )
    common = importlib.import_module("torch._dynamo.backends.common")
    names = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
    own = _Graphs(chosen, names, bool(freezing))
    backend = common.aot_autograd(
        fw_compiler=own.results,
        bw_compiler=own.gradients,
        inference_compiler=own.inference,
        partition_fn=partition,
        decompositions=decompositions(),
    )
    attention = importlib.import_module("torch.nn.attention")
    # Attention as single operators, of which torch knows the gradients.
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        return backend(graph, inputs)


class _Graphs:
    """Compiles the graphs that AOTAutograd makes of one graph of torch, in core ATen.

    Args:
        options: those of `stepwell.compile`.
        names: the names of the inputs in the graph of torch.
        freezing: whether weights may be constants.
    """

    def __init__(self, options: Mapping[str, Any], names: Sequence[str], freezing: bool) -> None:
        self.options, self.names, self.freezing = options, names, freezing
        self._indices: set[str] = set()
        """The names of the buffers of indices in the graphs of results and of gradients."""

    def inference(self, graph: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        """A graph without gradients, whose weights are constants until they change."""
        nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
        return self._compiled(graph, {nodes[number].name for number in static_inputs()})

    def results(self, graph: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        """A graph with gradients; weights change in each step, but buffers of indices do not."""
        self._indices = index_buffers(graph, static_inputs())
        return self._compiled(graph, self._indices)

    def gradients(self, graph: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        """The graph of the gradients, which has the names of the graph of the results."""
        allow_any_strides(results_of(graph.graph))
        return self._compiled(graph, self._indices)

    def _compiled(self, graph: Any, constants: Collection[str]) -> Callable[..., Any]:
        """A graph of which compiled programs do what they can."""
        names = _called(graph, self.names)
        split, parts, refused = divided(graph, names)
        _report(graph, refused)
        for node in list(split.graph.nodes):
            part = parts.get(node.target) if node.op == "call_module" else None
            if part is None:
                continue
            operands = enumerate(node.args) if self.freezing else ()
            fixed = [i for i, x in operands if x.name in constants and i in part.inputs]
            run = _Part(getattr(split, node.target), part, fixed, self.options, names)
            delattr(split, node.target)
            # The generated code calls an attribute, which need not be a module.
            split.__dict__[node.target] = run
        split.recompile()
        autograd = importlib.import_module("torch._functorch.aot_autograd")
        return autograd.make_boxed_func(split.forward)


def _called(graph: Any, names: Sequence[str]) -> dict[str, str]:
    """What the user calls the inputs of a graph: torch writes ``l_x_`` for the argument x."""
    own = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
    given = [re.sub(r"^l_(.*?)_*$", r"\1", name) for name in names]
    return dict(zip(own, given, strict=True)) if len(own) == len(given) else {}


def _report(graph: Any, refused: Mapping[str, str]) -> None:
    """Log the nodes that stay with torch; seeds of random numbers always do."""
    nodes = [node for node in graph.graph.nodes if node.op == "call_function"]
    nodes = [node for node in nodes if not is_seed(node)]
    left = [f"  {described(n)}: {refused[n.name]}" for n in nodes if n.name in refused]
    text = "%d of %d nodes stay with torch:\n%s"
    if left:
        LOG.warning(text, len(left), len(nodes), "\n".join(left))


class _Part:
    """A part of a graph as a function of tensors of torch.

    Weights are constants of the compiled program, which is bound to their memory and version: it
    is compiled at the first call, and again where these differ. It holds the memory, so that no
    other tensor gets the same address. After some changes the weights become inputs for good.
    """

    def __init__(
        self,
        graph: Any,
        part: TorchGraph,
        weights: Sequence[int],
        options: Mapping[str, Any],
        names: Mapping[str, str],
    ) -> None:
        self.graph = graph
        self.names = names
        self.weights = weights
        self.options = options
        self.bindings = 0
        self.returns_tuple = isinstance(graph.graph.output_node().args[0], (tuple, list))
        self.bound: tuple[Any, Any, Callable[..., Any]] | None = None
        if not weights:
            self.bound = None, None, self._program(part)

    def __call__(self, *args: Any) -> Any:
        bound = self.bound
        if bound is None:
            bound = self._bind(self._key(args), args)
        elif self.weights and (key := self._key(args)) != bound[0]:
            bound = self._bind(key, args)
        return bound[2](*args)

    def _key(self, args: Sequence[Any]) -> Any:
        """What changes when a weight does; None if that cannot be known."""
        try:
            return [(args[i].data_ptr(), args[i]._version) for i in self.weights]
        except RuntimeError:
            return None  # tensors made in inference mode have no version

    def _bind(self, key: Any, args: Sequence[Any]) -> tuple[Any, Any, Callable[..., Any]]:
        """The program for weights, with what keeps their memory."""
        self.bindings += 1
        if key is not None and self.bindings <= _MOST_BINDINGS:
            held = {i: args[i].detach() for i in self.weights}
            self.bound = key, held, self._program(read_graph(self.graph, held, self.names))
            return self.bound
        if key is not None:
            LOG.warning("weights have changed %d times and become inputs", _MOST_BINDINGS)
        self.bound = None, None, self._program(read_graph(self.graph, names=self.names))
        self.weights = ()
        return self.bound

    def _program(self, part: TorchGraph) -> Callable[..., Any]:
        """The compiled program; the graph itself if it cannot be compiled."""
        try:
            if part.module is None:
                raise StepwellError("; ".join(part.problems.values()))
            if all(isinstance(result, int) for result in part.results):
                return lambda *args: part.results if self.returns_tuple else part.results[0]
            exe = compile(part.module, **self.options)
        except StepwellError as error:
            LOG.warning(
                "a part of %d nodes stays with torch: %s", len(self.graph.graph.nodes), error
            )
            return self.graph
        # A function from the tensors of a part of a graph to its results.
        inputs = part.inputs
        numbers = [x if isinstance(x, int) else None for x in part.results]
        makers = [(i, x.maker) for i, x in enumerate(part.results) if not isinstance(x, int)]

        def call(*args: Any) -> Any:
            found = exe(*[_array(args[i]) for i in inputs])
            arrays = found if len(makers) > 1 else (found,)
            results: list[Any] = numbers.copy()
            for (i, make), array in zip(makers, arrays, strict=True):
                results[i] = make(array)
            return tuple(results) if self.returns_tuple else results[0]

        return call


def _array(tensor: Any) -> np.ndarray:
    """The elements of a tensor of a supported type."""
    try:
        return tensor.detach().numpy()
    except (RuntimeError, TypeError):
        return array_of(tensor, "an input")
