"""The page of a report in a real browser: clicks, keys, colours, and no errors."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stepwell as sw
from stepwell.driver.compilation import Compilation
from stepwell.driver.request import Request
from stepwell.report.collecting import collect
from stepwell.report.page import page

from ..harness import floats
from .browser import (
    REQUIRED,
    all_of,
    begin_again,
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

HOSTILE = "act</script><script>window.hit = 1</script>"

ROOT = Path(__file__).parents[2]


def report(path: Path) -> None:
    b = sw.Builder("net")
    x = b.input("x", (8, 64), "f32")
    h = b.relu(b.dense(x, floats(128, 64), name="block/fc1"), name=HOSTILE)
    b.output(b.softmax(b.dense(h, floats(16, 128), name="block/fc2"), name="soft"), name="y")
    exe = sw.compile(b.module(), threads=1)
    exe.report(path, inputs=(floats(8, 64),), repeat=2)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium with a report open."""
    found()
    page = tmp_path_factory.mktemp("report") / "report.html"
    report(page)
    with opened(page) as browser:
        yield browser


@pytest.fixture(autouse=True)
def fresh(request: pytest.FixtureRequest) -> None:
    """Each test of the page begins with the first view, the first stages, and nothing selected."""
    if "browser" in request.fixturenames:
        begin_again(request.getfixturevalue("browser"))


@pytest.mark.parametrize("lacking", ["selenium", "chromium", "chromedriver"])
def test_a_missing_browser_fails_where_one_is_required(
    lacking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking == "selenium":
        monkeypatch.setitem(sys.modules, "selenium", None)
        message = "needs selenium: pip install selenium"
    else:
        monkeypatch.setattr(shutil, "which", lambda name: None if name == lacking else name)
        message = "needs Chromium and its driver: apt install chromium chromium-driver"
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match=message):
        found()
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match=f"{message}, and {REQUIRED} is set"):
        found()


def test_ci_requires_a_browser() -> None:
    assert f"export {REQUIRED}=1\n" in (ROOT / ".ci" / "run").read_text()


def test_a_node_marks_what_it_became(browser: Any) -> None:
    node(browser, "dense block/fc1").click()
    assert one(browser, 'select[aria-label="kernel"]').get_property("value") == "0"
    pseudo = marked(browser, 0)
    assert any("for k in range(64)" in line for line in pseudo)
    assert not any("max(" in line for line in pseudo)
    show(browser, 1, "kernels")
    assert any("math.fma" in line for line in marked(browser, 1))
    assert not any("arith.maximumf" in line for line in marked(browser, 1))
    assert "block/fc1" in one(browser, ".details").text
    assert "one kernel for graph.dense, graph.relu" in one(browser, ".details").text
    assert chosen(browser) == ["dense block/fc1"]


def test_a_line_marks_where_it_comes_from(browser: Any) -> None:
    node(browser, "dense block/fc1").click()
    show(browser, 1, "scheduled")
    line = next(
        e
        for e in all_of(browser, ".code")[0].find_elements("class name", "line")
        if "max(" in e.text
    )
    line.click()
    stored = marked(browser, 1)
    assert any("loop.store" in text for text in stored)
    assert any("arith.maximumf" in text for text in stored)
    assert not any("math.fma" in text for text in stored)
    assert f"relu {HOSTILE}" in chosen(browser)
    show(browser, 1, "asm")
    assert marked(browser, 1)


def test_names_of_a_model_are_text(browser: Any) -> None:
    assert node(browser, f"relu {HOSTILE.replace(chr(34), '')}")
    assert browser.execute_script("return window.hit") is None
    node(browser, f"relu {HOSTILE}").click()
    assert HOSTILE in one(browser, ".details").text


