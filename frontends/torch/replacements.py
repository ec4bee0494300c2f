"""Parts of torch-geometric that torch cannot export, and equivalent ones that it can.

They are replaced during an export that would fail otherwise. A replacement is called with all
arguments of the original part by name, defaults included, so that it only lists those that it uses.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from .library import library

_PACKAGE = "torch_geometric"

Part = Callable[..., Any]

_LOCK = threading.RLock()
"""Held while parts are replaced: each context restores what was there before it."""


@contextlib.contextmanager
def exportable_parts() -> Iterator[None]:
    """Replace the parts that cannot be exported within the context, if the package is loaded.

    What is not traced for an export runs the original parts still, such as a model in another
    thread.
    """
    with _LOCK, contextlib.ExitStack() as stack:
        for owner, name, replacement in _replacements():
            _replace(owner, name, replacement, stack)
        yield


def _replace(owner: Any, name: str, replacement: Any, stack: contextlib.ExitStack) -> None:
    """Replace an attribute until the stack is left: an inherited one, by one of the owner's own."""
    if name in vars(owner):
        stack.callback(setattr, owner, name, vars(owner)[name])
    else:
        stack.callback(delattr, owner, name)
    setattr(owner, name, replacement)


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    """Owner, name and replacement of each part that this version of the package has."""
    functional = library().nn.functional
    normalised = functional.batch_norm
    yield functional, "batch_norm", _traced(normalised, _batch_norm(normalised))
    distances = library().functional.cdist
    part = _traced(distances, _distances(distances))
    yield from ((module, name, part) for module, name in _places(distances))
    package = sys.modules.get(_PACKAGE)
    if package is None:
        return
    # Whether a product of segments is used depends on the largest number of edges of a relation.
    if hasattr(backend := getattr(package, "backend", None), "use_segment_matmul"):
        yield backend, "use_segment_matmul", False
    for module, kind, name, replacement in _METHODS:
        owner = getattr(sys.modules.get(f"{_PACKAGE}.{module}"), kind, None)
        original = getattr(owner, name, None)
        if original is not None:
            yield owner, name, _traced(original, replacement(original))
    utilities = sys.modules.get(f"{_PACKAGE}.utils")
    for name, replacement in _FUNCTIONS.items():
        original = getattr(utilities, name, None)
        if original is not None:
            part = _traced(original, replacement(original))
            yield from ((module, alias, part) for module, alias in _places(original))


def _places(function: Part) -> list[tuple[ModuleType, str]]:
    """The loaded modules that have a function, and its names in them."""
    found: list[tuple[ModuleType, str]] = []
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            # Read past `__getattr__`: lazy modules would load their parts, and proxies may fail.
            names = ModuleType.__getattribute__(module, "__dict__")
            found += [(module, name) for name, value in list(names.items()) if value is function]
    return found


def _traced(original: Part, replacement: Part) -> Part:
    """The replacement where TorchDynamo traces an export, and the original part elsewhere."""
    torch = library()
    parameters = inspect.signature(original).parameters.values()
    names = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    defaults = {one.name: one.default for one in parameters if one.default is not one.empty}

    @functools.wraps(original)
    def part(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_dynamo_compiling() and torch.compiler.is_exporting():
            return replacement(**{**defaults, **dict(zip(names, args, strict=False)), **kwargs})
        return original(*args, **kwargs)

    return part


def _batch_norm(original: Part) -> Part:
    """`batch_norm` at inference without a branch on whether a size that is computed is 0."""
    torch = library()

    def batch_norm(training: bool, **given: Any) -> Any:
        if training:
            return original(training=training, **given)
        names = "input", "weight", "bias", "running_mean", "running_var", "momentum", "eps"
        norm = torch.ops.aten._native_batch_norm_legit_no_training.default
        return norm(*[given[name] for name in names])[0]

    return batch_norm


def _distances(_: Part) -> Part:
    """`cdist` as norms of differences, without a branch on whether there are elements."""
    torch = library()

    def cdist(x1: Any, x2: Any, p: float, **_: Any) -> Any:
        return torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)

    return cdist


def _unchecked(_: Part) -> Part:
    """Nothing: whether an index is sorted is known in a call only."""
    return lambda **_: None


