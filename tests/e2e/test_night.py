"""An alert at night, from the first look to the repair: once with a keyboard alone, once with a thumb on a telephone.

Someone switched a group's consuming off by mistake, and its messages wait.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gantrymq import ConsumeFrom, ConsumeResult, Message, SyncProducer, SyncPushConsumer
from gantrymq.message.model import MessageExt
from tests.appliance_process import RunningAppliance
from tests.visitor import PASSWORD, Visitor, first_run_token
from tests.waiting import wait_until

selenium = pytest.importorskip("selenium", reason="drives the browser")

from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

from tests.e2e.page import Page  # noqa: E402

pytestmark = pytest.mark.e2e

TOPIC, GROUP = "invoices", "night-billing"
WAITING = 20
RULE = {
    "name": "Invoices wait", "kind": "group-lag", "pattern": "night-*", "threshold": "10", "clear": "1", "for_s": "",
    "clear_s": "", "level": "2", "is_on": "on",
}  # fmt: skip
TABS_MAX = 120  # more than any page has
TARGET_PX = 24.0  # WCAG 2.2, target size
FOCUSED = """
const at = document.activeElement, look = getComputedStyle(at);
return [at.matches(arguments[0]), look.outlineStyle !== 'none' || look.boxShadow !== 'none'];
"""
IN_VIEW = """
const found = [...document.querySelectorAll(arguments[0])].find((one) => one.checkVisibility());
if (!found) return null;
found.scrollIntoView({block: 'center'});
const {x, y, width, height} = found.getBoundingClientRect(), at = [x + width / 2, y + height / 2];
const hit = document.elementFromPoint(...at);
return [...at, Math.min(width, height), hit !== null && (found.contains(hit) || hit.contains(found))];
"""


class Keyboard:
    """Tab, Enter and the keys that the help lists; the focus must show."""

    def __init__(self, browser: webdriver.Chrome, page: Page) -> None:
        self._browser = browser
        self._page = page

    def press(self, selector: str) -> None:
        self._tab_to(selector)
        self._type(Keys.ENTER)

    def write(self, selector: str, text: str) -> None:
        self._tab_to(selector)
        self._type(text)

    def go_to(self, address: str) -> None:
        self._type("g")
        self._type({"/": "o", "/alerts": "a"}[address])
        self._page.wait(address, lambda: self._browser.current_url.endswith(address))

    def open_first_problem(self) -> None:
        self._type("j")
        self._type(Keys.ENTER)

    def _tab_to(self, selector: str) -> None:
        self._page.find(selector)
        for _ in range(TABS_MAX):
            is_there, shows = self._browser.execute_script(FOCUSED, selector)
            if is_there:
                assert shows, f"the focus on {selector} can not be seen"
                return
            self._type(Keys.TAB)
        raise AssertionError(f"Tab does not come to {selector}.\n{self._page.describe()}")

    def _type(self, keys: str) -> None:
        ActionChains(self._browser).send_keys(keys).perform()


class Thumb:
    """Touches on a telephone; what is touched must be large enough, and nothing lie over it."""

    def __init__(self, browser: webdriver.Chrome, page: Page) -> None:
        self._browser = browser
        self._page = page
        size = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})

    def press(self, selector: str) -> None:
        found: list[float] = []

        def is_touchable() -> bool:
            found[:] = self._browser.execute_script(IN_VIEW, selector) or []
            return bool(found) and bool(found[3])

        self._page.wait(f"{selector} where a thumb can touch it", is_touchable)
        x, y, least_px, _ = found
        assert least_px >= TARGET_PX, f"{selector} is {least_px:g} px small"
        assert self._browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        for what, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            self._browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": what, "touchPoints": points})

    def write(self, selector: str, text: str) -> None:
        self.press(selector)
        self._page.wait("the focus", lambda: self._browser.execute_script(FOCUSED, selector)[0])
        ActionChains(self._browser).send_keys(text).perform()

    def go_to(self, address: str) -> None:
        self.press(".menu-button")
        self.press(f".nav a[href='{address}']")
        self._page.wait(address, lambda: self._browser.current_url.endswith(address))

    def open_first_problem(self) -> None:
        self.press(".problem h2 a")


@pytest.fixture
def appliance(tmp_path: Path) -> Iterator[RunningAppliance]:
    with RunningAppliance(tmp_path / "data", command=(sys.executable, "manage.py", "up")) as running:
        yield running


@pytest.mark.parametrize("hand_of", [Keyboard, Thumb])
def test_an_alert_at_night_is_found_understood_repaired_and_over(
    hand_of: type[Keyboard | Thumb], appliance: RunningAppliance, browser: webdriver.Chrome
) -> None:
    visitor = Visitor(appliance.url)
    visitor.become_admin(first_run_token(appliance.output))
    page, handled = Page(browser), []

    def listener(messages: Sequence[MessageExt]) -> ConsumeResult:
        handled.extend(messages)
        return ConsumeResult.SUCCESS

    consumer = SyncPushConsumer(
        appliance.namesrv, group=GROUP, listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET
    )
    consumer.subscribe(TOPIC)
    with SyncProducer(appliance.namesrv) as producer, consumer:
        producer.send(Message(TOPIC, b"before"))
        wait_until(lambda: handled)
        assert visitor.submit("/alerts/rules/new", RULE).status == 302
        wait_until(lambda: visitor.get(f"/group/{GROUP}").status == 200)
        visitor.submit(f"/group/{GROUP}/consuming", {"is_on": "false"}, page=f"/group/{GROUP}")
        for number in range(WAITING):
            producer.send(Message(TOPIC, b"%d" % number))
        _night(browser, page, hand_of(browser, page), appliance.url)
        wait_until(lambda: len(handled) > WAITING)
    complaints = [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert complaints == []


def _night(browser: webdriver.Chrome, page: Page, hand: Keyboard | Thumb, url: str) -> None:
    browser.get(url)
    hand.write("[name=username]", "admin")
    hand.write("[name=password]", PASSWORD)
    hand.press("main form button.primary")

    # what is wrong: the first sentence names it, and so does the tab's title
    page.wait("the alert in the first sentence", lambda: GROUP in page.find("h1").text)
    page.wait("one alert in the menu", lambda: page.find("[data-waiting=alerts]").get_attribute("textContent") == "1")
    page.wait("one alert in the tab's title", lambda: browser.title.startswith("(1) "))
    hand.press("h1 a")
    page.wait("the list of alerts", lambda: browser.current_url == f"{url}/alerts")

    # someone looks after it
    hand.open_first_problem()
    page.wait("the alert", lambda: GROUP in page.find("h1").text)
    hand.press("button[value=acknowledge]")
    page.wait("who has it", lambda: "acknowledged by admin" in page.find("h1").text)

    # why: one step from the alert
    hand.press(".page-head .actions a")
    page.wait("the cause", lambda: "The group receives nothing" in page.find("main").text)

    # the repair, and its result without a reload
    hand.press("form[action$='/consuming'] button")
    page.wait("no cause", lambda: "The group receives nothing" not in page.find("main").text)
    lag = f"[data-live='row.{GROUP}.lag']"
    page.wait("nothing left to consume", lambda: page.find(lag).text == "0")

    # it is over, on the first screen and in the list
    hand.go_to("/")
    page.wait("a calm first sentence", lambda: page.find("h1").text.startswith(("All good", "The disk is filling")))
    page.wait("no count in the tab's title", lambda: not browser.title.startswith("(1) "))
    hand.go_to("/alerts")
    page.wait("no alert", lambda: "No open alerts" in page.find("main").text)
