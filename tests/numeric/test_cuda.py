"""Launches by NVIDIA's driver, for which there is a stand-in: results, copies, failures, leaks.

The stand-in has memory of its own and executes kernels by the emulator. Nothing here has been run
on a real device.
"""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import stepwell as sw
from stepwell.backends.ptx import assembler
from stepwell.core import cuda
from stepwell.frontends import gnn

from ..harness import RNG, floats, same
from .stand_in import StandIn, built


def relu(size: int | None = 40) -> sw.Module:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (size,), "f32")), name="y")
    return b.module()


def mlp() -> sw.Module:
    b = sw.Builder("main")
    x = b.input("x", (None, 13), "f32")
    hidden = b.layer_norm(b.relu(b.dense(x, floats(17, 13))), floats(17), floats(17))
    b.output(b.softmax(b.dense(hidden, floats(5, 17), bias=floats(5))), name="y")
    return b.module()


def emulated(module: sw.Module) -> sw.Executable:
    return sw.compile(module, target="cuda:sm_90,emulated")


@pytest.mark.parametrize("target", ["cuda", "cuda:sm_80"])
def test_a_program(driver: StandIn, target: str, all_tests: bool) -> None:
    module = mlp()
    exe, wanted = sw.compile(module, target=target), emulated(module)
    for rows in (1, 0, 7, 200) if all_tests or target == "cuda" else (7,):
        x = floats(rows, 13)
        same(exe(x), wanted(x))
    assert not driver.raised
    assert exe.launches == ()
    assert driver.modules == 1
    del exe
    gc.collect()
    assert driver.modules == 0


@pytest.mark.slow
def test_a_graph_network(driver: StandIn) -> None:
    layers = gnn.GCNConv(floats(9, 6), floats(6)), gnn.ReLU(), gnn.GCNConv(floats(6, 3), floats(3))
    features = sw.TensorSpec((None, 9), "f32")
    module = gnn.Sequential(*layers).to_module(gnn.GraphSpec(), features=features)
    exe, wanted = sw.compile(module, target="cuda:sm_90"), emulated(module)
    for nodes, edges in ((1, 0), (30, 70)):
        graph = gnn.Graph.from_edge_index(RNG.integers(0, nodes, (2, edges)), num_nodes=nodes)
        x = floats(nodes, 9)
        same(exe(graph, x), wanted(graph, x))
    assert not driver.raised


def test_only_results_are_copied_back(driver: StandIn) -> None:
    """The emulated memory of a device begins with rubbish, which is not a result."""
    exe, x = sw.compile(relu(), target="cuda:sm_90"), floats(41)[1:]
    x.flags.writeable = False
    same(exe(x), np.maximum(x, 0))
    assert (driver.copied_in, driver.copied_back) == (160, 160)


def counted(driver: StandIn, call: Callable[[], object]) -> tuple[int, int, int]:
    """How many copies in and back, and allocations, a call takes."""
    names = "copies_in", "copies_back", "allocated"
    before = [getattr(driver, name) for name in names]
    call()
    made, back, allocated = (
        getattr(driver, name) - old for name, old in zip(names, before, strict=True)
    )
    return made, back, allocated


@pytest.mark.unguarded("an arena has another size")
def test_what_is_between_kernels_stays_on_the_device(driver: StandIn) -> None:
    """The kernels of a perceptron have one input, one result, and four constants.

    The arena is larger than what lies between buffers, which depends on where they are on the host.
    """
    exe, x = sw.compile(mlp(), target="cuda:sm_90"), floats(20, 13)
    assert exe.ir("ptx").count(".entry") >= 2
    assert (driver.allocated, driver.copies_in) == (1, 4), "constants are copied once"
    assert counted(driver, lambda: exe(x)) == (1, 1, 2), "the second one with an arena"
    assert counted(driver, lambda: exe(x)) == (1, 1, 0), "a call takes the memory of the last one"
    assert counted(driver, lambda: exe(x[:1])) == (1, 1, 0)
    assert counted(driver, lambda: exe(floats(90, 13))) == (1, 1, 2), "more of it"
    assert driver.live == 2


def test_a_graph_is_copied_once(driver: StandIn) -> None:
    """Its rows and columns are also checked on the host; layers and weights stay."""
    layers = gnn.GCNConv(floats(3, 2)), gnn.ReLU(), gnn.GCNConv(floats(2, 2))
    features = sw.TensorSpec((None, 3), "f32")
    module = gnn.Sequential(*layers).to_module(gnn.GraphSpec(), features=features)
    exe, x = sw.compile(module, target="cuda:sm_90"), floats(4, 3)
    graph = gnn.Graph.from_edge_index(np.array([[0, 1, 2, 3, 3], [1, 2, 0, 1, 0]]), num_nodes=4)
    launches = exe.ir("ptx").count(".entry")
    assert launches >= 4
    assert counted(driver, lambda: exe(graph, x))[:2] == (4, 1), "indptr, indices, values, features"
    np.testing.assert_allclose(exe(graph, x), module.run_reference(graph, x), rtol=1e-5, atol=1e-6)


