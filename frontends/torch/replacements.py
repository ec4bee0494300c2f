"""Parts of torch-geometric that torch cannot export, and equivalent ones that it can.

They are replaced during an export that would fail otherwise.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .library import library

_PACKAGE = "torch_geometric"

Part = Callable[..., Any]


@contextlib.contextmanager
def exportable_parts() -> Iterator[None]:
    """Replace the parts that cannot be exported within the context, if the package is loaded."""
    with contextlib.ExitStack() as stack:
        for owner, name, replacement in _replacements():
            original = getattr(owner, name)
            stack.callback(setattr, owner, name, original)
            setattr(owner, name, replacement(original) if callable(original) else replacement)
        yield


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    """Owner, name and replacement of each part: a value, or what makes it of the original one."""
    package = sys.modules.get(_PACKAGE)
    if package is None:
        return
    nn, aggregations = sys.modules[f"{_PACKAGE}.nn"], sys.modules[f"{_PACKAGE}.nn.aggr"]
    # Whether a product of segments is used depends on the largest number of edges of a relation.
    yield package.backend, "use_segment_matmul", False
    yield nn.RGCNConv, "forward", _relational
    yield nn.HeteroLinear, "forward", lambda _: _typed_linear
    yield aggregations.Aggregation, "assert_sorted_index", lambda _: _unchecked
    yield aggregations.SortAggregation, "forward", _sorting
    modules = [m for name, m in sys.modules.items() if name.startswith(f"{_PACKAGE}.")]
    for name, replacement in (("to_dense_batch", _dense_batch), ("scatter", _counted)):
        function = getattr(package.utils, name)
        for module in modules:
            if vars(module).get(name) is function:
                yield module, name, replacement


def _unchecked(self: Any, index: Any) -> None:
    """Nothing: whether an index is sorted is known in a call only."""


def _typed_linear(self: Any, x: Any, type_vec: Any) -> Any:
    """`HeteroLinear.forward` without sorting by type: all products, of which one is taken."""
    width, count = self.out_channels, self.num_types
    weight = self.weight.transpose(0, 1).reshape(-1, count * width)
    index = type_vec.view(-1, 1, 1).expand(-1, 1, width)
    out = (x @ weight).view(-1, count, width).gather(1, index).squeeze(1)
    return out if self.bias is None else out + self.bias[type_vec]


def _relational(original: Part) -> Part:
    """`RGCNConv.forward` with one propagation to each relation of each node, and one product.

    sum_r aggregate_r(x) W_r == [aggregate_1(x), ..., aggregate_R(x)] [W_1; ...; W_R]
    """
    torch = library()

    def forward(self: Any, x: Any, edge_index: Any, edge_type: Any = None) -> Any:
        left, right = x if isinstance(x, tuple) else (x, x)
        lists = isinstance(edge_index, torch.Tensor) and self.flow == "source_to_target"
        if left is None or not lists or not right.is_floating_point():
            return original(self, x, edge_index, edge_type)
        count, nodes = self.num_relations, right.size(0)
        kinds = torch.arange(count)[edge_type]
        rows = edge_index[1] * count + kinds
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
        return h.view(nodes, -1) @ weight.reshape(-1, width)
    blocks, inputs, outputs = weight.shape[1:]
    parts = h.view(nodes, count, blocks, inputs).permute(2, 0, 1, 3)
    products = parts.reshape(blocks, nodes, -1) @ weight.transpose(0, 1).reshape(
        blocks, -1, outputs
    )
    return products.transpose(0, 1).reshape(nodes, width)


def _dense_batch(original: Part) -> Part:
    """`to_dense_batch` whose sizes, if they are not given, are what torch assumes of inputs."""
    torch = library()

    def to_dense_batch(
        x: Any,
        batch: Any = None,
        fill_value: Any = 0.0,
        max_num_nodes: Any = None,
        batch_size: Any = None,
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

    Where it has none, the largest one counts as -1, and the result has no slices.
    """
    torch = library()

    def scatter(
        src: Any, index: Any, dim: int = 0, dim_size: Any = None, reduce: str = "sum"
    ) -> Any:
        if dim_size is None:
            torch._check(index.numel() > 0)
            dim_size = int(index.max()) + 1
        return original(src, index, dim, dim_size, reduce)

    return scatter


def _sorting(_: Part) -> Part:
    """`SortAggregation.forward` with k more rows for each graph, so that there are enough."""
    torch = library()

    def forward(
        self: Any,
        x: Any,
        index: Any = None,
        ptr: Any = None,
        dim_size: Any = None,
        dim: int = -2,
        max_num_elements: Any = None,
    ) -> Any:
        fill = x.min() - 1
        rows, _ = self.to_dense_batch(x, index, ptr, dim_size, dim, fill, max_num_elements)
        batch, _, width = rows.shape
        rows = torch.cat([rows, fill.expand(batch, self.k, width)], 1)
        order = torch.sort(rows[:, :, -1], dim=-1, descending=True, stable=True).indices
        order = order.narrow(1, 0, self.k)
        rows = rows.gather(1, order.unsqueeze(-1).expand(-1, -1, width))
        return rows.masked_fill(rows == fill, 0).view(batch, self.k * width)

    return forward
