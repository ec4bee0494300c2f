"""Instructions of a call of an exported model, on this processor and on others.

Other processors are emulated here, and the time of an emulated call says nothing about them; the
number of instructions does not depend on the emulator. QEMU logs each one (`-d exec`), wasmtime
counts those of WebAssembly (fuel). The difference between two calls and one is that of a call.
Needs `qemu-user-static`, the cross compilers of GNU, and the packages `ziglang` and `wasmtime`;
targets whose tools are missing are left out.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness import LeftOutError, Row, Table
from models import Weights, any_graph, built, perceptron

import stepwell as sw

FUEL = 1 << 40


def cnn() -> sw.Module:
    w = Weights()

    def program(b: Any, x: Any) -> Any:
        for channels in (3, 16):
            x = b.relu(b.conv(x, w.scaled(16, channels, 3, 3), bias=w.array(16)))
        return b.dense(b.reduce(x, "mean", axes=[2, 3], keepdims=False), w.array(10, 16))

    return built(program, (1, 3, 16, 16))


MODELS: dict[str, Callable[[], sw.Module]] = {
    "mlp": partial(perceptron, 1, 784, 128, 10),
    "gcn": partial(any_graph, 34, 16, 4),
    "cnn": cnn,
}


@dataclass(frozen=True)
class Machine:
    """How programs for a target are compiled, and the instructions of a run counted."""

    compiler: Sequence[str]
    tools: Sequence[str]
    packages: Sequence[str]
    count: Callable[[Path, int], int]
    method: str

    @property
    def missing(self) -> list[str]:
        tools = [tool for tool in self.tools if shutil.which(tool) is None]
        return tools + [name for name in self.packages if importlib.util.find_spec(name) is None]


def emulated(processor: str, *options: str) -> Machine:
    emulator = f"qemu-{processor}-static"
    compiler = f"{processor}-linux-gnu-gcc"

    def count(program: Path, calls: int) -> int:
        usage = subprocess.run([emulator, "-h"], capture_output=True, text=True, check=False)
        step = "-one-insn-per-tb" if "one-insn-per-tb" in usage.stdout else "-singlestep"
        log = program.with_suffix(".log")
        command = [emulator, *options, step, "-d", "exec,nochain", "-D", str(log), str(program)]
        null = subprocess.DEVNULL
        subprocess.run([*command, str(calls)], check=True, stdout=null, stderr=null)
        with log.open("rb") as lines:
            return sum(line.startswith(b"Trace") for line in lines)

    return Machine([compiler, "-static"], [compiler, emulator], [], count, "QEMU, logged")


def fuel(program: Path, calls: int) -> int:
    """The instructions of WebAssembly in a run."""
    import wasmtime

    config = wasmtime.Config()
    config.consume_fuel = True
    engine = wasmtime.Engine(config)
    store, linker = wasmtime.Store(engine), wasmtime.Linker(engine)
    linker.define_wasi()
    system = wasmtime.WasiConfig()
    system.argv = ["example", str(calls)]
    store.set_wasi(system)
    store.set_fuel(FUEL)
    module = wasmtime.Module.from_file(engine, str(program))
    linker.instantiate(store, module).exports(store)["_start"](store)  # type: ignore[operator]
    return FUEL - store.get_fuel()


ZIG = [sys.executable, "-m", "ziglang", "cc", "-target", "wasm32-wasi"]
MACHINES = {
    "x86-64-v3": emulated("x86_64", "-cpu", "Haswell"),
    "aarch64": emulated("aarch64"),
    "rv64gcv": emulated("riscv64", "-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0"),
    "wasm32": Machine(ZIG, [], ["ziglang", "wasmtime"], fuel, "wasmtime, fuel"),
}


def instructions(name: str, target: str, machine: Machine, folder: Path) -> tuple[int, int]:
    sw.export(MODELS[name](), folder, name=name, target=target)
    text = (folder / "example.c").read_text()
    text = text.replace("main(void)", "main(int argc, char **argv)")
    call = f"if ({name}_run("
    text = text.replace(call, f"for (int i = 0; i < atoi(argv[argc - 1]); i++) {call}")
    (folder / "counted.c").write_text(text)
    program = folder / "counted"
    command = [*machine.compiler, "counted.c", f"{name}.o", "-o", str(program), "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    # The first call takes memory that later ones use again.
    two, one = machine.count(program, 3), machine.count(program, 2)
    return two - one, (folder / f"{name}.o").stat().st_size


def row(name: str, case: tuple[str, str]) -> Row:
    model, target = case
    machine = MACHINES[target]
    if machine.missing:
        raise LeftOutError(f"no {', '.join(machine.missing)}")
    with tempfile.TemporaryDirectory() as folder:
        count, size = instructions(model, target, machine, Path(folder))
    return {
        "model": model,
        "target": target,
        "instructions of a call": f"{count:,}",
        "counted by": machine.method,
        "object file, bytes": f"{size:,}",
    }


CASES = {f"{model} {target}": (model, target) for target in MACHINES for model in MODELS}
TABLES = [Table("model", CASES, row)]
