"""What relies on how xDSL is made inside: it fails where a new version is made otherwise."""

from __future__ import annotations

import hashlib
import inspect
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern
from xdsl.utils.exceptions import ParseError
from xdsl.utils.mlir_lexer import MLIRLexer

from stepwell.core.ir import patched
from stepwell.core.ir.parsing import MlirParser
from stepwell.core.registry import make_context

WALKER = "73287fe10eb6792fb1d714c1345ff1b2a5ec1bb8b4491bd262019e9360e754ae"
STRING = r'"(?:[^"\\\n\v\f]+|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"'


class Nothing(RewritePattern):
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        pass


def test_the_walker_is_the_one_that_was_read() -> None:
    """Look at the new walker, and at `core/pipelines/actions.py` and
    `core/pipelines/fixpoint.py`, before the digest is changed."""
    assert metadata.version("xdsl").rpartition(".")[0] in patched.CHECKED_VERSIONS
    source = inspect.getsource(PatternRewriteWalker)
    assert hashlib.sha256(source.encode()).hexdigest() == WALKER


def test_only_inside_is_anything_around_walks() -> None:
    walker, seen = PatternRewriteWalker(Nothing()), list[str]()

    def noting(name: str) -> Callable[[patched.Walk], patched.Walk]:
        def around(whole: patched.Walk) -> patched.Walk:
            def walk(walker: PatternRewriteWalker, region: Region) -> bool:
                seen.append(name)
                return whole(walker, region)

            return walk

        return around

    def fail() -> None:
        with patched.walking(noting("outer")), patched.walking(noting("inner")):
            walker.rewrite_module(ModuleOp([]))
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert seen == ["outer", "inner"]
    walker.rewrite_module(ModuleOp([]))
    assert seen == ["outer", "inner"]


def test_threads_do_not_see_what_is_around_the_walks_of_others() -> None:
    walker = PatternRewriteWalker(Nothing())
    with ThreadPoolExecutor(1) as pool, patched.walking(lambda _: lambda walker, region: True):
        assert walker.rewrite_module(ModuleOp([]))
        assert not pool.submit(walker.rewrite_module, ModuleOp([])).result()


def test_strings_take_linear_time() -> None:
    """Upstream's pattern is what `LinearLexer` corrects, and is left as it is."""
    make_context()
    assert MLIRLexer._unescaped_characters_regex.pattern == STRING
    start = time.perf_counter()
    for text in ('"' + "a" * 60, 'builtin.module attributes {a = "' + "a" * 60):
        with pytest.raises(ParseError, match="string literal"):
            MlirParser(make_context(), text).parse_module()
    assert time.perf_counter() - start < 30


def test_strings_are_read_as_by_xdsl() -> None:
    text = r'builtin.module attributes {a = "b\0A\"c\\", d = ""} {}'
    module = MlirParser(make_context(), text).parse_module()
    assert isinstance(module, ModuleOp)
    assert [str(value) for value in module.attributes.values()] == [r'"b\0A\22c\\"', '""']
