"""Operators of ATen beside torch, many in one program."""

from __future__ import annotations

import math

import pytest

from .compared import Functions, as_torch, normal, torch

F = torch.nn.functional
N = torch.export.Dim("n")


UNARY = {
    name: getattr(torch, name)
    for name in (
        *("abs", "ceil", "cos", "cosh", "erf", "exp", "exp2", "expm1", "floor", "neg", "round"),
        *("sigmoid", "sign", "sin", "sinh", "square", "tan", "tanh", "trunc", "relu", "selu"),
        *("isnan", "isinf", "isfinite", "reciprocal", "celu"),
        *("acos", "acosh", "asin", "asinh", "atan", "atanh"),
    )
}
POSITIVE = {
    name: getattr(torch, name) for name in ("log", "log10", "log1p", "log2", "rsqrt", "sqrt")
}
ACTIVATIONS = {
    "elu": F.elu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "glu": lambda x: F.glu(x, 1),
    "hardshrink": F.hardshrink,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "hardtanh": F.hardtanh,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "logsigmoid": F.logsigmoid,
    "mish": F.mish,
    "prelu": lambda x: F.prelu(x, torch.tensor([0.3])),
    "relu6": F.relu6,
    "silu": F.silu,
    "softplus": F.softplus,
    "softplus_beta": lambda x: F.softplus(x, 2.0, 1.5),
    "softshrink": F.softshrink,
    "softsign": F.softsign,
    "threshold": lambda x: F.threshold(x, 0.1, -3.0),
    "dropout": lambda x: F.dropout(x, 0.5, False),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "clamp_min": lambda x: x.clamp(min=0.1),
    "clamp_max": lambda x: x.clamp_max(0.1),
}


def test_unary(all_tests: bool) -> None:
    values = torch.tensor([[0.0, -0.0, 1.5, -1.5, 2.5, -0.3], [3.0, -2.0, 1e-4, -1e-4, 0.5, 7.0]])
    as_torch(
        Functions({**UNARY, **ACTIVATIONS}),
        [values],
        [({0: N},)],
        [[normal(3, 6)]],
        compiles=all_tests,
    )
    as_torch(Functions(POSITIVE), [values.abs() + 1e-5], [({0: N},)], [[normal(1, 6).abs() + 1]])


BINARY = {
    "add": lambda a, b, i: a + b,
    "add_alpha": lambda a, b, i: torch.add(a, b, alpha=3),
    "add_mixed": lambda a, b, i: a + i,
    "add_number": lambda a, b, i: i + 1.5,
    "sub": lambda a, b, i: a - b,
    "rsub": lambda a, b, i: 3 - i,
    "mul": lambda a, b, i: a * b * 2,
    "div": lambda a, b, i: a / b,
    "div_integers": lambda a, b, i: i / 2,
    "floor_divide": lambda a, b, i: i // 3,
    "floor_divide_floats": lambda a, b, i: a // 0.3,
    "div_trunc": lambda a, b, i: torch.div(i, 3, rounding_mode="trunc"),
    "div_trunc_floats": lambda a, b, i: torch.div(a, 0.3, rounding_mode="trunc"),
    "remainder": lambda a, b, i: i % 3,
    "remainder_floats": lambda a, b, i: a % 0.75,
    "fmod": lambda a, b, i: torch.fmod(i, 3),
    "fmod_floats": lambda a, b, i: torch.fmod(a, 0.75),
    "pow": lambda a, b, i: a**2,
    "pow_tensor": lambda a, b, i: a.abs() ** b,
    "pow_base": lambda a, b, i: 2.0**a,
    "pow_integers": lambda a, b, i: i**2,
    "maximum": lambda a, b, i: torch.maximum(a, b),
    "minimum": lambda a, b, i: torch.minimum(a, b),
    "atan2": lambda a, b, i: torch.atan2(i - 2.0, b * 8 - a.abs()),
    "clamp_tensors": lambda a, b, i: a.clamp(b - 0.5, b),
    "lerp": lambda a, b, i: torch.lerp(a, b, 0.25),
    "addcmul": lambda a, b, i: torch.addcmul(a, a, b, value=0.5),
    "addcdiv": lambda a, b, i: torch.addcdiv(a, a, b, value=0.5),
    "eq": lambda a, b, i: i == 2,
    "ne": lambda a, b, i: i != 2,
    "lt": lambda a, b, i: a < b,
    "le": lambda a, b, i: a <= i,
    "gt": lambda a, b, i: a > 0,
    "ge": lambda a, b, i: i >= 0.5,
    "logical": lambda a, b, i: (a > 0) & (b > 0) | ~(i > 1) ^ (a < b),
    "logical_and": lambda a, b, i: torch.logical_and(a > 0, i),
    "logical_not": lambda a, b, i: torch.logical_not(i),
    "bitwise_not": lambda a, b, i: ~i,
    "bits": lambda a, b, i: (i & 6) | (i ^ 5) & 3,
    "bits_of_bytes": lambda a, b, i: i.byte() & ~i.byte() | 3,
    "bits_of_truth_values": lambda a, b, i: ((a > 0) ^ True) & (b > 0),
    "shift": lambda a, b, i: (i << 2) + (i >> 1) + (i >> 70) + torch.bitwise_left_shift(1, i),
    "where": lambda a, b, i: torch.where(a > 0, a, b),
    "where_number": lambda a, b, i: torch.where(i > 1, i, 0),
    "masked_fill": lambda a, b, i: a.masked_fill(b > 0, -1.0),
    "to": lambda a, b, i: a.to(torch.int64) + i.to(torch.int32),
    "double": lambda a, b, i: a.double() * 2,
    "bool": lambda a, b, i: i.bool(),
    "true_division_of_size": lambda a, b, i: a / a.shape[0] + a.shape[0],
}


