"""The scripts in `examples/` run, check themselves what they show, and show what they promise."""

from __future__ import annotations

import gc
import importlib.util
import os
import runpy
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# What trains weights is held against those that ship in `test_demo.py`.
SCRIPTS = sorted(p for p in EXAMPLES.glob("*.py") if not p.name.startswith("train_"))
NEEDS = {"user_torch": "torch_geometric"}
"""Packages that a script needs and the tests may lack. They warn when they are imported."""
CASES = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in NEEDS else [])
    for path in SCRIPTS
]
DATA = {
    "cora_gcn": ("cora.npz", "gcn_cora_weights.npz"),
    "fashion_mnist": ("fashion_mnist_900.npz", "fashion_mlp_weights.npz"),
}
SHOWN = {
    "bound_parameters": [
        "%w: tensor<?x?xf32>",
        "%w = graph.constant dense_resource<w> : tensor<3x8xf32>",
        "inputs: x ('batch', 'in'), w ('out', 'in'), b ('out',)\ninputs: x ('batch', 8)\n",
        'size "out" is not that of argument "w", expected 3, got 2',
    ],
    "conv_block": [
        "before\nbuiltin.module",
        "graph.batch_norm",
        "after graph-open-composites\nbuiltin.module",
        "after graph-cse: the same\n",
        "after graph-fuse-ops\nbuiltin.module",
        "@fused_conv_relu",
        "one kernel;",
    ],
    "cora_gcn": [
        "graph.normalize symmetric",
        "func private @fused_spmm(",
        "func private @fused_spmm_add_relu_matmul(",
        "func private @fused_spmm_add(",
        "logits of the first papers",
        "accuracy 0.818 on 1000 papers",
    ],
    "custom_lowering": ["loop.kernel @fused_dense_tanh", "arith.divf", "the quick tanh is off by"],
    "fashion_mnist": ["graph.dense", "the same results, bit for bit", "accuracy 0.886: 797 of 900"],
    "fma_rewrite": ["graph.exp", "graph.mul", "graph.fma", "y = [-2."],
    "group_dense_add": [
        "call @dense_add(",
        "func private @dense_add(",
        'pattern "dense_add" does not match graph.dense (node "fc3")',
        "y[0] = [",
    ],
    "hello": ["graph.add %x, %y", "loop.kernel @fused_add", "2 + 3 = 5.0"],
    "mixed_functions": [
        'graph.call_packed "env.linear"',
        "graph.call_dps @pairs",
        "loop.kernel @pairs",
        "loop.kernel @fused_pairs_add",
        "y[1] = [-1.957",
    ],
    "user_compiler": ["graph.neg", "graph.sub", "[ 2. -0.  6.] after "],
    "user_deployment": ["examples give results within", "refused: input", "probabilities sum to"],
    "user_graph_on_disk": ["the same embeddings of 5000 nodes as in memory, in 4 parts"],
    "user_graph_networks": ["graph-fuse-ops", "GFLOP/s", "classes of the first nodes: ["],
    "user_performance": ["refused: schedule of @fused_dense_relu", " us a call, ", "used: True"],
    "user_torch": ["3 graphs as in torch: ", "4 graphs as in torch: "],
    "user_student": [
        "graph-fuse-ops",
        "loop.kernel @fused_dense_relu",
        "loop-schedule",
        "the same results on 8 stages",
    ],
}
"""What a reader finds in the output of each script, in this order."""

ALONE = ("hello",)
"""Scripts that always run in an interpreter of their own; others do where slow tests run too."""


@dataclass(frozen=True)
class Done:
    """How a script ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str


def run(script: Path, folder: Path, **variables: str) -> Done:
    """Run a script in a new interpreter, where a warning is an error."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore" if script.stem in NEEDS else "error", script],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **variables},
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def run_in_fork(script: Path, folder: Path, **variables: str) -> Done:
    """Run a script where all that it imports is loaded."""
    files = [folder / name for name in ("stdout", "stderr")]
    with warnings.catch_warnings():
        # The child only uses the thread that it was forked from.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        code = 1
        try:
            code = in_child(script, folder, files, variables)
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Done(code, *[file.read_text() for file in files])


def in_child(script: Path, folder: Path, files: list[Path], variables: dict[str, str]) -> int:
    gc.freeze()
    signal.alarm(120)
    os.chdir(folder)
    os.environ.update(variables)
    warnings.resetwarnings()
    warnings.simplefilter("error")
    sys.argv, sys.path[:0] = [str(script)], [str(script.parent)]
    with files[0].open("w") as sys.stdout, files[1].open("w") as sys.stderr:
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
            return 1
    return 0


@pytest.mark.parametrize("script", CASES)
def test_example(
    script: Path, tmp_path: Path, real_data: Callable[[str], Path], all_tests: bool
) -> None:
    needed = NEEDS.get(script.stem)
    if needed is not None and importlib.util.find_spec(needed) is None:
        pytest.skip(f"needs {needed}")
    for name in DATA.get(script.stem, ()):
        real_data(name)  # skips without it
    # A script that imports too little works in a fork.
    done = (run if all_tests or script.stem in ALONE else run_in_fork)(script, tmp_path)
    assert done.returncode == 0, done.stderr
    rest = done.stdout
    for shown in SHOWN[script.stem]:
        assert shown in rest, f"not in what follows: {shown}\n{done.stdout}"
        rest = rest.partition(shown)[2]
    last = done.stdout.splitlines()[-1]
    assert not last.startswith((" ", "}")), f"the last line is a part of something: {last}"


@pytest.mark.parametrize("name", DATA)
def test_example_without_its_data(name: str, tmp_path: Path) -> None:
    done = run_in_fork(EXAMPLES / f"{name}.py", tmp_path, STEPWELL_DATA=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == f"{DATA[name][0]} is not in {tmp_path}; give the folder that has it\n"


def test_what_users_begin_with_is_short() -> None:
    scripts = [path for path in SCRIPTS if path.name.startswith("user_")]
    assert len(scripts) == 7
    assert {path.name: len(path.read_text().splitlines()) for path in scripts} == {
        path.name: pytest.approx(20, abs=5) for path in scripts
    }


def test_all_examples_are_listed() -> None:
    page = (EXAMPLES / "README.md").read_text()
    scripts = {path.name for path in EXAMPLES.iterdir() if path.suffix == ".py"}
    assert {name for name in scripts if f"({name})" not in page} == set()
