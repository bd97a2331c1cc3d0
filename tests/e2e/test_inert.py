"""S20 in a real browser whose content security policy is switched off: what escaping alone keeps from running."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gantrymq import Message, SyncProducer
from tests.appliance_process import RunningAppliance
from tests.dashboard.script_payloads import PAYLOADS

selenium = pytest.importorskip("selenium", reason="drives the browser")

from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

from tests.e2e.page import Page  # noqa: E402

HAS_RUN = "return window.hit === 1"


@pytest.fixture
def appliance(tmp_path: Path) -> Iterator[RunningAppliance]:
    with RunningAppliance(tmp_path / "data") as running:
        yield running


def test_s20_a_hundred_payloads_run_nowhere(appliance: RunningAppliance, browser: webdriver.Chrome) -> None:
    browser.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
    url, page = f"http://{appliance.http}", Page(browser)
    page.sign_up(appliance)
    assert does_a_hit_show(browser), "the test would not see a payload that runs"

    with SyncProducer(appliance.namesrv) as producer:
        producer.send(Message("inert", b"first"))
        browser.get(url + "/topic/inert")
        page.wait("the pulse to say live", lambda: page.find("[data-pulse]").text == "live")
        for text in PAYLOADS:
            plain = re.sub(r"\s", "_", text)
            producer.send(Message("inert", text.encode(), tags=plain[:100], keys=[plain], properties={"p": text}))
    stored = str(1 + len(PAYLOADS))
    page.wait("all messages, live", lambda: page.find("[data-live='topic.stored']").text == stored)
    page.wait("rows that were pushed", lambda: len(browser.find_elements(By.CSS_SELECTOR, "tr.row")) >= 20)
    assert not browser.execute_script(HAS_RUN)

    page.click("tr.row [data-open]")
    page.wait("the opened message", lambda: "hit" in page.find("tr.opened pre").text)
    assert not browser.execute_script(HAS_RUN)
    address: str | None = url + "/topic/inert"
    pages = 0
    while address is not None:  # every list, as the server draws it
        browser.get(address)
        page.find("tr.row")
        assert not browser.execute_script(HAS_RUN), address
        older = browser.find_elements(By.CSS_SELECTOR, 'a[href^="?older="]')
        address = older[0].get_attribute("href") if older else None
        pages += 1
    assert pages >= 4


def does_a_hit_show(browser: webdriver.Chrome) -> bool:
    """Whether a payload that runs would be seen here: an unescaped one is put into the page, then forgotten."""
    element = "<img src=/nowhere onerror=window.hit=1>"
    script = "document.body.insertAdjacentHTML('beforeend', arguments[0])"
    browser.execute_script(script, element)
    page = Page(browser)
    page.wait("the payload to run", lambda: bool(browser.execute_script(HAS_RUN)))
    browser.execute_script("delete window.hit")
    return True