def test_binary(all_tests: bool) -> None:
    args = [normal(5, 4), normal(5, 4) * 0 + 1.25, torch.arange(-10, 10).reshape(5, 4)]
    other = [part[:1] for part in args]
    sizes = [({0: N}, {0: N}, {0: N})]
    as_torch(Functions(BINARY), args, sizes, [other], compiles=all_tests)


def test_binary_of_special_values(all_tests: bool) -> None:
    """Quotients that are just below an integer, signs of zeros, infinities and NaN."""
    numbers = [1.0, 0.3, -1.0, 5.0, 7.5, -0.3, 6.0, 0.0, -0.0, 1e10, math.inf, -math.inf, math.nan]
    a, b = torch.meshgrid(
        torch.tensor(numbers), torch.tensor([*numbers, 0.1, -0.1, 0.2, 2.0]), indexing="ij"
    )
    functions = {
        "floor_divide": lambda a, b: a // b,
        "floor_divide_number": lambda a, b: a // 0.1,
        "sign": lambda a, b: a.sign(),
        "atan2": torch.atan2,
    }
    as_torch(Functions(functions), [a, b], compiles=all_tests)


REDUCTIONS = {
    "sum": lambda x, i: x.sum(),
    "sum_dim": lambda x, i: x.sum(0),
    "sum_dims": lambda x, i: x.sum((0, 2), keepdim=True),
    "sum_bool": lambda x, i: (x > 0).sum(1),
    "sum_integers": lambda x, i: i.sum(1),
    "mean": lambda x, i: x.mean(),
    "mean_dim": lambda x, i: x.mean(0),
    "prod": lambda x, i: x.prod(1),
    "amax": lambda x, i: x.amax(0),
    "amin": lambda x, i: x.amin((1, 2)),
    "max": lambda x, i: x.max(),
    "max_dim": lambda x, i: x.max(1),
    "min_dim": lambda x, i: x.min(2, keepdim=True)[0],
    "argmax": lambda x, i: x.argmax(1),
    "argmin": lambda x, i: x.argmin(-1, keepdim=True),
    "argmax_all": lambda x, i: x.argmax(),
    "any": lambda x, i: (x > 1).any(1),
    "all": lambda x, i: (x > -1).all(),
    "var": lambda x, i: x.var(0),
    "var_biased": lambda x, i: x.var(1, unbiased=False),
    "std": lambda x, i: x.std(2),
    "var_mean": lambda x, i: torch.var_mean(x, 1),
    "logsumexp": lambda x, i: x.logsumexp(1),
    "norm": lambda x, i: x.norm(dim=-1),
    "norm_1": lambda x, i: torch.linalg.vector_norm(x, 1, dim=1),
    "norm_inf": lambda x, i: torch.linalg.vector_norm(x, math.inf, dim=1),
    "norm_3": lambda x, i: torch.linalg.vector_norm(x, 3, dim=(1, 2)),
    "normalize": lambda x, i: F.normalize(x, dim=-1),
    "softmax": lambda x, i: x.softmax(1),
    "softmax_rows": lambda x, i: x.softmax(0),
    "log_softmax": lambda x, i: x.log_softmax(-1),
    "cumsum": lambda x, i: x.cumsum(0),
    "cumsum_integers": lambda x, i: i.cumsum(1),
    "cumprod": lambda x, i: x.cumprod(2),
    "cummax": lambda x, i: x.cummax(1)[0],
    "count_nonzero": lambda x, i: (i != 0).sum(),
}


