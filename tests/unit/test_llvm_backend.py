"""The LLVM backend: addresses, texts, targets, threads, and what it refuses."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import stepwell as sw
from stepwell.backends.llvm import jit, machine
from stepwell.core.errors import CompileError, InternalError, TargetError
from stepwell.core.pipelines.staircase import run_passes
from stepwell.core.processor import NEEDS
from stepwell.core.registry import make_context
from stepwell.core.target import Target, host, named

Apart = Callable[[Callable[[], object]], str]

ADD = """
func.func private @inner(%a: i64, %b: i64) -> i64 {
  %0 = arith.addi %a, %b : i64
  func.return %0 : i64
}
func.func @add(%a: i64, %b: i64) -> i64 {
  %0 = func.call @inner(%a, %b) : (i64, i64) -> i64
  func.return %0 : i64
}
"""


def lowered(text: str = ADD) -> ModuleOp:
    ctx = make_context()
    module = Parser(ctx, text).parse_module()
    run_passes(ctx, module, "convert-to-llvm")
    return module


def add(code: jit.CompiledModule, a: int, b: int) -> int:
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    return kind(code.address("add"))(a, b)


def test_public_functions_have_addresses() -> None:
    code = jit.compile_module(lowered(), host())
    assert list(code.addresses) == ["add"]
    assert add(code, 40, 2) == 42


def test_unknown_function_is_named() -> None:
    code = jit.compile_module(lowered(), host())
    with pytest.raises(CompileError, match="llvm: no such function, expected add, got inner"):
        code.address("inner")


def test_code_lives_as_long_as_the_object() -> None:
    codes = [jit.compile_module(lowered(), host()) for _ in range(5)]
    del codes[::2]
    gc.collect()
    assert [add(code, n, 1) for n, code in enumerate(codes)] == [1, 2]


def test_one_module_serves_many_threads() -> None:
    code = jit.compile_module(lowered(), host())
    wrong: list[int] = []

    def run(start: int) -> None:
        for n in range(2000):
            if add(code, start, n) != start + n:
                wrong.append(n)

    threads = [threading.Thread(target=run, args=(1000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_may_compile_at_once() -> None:
    results: list[int] = []

    def run() -> None:
        results.append(add(jit.compile_module(lowered(), host()), 1, 2))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [3] * 4


def test_functions_that_nobody_has() -> None:
    """Neither one that is declared nor one that LLVM calls by itself ends the process."""
    with pytest.raises(CompileError, match="llvm: function nowhere is declared but nowhere def"):
        jit.CompiledModule("declare void @nowhere()", host(), jit.Effort.NONE)
    # No library has this one, while some of another test may have functions of wide numbers.
    copy = "void @llvm.memcpy.element.unordered.atomic.p0.p0.i64"
    text = f"""
        declare {copy}(ptr, ptr, i64, i32)
        define void @f(ptr %x, ptr %y) {{
          call {copy}(ptr align 4 %x, ptr align 4 %y, i64 8, i32 4)
          ret void
        }}
    """
    called = "__llvm_memcpy_element_unordered_atomic_4"
    message = f"llvm: machine code for host calls {called}, which is nowhere defined; the pro"
    with pytest.raises(CompileError, match=message):
        jit.CompiledModule(text, host(), jit.Effort.NONE)
    text = "@g = external global i32 define i32 @f() { %x = load i32, ptr @g  ret i32 %x }"
    with pytest.raises(CompileError, match="llvm: machine code cannot be linked: "):
        jit.CompiledModule(text, host(), jit.Effort.NONE)


LOAD, MASKED = "llvm.load %p", "llvm.intr.masked.load %p, %m, %v {alignment = 6 : i32}"


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (f"{LOAD} {{alignment = 3 : i64}}", "load: wrong alignment, .* got 3"),
        (f"{LOAD} {{alignment = 0 : i64}}", "load: wrong alignment, .* got 0"),
        (MASKED, "masked.load: wrong alignment, expected a power of two up to .*, got 6"),
        (f"{LOAD} atomic acquire", "load: atomic without an alignment"),
        (f"{LOAD} atomic release {{alignment = 4 : i64}}", "load: wrong ordering, .* 7, got 5"),
    ],
)
def test_accesses_that_end_the_process(access: str, message: str) -> None:
    """LLVM ends it for an alignment of an intrinsic, and does not read the text of the others."""
    masked = "(!llvm.ptr, vector<2xi1>, vector<2xi32>) -> vector<2xi32>"
    kind = masked if access is MASKED else "!llvm.ptr -> i32"
    head = "llvm.func @f(%p: !llvm.ptr, %m: vector<2xi1>, %v: vector<2xi32>)"
    text = f"{head} {{ %0 = {access} : {kind} llvm.return }}"
    module = Parser(make_context(), text).parse_module()
    with pytest.raises(CompileError, match=message):
        jit.compile_module(module, host())


HUGE = "llvm.mlir.constant(1073741824)"


def element(indices: str) -> str:
    kinds = f"<{{rawConstantIndices = array<i32: {indices}>, elem_type = i64}}>"
    return f'%q = "llvm.getelementptr"(%p) {kinds} : (!llvm.ptr) -> !llvm.ptr llvm.return'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "llvm.br ^a(%n : i64) ^a(%x: f32): llvm.return",
            "br: wrong types of arguments, .* f32, g",
        ),
        ("llvm.br ^a ^a: llvm.br ^b ^b: llvm.return", None),
        ('%c = "llvm.mlir.constant"() {value = 0.5 : f32} : () -> i64 llvm.return', "wrong value"),
        (
            "llvm.call @g(%n) : (i64) -> () llvm.return",
            "call: wrong types of operands, .* i32, got i6",
        ),
        (
            f"%c = {HUGE} : i64 %a = llvm.alloca %c x i64 : (i64) -> !llvm.ptr llvm.return",
            "alloca: wrong size, expected at most 1048576 elements, got 1073741824",
        ),
        (element("1, 1"), "getelementptr: wrong number of indices, expected 1, got 2"),
        (
            "%c = llvm.mlir.constant(dense<1.0> : vector<3xf32>) : vector<2xf32> llvm.return",
            r"constant: wrong value, expected vector<2xf32>, got dense<1.* vector<3xf32>",
        ),
    ],
)
def test_what_llvm_does_not_take(body: str, message: str | None) -> None:
    """Neither xDSL's verifier nor LLVM's builder finds it."""
    text = f"llvm.func @g(i32) llvm.func @f(%p: !llvm.ptr, %n: i64) {{ {body} }}"
    module = Parser(make_context(), text).parse_module()
    if message is None:
        jit.llvm_ir(module, host())
        return
    with pytest.raises(CompileError, match=message):
        jit.llvm_ir(module, host())


def test_texts() -> None:
    code = jit.compile_module(lowered(), host(), jit.Effort.O2)
    assert 'define internal i64 @"inner"' in code.llvm_ir
    assert "define internal" not in code.optimized_ir()
    assert "add:" in code.assembly()


def test_text_for_another_processor() -> None:
    ir = jit.llvm_ir(lowered(), named("neoverse-n1"))
    assert 'target triple = "aarch64' in ir
    assert "ret" in jit.assembly(ir, named("neoverse-n1"))
    assert jit.object_code(ir, named("neoverse-n1"))[:4] == b"\x7fELF"


def test_named_processor_of_this_machine_runs() -> None:
    if not host().triple.startswith("x86_64"):
        pytest.skip("not an x86-64")
    assert add(jit.compile_module(lowered(), named("x86-64")), 1, 2) == 3


def test_foreign_processor_does_not_run() -> None:
    foreign = "apple-m1" if host().triple.startswith("x86_64") else "x86-64"
    with pytest.raises(TargetError, match=f"{foreign}: cannot run here, expected"):
        jit.compile_module(lowered(), named(foreign))


def test_missing_feature_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    if not host().triple.startswith("x86_64"):
        pytest.skip("not an x86-64")
    features = ",".join(f"+{name}" for name in NEEDS["x86-64-v4"] if name != "avx512f")
    monkeypatch.setattr(machine, "host", lambda: replace(host(), features=features))
    with pytest.raises(TargetError, match="x86-64-v4: cannot run here, expected avx512f"):
        machine.check_runs_here(named("x86-64-v4"))


def test_unknown_triple() -> None:
    target = Target("odd", "toaster-none-elf", "", "", 128, 16)
    with pytest.raises(TargetError, match="target: unknown triple"):
        jit.assembly("", target)


def test_invalid_ir_is_reported() -> None:
    with pytest.raises(CompileError, match=r"llvm: invalid LLVM IR: .*expected"):
        jit.CompiledModule("define i64 @f( {", host(), jit.Effort.NONE)


DEBUGGED = """
define float @f(float %x) !dbg !3 {
  %y = call float @llvm.maximum.f32(float %x, float %x, float %x), !dbg !4
  ret float %y, !dbg !4
}
declare float @llvm.maximum.f32(float, float, float)
!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!1}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !2)
!2 = !DIFile(filename: "f", directory: ".")
!3 = distinct !DISubprogram(name: "f", scope: !2, file: !2, unit: !1, spFlags: DISPFlagDefinition)
!4 = !DILocation(line: 1, scope: !3)
"""


def test_invalid_ir_with_debug_information_is_reported(apart: Apart) -> None:
    """LLVM ends the process while it reads such a module."""
    outcome = apart(lambda: jit.CompiledModule(DEBUGGED, host(), jit.Effort.NONE))
    assert outcome.startswith("InternalError: llvm: invalid LLVM IR: Intrinsic has incorrect")


def test_text_that_llvm_refuses_is_no_internal_error() -> None:
    b = sw.Builder("main")
    b.output(b.relu(b.input("x", (4,))))
    text = sw.compile(b.module()).ir("llvm")
    wrong = sw.from_mlir(text.replace("llvm.return %0 : i32", "llvm.return %x : !llvm.ptr"))
    with pytest.raises(
        CompileError, match=r"^llvm: invalid LLVM IR: .* result type 'i32"
    ) as caught:
        sw.compile(wrong)
    assert not isinstance(caught.value, InternalError)


def test_operation_without_translation_is_named() -> None:
    text = """
    llvm.func @f() {
      %0 = llvm.intr.stacksave : !llvm.ptr loc("fc1")
      llvm.intr.stackrestore %0 : !llvm.ptr loc("fc1")
      llvm.return
    }
    """
    module = Parser(make_context(), text).parse_module()
    message = 'has no translation to LLVM IR \\(node "fc1"\\)'
    with pytest.raises(CompileError, match=message):
        jit.llvm_ir(module, host())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%0 = llvm.load %p : !llvm.ptr -> index", "llvm.load: has no translation to LLVM IR"),
        (
            "%0 = llvm.load %p : !llvm.ptr -> index llvm.br ^bb1(%0 : index) ^bb1(%q: index):",
            "llvm: cannot be translated: Type not supported: index",
        ),
        (
            "%0 = llvm.mlir.addressof @g : !llvm.ptr",
            "llvm.mlir.addressof: wrong symbol, expected a function or a global of the module",
        ),
    ],
)
def test_what_has_no_translation(body: str, message: str) -> None:
    text = f"llvm.func @f(%p: !llvm.ptr) {{ {body} llvm.return }}"
    module = Parser(make_context(), text).parse_module()
    with pytest.raises(CompileError, match=message):
        jit.llvm_ir(module, host())


def test_other_dialects_are_refused() -> None:
    module = Parser(make_context(), ADD).parse_module()
    with pytest.raises(CompileError, match=r"llvm: cannot be translated: .*func\.func"):
        jit.llvm_ir(module, host())


def test_values_may_be_defined_in_later_blocks_of_the_text() -> None:
    text = """
    llvm.func @add(%a: i64, %b: i64) -> i64 {
      llvm.br ^bb2
    ^bb1:
      llvm.return %s : i64
    ^bb2:
      %s = llvm.add %a, %b : i64
      llvm.br ^bb1
    }
    """
    module = Parser(make_context(), text).parse_module()
    module.verify()
    assert add(jit.compile_module(module, host()), 2, 3) == 5
