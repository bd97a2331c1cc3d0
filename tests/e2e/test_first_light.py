"""The first minute of a newcomer, in a real browser against a real `gantry up`."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gantrymq import Message, SyncProducer
from tests.appliance_process import RunningAppliance
from tests.conftest import require_tool

selenium = pytest.importorskip("selenium", reason="drives the browser")

from selenium import webdriver  # noqa: E402
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.remote.webelement import WebElement  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

PASSWORD = "nine lives of a crane"
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
    "--window-size=1280,900",
)


@pytest.fixture
def appliance(tmp_path: Path) -> Iterator[RunningAppliance]:
    with RunningAppliance(tmp_path / "data", command=(sys.executable, "manage.py", "up")) as running:
        yield running


@pytest.fixture
def browser() -> Iterator[webdriver.Chrome]:
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


def test_from_the_printed_link_to_a_message_that_arrives_live(
    appliance: RunningAppliance, browser: webdriver.Chrome
) -> None:
    url = f"http://{appliance.http}"
    link = re.search(r"http://\S+/first-run\?token=\S+", appliance.output)
    assert link, appliance.output
    # what was found may be drawn anew before it is read: look again
    wait = WebDriverWait(browser, 20, poll_frequency=0.1, ignored_exceptions=[StaleElementReferenceException])

    def find(selector: str) -> WebElement:
        return wait.until(lambda page: page.find_element(By.CSS_SELECTOR, selector))

    def submit(**fields: str) -> None:
        for name, text in fields.items():
            box = find(f"main form [name={name}]")
            box.clear()
            box.send_keys(text)
        page = browser.find_element(By.TAG_NAME, "html")
        find("main form .primary").click()
        wait.until(lambda _: _is_gone(page))

    # first run: the link makes the administrator, once
    browser.get(link[0])
    submit(username="ada", password=PASSWORD, again=PASSWORD)
    assert browser.current_url == url + "/"
    assert "/login" not in browser.current_url

    # log out, and in again with the password
    browser.find_element(By.CSS_SELECTOR, "[aria-label='Log out']").click()
    find("[name=password]")
    submit(username="ada", password=PASSWORD)

    # the Overview is live: the sentence, and a value that was pushed
    wait.until(lambda page: page.find_element(By.CSS_SELECTOR, "h1").text.startswith("All good"))
    wait.until(lambda page: page.find_element(By.CSS_SELECTOR, "[data-pulse]").text == "live")
    first = find("[data-live='cluster.in']").get_attribute("data-at")
    wait.until(
        lambda page: page.find_element(By.CSS_SELECTOR, "[data-live='cluster.in']").get_attribute("data-at") != first
    )

    # create a topic on the list's own form
    browser.get(url + "/topics?new=1")
    submit(name="first-light")
    assert browser.current_url == url + "/topic/first-light"
    assert "No message yet" in find(".when-empty").text
    wait.until(lambda page: page.find_element(By.CSS_SELECTOR, "[data-pulse]").text == "live")

    # a message sent by the SDK arrives without a reload
    browser.execute_script("window.notReloaded = true")
    with SyncProducer(appliance.namesrv) as producer:
        producer.send(Message("first-light", b'{"order": 1}', tags="paid", keys="order-1"))
    row = find("tr.row")
    assert '{"order": 1}' in row.text and "paid" in row.text and "order-1" in row.text
    wait.until(lambda page: page.find_element(By.CSS_SELECTOR, "[data-live='topic.stored']").text == "1")
    assert browser.execute_script("return window.notReloaded") is True

    # it opens in place, and so does one sent by hand
    row.find_element(By.CSS_SELECTOR, "[data-open]").click()
    assert '"order": 1' in find("tr.opened pre").text
    assert "open=" in browser.current_url
    find("details.fold summary").click()
    find("[name=body]").send_keys("by hand")
    find(".send-form .primary").click()
    assert "Stored in" in find(".sent").text
    wait.until(lambda page: len(page.find_elements(By.CSS_SELECTOR, "tr.row")) == 2)
    assert "by hand" in find("tr.row").text

    # a message that waits, from the same form
    find("[name=deliver]").send_keys("2 h")
    find(".send-form .primary").click()
    wait.until(lambda page: "waits for its time" in page.find_element(By.CSS_SELECTOR, ".send-form").text)

    # groups: none yet, and how to make one; a broker's settings: a change, the difference, saved
    browser.get(url + "/groups")
    assert "No consumer group yet" in find("main").text
    browser.get(url + "/broker/broker-a/config")
    hours = find("[name='set.fileReservedTime']")
    hours.clear()
    hours.send_keys("48")
    find(".settings-form .primary").click()
    assert find("ins").text == "48"
    find("main form .primary").click()
    assert "1 setting changed" in find(".note").text

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