def test_reductions(all_tests: bool) -> None:
    args = [normal(5, 4, 3), torch.arange(20).reshape(5, 4)]
    others = [[normal(2, 4, 3), args[1][:2]]]
    as_torch(Functions(REDUCTIONS), args, [({0: N}, {0: N})], others, compiles=all_tests)


SHAPES = {
    "view": lambda x: x.view(-1, 12),
    "reshape": lambda x: x.reshape(x.shape[0] * 4, 3),
    "flatten": lambda x: x.flatten(1),
    "flatten_all": lambda x: x.flatten(),
    "unflatten": lambda x: x.flatten(1).unflatten(1, (2, 6)),
    "squeeze": lambda x: x.unsqueeze(1).squeeze(1),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "permute": lambda x: x.permute(2, 0, 1),
    "transpose": lambda x: x.transpose(0, 2),
    "expand": lambda x: x[:, :1].expand(-1, 5, 3),
    "expand_rows": lambda x: x[0].expand(x.shape[0], 2, 4, 3),
    "repeat": lambda x: x.repeat(1, 2, 1),
    "tile": lambda x: x.tile(2, 1, 1),
    "flip": lambda x: x.flip(1, 2),
    "flip_symbolic": lambda x: x.flip(0, 1),
    "roll": lambda x: x.roll(1, 1),
    "roll_symbolic": lambda x: x.roll((-2, 1), (0, 2)),
    "roll_all": lambda x: x.roll(3),
    "cat": lambda x: torch.cat([x, x * 2], 0),
    "cat_columns": lambda x: torch.cat([x, x.new_ones(x.shape[0], 2, 3)], 1),
    "stack": lambda x: torch.stack([x, -x], 1),
    "select": lambda x: x[:, -1],
    "slice": lambda x: x[:, 1:3, ::2],
    "split": lambda x: x.split([1, 3], 1),
    "chunk": lambda x: x.chunk(2, 1),
    "unbind": lambda x: x.unbind(2),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1), value=4.0),
    "pad_reflect": lambda x: F.pad(x, (1, 1), mode="reflect"),
    "pad_replicate": lambda x: F.pad(x, (2, 1), mode="replicate"),
    "movedim": lambda x: x.movedim(0, -1),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "tril": lambda x: x.tril(),
    "triu": lambda x: x.triu(1),
    "full": lambda x: torch.full((x.shape[0], 2), 3.5),
    "zeros": lambda x: torch.zeros(x.shape[0] + 2, 2),
    "arange": lambda x: torch.arange(x.shape[0]),
    "arange_step": lambda x: torch.arange(0, 9, 2, dtype=torch.float32),
    "arange_start": lambda x: torch.arange(3, 3 + x.shape[0]) * 2,
    "full_like": lambda x: torch.full_like(x, 2.0),
    "ones_like": lambda x: torch.ones_like(x[..., 0], dtype=torch.int64),
    "eye": lambda x: torch.eye(3),
    "linspace": lambda x: torch.linspace(0, 1, 5),
    "size": lambda x: x.sum() * x.shape[0],
    "einsum": lambda x: torch.einsum("nij,nkj->nik", x, x),
    "outer": lambda x: torch.outer(x[:, 0, 0], x[0, 0]),
    "meshgrid": lambda x: torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij"),
}


def test_shapes(all_tests: bool) -> None:
    others = [[normal(2, 4, 3)]]
    as_torch(Functions(SHAPES), [normal(5, 4, 3)], [({0: N},)], others, compiles=all_tests)


