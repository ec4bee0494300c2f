"""Warnings of what goes: the standard ones, of the line of the user that leads to them."""

from __future__ import annotations

import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest

from stepwell.core.deprecation import warn_deprecated

INSIDE = """
import functools
from stepwell.core.deprecation import warn_deprecated

def outer():
    return Name().value

class Name:
    @functools.cached_property
    def value(self):
        warn_deprecated("old", "is deprecated", hint="use new")
        return 3
"""
TEXT = "old: is deprecated, which the next release refuses; use new"


def module_inside() -> types.ModuleType:
    """A module that counts as one of the package."""
    module = types.ModuleType("stepwell.inside")
    exec(compile(INSIDE, "inside.py", "exec"), module.__dict__)
    return module


def test_the_warning_is_of_the_line_that_calls_the_package() -> None:
    module = module_inside()
    with pytest.warns(DeprecationWarning, match=TEXT) as told:
        assert module.outer() == 3
    (warning,) = told
    assert (str(warning.message), warning.filename) == (TEXT, __file__)


def test_a_caller_outside_is_that_line_itself() -> None:
    with pytest.warns(DeprecationWarning, match=TEXT) as told:
        warn_deprecated("old", "is deprecated", hint="use new")
    assert told[0].filename == __file__


def test_it_can_be_an_error() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeprecationWarning, match=TEXT):
            module_inside().outer()


def test_scripts_see_it_at_their_line_also_where_it_is_an_import(tmp_path: Path) -> None:
    (tmp_path / "used.py").write_text(f"__name__ = 'stepwell.used'\n{INSIDE}\nouter()\n")
    (tmp_path / "script.py").write_text("import stepwell\n\nimport used\n")
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stderr == f"{tmp_path}/script.py:3: DeprecationWarning: {TEXT}\n  import used\n"
