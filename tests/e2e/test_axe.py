"""axe-core on every screen, in both themes and at two sizes: nothing for a screen reader to stumble over, and nothing
wider than the screen.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from appliance.own_files import SITE
from gantrymq import Message, SyncProducer
from tests.appliance_process import RunningAppliance
from tests.conftest import missing
from tests.dashboard.addresses import all_patterns, example_address
from tests.interop.build_cache import required_npm_folder
from tests.suite.long_runs import in_all, in_turn

selenium = pytest.importorskip("selenium", reason="drives the browser")

from selenium import webdriver  # noqa: E402

from tests.e2e.page import WAIT_S, Page, first_run_link  # noqa: E402

AXE = Path(__file__).parent / "axe"  # package.json and the lock that pins axe-core
TOPIC = "screens"
# Width, theme, and what axe runs: all of it once in each. Contrast depends on the theme, too, so the last one is about
# the texts that the narrow screen hid, or drew in other colours or letters: no others can differ from the first.
LOOKS: tuple[tuple[int, str, dict[str, Any]], ...] = (
    (390, "dark", {}),
    (1280, "light", {}),
    (1280, "dark", {"runOnly": ["color-contrast"]}),
)
WIDTHS = (390, 1280, 1920)
HEIGHT = 900
FURTHER = ("/no-such-page", f"/topic/{TOPIC}?send=1", "/topics?new=1", "/groups?q=nothing-has-this-name")
# Screens that must have been looked at, whatever the addresses are called.
KNOWN = {
    "/", "/topics", f"/topic/{TOPIC}", f"/topic/{TOPIC}/queues", f"/topic/{TOPIC}/groups", f"/topic/{TOPIC}/charts",
    f"/topic/{TOPIC}/producers", f"/topic/{TOPIC}/settings",
    f"/topic/{TOPIC}/delete", f"/topic/{TOPIC}/messages/broker-a.0.0", "/groups", "/dead-letters", "/alerts",
    "/alerts/rules/new", "/alerts/channels/new/webhook", "/reports/", "/audit", "/security", "/users",
    "/settings", "/accounts",
    "/users/1", "/tokens", "/password", "/traces", "/broker/broker-a/settings", "/name-server/entries",
    "/api/v1/docs", "/no-such-page",
}  # fmt: skip
CHINESE = ["/", "/topics", f"/topic/{TOPIC}", "/groups", "/dead-letters", "/alerts", "/connect"]  # one of each kind
DOCS = ("", "operations/backup.html", "reference/messages.html", "glossary.html")
WRAPPED = """
const lines = (part) => {
  const range = document.createRange();
  range.selectNodeContents(part);
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
};
return [...document.querySelectorAll('.nav a > span:first-of-type, .who-name small')]
  .filter((part) => lines(part) > 1 || part.scrollWidth > part.clientWidth && part.clientWidth)
  .map((part) => part.textContent);