def test_sizes_that_kernels_compute(driver: StandIn) -> None:
    """The host reads them, and takes the results from where they lie in the arena."""
    b = sw.Builder("main")
    rows, columns, _ = b.nonzero(b.input("x", ("n", 4), "f32"))
    b.output(rows)
    b.output(b.relu(columns))
    module = b.module()
    exe = sw.compile(module, target="cuda:sm_90")
    for x in (floats(5, 4) * (floats(5, 4) > 0), np.zeros((3, 4), np.float32)):
        for found, want in zip(exe(x), module.run_reference(x), strict=True):
            np.testing.assert_array_equal(found, want)


def test_what_functions_of_the_host_read_and_write_is_copied(driver: StandIn) -> None:
    @sw.register_function("test_cuda.halved")
    def call(x: np.ndarray, y: np.ndarray) -> None:
        y[...] = x / 2

    b = sw.Builder("main")
    x = b.input("x", (4, 6), "f32")
    between = b.exp(x)
    halved = b.call_packed("test_cuda.halved", between, results=sw.TensorSpec((4, 6), "f32"))
    b.output(b.softmax(b.add(halved, between)), name="y")
    module, given = b.module(), floats(4, 6)
    exe = sw.compile(module, target="cuda:sm_90")
    assert counted(driver, lambda: exe(given))[:2] == (2, 2)
    np.testing.assert_allclose(exe(given), module.run_reference(given), rtol=1e-6)


def test_arguments_that_overlap(driver: StandIn) -> None:
    b = sw.Builder("main")
    x, y = (b.input(name, (40,), "f32") for name in "xy")
    b.output(b.relu(b.sub(x, y)), name="z")
    exe, given = sw.compile(b.module(), target="cuda:sm_90"), floats(45)
    for first in (0, 5):
        one, other = given[first : first + 40], given[:40]
        same(exe(one, other), np.maximum(one - other, 0))


def test_a_result_that_no_kernel_writes(driver: StandIn) -> None:
    b = sw.Builder("main")
    x = b.input("x", (5,), "f32")
    b.output(b.relu(x), name="y")
    b.output(x, name="same")
    exe, given = sw.compile(b.module(), target="cuda:sm_90"), floats(5)
    same(exe(given), (np.maximum(given, 0), given))


def test_arguments_are_aligned_on_the_device(driver: StandIn) -> None:
    """Whatever they are on the host, also where they overlap."""
    b = sw.Builder("main")
    x, y = (b.input(name, (40,), "f32") for name in "xy")
    b.output(b.relu(b.sub(x, y)), name="z")
    exe, given, z = sw.compile(b.module(), target="cuda:sm_90"), floats(110), floats(50)
    for first, other in ((0, 0), (1, 0), (16, 3), (63, 50)):
        one, two, out = given[first:][:40], given[other:][:40], z[first % 10 :][:40]
        driver.addresses.clear()
        exe(one, two, out=out)
        same(out, np.maximum(one - two, 0))
        assert {address % 16 for address in driver.addresses} == {0}


def test_what_a_kernel_does_not_write_stays(driver: StandIn) -> None:
    """A part of a buffer: the other bytes of it are copied to the device and back."""
    b = sw.Builder("main")
    x, y = (b.input(name, (5, 7), "f32") for name in "xy")
    b.output(b.concat([b.relu(x), b.relu(y)], axis=1), name="z")
    module, inputs = b.module(), (floats(5, 7), floats(5, 7))
    exe = sw.compile(module, target="cuda:sm_90")
    same(exe(*inputs), module.run_reference(*inputs))


def test_new_weights(driver: StandIn) -> None:
    b = sw.Builder("main")
    b.output(b.dense(b.input("x", (3, 4), "f32"), b.constant(floats(2, 4), "w")), name="y")
    exe, x, w = sw.compile(b.module(), target="cuda:sm_90"), floats(3, 4), floats(2, 4)
    exe(x)
    exe.update({"w": w})
    np.testing.assert_allclose(exe(x), x @ w.T, rtol=1e-5, atol=1e-6)