def _typed_linear(_: Part) -> Part:
    """`HeteroLinear.forward` without sorting by type: all products, of which one is taken."""

    def forward(self: Any, x: Any, type_vec: Any) -> Any:
        width, count = self.out_channels, self.num_types
        weight = self.weight.transpose(0, 1).reshape(-1, count * width)
        index = type_vec.view(-1, 1, 1).expand(-1, 1, width)
        out = (x @ weight).view(-1, count, width).gather(1, index).squeeze(1)
        return out if self.bias is None else out + self.bias[type_vec]

    return forward


def _relational(original: Part) -> Part:
    """`RGCNConv.forward` with one propagation to each node for each relation, and one product.

    sum_r aggregate_r(x) W_r == [aggregate_1(x), ..., aggregate_R(x)] [W_1; ...; W_R]
    """
    torch = library()

    def forward(self: Any, x: Any, edge_index: Any, edge_type: Any) -> Any:
        left, right = x if isinstance(x, tuple) else (x, x)
        lists = isinstance(edge_index, torch.Tensor) and self.flow == "source_to_target"
        if left is None or not lists or not right.is_floating_point():
            return original(self, x, edge_index, edge_type)
        count, nodes = self.num_relations, right.size(0)
        kinds = torch.arange(count)[edge_type]
        rows = kinds * nodes + edge_index[1]
        size = left.size(0), nodes * count
        h = self.propagate(
            torch.stack([edge_index[0], rows]), x=left, edge_type_ptr=None, size=size
        )
        out = _product_of_relations(self, h, nodes)
        out = out if self.root is None else out + right @ self.root
        return out if self.bias is None else out + self.bias

    return forward


def _product_of_relations(layer: Any, h: Any, nodes: Any) -> Any:
    """What the relations of each node give, times their weights, summed."""
    weight, count, width = layer.weight, layer.num_relations, layer.out_channels
    if layer.num_blocks is None:
        if layer.num_bases is not None:
            weight = layer.comp @ weight.view(layer.num_bases, -1)
        parts = h.view(count, nodes, -1).transpose(0, 1)
        return parts.reshape(nodes, -1) @ weight.reshape(-1, width)
    blocks, inputs, outputs = weight.shape[1:]
    parts = h.view(count, nodes, blocks, inputs).permute(2, 1, 0, 3)
    products = parts.reshape(blocks, nodes, -1) @ weight.transpose(0, 1).reshape(
        blocks, -1, outputs
    )
    return products.transpose(0, 1).reshape(nodes, width)


def _dense_batch(original: Part) -> Part:
    """`to_dense_batch`; sizes that are not given are those that torch assumes of its inputs."""
    torch = library()

    def to_dense_batch(
        x: Any, batch: Any, fill_value: Any, max_num_nodes: Any, batch_size: Any
    ) -> Any:
        if batch is None or max_num_nodes is not None:
            return original(x, batch, fill_value, max_num_nodes, batch_size)
        if batch_size is None:
            batch_size = int(batch.max()) + 1
            torch._check(batch_size >= 2)
        counts = batch.new_zeros(batch_size).scatter_add_(0, batch, torch.ones_like(batch))
        most = int(counts.max())
        torch._check(most >= 2)
        before = counts.cumsum(0) - counts
        places = torch.arange(x.size(0)) - before[batch] + batch * most
        dense = x.new_zeros((batch_size * most, *x.shape[1:])) + fill_value
        filled = torch.zeros(batch_size * most, dtype=torch.bool)
        dense = dense.to(x.dtype).index_copy(0, places, x)
        filled = filled.index_fill(0, places, True)
        return dense.view(batch_size, most, *x.shape[1:]), filled.view(batch_size, most)

    return to_dense_batch


def _counted(original: Part) -> Part:
    """`scatter` whose index has elements, so that there is no branch on a size that is computed.

    Where it has none, the largest one counts as -1, and the result has no slices. The size of the
    result is one that torch assumes of its inputs.
    """
    torch = library()

    def scatter(index: Any, dim_size: Any, **others: Any) -> Any:
        if dim_size is None:
            torch._check(index.numel() > 0)
            dim_size = int(index.max()) + 1
            torch._check(dim_size >= 2)
        return original(index=index, dim_size=dim_size, **others)

    return scatter


