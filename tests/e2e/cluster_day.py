"""A walk through what the cluster is made of: an application that connects, its client, the broker, many topics."""

from __future__ import annotations

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.ui import Select

from gantrymq import Message, SyncProducer
from tests.e2e.page import Page

APP, CHOSEN = "journey-app", ("journey-one", "journey-two")


def walk(browser: WebDriver, page: Page, url: str, namesrv: str) -> None:
    _connect(browser, page, url)
    with SyncProducer(namesrv, group=APP) as producer:
        for topic in CHOSEN:
            producer.send(Message(topic, b"x" * 500))
        _clients(browser, page, url)
    _broker(browser, page, url)
    _topics(browser, page, url)


def _connect(browser: WebDriver, page: Page, url: str) -> None:
    """One is sent from here, and an error is explained."""
    browser.get(f"{url}/connect?lang=go")
    page.wait("the program in Go", lambda: "package main" in page.find("#program").text)
    page.wait("what was scanned", lambda: len(browser.find_elements(By.CSS_SELECTOR, "#checks tr")) > 1)
    page.click("form[action='/connect/send'] .primary")
    page.wait("where it was sent", lambda: page.find(".note").text.startswith("Sent to "))
    page.find("#error").send_keys("No route info of this topic: orders")
    page.click("form[action='#error-title'] button")
    page.wait("what it means", lambda: bool(page.find("#error-title ~ * b, section:last-of-type p b").text))


def _clients(browser: WebDriver, page: Page, url: str) -> None:
    """It is found by its group, and its connections are ended."""
    browser.get(f"{url}/clients?q={APP}")
    page.wait("the client", lambda: APP in page.find("#client-list tbody").text)
    page.click(".client summary")
    page.wait("its connections", lambda: "broker-a" in page.find(".client li").text)
    page.click(".client .danger-button")
    page.wait("what it means", lambda: "1 connection" in page.find(".loss").text)
    page.click("main form .danger-button")
    page.wait("the end", lambda: "closed. It may connect again." in page.find(".note").text)


def _broker(browser: WebDriver, page: Page, url: str) -> None:
    """A setting that was changed before goes back to its default, and the page says where it comes from."""
    browser.get(f"{url}/broker/broker-a")
    page.wait("the pulse to say live", lambda: page.find("[data-pulse]").text == "live")
    page.wait("a rate", lambda: page.find("[data-live='broker.broker-a.in']").text not in ("", "—"))
    page.click("nav.tabs a[href='/broker/broker-a/settings']")
    page.find("[name=q]").send_keys("fileReservedTime", Keys.ENTER)
    page.wait("its source", lambda: "changed while it runs" in page.find(".settings .source").text)
    page.click("button[name=revert][value=fileReservedTime]")
    page.wait("the difference", lambda: page.find("ins").text == "72")
    page.click("main form .primary")
    page.wait("what was saved", lambda: "1 setting changed" in page.find(".note").text)


def _topics(browser: WebDriver, page: Page, url: str) -> None:
    """Bytes and producers; two topics are chosen, changed together, and each has its result."""
    browser.get(f"{url}/topics?q=journey-&sort=size&down=1")
    size = f"[data-live='row.{CHOSEN[0]}.size']"
    page.wait("its bytes", lambda: page.find(size).text.endswith("B") and page.find(size).text != "0 B")
    for topic in CHOSEN:
        page.click(f"input[name=topic][value={topic}]")
    page.wait("both chosen", lambda: "(2)" in page.find("[data-picked]").text)
    page.click("[data-picked]")
    page.wait("the page of the change", lambda: page.find("[name=what]").is_displayed())
    Select(page.find("[name=what]")).select_by_value("delete")
    page.wait("no field that does not count", lambda: not page.find("[name=perm]").is_displayed())
    page.click("form[data-what] .primary")
    page.find("[name=typed_name]").send_keys("2 topics")
    page.click(".danger-button")
    page.wait("both results", lambda: page.find("[data-cell=counts]").text.startswith("2 of 2"))
    assert all(topic in page.find("#topic-changes").text for topic in CHOSEN)
    browser.get(f"{url}/topics?q=journey-")
    page.wait("none of them left", lambda: "Nothing matches" in page.find("main").text)