def test_search_by_keys(browser: Any) -> None:
    one(browser, "body").send_keys("/")
    assert browser.switch_to.active_element == one(browser, ".search input")
    press(browser, "soft", "\ue015", "\ue014")  # down; right leaves the list as it is
    results = [e.text for e in all_of(browser, ".results li")]
    assert any("fused_dense_softmax" in text for text in results)
    press(browser, "\ue007")
    assert all_of(browser, ".node.marked")
    one(browser, "body").send_keys("\ue00c")
    assert not all_of(browser, ".node.marked")


def test_the_graph_by_keys(browser: Any) -> None:
    focus(browser, node(browser, "dense block/fc1"))
    press(browser, "\ue015")  # down, along an edge
    assert browser.switch_to.active_element.get_attribute("aria-label") == f"relu {HOSTILE}"
    press(browser, "\ue007")
    assert browser.switch_to.active_element.get_attribute("aria-pressed") == "true"


def test_code_by_keys(browser: Any) -> None:
    node(browser, "dense block/fc1").click()
    code = all_of(browser, ".code")[0]
    focus(browser, code)
    press(browser, "\ue010", "\ue007")  # the last line
    active = one(browser, f"#{code.get_attribute('aria-activedescendant')}")
    assert "max(" in active.text
    assert active.get_attribute("aria-selected") == "true"


def test_attributes_and_weights_of_what_is_selected(browser: Any) -> None:
    node(browser, "softmax soft").click()
    assert "axis\n" in one(browser, ".details").text
    node(browser, "dense block/fc1").click()
    text = one(browser, ".details").text
    assert re.search(r"w\n\S+: 128x64 f32, -\d\S* to \d\S*, mean -?0\.\d+ ± \d", text), text


def test_nothing_that_is_right_looks_like_an_error(browser: Any) -> None:
    """Neither groups nor candidates that passes left alone have a cross in front of them."""
    assert one(browser, ".graph .cluster text").text.startswith("▾ fused")
    style = "return [...document.styleSheets].flatMap((s) => [...s.cssRules]).map((r) => r.cssText)"
    rules = browser.execute_script(style)
    assert any("○" in rule and ".missed" in rule for rule in rules)
    assert not any(mark in rule for rule in rules for mark in "✕✗⊠⊟")


def test_names_in_the_graph_are_large_enough_to_read(browser: Any) -> None:
    for selector in (".node .kind", ".node .name", ".cluster text"):
        height = browser.execute_script(
            f"return document.querySelector('.graph {selector}').getBoundingClientRect().height"
        )
        assert height >= 11, selector


def test_limits_that_were_refused_are_not_drawn(tmp_path: Path) -> None:
    b = sw.Builder("net")
    x = b.input("x", (8, 64), "f32")
    b.output(b.dense(x, floats(128, 64)), name="y")
    profile = sw.compile(b.module(), threads=1).profile(floats(8, 64), repeat=1)
    rows = tuple(replace(row, limit=None, bound=None) for row in profile.kernels)
    refused = replace(profile, kernels=rows, nodes=(), refused="the machine was busy")
    document = collect(Compilation.of(Request(b.module(), threads=1)))
    path = tmp_path / "report.html"
    path.write_text(page(replace(document, profile=refused.to_dict())))
    with opened(path) as browser:
        one(browser, "#tab-Profile").click()
        soon(browser, ".kernel-dot")
        assert not all_of(browser, ".roof")
        assert one(browser, ".note.refused").text == "the machine was busy"


