"""The button that puts a file into a document: by keyboard, the same file twice, one that is too large."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="drives the browser")

from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from tests.e2e.page import Page

ROOT = Path(__file__).parents[2]
COUNT_OPENINGS = "window.opened = 0; HTMLInputElement.prototype.click = () => { window.opened += 1; }"


def test_a_chosen_file_is_the_document(browser: Chrome, tmp_path: Path) -> None:
    template = (ROOT / "templates" / "definitions" / "definitions.html").read_text(encoding="utf-8")
    found = re.search(r'<div class="field" id="from-file".*(?=\{\{ form \}\})', template)
    assert found is not None
    field = re.sub(r'{% translate "([^"]+)" %}', r"\1", found[0])
    (tmp_path / "page.html").write_text(f"<meta charset=utf-8>{field}<textarea id=id_text>typed</textarea>")
    browser.get((tmp_path / "page.html").as_uri())
    browser.execute_script((ROOT / "dashboard" / "static" / "dashboard" / "definitions.js").read_text(encoding="utf-8"))
    browser.execute_script(COUNT_OPENINGS)
    page = Page(browser)
    button = page.find("button[data-into]")
    button.send_keys(Keys.ENTER)
    button.send_keys(Keys.SPACE)
    assert browser.execute_script("return window.opened") == 2, "it opens by keys"
    given, large = tmp_path / "ours.yaml", tmp_path / "large.yaml"

    def document() -> str:
        return str(page.find("#id_text").get_property("value"))

    for text in ("topics: []", "groups: []"):  # a file that was changed is chosen again
        given.write_text(text)
        page.find("input[type=file]").send_keys(str(given))
        page.wait(text, lambda text=text: document() == text)
    assert page.find("[role=status]").text == "ours.yaml"
    large.write_bytes(b"#" * ((1 << 20) + 1))
    page.find("input[type=file]").send_keys(str(large))
    page.wait("why not", lambda: "at most 1 MiB" in page.find("[role=alert]").text)
    assert document() == "groups: []", "what stood there is not lost"
