"""Chromium with the page of a report open, and what tests do there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

REQUIRED = "STEPWELL_BROWSER"
"""The environment variable under which a browser that is missing is a failure."""

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--window-size=1500,900"),
)

DOWN, RIGHT, ENTER, END, ESCAPE = "\ue015", "\ue014", "\ue007", "\ue010", "\ue00c"

_READY = """const done = arguments[0];
const wait = () => (window.stepwellReport ? done(true) : setTimeout(wait, 20));
wait();"""


def found() -> tuple[Any, str, str]:
    """The web driver of selenium, and the programs of Chromium and its driver.

    Without one of them the test is skipped, or fails where `STEPWELL_BROWSER` is set.
    """
    try:
        from selenium import webdriver
    except ImportError:
        _missing("needs selenium: pip install selenium")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        _missing("needs Chromium and its driver: apt install chromium chromium-driver")
    return webdriver, chromium, driver


def _missing(what: str) -> NoReturn:
    if os.environ.get(REQUIRED):
        pytest.fail(f"{what}, and {REQUIRED} is set")
    pytest.skip(what)


@contextmanager
def opened(page: Path) -> Iterator[Any]:
    """Chromium with a page, which is complete; nothing may be logged as an error."""
    webdriver, chromium, driver = found()
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={page.parent / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.chrome.service.Service(driver)
    browser = webdriver.Chrome(options=options, service=service)
    try:
        browser.set_script_timeout(60)
        browser.get(page.as_uri())
        assert browser.execute_async_script(_READY)
        yield browser
        errors = browser.get_log("browser")
        assert errors == [], errors
    finally:
        browser.quit()


def begin_again(browser: Any) -> None:
    """Show the first view, with nothing selected."""
    browser.execute_script(
        """document.getElementById("tab-Staircase").click();
        stepwellReport.selection.set({ nodes: [], origins: [], kernel: -1 }, null);"""
    )


def all_of(browser: Any, selector: str) -> list[Any]:
    """All elements of a selector."""
    return browser.find_elements("css selector", selector)


def one(browser: Any, selector: str) -> Any:
    """The first element of a selector."""
    return browser.find_element("css selector", selector)


def soon(browser: Any, selector: str) -> list[Any]:
    """All elements of a selector, once there are any: charts are drawn when their size is known."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 20).until(lambda page: all_of(page, selector), selector)


def node(browser: Any, label: str) -> Any:
    """A node of the graph."""
    return one(browser, f'.node[aria-label="{label}"]')


def chosen(browser: Any) -> list[str]:
    """The labels of the marked nodes of the graph."""
    return [e.get_attribute("aria-label") for e in all_of(browser, ".node.marked")]


def press(browser: Any, *keys: str) -> None:
    """Press keys, one after the other."""
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


def focus(browser: Any, element: Any) -> None:
    """Focus an element, as Tab does."""
    browser.execute_script("arguments[0].focus()", element)


def marked(browser: Any, pane: int) -> list[str]:
    """The texts of the marked lines of a pane, without their numbers."""
    script = """const pane = document.querySelectorAll(".code")[arguments[0]];
    const text = (line) => [...line.childNodes].slice(1).map((part) => part.textContent).join("");
    return [...pane.querySelectorAll(".marked")].map(text);"""
    return browser.execute_script(script, pane)


def choose(browser: Any, element: Any, value: str) -> None:
    """Choose a value of a drop-down list."""
    script = (
        """arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event("change"))"""
    )
    browser.execute_script(script, element, value)


def show(browser: Any, pane: int, stage: str) -> None:
    """Show a stage in a pane of code."""
    choose(browser, all_of(browser, 'select[aria-label="stage"]')[pane], stage)