def test_two_reports_beside_each_other(tmp_path: Path) -> None:
    b = sw.Builder("net")
    x = b.input("x", (8, 64), "f32")
    b.output(b.dense(x, floats(128, 64), name=HOSTILE), name="y")
    before, after, inputs = tmp_path / "before.html", tmp_path / "after.html", (floats(8, 64),)
    sw.compile(b.module(), target="x86-64", threads=1).report(before, inputs=inputs, repeat=1)
    exe = sw.compile(b.module(), threads=1)
    exe.report(after, inputs=inputs, repeat=1, against=before)
    with opened(after) as browser:
        one(browser, "#tab-Comparison").click()
        assert "x86-64 (x86-64)" in one(browser, ".diffs").text
        assert all_of(browser, ".why .removed")
        (row,) = all_of(browser, ".times tbody tr")
        assert re.fullmatch(r"fused_dense [\d.]+ .s [\d.]+ .s . [\d.]+ other code", row.text)
        row.find_element("tag name", "button").click()
        assert all_of(browser, ".difference .removed")
        assert all_of(browser, ".difference .added")
        one(browser, "[aria-label=rows] button:last-child").click()
        assert HOSTILE in one(browser, ".times tbody").text
        assert browser.execute_script("return window.hit") is None


def test_groups_collapse(browser: Any) -> None:
    shown = len(all_of(browser, ".node"))
    one(browser, 'button[aria-label="collapse all groups"]').click()
    groups = [e.get_attribute("aria-label") for e in all_of(browser, ".node.group")]
    assert groups == ["group fused_dense_relu", "group fused_dense_softmax"]
    one(browser, 'button[aria-label="expand all groups"]').click()
    assert len(all_of(browser, ".node")) == shown


def test_a_large_graph_is_shown_from_its_first_box_on(browser: Any) -> None:
    """Even where that is far below the top of the graph."""
    script = """const { graph } = stepwellReport.tabs[0][2];
    const begin = graph.boxes.values().next().value;
    Object.assign(begin, { x: 4000, y: 5000 });
    graph.size = { width: 9000, height: 9000 };
    graph.fit();
    const place = d3.zoomTransform(graph.canvas).apply([begin.x, begin.y]);
    graph.draw();
    graph.fit();
    return [...place, graph.canvas.clientWidth, graph.canvas.clientHeight];"""
    x, y, width, height = browser.execute_script(script)
    assert 0 < x < width
    assert 0 < y < height / 2


def test_all_views_open(browser: Any) -> None:
    names = [e.text for e in all_of(browser, '[role="tab"]')]
    assert names == ["Staircase", "Passes", "Decisions", "Profile", "Memory"]
    focus(browser, one(browser, "#tab-Staircase"))
    for selector in (".difference pre .added", "tbody tr .link", ".kernel-dot", ".slot rect"):
        press(browser, "\ue014")  # right, to the next view
        assert soon(browser, selector)


def test_what_is_selected_in_one_view_is_shown_in_another(browser: Any) -> None:
    one(browser, "#tab-Profile").click()
    row = next(e for e in all_of(browser, ".times tbody tr") if "softmax" in e.text)
    row.find_element("tag name", "button").click()
    assert "marked" in row.get_attribute("class")
    one(browser, "#tab-Staircase").click()
    assert {*chosen(browser)} == {"dense block/fc2", "softmax soft"}
    assert marked(browser, 0)[0].startswith("kernel fused_dense_softmax(")


def test_decisions_about_what_is_selected_are_marked(browser: Any) -> None:
    one(browser, "#tab-Decisions").click()
    assert not all_of(browser, ".decided tr.marked")
    row = next(e for e in all_of(browser, ".decided tbody tr") if "@fused_dense_softmax" in e.text)
    row.find_element("tag name", "button").click()
    texts = [e.text for e in all_of(browser, ".decided tr.marked")]
    assert row.text in texts
    about = ("@fused_dense_softmax", '"block/fc2"', '"soft"')
    assert [text for text in texts if not any(name in text for name in about)] == []
    assert len(texts) < len(all_of(browser, ".decided tbody tr"))