def _sized(original: Part) -> Part:
    """`Aggregation.__call__`, with a number of results as that of `scatter`."""
    torch = library()

    def call(self: Any, index: Any, ptr: Any, dim_size: Any, **others: Any) -> Any:
        if dim_size is None and index is not None and ptr is None:
            dim_size = int(index.max()) + 1
            torch._check(dim_size >= 2)
        return original(self, index=index, ptr=ptr, dim_size=dim_size, **others)

    return call


def _sorting(_: Part) -> Part:
    """`SortAggregation.forward` with k rows of padding for each graph, so that there are enough."""
    torch = library()

    def forward(self: Any, x: Any, **others: Any) -> Any:
        fill = x.min() - 1
        rows, _ = self.to_dense_batch(x, fill_value=fill, **others)
        batch, _, width = rows.shape
        rows = torch.cat([rows, fill.expand(batch, self.k, width)], 1)
        order = torch.sort(rows[:, :, -1], dim=-1, descending=True, stable=True).indices
        order = order.narrow(1, 0, self.k)
        rows = rows.gather(1, order.unsqueeze(-1).expand(-1, -1, width))
        return rows.masked_fill(rows == fill, 0).view(batch, self.k * width)

    return forward


def _quantiles(original: Part) -> Part:
    """`QuantileAggregation.forward` with as many counts as there are to be results."""
    torch = library()

    def forward(self: Any, x: Any, index: Any, ptr: Any, dim_size: Any, dim: int) -> Any:
        if dim_size is None or index is None:
            return original(self, x, index, ptr, dim_size, dim)
        dim = dim % x.dim()
        count = index.new_zeros(dim_size).scatter_add(0, index, torch.ones_like(index))
        first = (count.cumsum(0) - count).clamp(max=x.size(dim) - 1)
        # Where there is no element, the place has no meaning, but it exists.
        place = (self.q * (count - 1) + first).t().reshape(-1).clamp(min=0)
        wide = [-1 if axis == dim else 1 for axis in range(x.dim())]
        x, order = torch.sort(x, dim=dim)
        group = index.view(wide).expand_as(x).gather(dim, order)
        x = x.gather(dim, torch.sort(group, dim=dim, stable=True).indices)
        found = _between(x, dim, place, place.frac().view(wide), self.interpolation)
        found = found.unflatten(dim, (dim_size, self.q.numel()))
        empty = (count == 0).view(*wide[: dim + 1], *[1] * (x.dim() - dim))
        found = found.masked_fill(empty, self.fill_value)
        if self.q.numel() == 1:
            return found.squeeze(dim + 1)
        # The results of a graph are one after the other along the next dimension.
        return found.flatten(dim + 1, dim + 2) if found.dim() > dim + 2 else found

    return forward


def _between(x: Any, dim: int, place: Any, fraction: Any, how: str) -> Any:
    """The elements at places along a dimension that may be between two."""
    nearest = {"lower": "floor", "higher": "ceil", "nearest": "round"}
    if how in nearest:
        return x.index_select(dim, getattr(place, nearest[how])().long())
    low, high = (x.index_select(dim, part.long()) for part in (place.floor(), place.ceil()))
    return low + (high - low) * fraction if how == "linear" else 0.5 * low + 0.5 * high


_METHODS: tuple[tuple[str, str, str, Callable[[Part], Part]], ...] = (
    ("nn", "RGCNConv", "forward", _relational),
    ("nn", "HeteroLinear", "forward", _typed_linear),
    ("nn.aggr", "Aggregation", "__call__", _sized),
    ("nn.aggr", "Aggregation", "assert_sorted_index", _unchecked),
    ("nn.aggr", "QuantileAggregation", "forward", _quantiles),
    ("nn.aggr", "SortAggregation", "forward", _sorting),
)
"""The module, the class and the name of each method, and its replacement."""

_FUNCTIONS: Mapping[str, Callable[[Part], Part]] = {
    "to_dense_batch": _dense_batch,
    "scatter": _counted,
}
"""The replacements of functions of `torch_geometric.utils`, wherever they are imported."""
