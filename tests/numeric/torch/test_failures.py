"""What torch cannot export: one line that names the module, the line of the user and a way out."""

from __future__ import annotations

import logging
import re
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.errors import ImportModelError, InputError

from .compared import as_torch, normal, torch

nn, Dim = torch.nn, torch.export.Dim


class Outer(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.inner = Inner(function)

    def forward(self, x: Any) -> Any:
        return self.inner(x)


class Inner(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def branch(x: Any) -> Any:
    if x.sum() > 0:
        return x + 1
    return x


def repeated(x: Any) -> Any:
    while not x.abs().max() < 1:
        x = x / 2
    return x


def both(x: Any) -> Any:
    return x + 1 if x.shape[0] > 1 and x.sum() > 0 else x


def parts(x: Any) -> Any:
    return torch.ones(int(x.long().max()), 2).unbind(0)


def times(x: Any) -> Any:
    for i in range(int(x.long().max())):
        x = x + i
    return x


def steps(x: Any) -> Any:
    h = x[0]
    for i in range(x.shape[0]):
        h = h + x[i]
    return h


def rows(x: Any) -> Any:
    return sum(row * 2 for row in x)


def constant(x: Any) -> Any:
    return x + torch.ones(2, 4)


def product(x: Any) -> Any:
    return x @ torch.ones(7, 2)


def through_numpy(x: Any) -> Any:
    return torch.from_numpy(x.numpy() * 2)


N = 'dimension 0 of "x" is to be dynamic, but becomes the number 2'
SCAN = "scan and while_loop of torch._higher_order_ops are loops of any number of steps"
WHERE = "torch.where chooses elements, torch.cond and torch._higher_order_ops.while_loop run code"
FAILING = {
    branch: ("a branch depends on elements of tensors", "if x.sum() > 0:", WHERE),
    repeated: ("a branch depends on elements of tensors", "while not x.abs().max() < 1:", WHERE),
    both: ("a branch depends on elements", "return x + 1 if x.shape[0] > 1 and x.sum()", WHERE),
    parts: ("Could not extract", "return torch.ones(int(x.long().max()), 2).unb", "give sizes"),
    times: ("Could not extract", "for i in range(int(x.long().max())):", SCAN),
    steps: (N, "for i in range(x.shape[0]):", SCAN),
    rows: (N, "return sum(row * 2 for row in x)", SCAN),
    constant: (N, "return x + torch.ones(2, 4)", "leave the dimension out of dynamic_shapes, or"),
    through_numpy: (
        ".numpy() is not supported",
        "return torch.from_numpy(x.numpy",
        "write it with",
    ),
    product: ("a and b must have same reduction dim", "return x @ torch.ones(7, 2)", None),
}


@pytest.mark.parametrize("function", FAILING, ids=lambda function: function.__name__)
def test_module_line_and_hint(function: Any, capfd: Any) -> None:
    size = Dim.DYNAMIC if function is rows else Dim("n")
    fact, line, hint = FAILING[function]
    with pytest.raises(ImportModelError) as caught:
        sw.from_torch(Outer(function).eval(), (normal(2, 4),), dynamic_shapes=({0: size},))
    text = str(caught.value)
    assert text.startswith(f"from_torch: torch cannot export the module: {fact}")
    assert re.search(rf'\(module "inner", test_failures\.py:\d+: {re.escape(line)}', text)
    assert text.endswith(")") if hint is None else f"; {hint}" in text
    assert "\n" not in text
    assert caught.value.__cause__ is not None
    printed = capfd.readouterr()
    assert not printed.out
    assert not printed.err


def test_a_result_that_is_a_string() -> None:
    with pytest.raises(ImportModelError, match=r"'mean' as a result; .*: tensors and numbers"):
        sw.from_torch(lambda x: ("mean", x.mean()), (normal(2, 4),))


def test_the_log_of_torch_is_a_note() -> None:
    with pytest.raises(ImportModelError) as caught:
        sw.from_torch(Outer(product).eval(), (normal(2, 4),))
    (note,) = caught.value.__notes__
    assert note.startswith("torch has logged:\nfailed while attempting to run meta for aten.mm")
    # Other handlers are as before.
    assert not any(handler.filters for handler in logging.getLogger("torch").handlers)


@pytest.mark.parametrize("size", [Dim("n"), Dim.DYNAMIC])
def test_a_dynamic_size_that_is_1_in_the_example(size: Any) -> None:
    text = "; torch takes a size of 1 to be always 1: give an example with 2 or more"
    with pytest.raises(ImportModelError, match=text):
        sw.from_torch(torch.sin, (normal(1, 4),), dynamic_shapes=(({0: size},),))


def halves(x: Any) -> Any:
    return x.reshape(x.shape[0] // 2, 2, 5).sum(1)


def test_a_size_that_has_to_be_even(all_tests: bool) -> None:
    args = (normal(6, 5),)
    text = r"\(h\); torch suggests .*, h = 2\*_h; Dim\.DYNAMIC takes each size that fits, which"
    with pytest.raises(ImportModelError, match=text):
        sw.from_torch(halves, args, dynamic_shapes=({0: Dim("h")},))
    for size in (2 * Dim("k"), Dim.DYNAMIC, Dim.AUTO):
        module = sw.from_torch(halves, args, dynamic_shapes=({0: size},))
        exe = sw.compile(module) if all_tests or size is Dim.DYNAMIC else None
        for height in (8, 2, 0):
            x = normal(height, 5)
            found = (exe or module.run_reference)(x)
            np.testing.assert_allclose(found, halves(x).numpy(), rtol=1e-6)
        if exe is None:
            continue
        with pytest.raises(InputError, match="size x_0 is not divisible, expected a multiple of 2"):
            exe(normal(7, 5))


class Pairs(nn.Module):
    """Sizes that follow from others: 2 k + 1 of k."""

    def forward(self, x: Any, y: Any) -> Any:
        return (x[1:].reshape(2, -1) + y, x * 2)


@pytest.mark.parametrize("known", [True, False])
def test_sizes_that_follow_from_another(known: bool) -> None:
    k = Dim("k")
    shapes = ({0: 2 * k + 1}, {0: k}) if known else ({0: 2 * k + 1}, {0: Dim.AUTO})
    exe = as_torch(Pairs(), (normal(7), normal(3)), shapes, [(normal(9), normal(4))])
    for x, y in ((normal(8), normal(3)), (normal(9), normal(3))):
        with pytest.raises(InputError):
            exe(x, y)


def test_a_number_that_is_no_size() -> None:
    text = "no integer as a number of Python; closest supported: the tensor itself, without float"
    with pytest.raises(ImportModelError, match=text):
        sw.from_torch(lambda x: x * float(x.max()), (normal(3),))