def test_threads_call_concurrently(driver: StandIn) -> None:
    exe, inputs = sw.compile(mlp(), target="cuda:sm_90"), [floats(n, 13) for n in range(1, 5)]
    wanted = list(map(exe, inputs))
    with ThreadPoolExecutor(4) as pool:
        for found, expected in zip(pool.map(exe, inputs), wanted, strict=True):
            same(found, expected)


def test_a_program_calls_another_one(driver: StandIn) -> None:
    """Each launches its own kernels, the outer one after the inner one as well."""
    inner = [sw.compile(relu(4), target="cuda:sm_90")]

    @sw.register_function("test_cuda.inner")
    def call(x: np.ndarray, y: np.ndarray) -> None:
        y[...] = inner[0](x)

    b = sw.Builder("main")
    x = b.input("x", (4,), "f32")
    between = b.call_packed("test_cuda.inner", b.neg(x), results=sw.TensorSpec((4,), "f32"))
    b.output(b.exp(between), name="y")
    exe, x = sw.compile(b.module(), target="cuda:sm_90"), floats(4)
    np.testing.assert_allclose(exe(x), np.exp(np.maximum(-x, 0)), rtol=1e-6)
    inner.clear()  # The registered function stays.


GOES_ON = "something went wrong (CUDA_ERROR_OF_THE_TEST of "
LOST = "; this process cannot use the device any more"


@pytest.mark.parametrize(
    ("function", "code", "says"),
    [
        ("cuMemcpyHtoD_v2", 1, f"copy of 160 bytes to the device: {GOES_ON}cuMemcpyHtoD_v2)"),
        ("cuLaunchKernel", 701, f"KERNEL: {GOES_ON}cuLaunchKernel)"),
        ("cuLaunchKernel", 999, "an error that the driver does not know (999 of cuLaunchKernel)"),
        ("cuMemcpyDtoH_v2", 1, f"copy of 160 bytes to the host: {GOES_ON}cuMemcpyDtoH_v2)"),
        ("cuCtxSynchronize", 700, f"KERNEL: {GOES_ON}cuCtxSynchronize){LOST}"),
        ("cuCtxSynchronize", 702, f"KERNEL: {GOES_ON}cuCtxSynchronize){LOST}"),
        ("cuCtxPushCurrent_v2", 201, f"driver: {GOES_ON}cuCtxPushCurrent_v2)"),
    ],
)
def test_calls_that_fail(driver: StandIn, function: str, code: int, says: str) -> None:
    exe, x = sw.compile(relu(), target="cuda:sm_90"), floats(40)
    driver.fail(function, code)
    with pytest.raises(sw.DeviceError) as caught:
        exe(x)
    (kernel,) = re.findall(r"\.entry (\w+)", exe.ir("ptx"))
    assert says.replace("KERNEL", kernel) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (driver.live, driver.depth) == (0, 0)
    driver.fail("", 0)
    if LOST in says:
        with pytest.raises(sw.DeviceError):
            exe(x)
        assert (driver.live, driver.depth) == (0, 0)
    else:
        same(exe(x), np.maximum(x, 0))


def test_a_kernel_that_fails(driver: StandIn) -> None:
    exe, x = sw.compile(relu(), target="cuda:sm_90"), floats(40)
    driver.fault = 700
    y = np.full(40, 5, np.float32)
    with pytest.raises(sw.DeviceError, match=r"cuCtxSynchronize\); this process cannot use"):
        exe(x, out=y)
    assert (y == 5).all()
    assert driver.live == 0


def test_later_launches_of_a_call_that_failed_do_nothing(driver: StandIn) -> None:
    exe = sw.compile(mlp(), target="cuda:sm_90")
    (first, *others) = re.findall(r"\.entry (\w+)", exe.ir("ptx"))
    assert others
    driver.fail("cuLaunchKernel", 701)
    with pytest.raises(sw.DeviceError, match=f"^{first}: "):
        exe(floats(3, 13))
    driver.fail("", 0)
    exe(floats(3, 13))


def test_an_error_names_the_kernels_since_the_last_wait(driver: StandIn) -> None:
    exe = sw.compile(mlp(), target="cuda:sm_90")
    names = re.findall(r"\.entry (\w+)", exe.ir("ptx"))
    driver.fail("cuCtxSynchronize", 1)
    with pytest.raises(sw.DeviceError, match=f"^{', '.join(names)}: something went wrong"):
        exe(floats(1, 13))
    assert driver.live == 1, "the constants"
    driver.fail("", 0)
    exe(floats(1, 13))


def test_no_memory_for_constants(driver: StandIn) -> None:
    driver.device(room=100)
    says = r"^\d+ bytes for the constants of the program: out of memory \(.*, got Stand-in$"
    with pytest.raises(sw.DeviceError, match=says):
        sw.compile(mlp(), target="cuda:sm_90")


