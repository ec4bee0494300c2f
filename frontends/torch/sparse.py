"""Sparse matrices that a model takes.

torch cannot export sparse tensors of symbolic sizes. While a module is exported, a dense tensor of
the same sizes stands for such an argument, and the module is given a `MatrixTensor` of it: products
with that are an operator of their own, `stepwell::sparse_mm`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .library import library

_SCHEMA = "sparse_mm(Tensor a, Tensor x, str reduce) -> Tensor"
_PRODUCTS = ("mm", "matmul", "__matmul__", "_sparse_mm", "sparse_mm", "smm", "spmm")


def sparse_arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[int, Any]:
    """The layouts of the sparse arguments, by their position among all of them."""
    leaves, _ = library().utils._pytree.tree_flatten((tuple(args), dict(kwargs)))
    return {number: leaf.layout for number, leaf in enumerate(leaves) if _is_sparse(leaf)}


def _is_sparse(value: Any) -> bool:
    return str(getattr(value, "layout", "")).startswith("torch.sparse")


def stand_ins(values: Any) -> Any:
    """Arguments with dense tensors in the place of sparse ones, which take no memory.

    An `EdgeIndex` of torch-geometric is the tensor that it holds.
    """
    torch = library()

    def stand_in(value: Any) -> Any:
        if hasattr(value, "as_tensor"):
            return value.as_tensor()
        if not _is_sparse(value):
            return value
        return torch.zeros((), dtype=value.dtype).expand(value.shape)

    return torch.utils._pytree.tree_map(stand_in, values)


@contextlib.contextmanager
def taking_matrices(
    module: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None
) -> Iterator[None]:
    """Within the context, a module takes stand-ins for its sparse arguments."""
    tree = library().utils._pytree
    layouts = sparse_arguments(args, kwargs or {})
    if not layouts:
        yield
        return
    matrix = _matrix()

    def hook(_: Any, args: Any, kwargs: Any) -> Any:
        leaves, spec = tree.tree_flatten((args, kwargs))
        for number, layout in layouts.items():
            leaves[number] = matrix.of(leaves[number], layout)
        return tree.tree_unflatten(leaves, spec)

    handle = module.register_forward_pre_hook(hook, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


@functools.cache
def _matrix() -> Any:
    """The class of tensors that models get for sparse arguments."""
    torch = library()
    _define()

    class MatrixTensor(torch.Tensor):
        """A sparse matrix, of which `held` has the sizes and the type."""

        held: Any
        kind: Any

        @staticmethod
        def of(held: Any, kind: Any) -> MatrixTensor:
            made = torch.Tensor._make_wrapper_subclass(MatrixTensor, held.shape, dtype=held.dtype)
            made.held, made.kind = held, kind
            return made

        @property
        def layout(self) -> Any:
            return self.kind

        @property
        def is_sparse(self) -> bool:
            return self.kind is torch.sparse_coo

        @property
        def is_sparse_csr(self) -> bool:
            return self.kind is torch.sparse_csr

        @property
        def shape(self) -> Any:
            return self.held.shape

        def size(self, dim: int | None = None) -> Any:
            return self.held.shape if dim is None else self.held.shape[dim]

        def coalesce(self) -> MatrixTensor:
            return self

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            return _called(func, args, kwargs or {})

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            return _called(func, args, kwargs or {})

    return MatrixTensor


def _called(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A product with a matrix, or what is known of it.

    Raises:
        NotImplementedError: for other functions.
    """
    name = getattr(function, "__name__", str(function))
    if name in _PRODUCTS and len(args) in (2, 3) and isinstance(args[0], _matrix()):
        reduce = args[2] if len(args) == 3 else kwargs.get("reduce", "sum")
        return library().ops.stepwell.sparse_mm(args[0].held, args[1], reduce)
    if name in ("dim", "ndimension", "numel") or "__get__" in name:
        return function(args[0].held)
    raise NotImplementedError(f"{name} of a sparse argument, expected a product with a matrix")


@functools.cache
def _define() -> Any:
    """The operator: its schema, and the shape of its result."""
    torch = library()
    defined = torch.library.Library("stepwell", "FRAGMENT")
    defined.define(_SCHEMA)
    torch.library.register_fake("stepwell::sparse_mm", _shape, lib=defined)
    return defined


def _shape(a: Any, x: Any, reduce: str) -> Any:
    torch = library()
    torch._check(x.dim() in (1, 2), lambda: f"a sparse matrix times a tensor of rank {x.dim()}")
    torch._check(a.shape[1] == x.shape[0], lambda: f"a product of {a.shape} and {x.shape}")
    torch._check(a.dtype == x.dtype, lambda: f"a product of {a.dtype} and {x.dtype}")
    return x.new_empty(a.shape[0], *x.shape[1:])
