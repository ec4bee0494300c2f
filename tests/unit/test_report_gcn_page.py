"""The page of a graph network in a real browser: patterns, schedules, modules, and the way back."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepwell as sw
from stepwell.core.target import named
from stepwell.dialects.loop.ops import KernelOp
from stepwell.dialects.loop.trace import structure_of
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.frontends import gnn
from stepwell.passes.loop.scheduler.records import Record, write_records

from ..harness import floats
from .browser import (
    ENTER,
    all_of,
    begin_again,
    choose,
    chosen,
    focus,
    found,
    marked,
    node,
    one,
    opened,
    press,
    show,
    soon,
)

EDGES = np.array([[0, 1, 2, 3, 3, 4], [1, 2, 3, 0, 4, 0]])
ENTRIES = {(1, 0), (2, 1), (3, 2), (0, 3), (4, 3), (0, 4)}
"""The entries of the graph's matrix: edges begin in its columns."""

TRIALS = {"split(i, 4)": (1.5, 1.25, False), "vectorize(j)": (0.5, 0.75, True)}
"""Schedules with their predicted and measured times, and whether they were kept."""

MULTIPLICATION = re.compile(r"fmadd|fmla|mulp|mulss|fmul")
"""What multiplies on x86-64 and AArch64."""


def network() -> sw.Module:
    """Two graph convolutions, in modules."""
    b = sw.Builder("net")
    graph = b.input("graph", sw.SparseSpec(("nodes", "nodes"), "f32", "edges"))
    h = b.input("x", ("nodes", 8), "f32")
    a = b.normalize(graph, name="encoder/norm")
    for name, shape in (("conv1", (16, 8)), ("conv2", (4, 16))):
        h = b.dense(h, floats(*shape), name=f"encoder/{name}/lin")
        h = b.spmm(a, h, name=f"encoder/{name}/spmm")
        h = b.relu(h, name=f"encoder/act_{name}")
    b.output(b.softmax(h, name="head"), name="y")
    return b.module()


