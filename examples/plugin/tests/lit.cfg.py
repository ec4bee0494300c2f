"""Configuration of lit: `lit tests`, with the plug-in installed (`pip install -e .`)."""

# lit runs this file with `config` defined.
# ruff: noqa: F821
# pyright: reportUndefinedVariable=false

import os
import sys
from pathlib import Path

import lit.formats

config.name = "stepwell-swish"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(Path(__file__).parent / "Output")
# `stepwell-opt` and `filecheck` of the Python that runs lit.
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
