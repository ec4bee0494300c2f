"""Nodes of the model in the debug information of the LLVM IR and of the machine code."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

import stepwell as sw
from stepwell.backends.llvm import jit
from stepwell.core.ir.printing import listing
from stepwell.core.target import host

SCOPE = re.compile(r'!(\d+) = distinct !DISubprogram\(.*line: (\d+), name: "([^"]*)", .*')
LOCATION = re.compile(r"!(\d+) = !DILocation\(inlinedAt: !(\d+), line: (\d+), scope: !(\d+)\)")


def model(names: tuple[str, str, str] = ("fc1", "act", "fc2")) -> sw.Module:
    rng = np.random.default_rng(0)
    b = sw.Builder("net")
    x = b.input("x", (3, 8), "f32")
    h = b.dense(x, rng.standard_normal((16, 8), np.float32), name=names[0])
    y = b.dense(b.relu(h, name=names[1]), np.ones((4, 16), np.float32), name=names[2])
    b.output(b.softmax(y, name="probabilities"), name="y")
    return b.module()


def places(text: str) -> dict[str, set[tuple[str, int]]]:
    """Function -> the names of nodes that its instructions have, each with its line."""
    scopes = {n: (name, int(line)) for n, line, name in SCOPE.findall(text)}
    inlined = {n: (scopes[scope][0], int(line)) for n, _, line, scope in LOCATION.findall(text)}
    found: dict[str, set[tuple[str, int]]] = {}
    for function in re.split(r"(?m)^(?=define )", text)[1:]:
        body, _, _ = function.partition("\n}")
        name = re.search(r'@"?([^"(]*)', body)
        assert name is not None
        used = re.findall(r"!dbg !(\d+)$", body, re.MULTILINE)
        found[name[1]] = {inlined[number] for number in used if number in inlined}
    return found


@pytest.mark.parametrize("threads", [1, 2])
def test_instructions_lead_to_nodes_and_their_lines(threads: int) -> None:
    exe = sw.compile(model(), threads=threads)
    found = places(exe.ir("llvm-ir"))
    lines = exe.ir("graph").splitlines()
    for name, line in set[tuple[str, int]].union(*found.values()):
        first = name.partition(",")[0]
        kind = {"fc1": "dense", "act": "relu", "fc2": "dense", "probabilities": "softmax"}[first]
        assert f"graph.{kind}" in lines[line - 1]
    body = found.get("fused_dense_relu_tiles0", found["fused_dense_relu"])
    assert {"fc1", "act"} <= {name for name, _ in body}
    assert {"fc1, act", "fc2, probabilities"} <= {name for name, _ in found["net"]}


def test_llvm_accepts_it() -> None:
    text = sw.compile(model(), threads=2).ir("llvm-ir")
    module = llvm.parse_assembly(text)
    module.verify()
    assert "DICompileUnit" in str(module)  # what is malformed is dropped with a warning


@pytest.mark.parametrize("effort", [jit.Effort.NONE, jit.Effort.LIGHT, jit.Effort.O3])
def test_machine_code_is_the_same_without(effort: jit.Effort) -> None:
    text = sw.compile(model(), threads=2).ir("llvm-ir")
    plain = re.sub(r",? !dbg !\d+", "", text)
    plain = "\n".join(line for line in plain.splitlines() if not line.startswith("!"))
    assert text.count("!dbg") > 100
    assert "!" not in plain

    def code(text: str) -> list[bytes]:
        binary = llvm.ObjectFileRef.from_data(jit.object_code(text, host(), effort))
        return [section.data() for section in binary.sections() if section.is_text()]

    assert code(text) == code(plain)


def test_assembly_for_people_is_without() -> None:
    text = sw.compile(model(), threads=1).ir("asm")
    assert ".loc" not in text
    assert ".debug" not in text


def test_names_as_they_come() -> None:
    names = ('a "quoted" name', "back\\slash", "Überschicht/层:0")
    exe = sw.compile(model(names), threads=1)
    module = llvm.parse_assembly(exe.ir("llvm-ir"))
    module.verify()
    for name in names:
        escaped = "".join(
            chr(byte) if 32 <= byte < 127 and byte != ord('"') else f"\\{byte:02X}"
            for byte in name.replace("\\", "\\\\").encode()
        )
        assert f'name: "{escaped}"' in str(module)
    x = np.ones((3, 8), np.float32)
    np.testing.assert_allclose(exe(x), model().run_reference(x), rtol=1e-5)


def test_operators_without_names_are_lines_of_the_program() -> None:
    b = sw.Builder("net")
    b.output(b.relu(b.input("x", (4,), "f32")), name="y")
    text = sw.compile(b.module(), threads=1).ir("llvm-ir")
    assert 'filename: "test_debug_info.py"' in text
    assert re.search(r'DISubprogram\(.*name: "test_debug_info.py:\d+"', text)


def test_many_nodes_in_one_instruction_are_not_all_named() -> None:
    b = sw.Builder("net")
    x = b.input("x", (4, 4), "f32")
    for number in range(12):
        x = b.matmul(x, x, name=f"product{number}")
    b.output(x, name="y")
    text = sw.compile(b.module(), threads=1).ir("llvm-ir")
    assert re.search(r'name: "product0, product1, .*product7 and \d more"', text)


def test_lines_count_aliases() -> None:
    b = sw.Builder("net")
    a = b.input("a", sw.SparseSpec((4, 4), "f32"))
    x = b.input("x", (4, 4), "f32")
    b.output(b.relu(b.matmul(a, x, name="product"), name="act"), name="y")
    module = b.module()
    text, lines = module.text().splitlines(), listing(module.op, "f").lines
    assert text[0].startswith("#csr")
    assert "graph.relu" in text[lines["act"] - 1]
    assert "graph.spmm" in text[lines["product"] - 1]
    assert "func.func @net" in text[lines["a"] - 1]
    assert lines["a"] == lines["x"]
