"""A reader far from UTC: moments in both zones, then in the own one alone; and a browser whose clock is wrong."""

from __future__ import annotations

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.e2e.page import Page

ZONE, NAME = "Asia/Kolkata", "UTC+5:30"
AHEAD = "Object.defineProperty(performance, 'timeOrigin', {value: performance.timeOrigin + 600000});"  # ten minutes


def walk(browser: Chrome, page: Page, address: str) -> None:
    """`address`: a page with a table of messages, and a chart of the history elsewhere on its topic's pages."""
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ZONE})
    browser.get(address)
    page.wait("both zones of a row", lambda: names(page.find("tr.row .time").text) == ["UTC", NAME])
    assert not page.find("#clock-bar").is_displayed()
    page.wait("both at the newest", lambda: names(page.find("[data-live='topic.last']").text) == ["UTC", NAME])

    page.click(".account > summary")
    page.click("[data-times-form] [value=local]")
    page.wait("the own zone alone", lambda: names(page.find("tr.row .time").text) == [NAME])
    assert names(page.find("[data-live='topic.last']").text) == [NAME]
    page.wait("a choice that is kept", lambda: kept(browser, address) == "local")
    browser.get(f"{address}/charts")
    page.wait(
        "the charts' axes", lambda: {zone.text for zone in browser.find_elements(By.CSS_SELECTOR, ".zone")} == {NAME}
    )

    page.click(".account > summary")
    page.click("[data-times-form] [value=utc]")
    page.wait(
        "the axes in UTC", lambda: {zone.text for zone in browser.find_elements(By.CSS_SELECTOR, ".zone")} == {"UTC"}
    )
    page.wait("a choice that is kept", lambda: kept(browser, address) == "utc")

    wrong = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": AHEAD})
    browser.get(address)
    page.wait("what is wrong", lambda: "10 min ahead" in page.find("#clock-bar").text)
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", wrong)
    browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": ""})


def names(text: str) -> list[str]:
    """The zones that a text names, in their order."""
    return [word for word in text.split() if word.startswith("UTC")]


def kept(browser: Chrome, address: str) -> str:
    """What the account's choice is, told by the server."""
    ask = "const [at, done] = arguments; fetch(at).then(async (answer) => done(await answer.text()), () => done(''));"
    page = browser.execute_async_script(ask, address)
    return str(page.partition('data-times="')[2].partition('"')[0])
