"""A wait that fails says what the page showed: the next one to read it may have nothing else."""

from __future__ import annotations

import pytest

pytest.importorskip("selenium", reason="drives the browser")

from selenium.webdriver import Chrome

from tests.e2e import page as pages
from tests.e2e.page import Page

HTML = (
    "data:text/html,<title>x</title><h1>The disk is full</h1>"
    "<section aria-label=Problems><article>broker-a: 97 percent</article></section><p>Stored: 3</p>"
)


def test_a_failed_wait_tells_address_headline_problems_text(browser: Chrome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "WAIT_S", 0.3)
    browser.get(HTML)
    page = Page(browser)
    with pytest.raises(AssertionError) as failed:
        page.wait("All good", lambda: page.find("h1").text == "All good")
    for words in (
        "All good",
        "url: data:text/html",
        "h1: ['The disk is full']",
        "['broker-a: 97 percent']",
        "Stored: 3",
    ):
        assert words in str(failed.value)
    with pytest.raises(AssertionError, match="an element #nothing"):
        page.find("#nothing")
