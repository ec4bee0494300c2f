"""`stepwell-opt`: one line for each error, weights beside the text, one list of passes."""

from __future__ import annotations

import argparse
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from xdsl.ir import Attribute
from xdsl.universe import Universe

from stepwell.core.ir.weights import WeightStore
from stepwell.core.registry import own_dialects, own_passes, passes
from stepwell.tools import stepwell_opt
from stepwell.tools.driver_arguments import DriverArguments
from stepwell.tools.spellings import own_spelling

ADD = """func.func @f(%a: i32) -> i32 {
  %unused = arith.addi %a, %a : i32
  func.return %a : i32
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "m.mlir"
    path.write_text(ADD)
    return path


def failure(args: list[str], capsys: pytest.CaptureFixture[str], lines: int = 1) -> str:
    """What the command prints to stderr, in so many lines, before it exits with 1."""
    with pytest.raises(SystemExit) as stop:
        stepwell_opt.main(args)
    assert stop.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == lines, printed.err
    return printed.err.strip()


def test_runs_passes_of_xdsl(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stepwell_opt.main([str(source), "-p", "canonicalize"])
    printed = capsys.readouterr().out
    assert "func.return %a" in printed
    assert "addi" not in printed


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ("canonicalise", 'pipeline: unknown pass "canonicalise"; nearest names: canonicalize'),
        ("canonicalize{", "pipeline: cannot read 'canonicalize{': Expected argument name here"),
        ("canonicalize{x=1}", "canonicalize: bad options: "),
        ("canonicalize,,cse", "pipeline: "),
    ],
)
def test_bad_pipeline(
    source: Path, passes: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert failure([str(source), "-p", passes], capsys).startswith(
        f"stepwell-opt: error: {message}"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @f( {", "m.mlir:1:15: Expected argument or type"),
        ('"foo.bar"() : () -> ()', "m.mlir:1:2: Operation foo.bar is not registered"),
        (
            "func.func @f() -> i32 { func.return }",
            "m.mlir:1:25: Expected arguments to have the same types as the function output types",
        ),
        (
            "func.func @f() { func.return }\nfunc.func @g() {\n  %x = graph.sqrt\n}",
            "m.mlir:4:1: ",
        ),
        (
            '"test.op"() ({\n  "test.op"() : () -> ()\n^b:\n "test.op"() : () -> ()\n}) : () -> ()',
            "m.mlir:2:3: Operation test.op terminates block",
        ),
        ("(" * 20_000, "m.mlir:1:65: nested too deeply, expected at most 64 brackets"),
    ],
)
def test_bad_text(
    source: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source.write_text(text)
    assert message in failure([str(source)], capsys, lines=3)


RETURN = "  func.return %x : tensor<4xf32>\n}\n"
WIDE = "#sparse_tensor.encoding<{map = (d0) -> (d0 : dense), posWidth = 7}>"
RELU = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            f"{RELU}\t%y = graph.rellu %x : (tensor<4xf32>) -> tensor<4xf32>",
            [
                "m.mlir:2:7: Operation graph.rellu is not registered; nearest names: graph.relu, ",
                "   %y = graph.rellu %x : (tensor<4xf32>) -> tensor<4xf32>",
                "        ^^^^^^^^^^^",
            ],
        ),
        (
            f"{RELU}  %y = graph.relu %z : (tensor<4xf32>) -> tensor<4xf32>\n{RETURN}",
            [
                "m.mlir:2:19: %z is used but not defined",
                "    %y = graph.relu %z : (tensor<4xf32>) -> tensor<4xf32>",
                "                    ^^",
            ],
        ),
        (
            '"grap.relu"() : () -> ()',
            [
                "m.mlir:1:2: Operation grap.relu is not registered; nearest dialects: graph",
                '  "grap.relu"() : () -> ()',
                "   ^^^^^^^^^",
            ],
        ),
        (
            f"{RELU}  %y = graph.relu %x : (tensor<4xf32>) -> tensor<5xf32>  // relu\n{RETURN}",
            [
                "m.mlir:2:3: graph.relu: result type differs, expected tensor<4xf32>, got ",
                "    %y = graph.relu %x : (tensor<4xf32>) -> tensor<5xf32>  // relu",
                f"    {'^' * 53}",
            ],
        ),
        (
            f'func.func @f() {{\n  "test.op"() {{a = {WIDE}}} : () -> ()\n}}',
            ["m.mlir:2:3: cannot parse: ", '    "test.op"() {a', f"    {'^' * 20}"],
        ),
        (f"{' ' * 200}xx{' ' * 200}", ["m.mlir:1:201: ", " " * 62 + "xx", " " * 62 + "^^"]),
    ],
)
def test_the_place_in_the_text_is_shown(
    source: Path, text: str, shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    source.write_text(text)
    lines = failure([str(source)], capsys, lines=3).splitlines()
    assert shown[0] in lines[0]
    assert [line[: len(begin)] for line, begin in zip(lines[1:], shown[1:], strict=True)] == shown[
        1:
    ]


def test_the_place_in_a_part_of_the_text(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = f"{RELU}  %y = graph.relu %x : (tensor<4xf32>) -> tensor<5xf32>\n{RETURN}"
    source.write_text(f"builtin.module {{}}\n// -----\n\n{wrong}")
    with pytest.raises(SystemExit):
        stepwell_opt.main([str(source), "--split-input-file"])
    first, line, marks = capsys.readouterr().err.splitlines()
    assert f"{source}:5:3: graph.relu: " in first
    assert (line, marks) == (f"  {wrong.splitlines()[1]}", f"    {'^' * 53}")


def test_text_nested_too_deeply(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source.write_text("builtin.module {" * 5_000 + "}" * 5_000)
    said = failure([str(source)], capsys, lines=3)
    assert "nested too deeply" in said
    assert max(map(len, said.splitlines())) < 200


def test_no_such_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing.mlir"
    expected = f"stepwell-opt: error: cannot open {missing}: No such file or directory"
    assert failure([str(missing)], capsys) == expected


def test_what_is_no_mlir(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, text = tmp_path / "m.onnx", tmp_path / "m.txt"
    for path in (model, text):
        path.write_text(ADD)
    assert failure([str(model)], capsys) == (
        f"stepwell-opt: error: {model}: not a file of MLIR text, expected .mlir, got m.onnx; "
        f"stepwell compile {model} --emit graph prints it as MLIR text"
    )
    assert failure([str(text)], capsys).endswith("got m.txt; -f mlir reads it anyway")
    stepwell_opt.main([str(text), "-f", "mlir"])
    assert "func.func @f" in capsys.readouterr().out
    folder = f"stepwell-opt: error: cannot open {tmp_path}: Is a directory"
    assert failure([str(tmp_path)], capsys) == folder


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["--print-ir-afer", "cse"],
            "unrecognized arguments: --print-ir-afer; nearest names: --print-ir-after, ",
        ),
        (["-p"], "argument -p/--passes: expected one argument"),
        (["-t", "paper"], "argument -t/--target: invalid choice: 'paper' (choose from "),
    ],
)
def test_wrong_options(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        stepwell_opt.main(args)
    assert stop.value.code == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"stepwell-opt: error: {message}")
    assert printed.count("\n") == 1


UNREGISTERED = """pdl.pattern : benefit(1) {
  %t = pdl.type
  %x = pdl.operand : %t
  %y = pdl.operand : %t
  %op = pdl.operation "arith.addi" (%x, %y : !pdl.value, !pdl.value) -> (%t : !pdl.type)
  pdl.rewrite %op {
    %new = pdl.operation "arith.adi" (%x : !pdl.value) -> (%t : !pdl.type)
    pdl.replace %op with %new
  }
}
"""


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ('apply-pdl{pdl-file="no.pdl"}', "apply-pdl: pdl-file: cannot read no.pdl: No such file"),
        ('func.func(apply-pdl{pdl-file="."})', "func.func(apply-pdl): pdl-file: cannot read .: Is"),
        ('apply-pdl{pdl-file="binary"}', "apply-pdl: pdl-file: cannot read binary: not a text"),
        ('apply-pdl{pdl-file="half"}', "apply-pdl: cannot read half:2:1: "),
        ('apply-pdl{pdl-file="pattern"}', "apply-pdl: cannot use pattern: Could not find op type"),
        ("apply-pdl{pdl-file=p.mlir}", "pipeline: cannot read 'apply-pdl{pdl-file=p.mlir}': Unkn"),
        ('eqsat-add-costs{cost-file="half"}', "eqsat-add-costs: cannot use half: Expecting value"),
        ('apply-pdl-interp{pdl-interp-file="m.mlir"}', "apply-pdl-interp: no patterns in m.mlir, "),
        ('apply-pdl{pdl-file="m.mlir"}', "apply-pdl: no patterns in m.mlir, expected pdl.pattern"),
        ("apply-pdl", "apply-pdl: no patterns in the module, expected pdl.pattern, got none"),
        (
            "apply-pdl-interp",
            "apply-pdl-interp: no patterns in the module, expected pdl_interp.func",
        ),
        ("mlir-opt{executable=no}", "mlir-opt: no is not available"),
    ],
)
def test_files_of_passes(
    source: Path,
    passes: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(source.parent)
    source.write_text(ADD.replace("return %a", "return %unused"))
    Path("binary").write_bytes(b"\xff\xfe")
    Path("half").write_text("func.func @f(\n")
    Path("pattern").write_text(UNREGISTERED)
    printed = failure(["m.mlir", "-p", passes], capsys)
    assert printed.startswith(f"stepwell-opt: error: {message}")
    assert printed.endswith('; quote the value: pdl-file="p.mlir"') == ("p.mlir" in passes)


def test_input_that_is_no_text(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = source.with_suffix("")
    assert failure([str(missing)], capsys).endswith("/m: No such file or directory")
    source.write_bytes(b"\xff\xfe\x00")
    assert failure([str(source)], capsys).endswith("/m.mlir: not a text")
    source.write_bytes(b"")
    assert failure([str(source)], capsys).endswith("m.mlir:1:1: expected an operation")


@pytest.mark.parametrize("target", ["llvm", "x86-asm"])
def test_a_target_of_other_operations(
    source: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    message = f"stepwell-opt: error: --target {target}: it cannot print these operations"
    assert failure([str(source), "-t", target], capsys).startswith(message)


def test_traceback_on_demand(source: Path) -> None:
    source.write_text("func.func @f( {")
    with pytest.raises(Exception, match="Expected argument or type"):
        stepwell_opt.main([str(source), "--traceback"])


def test_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ADD.encode())))
    stepwell_opt.main(["-"])
    assert "addi" in capsys.readouterr().out


def test_parsing_diagnostics_are_output(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source.write_text("func.func @f( {")
    stepwell_opt.main([str(source), "--parsing-diagnostics"])
    assert "Expected argument or type" in capsys.readouterr().out


def test_weights_go_along(source: Path, tmp_path: Path) -> None:
    weights = WeightStore()
    weights.add("w0", np.arange(6, dtype=np.float32).reshape(2, 3))
    weights.save(source.with_suffix(".safetensors"))
    stepwell_opt.main([str(source), "-o", str(tmp_path / "out.mlir")])
    assert (tmp_path / "out.mlir").read_text().startswith("builtin.module")
    written = WeightStore.load(tmp_path / "out.safetensors")
    assert np.array_equal(written["w0"], weights["w0"])  # type: ignore[arg-type]


def test_passes_from_a_file(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    passes = tmp_path / "passes.txt"
    passes.write_text("# first\ncanonicalize,\n# second\ncse\n")
    for option in (["-p", f"@{passes}"], ["--pass-pipeline-file", str(passes)]):
        stepwell_opt.main([str(source), *option, "--dump-pass-pipeline"])
        printed = capsys.readouterr()
        assert printed.err == "builtin.module(canonicalize,cse)\n"
        assert "addi" not in printed.out


def test_passes_from_no_file(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing, binary = tmp_path / "missing", tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    for option, path, reason in (
        ("-p", missing, "No such file or directory"),
        ("--pass-pipeline-file", binary, "not a text"),
    ):
        given = f"@{path}" if option == "-p" else str(path)
        expected = f"stepwell-opt: error: {option}: cannot read {path}: {reason}"
        assert failure([str(source), option, given], capsys) == expected
    for option in ("--pass-pipeline-file", "--pass-pipeline"):
        twice = [str(source), "-p", "cse", option, str(binary)]
        assert failure(twice, capsys) == (
            f"stepwell-opt: error: {option}: the passes are given twice, expected no -p"
        )


def test_passes_as_for_mlir_opt(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nested = "builtin.module(func.func(canonicalize,cse),graph-fuse-ops{max-ops=2})"
    (tmp_path / "passes.txt").write_text(nested)
    for text in (nested, f"@{tmp_path / 'passes.txt'}"):
        stepwell_opt.main([str(source), f"--pass-pipeline={text}", "--dump-pass-pipeline"])
        assert capsys.readouterr().err == f"{nested}\n"


def test_errors_as_json(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = json.loads(failure([str(source), "-p", "csee", "--json"], capsys))
    assert message == {
        "report": "error",
        "message": 'pipeline: unknown pass "csee"; nearest names: cse',
    }


def test_interrupted(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ctrl-C in a pass: one line, 130, the old output unharmed and nothing beside it."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    output, tree = tmp_path / "out.mlir", tmp_path / "tree"
    output.write_text("as it was")
    monkeypatch.setattr("stepwell.passes.graph.cse.GraphCsePass.apply", interrupt)
    args = ["-p", "graph-dce,graph-cse", "--print-ir-tree-dir", str(tree)]
    with pytest.raises(SystemExit) as stop:
        stepwell_opt.main([str(source), "-o", str(output), *args])
    assert stop.value.code == 130
    assert capsys.readouterr().err == "stepwell-opt: interrupted\n"
    assert output.read_text() == "as it was"
    written = sorted(path.name for path in tmp_path.glob("**/*") if path.is_file())
    assert written == ["000_input.mlir", "001_graph-dce.mlir", "m.mlir", "out.mlir"]


def test_damaged_weights(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source.with_suffix(".safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}")
    assert "weights: cannot read" in failure([str(source)], capsys)


def test_output_is_written_whole_or_not_at_all(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.mlir"
    output.write_text("as it was")
    failure([str(source), "-o", str(output), "-p", "no-such-pass"], capsys)
    source.write_text("func.func @f( {")
    failure([str(source), "-o", str(output)], capsys, lines=3)
    assert output.read_text() == "as it was"


def test_output_folder_that_is_not_there(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "no" / "out.mlir"
    assert failure([str(source), "-o", str(output)], capsys).endswith(
        f"cannot write {output}: No such file or directory"
    )


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--canonicalize --cse", "--passes-by-name=canonicalize,cse"),
        ("-cse m.mlir", "m.mlir --passes-by-name=cse"),
        ("--graph-fuse-ops=max-ops=1", "--passes-by-name=graph-fuse-ops{max-ops=1}"),
        ("--mlir-print-ir-after=cse -p cse", "--print-ir-after=cse -p cse"),
        ("--mlir-print-ir-before-all --mlir-timing", "--print-ir-before-all --timing"),
        ("--mlir-print-op-generic --mlir-pass-statistics", "--print-op-generic --statistics"),
        ("--mlir-elide-elementsattrs-if-larger=4", "--elide-constants=4"),
        ("--mlir-print-ir-module-scope --verify-each --verify-each=true", ""),
        ("--verify-each=0 --show-dialects", "--disable-verify --list-dialects"),
    ],
)
def test_spellings_of_mlir_opt(typed: str, meant: str) -> None:
    assert own_spelling(typed.split(), passes()) == meant.split()


def test_passes_are_no_other_options() -> None:
    parser = argparse.ArgumentParser()
    arguments = DriverArguments(["-p", "cse"])
    arguments.register_all_arguments(parser)
    options = {name.lstrip("-") for name in parser._option_string_actions}
    assert not options & passes().keys()


def test_passes_by_name(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stepwell_opt.main([str(source), "--canonicalize"])
    assert "addi" not in capsys.readouterr().out
    message = "stepwell-opt: error: --PASS: the passes are given twice, expected no -p"
    assert failure([str(source), "--cse", "-p", "cse"], capsys) == message
    message = "--verify-each: wrong value, expected true or false, got no"
    assert message in failure([str(source), "--verify-each=no"], capsys)
    with pytest.raises(SystemExit, match="2"):
        stepwell_opt.main([str(source), "--canonicalise"])
    assert "nearest names: --canonicalize, " in capsys.readouterr().err


def test_invalid_modules_with_and_without_verification(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without verification xDSL's driver replaces it for the rest of the process.
    monkeypatch.setattr(Attribute, "__post_init__", Attribute.__post_init__)
    source.write_text("func.func @f() -> i32 {\n  func.return\n}\n")
    assert "Expected arguments" in failure([str(source), "--verify-each"], capsys, lines=3)
    stepwell_opt.main([str(source), "--verify-each=false"])
    assert "func.return" in capsys.readouterr().out


def test_list_of_dialects(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        stepwell_opt.main(["--list-dialects"])
    ours, _, others = capsys.readouterr().out.partition("dialects of xDSL")
    assert ours.split() == ["dialects", "of", "stepwell:", *own_dialects()]
    assert {"arith", "builtin", "scf"} <= set(others.split())


def test_a_start_imports_no_compilation() -> None:
    """Neither the dialects of kernels and of code, nor LLVM, for a module that has none."""
    code = (
        "import io, sys; from stepwell.tools import stepwell_opt\n"
        "sys.stdin = io.TextIOWrapper(io.BytesIO(b'func.func @f() { func.return }'))\n"
        "stepwell_opt.main(['--canonicalize'])\n"
        "heavy = [name for name in sys.modules if 'stepwell.dialects.' in name\n"
        "         or name in ('llvmlite', 'onnx', 'stepwell.driver.compilation')]\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_list_of_rules(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        stepwell_opt.main(["--list-rules"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert "SubtractNegated (exact): graph-simplify\n  x - -y == x + y\n" in printed
    assert (
        "Idempotent (exact): canonicalize graph.abs, graph.relu\n  f(t := f(x)) == t\n" in printed
    )
    assert "ShortenBound (exact): canonicalize loop.for\n" in printed
    assert "\nChosenTwice (exact): graph-raise-messages\n" in printed
    assert re.search(r"\): *$", printed, re.MULTILINE) is None, "a rule that nothing uses"


def test_list_of_passes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        stepwell_opt.main(["--list-passes"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    ours, _, others = printed.partition("passes of xDSL")
    for name in own_passes():
        assert f"  {name} " in ours
    fuse = "Group operators and move each group into a primitive function, one kernel each"
    assert f"  graph-fuse-ops                   {fuse}\n" in ours
    option = "max-ops (int, default 0): The largest number of operators in a group, at most 100"
    assert option in ours
    assert "  canonicalize " in others
    assert "      inline-blocks (bool, default " not in ours


def test_help_of_a_pass(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        stepwell_opt.main(["--help-pass", "graph-bind-params"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith("graph-bind-params\n\n  Replace the arguments of a program")
    assert "func.func @main" in printed
    assert '\noptions:\n  path (str, default ""): A `.safetensors`' in printed
    assert "\n  names (tuple[str, ...], default none): The arguments to bind" in printed


def test_help_of_inherited_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        stepwell_opt.main(["--help-pass", "loop-sink"])
    options = capsys.readouterr().out.partition("\noptions:\n")[2].splitlines()
    kernel = "The kernel; may be omitted if the module has only one."
    assert options == [
        f"  kernel (str | None, default none): {kernel}",
        '  loop (str, default ""): The outer loop.',
    ]


def test_every_option_has_a_help() -> None:
    parser = argparse.ArgumentParser()
    DriverArguments(["-"]).register_all_arguments(parser)
    assert not [action.dest for action in parser._actions if not action.help]


def test_help_of_a_pass_without_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        stepwell_opt.main(["--help-pass", "graph-cse"])
    assert capsys.readouterr().out.endswith("\nno options\n")


def test_help_of_no_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert failure(["--help-pass", "graph-ces"], capsys) == (
        'stepwell-opt: error: --help-pass: unknown pass "graph-ces"; nearest names: graph-dce, '
        "graph-cse, graph-defuse"
    )


def test_plain_xdsl_sees_dialects_and_passes() -> None:
    """The entry point is installed, and no name clashes with xDSL's."""
    multiverse = Universe.get_multiverse()
    assert own_dialects().keys() <= multiverse.all_dialects.keys()
    assert own_passes().keys() <= multiverse.all_passes.keys()
