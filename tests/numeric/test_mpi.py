"""Programs on the parts of a graph under `mpirun`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..harness import needs_package, needs_tool

PROGRAM = Path(__file__).parent / "mpi_program.py"
pytestmark = [needs_tool("mpirun", "openmpi-bin"), needs_package("mpi4py")]
SETTINGS = {
    # Open MPI refuses to run for root, and more processes than cores; names are those of 4 and 5.
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    # Other tests run meanwhile.
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # Containers may not read the memory of other processes.
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
}


def run(ranks: int, parts: int, nodes: int, *modules: str) -> list[str]:
    """What the ranks print, in any order."""
    command = ["mpirun", "-n", str(ranks), sys.executable, str(PROGRAM)]
    done = subprocess.run(
        [*command, str(parts), str(nodes), *modules],
        env={**os.environ, **SETTINGS},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


def test_two_ranks() -> None:
    assert run(2, 2, 101, "gcn") == ["right"] * 2


@pytest.mark.slow
def test_as_one_program() -> None:
    assert run(3, 3, 101) == ["right"] * 3


@pytest.mark.slow
def test_an_error_of_one_is_one_of_all() -> None:
    """None waits for a halo that does not come."""
    lines = run(2, 2, 100)
    assert lines[0].startswith("rank 0: distribute: rank 1: input")
    assert lines[1].startswith('rank 1: input "features": wrong array')


@pytest.mark.slow
def test_ranks_and_parts() -> None:
    expected = "distribute: ranks and parts differ in number, expected 3, got 2 ranks"
    assert run(2, 3, 101) == [f"rank {rank}: {expected}" for rank in range(2)]
