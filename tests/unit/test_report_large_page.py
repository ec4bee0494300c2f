"""The page of a ResNet-50 in a real browser: how large it is, and that it does not stall."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.report.collecting import collect
from stepwell.report.page import page as page_of
from stepwell.runtime.profile import CallFacts

from .browser import all_of, choose, found, one, opened, show

MODEL = Path(onnx.__file__).parent / "backend/test/data/light/light_resnet50.onnx"

LARGEST = 3_000_000
"""The most bytes of the page, all scripts included."""

STEP, LAYOUT = 0.25, 2.0
"""The most seconds of the processor that a step of scrolling takes, and a layout of the graph: ten
times what they took when this was written."""

MOST_LINES = 400
"""The most lines in the page, of panes with thousands: those that are visible, and some more."""

STALL = 10.0
"""The most seconds of one task, on a machine that does much else."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found()
    file = tmp_path_factory.mktemp("report") / "report.html"
    module = sw.from_onnx(MODEL)
    inputs = [np.zeros(one.shape, np.float32) for one in module.inputs]
    text = page_of(collect(Compilation.of(Request(module, threads=1)), CallFacts(inputs=inputs)))
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def browser(page: Path) -> Iterator[Any]:
    """Chromium with the report open, which counts the time of its processor, and long tasks."""
    with opened(page) as browser:
        browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        browser.execute_script(
            """window.longTasks = [];
            const observer = new PerformanceObserver((list) =>
              window.longTasks.push(...list.getEntries().map((entry) => entry.duration / 1000)));
            observer.observe({ type: "longtask" });"""
        )
        yield browser
        assert max(browser.execute_script("return window.longTasks"), default=0.0) < STALL


def seconds(browser: Any, work: Callable[[], object]) -> float:
    """The seconds of the processor that the page works, without those that it waits for it."""

    def now() -> float:
        found = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(one["value"] for one in found if one["name"] == "TaskDuration")

    before = now()
    work()
    time.sleep(0.5)  # what follows is drawn
    return now() - before


def test_the_size_of_the_page(page: Path) -> None:
    print(f"{page.stat().st_size / 1e6:.1f} MB")
    assert page.stat().st_size < LARGEST


def test_scrolling_does_not_stall(browser: Any) -> None:
    show(browser, 0, "loops")
    show(browser, 1, "asm")
    steps = 60
    scroll = f"""const done = arguments[0], code = [...document.querySelectorAll(".code")];
    let step = 0;
    const next = () => {{
      for (const one of code) one.scrollTop = step * one.scrollHeight / {steps};
      if (++step < {steps}) requestAnimationFrame(next); else done(true);
    }};
    next();"""
    longest = """const lines = (kernel) => stepwellReport.model.functions("asm", kernel)
      .reduce((sum, part) => sum + part.lines.length, 0);
    const numbers = [...stepwellReport.model.report.kernels.keys()];
    return String(d3.greatest(numbers, lines));"""
    for kernel in (browser.execute_script(longest), "-1"):
        choose(browser, one(browser, 'select[aria-label="kernel"]'), kernel)
        spent = seconds(browser, lambda: browser.execute_async_script(scroll))
        print(f"{1e3 * spent / steps:.0f} ms for a step of scrolling")
        assert spent / steps < STEP
        tops = browser.execute_script(
            "return [...document.querySelectorAll('.code')].map((one) => one.scrollTop)"
        )
        assert min(tops) > 1000
        assert len(all_of(browser, ".line")) < MOST_LINES, "what is not visible is not in the page"


def test_groups_expand_without_a_stall(browser: Any) -> None:
    collapse, expand = (
        one(browser, f'button[aria-label="{what} all groups"]') for what in ("collapse", "expand")
    )
    collapsed = seconds(browser, collapse.click)
    few = len(all_of(browser, ".node"))
    expanded = seconds(browser, expand.click)
    print(
        f"{1e3 * collapsed:.0f} ms to collapse all groups, {1e3 * expanded:.0f} ms to expand them"
    )
    assert max(collapsed, expanded) < LAYOUT
    assert len(all_of(browser, ".node")) > few > 20
