"""What each rank of `test_mpi.py` runs: it prints "right", or the error that it got."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI  # pyright: ignore[reportMissingImports]

# As a script this is no module of the tests.
sys.path.insert(0, str(Path(__file__).parent))
from parts import attention, features, gcn, pools, random_graph  # pyright: ignore

import stepwell as sw
from stepwell.core.errors import StepwellError
from stepwell.distributed.engines import LocalEngine
from stepwell.distributed.mpi import run_on_ranks


def say(text: str) -> None:
    """Print a line in one piece, as other ranks print at the same time."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


MODULES = {"gcn": gcn, "attention": attention, "pools": pools}


def main(parts: int, nodes: int, *names: str) -> None:
    world, graph, x = MPI.COMM_WORLD, random_graph(101, 400), features(nodes)
    # A rank with another argument is an error of all.
    given = x if nodes == 101 or world.Get_rank() else features(101)
    for module in (MODULES[name]() for name in names or MODULES):
        with LocalEngine(1) as engine:
            program = sw.distribute(module, sw.partition(graph, parts), engine, opt_level=0)
            try:
                found = run_on_ranks(program, world, given)
            except StepwellError as error:
                say(f"rank {world.Get_rank()}: {error}")
                return
        wanted = module.run_reference(graph.to_csr(), x)
        own = program.plan.partition.nodes(world.Get_rank())
        for result, value in zip(found, wanted if len(found) > 1 else (wanted,), strict=True):
            here = value[own] if value.shape[:1] == (101,) else value
            np.testing.assert_allclose(result, here, rtol=1e-5, atol=1e-5)
        sent = [world.allreduce(size) for size in program.traffic.sent]
        assert sent == program.over_network.report().exchanged
    say("right")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
