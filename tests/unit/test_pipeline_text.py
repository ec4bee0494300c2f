"""The text of a pipeline: nested passes, what is wrong with it, and one form for all."""

from __future__ import annotations

import re

import pytest

import stepwell as sw
from stepwell.core import registry
from stepwell.core.pipelines.text import canonical, parse_passes


def read(text: str) -> str:
    return canonical(parse_passes(text, registry.passes()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "builtin.module()"),
        ("cse", "builtin.module(cse)"),
        ("cse,", "builtin.module(cse)"),
        ("builtin.module(cse)", "builtin.module(cse)"),
        ("# first\n cse ,\n# second\n canonicalize\n", "builtin.module(cse,canonicalize)"),
        ("graph-fuse-ops{max-ops=1}", "builtin.module(graph-fuse-ops{max-ops=1})"),
        ("graph-fuse-ops{max-staged-width=64}", "builtin.module(graph-fuse-ops)"),
        (
            "builtin.module( cse, func.func( canonicalize, cse ), loop.kernel(cse) )",
            "builtin.module(cse,func.func(canonicalize,cse),loop.kernel(cse))",
        ),
        (
            "func.func(cse),func.func(graph-fuse-ops{max-ops=2})",
            "builtin.module(func.func(cse,graph-fuse-ops{max-ops=2}))",
        ),
        (
            "builtin.module(cse),builtin.module(cse)",
            "builtin.module(builtin.module(cse,cse))",
        ),
        (
            "graph-bind-params{names=x,y},cse",
            'builtin.module(graph-bind-params{names="x","y"},cse)',
        ),
        (
            'graph-bind-params{path="a,b(c"},cse',
            'builtin.module(graph-bind-params{path="a,b(c"},cse)',
        ),
    ],
)
def test_canonical_text(text: str, expected: str) -> None:
    assert read(text) == expected
    assert read(expected) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func(cse", "pipeline: parentheses do not match in 'func.func(cse'"),
        ("cse)", "pipeline: parentheses do not match in 'cse)'"),
        (",cse", "pipeline: cannot read ',cse': Expected pass name here"),
        (
            "cse(canonicalize)",
            (
                "pipeline: malformed nesting, expected an operation and passes "
                "in parentheses, such as func.func(cse), got cse(canonicalize)"
            ),
        ),
        (
            "func.fun(cse)",
            (
                'pipeline: passes are nested in an unknown operation "func.fun"; '
                "nearest names: func.func"
            ),
        ),
        ("no.such(cse)", 'pipeline: passes are nested in an unknown operation "no.such"'),
        (
            "scf.for(cse)",
            (
                "pipeline: passes are nested in scf.for, expected an operation isolated from "
                "above, such as func.func"
            ),
        ),
        ("func.func(csee)", 'pipeline: unknown pass "csee"; nearest names: cse'),
        (
            "graph-fuse-ops{max-op=1}",
            (
                'graph-fuse-ops: bad options: there is no "max-op", expected max-ops, '
                "max-staged-width; nearest name: max-ops"
            ),
        ),
        ("graph-cse{x=1}", 'graph-cse: bad options: there is no "x", expected none'),
        (
            "graph-fuse-ops{max-ops=x}",
            "graph-fuse-ops: bad options: wrong max-ops, expected int, got x",
        ),
    ],
)
def test_wrong_texts(text: str, message: str) -> None:
    with pytest.raises(sw.CompileError, match=f"^{re.escape(message)}"):
        read(text)