def report(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, target = network(), named("host")
    kernels = Compilation.of(Request(module, target, threads=1)).at("kernels").op.ops
    key = next(structure_of(op) for op in kernels if isinstance(op, KernelOp))
    records = [
        Record(key, target.cpu, 1, trace, measured, kept=kept, predicted=predicted)
        for trace, (predicted, measured, kept) in TRIALS.items()
    ]
    write_records(path.parent / "records", records)
    monkeypatch.setenv("STEPWELL_TUNING", str(path.parent / "records"))
    exe = sw.compile(module, target, threads=1, records=False)
    exe.report(path, inputs=(gnn.Graph.from_edge_index(EDGES, 5), floats(5, 8)), repeat=2)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium with the report open."""
    found()
    page = tmp_path_factory.mktemp("report") / "report.html"
    with pytest.MonkeyPatch.context() as monkeypatch:
        report(page, monkeypatch)
    with opened(page) as browser:
        yield browser


@pytest.fixture(autouse=True)
def fresh(browser: Any) -> None:
    """Each test begins with the first view, grouped by kernels, and nothing selected."""
    begin_again(browser)
    choose(browser, one(browser, 'select[aria-label="group by"]'), "kernel")


def view(browser: Any, name: str) -> None:
    one(browser, f"#tab-{name}").click()


def test_the_pattern_of_the_graph(browser: Any) -> None:
    view(browser, "Sparsity")
    assert [e.text for e in all_of(browser, ".card h3")] == ["graph"]
    text = "5 \N{MULTIPLICATION SIGN} 5, 6 entries (24 %), at most 2 in a row"
    assert one(browser, ".card p").text == text
    script = """const canvas = document.querySelector("canvas.spy");
    const { width, height } = canvas, cell = width / 5, found = [];
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    for (let row = 0; row < 5; row++) for (let column = 0; column < 5; column++) {
      const place = Math.floor((row + 0.5) * cell) * width + Math.floor((column + 0.5) * cell);
      if (data[4 * place + 3]) found.push([row, column]);
    }
    return found;"""
    assert {tuple(place) for place in browser.execute_script(script)} == ENTRIES


def test_the_histogram_of_row_lengths(browser: Any) -> None:
    view(browser, "Sparsity")
    soon(browser, "rect.column")
    # In one step: the chart is drawn again when its size changes.
    script = """const all = (selector) => [...document.querySelectorAll(selector)];
    return [all("rect.column").map((e) => [e.textContent, e.getBBox().height]),
      all(".card .chart text").map((e) => e.textContent)]"""
    ((few, low), (many, high)), texts = browser.execute_script(script)
    assert (few, many) == ("4 rows from 1", "1 row from 2")
    assert low == pytest.approx(4 * high)
    assert {"entries in a row", "rows", "1", "2"} <= {*texts}


def test_schedules_by_click(browser: Any) -> None:
    view(browser, "Tuning")
    dots = soon(browser, ".chart .kernel-dot")
    assert len(dots) == 3  # the default schedule is at 1, 1
    script = "return arguments[0].map((e) => [e.cx.baseVal.value, e.cy.baseVal.value])"
    (same_x, same_y), (slow_x, slow_y), (fast_x, fast_y) = browser.execute_script(script, dots)
    assert fast_x < same_x < slow_x
    assert fast_y > same_y > slow_y  # down is less
    script = """const shown = document.querySelectorAll("main > :not([hidden]) .axis text");
    return [...shown].map((e) => e.textContent)"""
    ticks = browser.execute_script(script)
    assert {"0.5", "0.7", "1"} <= {*ticks}
    assert "" not in ticks
    dots[2].click()
    name, text = one(browser, ".note").text.split(": ", 1)
    assert text == "kept, measured 0.75, predicted 0.5\nvectorize(j)"
    assert "marked" in soon(browser, ".chart .kernel-dot")[2].get_attribute("class").split()
    view(browser, "Staircase")
    assert marked(browser, 0)[0].startswith(f"kernel {name}(")


def test_schedules_by_keys(browser: Any) -> None:
    view(browser, "Tuning")
    browser.execute_script("""document.querySelector(".note").textContent = "" """)
    time.sleep(0.2)
    focus(browser, soon(browser, ".chart .kernel-dot")[1])
    press(browser, ENTER)
    assert one(browser, ".note").text.endswith(": measured 1.25, predicted 1.5\nsplit(i, 4)")
    time.sleep(0.2)  # the note may change the size of the chart, which is drawn again
    assert browser.switch_to.active_element == soon(browser, ".chart .kernel-dot")[1]
    press(browser, "\ue004")  # Tab, to the next one
    press(browser, ENTER)
    assert one(browser, ".note").text.endswith("\nvectorize(j)")


def test_an_instruction_leads_back_to_code_and_graph(browser: Any) -> None:
    node(browser, "dense encoder/conv2/lin").click()
    show(browser, 1, "asm")
    begin = """stepwellReport.selection.set(
      { nodes: [], origins: [], kernel: stepwellReport.selection.kernel }, null);"""
    browser.execute_script(begin)
    assert marked(browser, 0) == []
    pane = all_of(browser, ".code")[1]
    focus(browser, pane)
    rows = "return stepwellReport.tabs[0][2].panes[1].rows.map((row) => row.text)"
    texts = browser.execute_script(rows)
    place = next(n for n, text in enumerate(texts) if MULTIPLICATION.search(text))
    browser.execute_script("arguments[0].scrollTop = 18 * arguments[1] - 90", pane, place)
    (line,) = soon(browser, f'.pane:last-child .line[data-row="{place}"]')
    line.click()
    pseudo = marked(browser, 0)
    assert any(" * " in text for text in pseudo)
    assert not any(text.startswith("kernel ") for text in pseudo)
    assert chosen(browser)
    assert all(label.startswith(("dense ", "spmm ", "normalize ")) for label in chosen(browser))
    assert MULTIPLICATION.search("\n".join(marked(browser, 1)))


def test_modules_collapse(browser: Any) -> None:
    choose(browser, one(browser, 'select[aria-label="group by"]'), "module")
    shown = {e.get_attribute("aria-label") for e in all_of(browser, ".node")}
    assert {"dense encoder/conv1/lin", "relu encoder/act_conv1", "softmax head"} <= shown
    title = one(browser, '.cluster text[aria-label="collapse encoder"]')
    focus(browser, title)
    press(browser, ENTER)
    left = {e.get_attribute("aria-label") for e in all_of(browser, ".node")}
    assert left == {"input graph", "input x", "group encoder", "softmax head", "output y"}
    from selenium.webdriver import ActionChains

    node(browser, "group encoder").click()
    assert "encoder/conv2/lin" in one(browser, ".details").text
    ActionChains(browser).double_click(node(browser, "group encoder")).perform()
    assert {e.get_attribute("aria-label") for e in all_of(browser, ".node")} == shown


def scale(browser: Any) -> float:
    script = "return d3.zoomTransform(document.querySelector('.graph')).k"
    return browser.execute_script(script.replace("d3.", "window.d3."))


def settled(browser: Any) -> float:
    """The scale of the graph when transitions have ended."""
    done = """const done = arguments[0];
    const graph = document.querySelector(".graph");
    const wait = () => (d3.active(graph) ? setTimeout(wait, 20) : done(true));
    setTimeout(wait, 50);"""
    browser.execute_async_script(done)
    return scale(browser)


def test_the_whole_graph_is_shown_however_small_it_is(browser: Any) -> None:
    outside = """const around = document.querySelector(".graph").getBoundingClientRect();
    return [...document.querySelectorAll(".graph .node")].filter((node) => {
      const own = node.getBoundingClientRect();
      return own.left < around.left || own.right > around.right
        || own.top < around.top || own.bottom > around.bottom;
    }).length;"""
    size = browser.get_window_size()
    browser.set_window_size(1000, 480)
    try:
        one(browser, 'button[aria-label="show the whole graph"]').click()
        assert settled(browser) < 0.8
        assert browser.execute_script(outside) == 0
        one(browser, 'button[aria-label="expand all groups"]').click()
        assert settled(browser) == 0.8, "a graph begins with a scale at which names can be read"
        assert browser.execute_script(outside) > 0
    finally:
        browser.set_window_size(size["width"], size["height"])


def test_zoom(browser: Any) -> None:
    one(browser, 'button[aria-label="show the whole graph"]').click()
    before = settled(browser)
    one(browser, 'button[aria-label="zoom in"]').click()
    assert settled(browser) == pytest.approx(1.4 * before)
    for _ in range(4):
        one(browser, 'button[aria-label="zoom out"]').click()
        settled(browser)
    assert scale(browser) == pytest.approx(before / 1.4**3)
    far = "far" in one(browser, ".graph").get_attribute("class").split()
    assert far == (scale(browser) < 0.45)
    wheel = """arguments[0].dispatchEvent(new WheelEvent("wheel", { deltaY: -400, clientX: 200,
      clientY: 200, bubbles: true, cancelable: true }))"""
    browser.execute_script(wheel, one(browser, ".graph"))
    assert settled(browser) > 1.2 * before / 1.4**3
    one(browser, 'button[aria-label="show the whole graph"]').click()
    assert settled(browser) == pytest.approx(before)
