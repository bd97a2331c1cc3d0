"""The site of docs/, which the dashboard serves at /docs: each page is in it, and nothing that its policy refuses."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from appliance.own_files import SITE
from tests.conftest import missing
from tests.docs.pages import ROOT

FROM_ROOT = pytest.importorskip("deploy.site_pages", reason="deploy/site installs mkdocs").FROM_ROOT
RESOURCES = {"script": "src", "img": "src", "iframe": "src", "link": "href"}
ELSEWHERE = re.compile(r"^(?:[a-z]+:)?//")


class Refused(HTMLParser):
    """Collects what the policy for content refuses: script and style within a page, files from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "style" or "style" in given or any(name.startswith("on") for name in given):
            self.found.append(self.get_starttag_text() or tag)
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.found.append("script within the page")
        if tag == "link" and given.get("rel") in ("prev", "next", "canonical"):
            return
        if tag in RESOURCES and ELSEWHERE.match(given.get(RESOURCES[tag]) or ""):
            self.found.append(self.get_starttag_text() or tag)


@pytest.fixture(scope="module")
def pages() -> list[Path]:
    if not SITE.is_dir():
        missing("the site of docs/", "deploy/site builds it")
    return sorted(SITE.rglob("*.html"))


def test_each_page_of_the_docs_is_in_the_site(pages: list[Path]) -> None:
    built = {str(path.relative_to(SITE)) for path in pages}
    sources = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    wanted = {str(path.with_name("index.html") if path.stem == "README" else path) for path in sources}
    wanted |= {name.replace(".md", ".html") for name in FROM_ROOT.values()}
    assert wanted - built == set()


def test_no_page_has_what_the_policy_for_content_refuses(pages: list[Path]) -> None:
    refused: dict[str, list[str]] = {}
    for path in pages:
        reading = Refused()
        reading.feed(path.read_text(encoding="utf-8"))
        if reading.found:
            refused[path.name] = reading.found
    assert refused == {}


def test_the_search_has_an_index_and_a_worker(pages: list[Path]) -> None:
    assert (SITE / "search" / "search_index.json").stat().st_size > 100_000
    assert list((SITE / "assets" / "javascripts" / "workers").glob("search.*.js"))


def test_what_is_refused_is_found() -> None:
    reading = Refused()
    reading.feed(
        '<script>x()</script><p style="a"><b onclick="x()"><script src="https://cdn/x.js"></script>'
        '<link href="//cdn/x.css"><script type="application/json">{}</script><a href="https://x/">'
    )
    assert len(reading.found) == 5
