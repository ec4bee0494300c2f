"""Configuration of lit: `lit tests/lit`, or `make lit`.

RUN lines use `stepwell-opt` and `filecheck`. A test that needs MLIR's own tools says
`REQUIRES: mlir-opt` and calls `mlir-opt`, `mlir-translate` or `mlir-runner`, version 22.
With `-D processes` each command is a process of its own, as users start it.
"""

# lit runs this file with `config` defined.
# ruff: noqa: F821
# pyright: reportUndefinedVariable=false

import os
import sys
from pathlib import Path

import lit.formats
import lit.util

sys.path.append(str(Path(__file__).parent))
from forked_format import ForkedShTest

MLIR_TOOLS = Path("/usr/lib/llvm-22/bin")  # where Debian's mlir-22-tools puts them

config.name = "stepwell"
config.test_format = lit.formats.ShTest() if "processes" in lit_config.params else ForkedShTest()
config.suffixes = [".mlir"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(Path(__file__).resolve().parents[2] / "build" / "lit")

# The tools of the Python that runs lit come first, so that no other installation is tested.
search = [str(Path(sys.executable).parent), os.environ["PATH"]]
if MLIR_TOOLS.is_dir():
    search.append(str(MLIR_TOOLS))
config.environment["PATH"] = os.pathsep.join(search)

# Commands compile, whatever was compiled before.
config.environment["STEPWELL_CACHE"] = "off"
config.environment["STEPWELL_TUNING"] = ""

# A checkout on the path of Python is what is tested, here as everywhere.
if "PYTHONPATH" in os.environ:
    config.environment["PYTHONPATH"] = os.environ["PYTHONPATH"]

if lit.util.which("mlir-opt", config.environment["PATH"]):
    config.available_features.add("mlir-opt")
