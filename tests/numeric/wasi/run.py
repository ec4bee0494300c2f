"""Run a WebAssembly program of WASI under wasmtime, with its folder as the current one."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

wasmtime: Any = importlib.import_module("wasmtime")

path = Path(sys.argv[1])
engine = wasmtime.Engine()
store, linker = wasmtime.Store(engine), wasmtime.Linker(engine)
linker.define_wasi()
system = wasmtime.WasiConfig()
system.preopen_dir(str(path.parent), ".")
system.inherit_stdout()
system.inherit_stderr()
store.set_wasi(system)
instance = linker.instantiate(store, wasmtime.Module.from_file(engine, str(path)))
try:
    instance.exports(store)["_start"](store)
except wasmtime.ExitTrap as end:
    sys.exit(end.code)
