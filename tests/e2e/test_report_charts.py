"""The charts of the Reports pages in a real browser: hour by hour, drawn out, by keyboard, hidden series, small."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.test import RequestFactory
from django.views.i18n import JavaScriptCatalog

from appliance.reports.catalogue import REPORTS
from dashboard.reports.tables import table_context
from dashboard.reports.views import result_context
from gantrymq.byte_size import readable

selenium = pytest.importorskip("selenium", reason="drives the browser")

from selenium.webdriver import Chrome  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

from tests.e2e.page import Page  # noqa: E402

HOUR_MS = 3_600_000
BEGIN_MS = 1_793_577_600_000  # 2026-11-02 00:00 UTC
HOURS = (0, 1, 2, 5)  # nothing was stored in hours 3 and 4
HTMX = ("django_htmx/htmx-2.min.js", "dashboard/app.js")
PART = """<div id="part" hx-get="/part" hx-trigger="every 1s" hx-swap="outerHTML">
<details id="more"><summary>More</summary><p>in it</p></details>
<details id="other"><summary>Other</summary><p>in it</p></details></div>"""
SCRIPTS = ("dashboard/times.js", "dashboard/bars.js", "dashboard/reports.js")
BYTES_MAX = 300_000
TEXTS = {".js": "text/javascript", ".css": "text/css"}


def result() -> dict[str, Any]:
    hours = [f"2026-11-02T{hour:02}:00:00Z" for hour in HOURS]
    topics = {"orders": [10, 20, 30, 40], "mail": [1, 2, 3, 4]}
    rows = [
        {"hour": hour, "topic": topic, "kind": "normal", "messages": count, "stored_bytes": 1, "body_bytes": 1}
        for topic, counts in topics.items()
        for hour, count in zip(hours, counts, strict=True)
    ]
    return {
        "begin_ms": BEGIN_MS, "end_ms": BEGIN_MS + 48 * HOUR_MS, "messages": 110, "stored_bytes": 8, "body_bytes": 8,
        "topic_count": 2, "row_count": 8, "rows": rows, "notes": [], "busiest_hour": {"hour": hours[3], "messages": 44},
        "topics": [
            {"topic": name, "kind": "normal", "messages": sum(each), "stored_bytes": 4, "body_bytes": 4, "hours": 4}
            for name, each in topics.items()
        ],
        "chart": {"hours": hours, "series": [{"topic": name, "messages": counts} for name, counts in topics.items()]},
    }  # fmt: skip


def lag_result() -> dict[str, Any]:
    """Nine groups over 99 hours; the first one was not seen in the second hour."""
    x = [f"2026-11-{2 + at // 24:02} {at % 24:02}:00" for at in range(99)]
    values = [[float(turn + at % 7) for at in range(99)] for turn in range(9)]
    series: list[dict[str, Any]] = [{"name": f"group-{turn}", "values": each} for turn, each in enumerate(values)]
    series[0]["values"][1] = None
    return {"rows": [], "row_count": 0, "newest_first": True, "notes": [], "chart": {"x": x, "series": series}}


def page_text(name: str) -> str:
    if name == "lag":
        body = render_to_string("reports/_table.html", table_context(REPORTS["lag"], lag_result()))
    elif name == "folds":
        body = f'{PART}<div id="connection-bar" hidden></div>'
    else:
        body = render_to_string("reports/_result.html", result_context(result()))
        body += f'<div class="scroll scroll-tall">{"<p>a row</p>" * 60}</div>'
    scripts = "".join(
        f'<script src="/{name}" defer></script>' for name in ("words.js", *SCRIPTS, *(HTMX if name == "folds" else ()))
    )
    styles = "".join(f'<link rel="stylesheet" href="/dashboard/{name}.css">' for name in ("app", "reports"))
    return f'<!doctype html><html lang="en" data-times="utc"><meta charset="utf-8">{styles}{scripts}<main>{body}</main>'


class Handler(BaseHTTPRequestHandler):
    """The page, its scripts and styles."""

    def do_GET(self) -> None:
        name = self.path.split("?")[0].removeprefix("/")
        if name == "part":
            kind, content = "text/html; charset=utf-8", PART.encode()
        elif name in ("", "lag", "folds"):
            kind, content = "text/html; charset=utf-8", page_text(name).encode()
        elif name == "words.js":
            kind, content = "text/javascript", JavaScriptCatalog().get(RequestFactory().get("/")).content
        else:
            found = finders.find(name)
            if not isinstance(found, str):
                self.send_error(404)
                return
            kind, content = TEXTS[Path(found).suffix], Path(found).read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """The browser's requests say nothing that a failure would need."""


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_chart_tells_zooms_and_leads_to_what_was_in_an_hour(address: str, browser: Chrome) -> None:
    page = Page(browser)
    browser.get(address)
    plot = page.find(".plot")

    def bars() -> int:
        return len(browser.find_elements(By.CSS_SELECTOR, ".plot svg rect"))

    def pressed() -> list[str | None]:
        return [
            button.get_attribute("aria-pressed") for button in browser.find_elements(By.CSS_SELECTOR, "[data-zoom]")
        ]

    page.wait("two bars in each of four hours, none between", lambda: bars() == 2 * len(HOURS))
    transferred = browser.execute_script(
        "return performance.getEntriesByType('resource').reduce((sum, one) => sum + one.encodedBodySize, 0)"
    )
    assert 10_000 < transferred < BYTES_MAX  # not even compressed

    # by keyboard: the last hour, its numbers, and what was in it
    plot.send_keys(Keys.END)
    page.wait("the last hour", lambda: page.find(".bar-tip").text.split("\n")[0] == "2026-11-02 05:00 UTC 44")
    assert "orders 40" in page.find(".bar-tip").text
    plot.send_keys(Keys.ENTER)
    page.wait("its topics", lambda: page.find("#drill").is_displayed() and "orders 40" in page.find("#drill").text)
    link = page.find("#drill a").get_attribute("href") or ""
    assert "since=2026-11-02T05%3A00%3A00Z" in link and "until=2026-11-02T06%3A00%3A00Z" in link
    browser.get("about:blank")
    browser.back()
    page.wait("the same hour after coming back", lambda: "orders 40" in page.find("#drill").text)
    plot = page.find(".plot")
    plot.send_keys(Keys.END)
    plot.send_keys(Keys.ARROW_LEFT)
    page.wait("the hour before the gap", lambda: page.find(".bar-tip").text.startswith("2026-11-02 02:00 UTC"))

    # drawn out with the pointer, the first hours alone; then the whole range
    drag = ActionChains(browser).move_to_element_with_offset(plot, -plot.size["width"] // 2 + 60, 0)
    drag.click_and_hold().move_by_offset(plot.size["width"] // 4, 0).release().perform()
    page.wait("fewer bars", lambda: 0 < bars() < 2 * len(HOURS))
    assert pressed() == ["false", "false"]
    page.click("[data-zoom=whole]")
    page.wait("all bars", lambda: bars() == 2 * len(HOURS))
    assert pressed() == ["false", "true"]

    # a series is hidden by its name; the table has the numbers all the same
    page.click(".bar-legend button")
    page.wait("one bar in each hour", lambda: bars() == len(HOURS))
    page.click("section.card .twin summary")
    page.wait("the table", lambda: len(browser.find_elements(By.CSS_SELECTOR, ".twin tbody tr")) == len(HOURS))
    assert page.find(".twin tbody tr:last-child").text == "2026-11-02 05:00 UTC 40 4"
    complaints = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert [text for text in complaints if "favicon" not in text] == []


def test_bars_too_thin_to_be_told_apart_are_lines(address: str, browser: Chrome) -> None:
    page = Page(browser)
    browser.get(f"{address}lag")

    def drawn(kind: str) -> list[Any]:
        return browser.find_elements(By.CSS_SELECTOR, f".plot svg {kind}")

    page.wait("a line for each group, and no bar", lambda: len(drawn("path")) == 9 and not drawn("rect"))
    lines = {line.get_attribute("class"): (line.get_attribute("d") or "").count("M") for line in drawn("path")}
    assert lines["bar-0"] == 2 and lines["bar-1"] == 1  # it begins anew after the hour that is not known
    page.find(".plot").send_keys(Keys.END)
    page.wait("the last hour's numbers", lambda: "group-8" in page.find(".bar-tip").text)
    for _ in range(5):
        page.find(".plot").send_keys("+")
    page.wait("bars again where there is room", lambda: bool(drawn("rect")) and not drawn("path"))


PRINTED = """
const main = document.querySelector('main').getBoundingClientRect();
const drawn = document.querySelector('.plot svg').getBoundingClientRect();
const shown = (selector) => [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility()).length;
return {
  controls: shown('form, input, select, button:not(.bar-legend *)'), legend: shown('.bar-legend button'),
  bars: shown('.plot svg rect'), share: drawn.width / main.width,
  isCut: [...document.querySelectorAll('.scroll-tall')].some((one) => one.clientHeight < one.scrollHeight),
  isTooWide: document.documentElement.scrollWidth > innerWidth,
};
"""


def test_what_is_printed_has_the_chart_and_its_legend_and_nothing_to_press(address: str, browser: Chrome) -> None:
    page = Page(browser)
    paper = {"width": 794, "height": 1123, "deviceScaleFactor": 1, "mobile": False}  # A4 in CSS pixels
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", paper)
    browser.get(address)
    page.wait("the bars", lambda: browser.execute_script(PRINTED)["bars"] == 2 * len(HOURS))
    shown = browser.execute_script(PRINTED)
    assert shown["controls"] > 0 and shown["isCut"], "on the screen there are some, and a long table scrolls"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    printed = browser.execute_script(PRINTED)
    assert (printed["controls"], printed["legend"], printed["bars"]) == (0, 2, 2 * len(HOURS))
    assert 0.8 < printed["share"] <= 1.0 and not printed["isTooWide"] and not printed["isCut"], printed


def test_what_was_folded_out_stays_so_when_its_part_is_drawn_anew(address: str, browser: Chrome) -> None:
    page = Page(browser)
    browser.get(f"{address}folds")
    page.click("#more summary")
    browser.execute_script("document.querySelector('#part').dataset.old = 'yes'")
    page.wait("another part", lambda: page.find("#part").get_attribute("data-old") is None)
    page.wait(
        "what was folded out", lambda: page.find("#more p").is_displayed() and not page.find("#other p").is_displayed()
    )


def test_a_chart_says_bytes_as_tables_do(browser: Chrome, address: str) -> None:
    browser.get(address)
    chart = "const chart = new BarChart(document.body.appendChild(document.createElement('div')), arguments[1]);"
    figure = {"x": ["a"], "series": [{"name": "n", "values": [1]}], "kind": "bytes"}
    sizes = [0, 512, 1023.4, 1023.6, 5 * 1024, -3.3 * 2**20, 99.94 * 2**30, 99.96 * 2**30, 2.0**75]
    said = browser.execute_script(f"{chart} return arguments[0].map((size) => chart.say(size));", sizes, figure)
    assert said == [readable(size, "\u202f") for size in sizes]
