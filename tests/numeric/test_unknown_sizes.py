"""Compiled programs whose operands have sizes that are known only at run time, 0 among them."""

from __future__ import annotations

import numpy as np
import pytest

import stepwell as sw

from ..harness import close, floats, same


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("axis", [0, 1])
def test_concat(axis: int, level: int) -> None:
    """An operand without elements is not read, not even where another one is selected."""
    b = sw.Builder("main")
    shapes: list[tuple[int | str, ...]] = [("n", 3), ("m", 3)]
    if axis == 1:
        shapes = [shape[::-1] for shape in shapes]
    dtypes = {"f32": "float32", "f16": "float16", "i8": "int8", "i1": "bool"}
    for kind in dtypes:
        values = [b.input(f"x{i}_{kind}", shape, kind) for i, shape in enumerate(shapes)]
        b.output(b.concat(values, axis), name=kind)
    exe = sw.compile(b.module(), threads=1, opt_level=level)
    for sizes in ((0, 5), (5, 0), (0, 0), (1, 19), (17, 33)):
        arrays = [(floats(n, 3) * 50).astype(d) for d in dtypes.values() for n in sizes]
        if axis == 1:
            arrays = [np.ascontiguousarray(array.T) for array in arrays]
        pairs = zip(arrays[::2], arrays[1::2], strict=True)
        for result, pair in zip(exe(*arrays), pairs, strict=True):
            same(result, np.concatenate(pair, axis))


@pytest.mark.parametrize("level", [0, 3])
def test_a_quotient_of_a_product_of_sizes(level: int) -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n", "m"), "f32")
    b.output(b.reshape(b.relu(x), [-1, 4]), name="y")
    module = b.module()
    exe = sw.compile(module, threads=1, opt_level=level)
    assert exe.outputs[0].shape == ("(m*n)//4", 4)
    for shape in ((8, 3), (2, 2), (0, 5), (4, 1)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        for run in (exe, module.run_reference):
            np.testing.assert_array_equal(run(x), x.reshape(-1, 4))
    for run in (exe, module.run_reference):
        with pytest.raises(
            sw.InputError, match=r"size m\*n is not .*, expected a multiple of 4, got 9"
        ):
            run(np.zeros((3, 3), np.float32))


def test_a_quotient_of_a_size_that_the_program_computes() -> None:
    b = sw.Builder("main")
    x = b.input("x", ("n",), "f32")
    places = b.nonzero(x)[0]
    b.output(b.reshape(places, [2, -1]), name="y")
    module = b.module()
    exe = sw.compile(module, threads=1)
    for x in ([0, 1, 0, 2], [1, 1, 1, 1], [0, 0]):
        given = np.array(x, np.float32)
        for run in (exe, module.run_reference, lambda x: exe.run_at("llvm", x)):
            np.testing.assert_array_equal(run(given), np.flatnonzero(given).reshape(2, -1))
    for run in (exe, module.run_reference):
        message = r"size size.0 is not divisible, expected a multiple of 2, got 3"
        with pytest.raises(sw.InputError, match=message):
            run(np.ones(3, np.float32))


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("index", [[2], [-1], [1, 1], 0])
def test_constant_indices_that_are_all_the_same(index: object, level: int) -> None:
    b = sw.Builder()
    x = b.input("x", ("n", 4))
    b.output(b.relu(b.gather(b.exp(x), np.array(index), axis=0)), name="y")
    module = b.module()
    exe = sw.compile(module, threads=1, opt_level=level)
    x = np.arange(12, dtype=np.float32).reshape(3, 4) / 12
    # The exponential of the compiler and that of NumPy.
    close(exe(x), module.run_reference(x), atol=0)
    with pytest.raises(sw.InputError, match="index"):
        exe(x[:0])


@pytest.mark.parametrize("level", [0, 3])
def test_a_size_that_is_an_exact_quotient(level: int) -> None:
    """Of a group's own arguments, 4 * n is no multiple of 4."""
    b = sw.Builder("main")
    x = b.input("x", ("n", 2), "f32")
    flat = b.reshape(b.concat([x, x], axis=1), [-1])
    b.output(b.reduce(b.reshape(flat + 1.0, [-1, 4]), "sum", [0, 1]), name="y")
    b.output(b.reduce(b.reshape(b.concat([flat, flat], 0), [-1, 8]) * 2.0, "max", [1]), name="z")
    module = b.module()
    exe = sw.compile(module, threads=1, opt_level=level)
    for n in (5, 1, 0):
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        same(exe(x), module.run_reference(x))