"""
IS_PAGE = """
const [address, done] = arguments;
fetch(address).then(async (answer) => done((await answer.text()).includes('<main ')), () => done(false));
"""
IS_TOO_WIDE = """
// The documentation's search box moves to its place.
document.getAnimations().filter((one) => one instanceof CSSTransition).forEach((moving) => moving.finish());
return document.documentElement.scrollWidth > innerWidth;
"""
RUN = """
const [theme, options, done] = arguments;
document.documentElement.dataset.theme = theme;
if ('mdColorScheme' in document.body.dataset) { // of the documentation, whose colours fade
  document.body.dataset.mdColorScheme = theme === 'dark' ? 'slate' : 'default';
  document.getAnimations().forEach((fading) => fading.finish());
}
// Half of the figures look as they do when a broker was slow to answer: that may come at any time.
document.querySelectorAll('.v').forEach((figure, at) => figure.classList.toggle('is-stale', at % 2 === 1));
const drawn = (text) => {
  const {color, fontSize, fontWeight} = getComputedStyle(text);
  const told = [text.checkVisibility(), color, fontSize, fontWeight];
  for (let at = text, isCovered = false; at; at = at.parentElement) {
    const {backgroundColor, backgroundImage, opacity} = getComputedStyle(at);
    told.push(opacity, ...(isCovered ? [] : [backgroundColor, backgroundImage]));
    isCovered ||= backgroundColor.startsWith('rgb('); // what is transparent has rgba
  }
  return told.join();
};
const isText = (one) => one.matches('input, select, textarea')
  || [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
const texts = new Map([...document.querySelectorAll('body *')].filter(isText).map((text) => [text, drawn(text)]));
const before = (window.textsOf ??= {})[theme];
window.textsOf[theme] = texts;
const differs = (text) => text.checkVisibility() && before.get(text) !== texts.get(text);
const others = before ? [...texts.keys()].filter(differs) : [document];
if (others.length === 0) done([]);
else axe.run({include: others}, {resultTypes: ['violations'], ...options}).then(
  (found) => done(found.violations.flatMap((one) => one.nodes.map((node) => [
    one.id, node.html.slice(0, 200), [...node.any, ...node.all, ...node.none].map((check) => check.message).join('; '),
  ]))),
  (error) => done([['axe failed', String(error), '']]));
"""


@pytest.fixture(scope="module")
def axe() -> str:
    """The script, as npm's lock pins it."""
    folder = required_npm_folder("axe", AXE, "axe-core")
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def appliance(tmp_path: Path) -> Iterator[RunningAppliance]:
    with RunningAppliance(tmp_path / "data", command=(sys.executable, "manage.py", "up")) as running:
        yield running


@pytest.mark.timeout(1800)  # with --long some hundred looks: minutes of a core
def test_no_screen_has_a_violation(appliance: RunningAppliance, browser: webdriver.Chrome, axe: str) -> None:
    browser.set_script_timeout(WAIT_S)
    url, page = f"http://{appliance.http}", Page(browser)
    with SyncProducer(appliance.namesrv) as producer:
        for number in range(8):
            producer.send(Message(TOPIC, b'{"amount": 3}', tags="paid", keys=[f"order-{number}"]))
    found: list[Any] = look(browser, axe, url, ["/login"])
    found += look(browser, axe, "", [first_run_link(appliance)])
    page.sign_up(appliance)

    addresses = [*addresses_of_all(), *FURTHER]
    screens = [address for address in addresses if browser.execute_async_script(IS_PAGE, address)]
    assert set(screens) >= KNOWN
    found += look(browser, axe, url, screens)
    found += look_in_chinese(browser, page, axe, url)
    assert found == []


@pytest.mark.timeout(600)
def test_no_kind_of_page_of_the_documentation_has_a_violation(
    appliance: RunningAppliance, browser: webdriver.Chrome, axe: str
) -> None:
    """The theme is Material for MkDocs; docs/assets/readable.css and deploy/site_pages.py repair it."""
    if not SITE.is_dir():
        missing("the documentation", "deploy/site builds it")
    browser.set_script_timeout(WAIT_S)
    url = f"http://{appliance.http}"
    Page(browser).sign_up(appliance)
    assert look(browser, axe, f"{url}/docs/", list(DOCS)) == []
    for address in DOCS:
        browser.get(f"{url}/docs/{address}")
        assert not is_too_wide(browser, 390), address


def look_in_chinese(browser: webdriver.Chrome, page: Page, axe: str, url: str) -> list[Any]:
    """The menu changes the language; axe asks whether pages say so, and what grew out of its place."""
    browser.get(f"{url}/topics")
    page.click(".account > summary")
    page.click("button[name=language][value=zh-hans]")
    page.wait("the page in Chinese", lambda: page.find("html").get_attribute("lang") == "zh-CN")
    assert browser.current_url == f"{url}/topics"
    assert page.find("h1").text == "主题"
    found = look(browser, axe, url, CHINESE)
    browser.get(f"{url}/tokens")
    page.click(".account > summary")
    page.click("button[name=language][value=en]")
    page.wait("the page in English", lambda: page.find("html").get_attribute("lang") == "en")
    return found


def addresses_of_all() -> list[str]:
    """An example of each address that may be a page; files and fragments are told apart by asking."""
    left_out = re.compile(  # docs: the test of its own looks at them
        r"^/(?:static|metrics|healthz|readyz|login|logout|first-run|invitation|live|docs|api/v1/(?!docs))"
    )
    found = []
    for route, _ in all_patterns():
        address = example_address(route)
        if not left_out.match(address):
            is_broker = address.startswith("/broker")
            found.append(address.replace("no-such-topic", "broker-a" if is_broker else TOPIC))
    return list(dict.fromkeys(found))


def look(browser: webdriver.Chrome, axe: str, url: str, addresses: list[str]) -> list[Any]:
    """What axe says of the pages whose turn it is, in each theme and size; only --long looks a third time."""
    found = []
    for address in in_turn(addresses):
        browser.get(url + address)
        for width in WIDTHS:
            found += [(address, width, "too wide")] if is_too_wide(browser, width) else []
            found += [(width, "the menu wraps", text) for text in browser.execute_script(WRAPPED)]
        for width, theme, options in in_all(LOOKS[:2], long=LOOKS):
            resize(browser, width)
            if browser.execute_script("return !window.axe"):  # also of a page that loaded itself anew meanwhile
                browser.execute_script(axe)
            told = browser.execute_async_script(RUN, theme, options)
            found += [(address.partition("?")[0], width, theme, *one) for one in told]
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return found


def is_too_wide(browser: webdriver.Chrome, width: int) -> bool:
    """Whether the whole page must be moved sideways to be read. Wide tables have bars of their own."""
    resize(browser, width)
    return bool(browser.execute_script(IS_TOO_WIDE))


def resize(browser: webdriver.Chrome, width: int) -> None:
    size = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