INDEXED = {
    "index_select": lambda x, i, u: x.index_select(0, i),
    "index": lambda x, i, u: x[i],
    "index_columns": lambda x, i, u: x[:, [2, 0]],
    "index_two": lambda x, i, u: x[i, i % 3],
    "index_matrix": lambda x, i, u: x[torch.stack([i, i])],
    "gather": lambda x, i, u: x.gather(0, i.view(-1, 1).expand(-1, 3)),
    "gather_elements": lambda x, i, u: u.gather(1, (i % 3).view(-1, 1)),
    "scatter_add": lambda x, i, u: x.scatter_add(0, i.view(-1, 1).expand_as(u), u),
    "scatter_add_vector": lambda x, i, u: x[:, 0].scatter_add(0, i, u[:, 0]),
    "scatter_add_to_one": lambda x, i, u: x.scatter_add(0, i[:1].view(1, 1).expand_as(u), u),
    "scatter_amax": lambda x, i, u: x.scatter_reduce(0, i.view(-1, 1).expand_as(u), u, "amax"),
    "scatter_amax_only": lambda x, i, u: x.scatter_reduce(
        0, i.view(-1, 1).expand_as(u), u, "amax", include_self=False
    ),
    "scatter_mean": lambda x, i, u: x.scatter_reduce(
        0, i.view(-1, 1).expand_as(u), u, "mean", include_self=False
    ),
    "scatter_mean_self": lambda x, i, u: x.scatter_reduce(0, i.view(-1, 1).expand_as(u), u, "mean"),
    "scatter_sum_only": lambda x, i, u: x.scatter_reduce(
        0, i.view(-1, 1).expand_as(u), u, "sum", include_self=False
    ),
    "scatter_prod": lambda x, i, u: x.scatter_reduce(0, i.view(-1, 1).expand_as(u), u, "prod"),
    "index_add": lambda x, i, u: x.index_add(0, i, u, alpha=2),
    "index_add_columns": lambda x, i, u: u.t().index_add(1, i, u.t()),
    "index_copy": lambda x, i, u: x.index_copy(0, torch.tensor([1, 0]), x[3:]),
    "index_put": lambda x, i, u: x.index_put((i,), u, accumulate=True),
    "index_put_number": lambda x, i, u: x.index_put((i,), torch.tensor(1.5)),
    "index_put_two": lambda x, i, u: x.index_put((i, i % 3), u[:, 0], accumulate=True),
    "masked_put": lambda x, i, u: torch.where(x > 0, x, 0.5).masked_fill(x > 1, 0),
    "set_rows": lambda x, i, u: torch.cat([x, x]).index_fill(0, i, 2.0),
    "select_scatter": lambda x, i, u: x.select_scatter(u[0], 0, 1),
    "embedding": lambda x, i, u: F.embedding(i, x),
    "one_hot": lambda x, i, u: F.one_hot(i, 6),
    "sort": lambda x, i, u: x.sort(0),
    "sort_descending": lambda x, i, u: x.sort(1, descending=True)[0],
    "argsort": lambda x, i, u: i.argsort(stable=True),
    "topk": lambda x, i, u: x.topk(2, 1),
    "kthvalue": lambda x, i, u: x.kthvalue(2, 1),
    "kthvalue_kept": lambda x, i, u: x.kthvalue(1, 1, keepdim=True),
    "bincount": lambda x, i, u: torch.zeros(6, dtype=torch.int64).scatter_add(
        0, i, torch.ones_like(i)
    ),
    "isin": lambda x, i, u: torch.isin(i, torch.tensor([1, 3])),
    "bucketize": lambda x, i, u: torch.bucketize(x, torch.tensor([-0.5, 0.0, 0.5])),
}


def test_indexed(all_tests: bool) -> None:
    e = torch.export.Dim("e")
    index = torch.tensor([4, 0, 0, 3, 4, 4])
    args = [normal(5, 3), index, normal(6, 3)]
    other = [normal(5, 3), index[:5] % 2, normal(5, 3)]
    as_torch(Functions(INDEXED), args, [(None, {0: e}, {0: e})], [other], compiles=all_tests)


COMPUTED = {
    "nonzero": lambda x, m: m.nonzero(),
    "nonzero_matrix": lambda x, m: (x > 0).nonzero(as_tuple=True),
    "masked": lambda x, m: x[m],
    "masked_columns": lambda x, m: x.t()[:, m] * 2,
    "masked_select": lambda x, m: x.masked_select(x > 0),
    "unique": lambda x, m: torch.unique(m.long(), return_inverse=True, return_counts=True),
    "item": lambda x, m: x.sum() * m.sum(),
}


def test_computed_sizes(all_tests: bool) -> None:
    args = [normal(5, 3), torch.tensor([True, False, True, True, False])]
    none = [normal(2, 3), torch.tensor([False, False])]
    as_torch(Functions(COMPUTED), args, [({0: N}, {0: N})], [none], compiles=all_tests)


