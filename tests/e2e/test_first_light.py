"""The first minute of a newcomer, in a real browser against a real `gantry up`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gantrymq import Message, SyncProducer
from tests.appliance_process import RunningAppliance

selenium = pytest.importorskip("selenium", reason="drives the browser")

from selenium import webdriver  # noqa: E402
from selenium.common.exceptions import WebDriverException  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.remote.webelement import WebElement  # noqa: E402

from tests.e2e import cluster_day, operators_day, zones  # noqa: E402
from tests.e2e.page import Page, first_run_link  # noqa: E402

# The first mark of a disk can be no higher than 95 %; what is above is said, and is no fault of ours.
GOOD_SENTENCES = ("All good", "The disk is filling")
PASSWORD = "nine lives of a crane"
# Choices that lie side by side wrap: none has to be scrolled to.
CHOICES_FIT = "return [...document.querySelectorAll('.segmented')].every((row) => row.scrollWidth <= row.clientWidth)"
# What the page asks for is not answered before the test says so.
HOLD_ANSWERS = """
    const ask = window.fetch, held = new Promise((go) => { window.letGo = go; });
    window.fetch = async (...wanted) => { await held; return ask(...wanted); };
"""


@pytest.fixture
def appliance(tmp_path: Path) -> Iterator[RunningAppliance]:
    environment = {"GANTRY_WEB_HANG_S": "120"}  # it is stopped for a while, and not to be replaced
    command = (sys.executable, "manage.py", "up")
    with RunningAppliance(tmp_path / "data", command=command, environment=environment) as running:
        yield running


def test_from_the_printed_link_to_a_message_live(appliance: RunningAppliance, browser: webdriver.Chrome) -> None:
    url = f"http://{appliance.http}"
    page = Page(browser)
    find = page.find

    def submit(**fields: str) -> None:
        for name, text in fields.items():
            box = find(f"main form [name={name}]")
            box.clear()
            box.send_keys(text)
        before = browser.find_element(By.TAG_NAME, "html")
        page.click("main form .primary")
        page.wait("another page after the form", lambda: _is_gone(before))

    # first run: the link makes the administrator, once
    browser.get(first_run_link(appliance))
    submit(username="ada", password=PASSWORD, again=PASSWORD)
    page.wait("the Overview", lambda: browser.current_url == url + "/")

    # log out, and in again with the password; a socket that asks after the log-out is refused, and the console says so
    page.wait("the pulse to say live", lambda: find("[data-pulse]").text == "live")
    page.click("[aria-label='Log out']")
    find("[name=password]")
    submit(username="ada", password=PASSWORD)

    # the Overview is live: the sentence, and a value that was pushed
    page.wait("a sentence that says that all is good", lambda: find("h1").text.startswith(GOOD_SENTENCES))
    page.wait("the pulse to say live", lambda: find("[data-pulse]").text == "live")
    first = find("[data-live='cluster.in']").get_attribute("data-at")
    page.wait("a newer rate", lambda: find("[data-live='cluster.in']").get_attribute("data-at") != first)

    # a dashboard that brings nothing any more is not taken for a cluster that is fine
    web = appliance.web
    web.suspend()
    try:
        page.wait("the silence", lambda: find("h1").text.startswith("No news for"))
        assert "verdict-unknown" in (find("header.verdict").get_attribute("class") or "")
        assert find("[data-pulse]").text.startswith("no news for")
    finally:
        web.resume()
    page.wait("a sentence again", lambda: find("h1").text.startswith(GOOD_SENTENCES))
    page.wait("the pulse to say live", lambda: find("[data-pulse]").text == "live")

    # create a topic on the list's own form
    browser.get(url + "/topics?new=1")
    submit(name="first-light")
    page.wait("the topic's page", lambda: browser.current_url == url + "/topic/first-light")
    page.wait("the empty topic", lambda: "No messages yet" in find(".when-empty").text)
    page.wait("the pulse to say live", lambda: find("[data-pulse]").text == "live")

    # a message sent by the SDK arrives without a reload
    browser.execute_script("window.notReloaded = true")
    with SyncProducer(appliance.namesrv) as producer:
        producer.send(Message("first-light", b'{"order": 1}', tags="paid", keys="order-1"))
    page.wait(
        "the message's row", lambda: all(word in find("tr.row").text for word in ('{"order": 1}', "paid", "order-1"))
    )
    page.wait("one stored message", lambda: find("[data-live='topic.stored']").text == "1")
    assert browser.execute_script("return window.notReloaded") is True

    # it opens in place, and what arrives before it is there does not push it away
    browser.execute_script(HOLD_ANSWERS)
    page.click("tr.row [data-open]")
    page.wait("the place where it will be", lambda: find("tr.opened").is_displayed())
    with SyncProducer(appliance.namesrv) as producer:
        producer.send(Message("first-light", b"meanwhile"))
    page.wait("it held while the other opens", lambda: find("[data-arrived]").text.startswith("1 new"))
    browser.execute_script("window.letGo()")
    page.wait("the opened message", lambda: '"order": 1' in find("tr.opened pre").text)
    page.wait("an address that names the message", lambda: "open=" in browser.current_url)
    page.click("details.fold summary")
    find("[name=body]").send_keys("by hand")
    page.click(".send-form .primary")
    page.wait("where it is stored", lambda: "Stored in" in find(".sent").text)
    page.wait("it held while the other is open", lambda: find("[data-arrived]").text.startswith("2 new"))
    assert find("tr.opened").is_displayed()
    page.click("[data-show-held]")
    page.wait("three rows", lambda: len(browser.find_elements(By.CSS_SELECTOR, "tr.row")) == 3)
    page.wait("the newest row", lambda: "by hand" in find("tr.row").text)

    # a message that waits, from the same form
    find("[name=deliver]").send_keys("2 h")
    page.click(".send-form .primary")
    page.wait("when it will be delivered", lambda: "waiting for its time" in find(".send-form").text)

    # a list that is paused holds what comes; a search looks through the bodies and says when it is done
    page.click("[data-pause]")
    page.wait("an address that says so", lambda: "tail=off" in browser.current_url)
    with SyncProducer(appliance.namesrv) as producer:
        producer.send(Message("first-light", b"a needle"))
    page.wait("it held", lambda: find("[data-arrived]").text.startswith("1 new"))
    page.click("[data-show-held]")
    page.wait("the newest row", lambda: "needle" in find("tr.row").text)
    browser.get(url + "/topic/first-light?q=%22a+needle%22")
    page.wait("the end of the search", lambda: "1 found" in find("[data-scan-text]").text)
    assert "all scanned" in find("[data-scan-text]").text and "needle" in find("tr.row").text

    # Ctrl-K goes to what is typed; ? says which keys there are; g g goes to the groups
    body = find("body")
    body.send_keys(Keys.CONTROL, "k")
    find("#palette input").send_keys("first-li")
    page.wait("the topic, chosen", lambda: find("#palette [aria-selected=true]").text.startswith("first-light"))
    find("#palette input").send_keys(Keys.ENTER)
    page.wait("the topic's page", lambda: browser.current_url == url + "/topic/first-light")
    find("body").send_keys("?")
    page.wait("the keys", lambda: find("#keys").is_displayed())
    page.click("#keys .primary")
    page.wait("no list of keys", lambda: not find("#keys").is_displayed())
    find("body").send_keys("gg")
    page.wait("the groups", lambda: browser.current_url == url + "/groups")

    # groups: none yet, and how to make one; a broker's settings: a change, the difference, saved
    browser.get(url + "/groups")
    page.wait("no groups", lambda: "No consumer group yet" in find("main").text)
    browser.get(url + "/broker/broker-a/settings")
    hours = find("[name='set.fileReservedTime']")
    browser.execute_script("arguments[0].closest('details').open = true", hours)
    hours.clear()
    hours.send_keys("48")
    page.click(".settings-form .primary")
    page.wait("the difference", lambda: find("ins").text == "48")
    page.click("main form .primary")
    page.wait("what was saved", lambda: "1 setting changed" in find(".note").text)

    operators_day.walk(browser, page, url, appliance.namesrv)
    cluster_day.walk(browser, page, url, appliance.namesrv)
    zones.walk(browser, page, url + "/topic/first-light")

    # a telephone: the navigation is behind a button, for the keyboard, too
    narrow = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    browser.get(url + "/groups")
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert not find(".nav a[href='/topics']").is_displayed()
    find(".menu-button").send_keys(Keys.ENTER)
    page.wait("the open menu", lambda: find(".nav a[href='/topics']").is_displayed())
    find(".nav a").send_keys(Keys.ESCAPE)
    page.wait("the closed menu", lambda: not find(".nav a[href='/topics']").is_displayed())
    assert browser.switch_to.active_element == find(".menu-button")
    browser.get(url + "/connect")
    assert browser.execute_script(CHOICES_FIT)
    page.click(".menu-button")
    page.click(".nav a[href='/topics']")
    page.wait("the topics", lambda: browser.current_url == url + "/topics")

    complaints = [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert complaints == [], "the browser's console is clean: no refused script or style, nothing missing"
    assert requests_elsewhere(browser, url) == [], "the pages load nothing from outside"


def requests_elsewhere(browser: webdriver.Chrome, url: str) -> list[str]:
    """What our pages asked of other origins. (The browser's own start page is none of ours.)"""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    ours = [request["request"]["url"] for request in requests if request["documentURL"].startswith(url)]
    assert len(ours) > 10
    return [address for address in ours if not address.startswith((url, "data:"))]


def _is_gone(element: WebElement) -> bool:
    """Whether the page that held the element was replaced. The driver has several ways to say so."""
    try:
        element.is_enabled()
    except WebDriverException:
        return True
    return False