def test_equal_decisions_are_one_row(browser: Any) -> None:
    one(browser, "#tab-Decisions").click()
    script = """const view = stepwellReport.tabs.find(([name]) => name === "Decisions")[2];
    const { decisions } = view.model.report;
    view.model.report.decisions = [...decisions, { ...decisions[0] }, { ...decisions[0] }];
    view.draw();
    view.model.report.decisions = decisions;
    return decisions.length;"""
    number = browser.execute_script(script)
    rows = [e.text for e in all_of(browser, ".decided tbody tr")]
    assert len(rows) == number
    assert "\N{MULTIPLICATION SIGN} 3" in rows[0]
    assert not any("\N{MULTIPLICATION SIGN}" in text for text in rows[1:])
    assert f"{number + 2} decisions" in one(browser, "main > :not([hidden]) .tools").text


def test_differences_follow_the_selected_kernel(browser: Any) -> None:
    one(browser, "#tab-Passes").click()
    entries = all_of(browser, ".entry")
    next(e for e in entries if e.text.startswith("loop-schedule")).click()
    only = one(browser, ".pane.grow input[type=checkbox]")
    only.click()
    try:
        for name in ("fused_dense_relu", "fused_dense_softmax"):
            select = """const { selection, model } = stepwellReport, { kernels } = model.report;
            selection.selectKernel(kernels.findIndex(({ name }) => name === arguments[0]), null);"""
            browser.execute_script(select, name)
            (title,) = all_of(browser, ".difference h3 button")
            assert title.text == name
            assert one(browser, ".pane.grow .tools .muted").text == name
    finally:
        only.click()


def test_other_panes_show_other_stages(browser: Any) -> None:
    add = one(browser, 'button[aria-label="add pane"]')
    add.click()
    add.click()
    shown = [e.get_property("value") for e in all_of(browser, '.panes select[aria-label="stage"]')]
    assert shown == ["pseudo-code", "asm", "llvm", "scheduled"]
    assert not add.is_enabled()
    for close in all_of(browser, 'button[aria-label="close pane"]')[:1:-1]:
        close.click()
    assert add.is_enabled()


def test_the_fastest_and_the_slowest_memory_have_labels(browser: Any) -> None:
    one(browser, "#tab-Profile").click()
    soon(browser, ".kernel-dot")
    script = """const view = stepwellReport.tabs.find(([name]) => name === "Profile")[2];
    const { limits } = view.profile, measured = limits.gbytes;
    limits.gbytes = { 65536: 100, 262144: 50, 1048576: 80 };
    const parts = view.roofline(600, 400).filter((part) => part?.tagName === "text");
    limits.gbytes = measured;
    return parts.map((part) => part.textContent).filter((text) => text.includes("GB/s"))"""
    assert browser.execute_script(script) == ["100 GB/s (64 KiB)", "50 GB/s (256 KiB)"]


def test_a_narrow_window(browser: Any) -> None:
    size = browser.get_window_size()
    metrics = {"width": 500, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        for tab in all_of(browser, '[role="tab"]'):
            tab.click()
            wide = "return document.documentElement.scrollWidth"
            assert browser.execute_script(wide) <= 500, tab.text
            panes = [e.rect for e in all_of(browser, "main > :not([hidden]) .pane")]
            assert all(pane["width"] > 200 and pane["height"] > 100 for pane in panes), tab.text
        dark = one(browser, '[aria-label="theme"]').rect
        assert dark["x"] + dark["width"] <= 500
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.set_window_size(size["width"], size["height"])


def test_light_and_dark(browser: Any) -> None:
    colours = set[str]()
    for theme in ("light", "dark"):
        one(browser, '[aria-label="theme"]').find_element(
            "xpath", f'.//*[text()="{theme}"]'
        ).click()
        colours.add(one(browser, "header").value_of_css_property("background-color"))
    assert len(colours) == 2
    one(browser, '[aria-label="theme"]').find_element("xpath", './/*[text()="auto"]').click()
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )
    assert one(browser, "header").value_of_css_property("background-color") in colours


def test_everything_has_a_name(browser: Any) -> None:
    script = """return [...document.querySelectorAll("button, select, input, [role=button]")]
    .filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.closest("label")))
    .map((e) => e.outerHTML)"""
    assert browser.execute_script(script) == []
