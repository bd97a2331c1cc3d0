"""A real browser, headless, with a profile of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.conftest import require_tool

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

CHROMIUM_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-prefers-reduced-motion",  # what moves is drawn sixty times a second, without a graphics card by the CPU
    "--window-size=1280,900",
)


@pytest.fixture
def browser() -> Iterator[Chrome]:
    pytest.importorskip("selenium", reason="drives the browser")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium = require_tool("chromium", "the journey needs a real browser (Debian: apt install chromium)")
    driver = require_tool("chromedriver", "selenium steers the browser by it (Debian: apt install chromium-driver)")
    with tempfile.TemporaryDirectory(prefix="gantry-browser-", ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = str(chromium)
        for flag in (*CHROMIUM_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        chrome = webdriver.Chrome(options=options, service=Service(str(driver)))
        try:
            yield chrome
        finally:
            chrome.quit()