PRODUCTS = {
    "mm": lambda a, b: a[0] @ b,
    "matmul": lambda a, b: a @ b,
    "bmm": lambda a, b: torch.bmm(a, a.transpose(1, 2)),
    "mv": lambda a, b: a[0] @ b[:, 0],
    "dot": lambda a, b: a[0, 0] @ b[:, 0],
    "vector": lambda a, b: b[:, 0] @ b,
    "addmm": lambda a, b: torch.addmm(b[0], a[0], b, beta=0.5, alpha=2),
    "baddbmm": lambda a, b: torch.baddbmm(a[:, :, :1], a, a.transpose(1, 2)),
    "linear": lambda a, b: F.linear(a, b.t()),
    "attention": lambda a, b: F.scaled_dot_product_attention(a, a, a),
    "attention_causal": lambda a, b: F.scaled_dot_product_attention(a, a, a, is_causal=True),
    "attention_mask": lambda a, b: F.scaled_dot_product_attention(a, a, a, a @ a.mT > 0),
    "attention_without": lambda a, b: F.scaled_dot_product_attention(
        a, a, a, torch.tensor([[True], [False], [True], [True]]).expand(4, 4)
    ),
    "cosine": lambda a, b: F.cosine_similarity(a, a * 2 + 1, dim=-1),
    "cdist": lambda a, b: torch.cdist(a, a),
    "layer_norm": lambda a, b: F.layer_norm(a, (3,), b[:, 0], b[:, 1]),
    "rms_norm": lambda a, b: F.rms_norm(a, (3,)),
    "group_norm": lambda a, b: F.group_norm(a, 2),
    "instance_norm": lambda a, b: F.instance_norm(a),
    "batch_norm": lambda a, b: F.batch_norm(a, b[0, :4], b[1, :4] ** 2 + 1),
}


def test_products(all_tests: bool) -> None:
    as_torch(
        Functions(PRODUCTS),
        [normal(5, 4, 3), normal(3, 7)],
        [({0: N}, None)],
        [[normal(2, 4, 3), normal(3, 7) + 1]],
        compiles=all_tests,
    )


CONV1, CONV2, SAME = normal(3, 4, 3), normal(6, 2, 3, 3), normal(2, 4, 3, 3)
TRANSPOSED, BIAS6, BIAS2 = normal(4, 2, 3, 3), normal(6), normal(2)
WINDOWS = {
    "max_pool1d": lambda x: F.max_pool1d(x[:, :, 0], 2),
    "max_pool2d": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max_pool_ceil": lambda x: F.max_pool2d(x, 2, ceil_mode=True),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "avg_pool_apart": lambda x: F.avg_pool2d(x, 2, padding=1, count_include_pad=False),
    "avg_pool1d": lambda x: F.avg_pool1d(x[:, :, 0], 2),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
    "adaptive_one": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive_1d": lambda x: F.adaptive_avg_pool1d(x[:, :, 0], 2),
    "conv1d": lambda x: F.conv1d(x[:, :, 0], CONV1, padding=1),
    "conv2d": lambda x: F.conv2d(x, CONV2, BIAS6, (2, 1), 1, groups=2),
    "conv2d_same": lambda x: F.conv2d(x, SAME, padding="same", dilation=2),
    "conv_transpose": lambda x: F.conv_transpose2d(x, TRANSPOSED, BIAS2, 2, 1, 1),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "upsample": lambda x: F.interpolate(x, scale_factor=2),
    "constant_pad": lambda x: F.pad(x, (1, 0, 2, 1)),
}


def test_windows(all_tests: bool) -> None:
    others = [[normal(1, 4, 6, 5)]]
    as_torch(Functions(WINDOWS), [normal(2, 4, 6, 5)], [({0: N},)], others, compiles=all_tests)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_floats(dtype: str) -> None:
    model = torch.nn.Linear(4, 3).to(getattr(torch, dtype))
    x = normal(2, 4).to(getattr(torch, dtype))
    if dtype != "bfloat16":
        as_torch(model, [x])


TRIANGLES = {
    "causal": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "tril": lambda x: (x @ x.transpose(1, 2)).tril(-1),
    "triu": lambda x: x.triu(1),
}


def test_triangles_of_symbolic_sizes(all_tests: bool) -> None:
    given = [normal(2, 5, 4)], [({1: N},)], [[normal(2, 1, 4)]]
    as_torch(Functions(TRIANGLES), *given, compiles=all_tests)
    if not all_tests:
        as_torch(Functions({name: TRIANGLES[name] for name in ("tril", "triu")}), *given)