def test_no_memory_on_the_device(driver: StandIn) -> None:
    driver.device(room=300)
    exe, x = sw.compile(relu(), target="cuda:sm_90"), floats(40)
    says = (
        r"^call: \d+ bytes for its buffers: out of memory "
        r"\(CUDA_ERROR_OUT_OF_MEMORY of cuMemAlloc_v2\), got Stand-in$"
    )
    with pytest.raises(sw.DeviceError, match=says):
        exe(x)
    assert driver.live == 0
    driver.device()
    same(exe(x), np.maximum(x, 0))


def test_a_grid_that_is_too_large(driver: StandIn) -> None:
    driver.device(most_blocks=2)
    exe = sw.compile(relu(None), target="cuda:sm_90")
    exe(floats(256))
    says = "_kernel: too large a grid, expected at most 2 blocks, got 3"
    with pytest.raises(sw.DeviceError, match=says):
        exe(floats(257))


@pytest.mark.parametrize(
    ("function", "code", "says"),
    [
        (
            "cuModuleLoadDataEx",
            222,
            f"the kernels of the program: {GOES_ON}cuModuleLoadDataEx): ptxas said why",
        ),
        ("cuModuleGetFunction", 500, f"_kernel: {GOES_ON}cuModuleGetFunction)"),
        ("cuDevicePrimaryCtxRetain", 46, f"driver: {GOES_ON}cuDevicePrimaryCtxRetain)"),
    ],
)
def test_kernels_that_are_not_loaded(driver: StandIn, function: str, code: int, says: str) -> None:
    driver.fail(function, code)
    with pytest.raises(sw.DeviceError) as caught:
        sw.compile(relu(), target="cuda:sm_90")
    assert str(caught.value).endswith(says)
    assert "\n" not in str(caught.value)
    driver.fail("", 0)
    del caught
    gc.collect()
    assert driver.modules == 0
    assert driver.depth == 0


EMULATOR = r'; "cuda:sm_90,emulated" runs programs on an emulator$'


@pytest.mark.parametrize("target", ["cuda", "cuda:sm_90"])
def test_no_device(driver: StandIn, target: str) -> None:
    for function in ("cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName"):
        driver.fail(function, 100)
        says = f"target: driver: something went wrong .* of {function}.*{EMULATOR}"
        with pytest.raises(sw.TargetError, match=says):
            sw.compile(relu(), target=target)


@pytest.mark.parametrize("target", ["cuda", "cuda:sm_90"])
@pytest.mark.parametrize("library", ["libno-driver.so", "libc.so.6"])
def test_no_driver(target: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a library without its functions one."""
    monkeypatch.setattr(cuda, "LIBRARY", library)
    cuda.driver.cache_clear()
    says = f"target: NVIDIA's driver is not installed .*, expected an NVIDIA GPU{EMULATOR}"
    with pytest.raises(sw.TargetError, match=says) as caught:
        sw.compile(relu(), target=target)
    assert "\n" not in str(caught.value)


def test_a_device_that_is_too_old(driver: StandIn) -> None:
    driver.device(capability=80)
    says = r"target: the device is too old, expected sm_90 or later, got sm_80 \(Stand-in\)"
    with pytest.raises(sw.TargetError, match=says):
        sw.compile(relu(), target="cuda:sm_90")
    assert ".target sm_80" in sw.compile(relu(), target="cuda").ir("ptx")


@pytest.mark.parametrize(("capability", "name"), [(103, "sm_100"), (121, "sm_120"), (75, "sm_75")])
def test_the_device_that_is_there(driver: StandIn, capability: int, name: str) -> None:
    driver.device(capability=capability)
    assert f".target {name}\n" in sw.compile(relu(), target="cuda").ir("ptx")


def test_a_device_that_is_older_than_all(driver: StandIn) -> None:
    driver.device(capability=61)
    says = r"the device is too old, expected sm_70 or later, got sm_61 \(Stand-in\)"
    with pytest.raises(sw.TargetError, match=says):
        sw.compile(relu(), target="cuda")


def test_the_stand_in_has_the_prototypes_of_the_driver(tmp_path: Path) -> None:
    """The compiler compares them with those of NVIDIA's header."""
    program = assembler.assembler() or ""
    include = Path(program).parent.parent / "include"
    if not (include / "cuda.h").exists():
        pytest.skip("needs cuda.h: pip install nvidia-cuda-nvcc")
    made = ctypes.CDLL(str(built(tmp_path, "-DCUDA_HEADER", f"-I{include}")))
    for function in cuda._FUNCTIONS:
        assert hasattr(made, function)
