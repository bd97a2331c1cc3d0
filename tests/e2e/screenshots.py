"""Takes the screenshots of the docs: `python -m tests.e2e.screenshots`, some four minutes.

A real appliance with two brokers has the traffic of a small shop: groups that keep up, one that is slow, one without
members, one that fails on some messages. Chromium shows the pages, 1280 pixels wide, in the light theme.

`--every-look` is for a review of the design, beside the same of an earlier version: nearly every page from top to end,
in three widths, two themes and two languages, into build/looks. For Chinese the machine needs a font of it.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import random
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from gantrymq import ConsumeFrom, ConsumeResult, Message, SyncProducer, SyncPushConsumer
from gantrymq.message.model import MessageExt
from tests.appliance_process import RunningAppliance
from tests.conftest import require_tool
from tests.docs.pages import ROOT
from tests.e2e.conftest import CHROMIUM_FLAGS
from tests.e2e.page import Page
from tests.visitor import Visitor, admin_of

FOLDER = ROOT / "docs" / "images"
BYTES_MAX = 150_000
WIDTH, HEIGHT = 1280, 760
TRAFFIC_S = 180.0
# name of the file: address, and what is there once the page shows what it is for
PAGES = {
    "overview": ("/", "[data-live='cluster.in']"), "topics": ("/topics", "tbody tr"),
    "messages": ("/topic/orders", "tr.row"), "groups": ("/groups", "tbody tr"), "group": ("/group/warehouse", "h1"),
    "alerts": ("/alerts", "h1"),
}  # fmt: skip
WIDTHS, THEMES, LANGUAGES = (1280, 1920, 390), ("light", "dark"), ("en", "zh-hans")
PHONE_PX = 500  # narrower is a telephone
SIZE = "const page = document.documentElement; return [page.scrollWidth, page.scrollHeight];"
EVERY = (
    "/", "/topics", "/topics?new=1", "/topic/orders", "/topic/orders/queues", "/topic/orders/groups",
    "/topic/orders/producers", "/topic/orders/charts", "/topic/orders/settings", "/topic/orders/delete", "/groups",
    "/group/warehouse", "/group/warehouse/reset", "/group/statistics", "/traces", "/clients", "/brokers",
    "/broker/broker-a", "/broker/broker-a/settings", "/broker/broker-a/drain", "/alerts", "/alerts/1",
    "/alerts/rules/new", "/alerts/channels/new/webhook", "/dead-letters", "/dead-letters/mailer", "/reports/",
    "/audit", "/connect", "/security", "/users", "/tokens", "/definitions", "/password",
)  # fmt: skip
PER_SECOND = {"orders": 40, "payments": 25, "shipments": 15, "mails": 8}
TAGS = ("created", "paid", "cancelled")
CITIES = ("Lisbon", "Oslo", "Graz", "Turin", "Ghent")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.screenshots", description=__doc__)
    parser.add_argument("--seconds", type=float, default=TRAFFIC_S, help="of traffic before the first (default: 180)")
    parser.add_argument("--to", type=Path, default=FOLDER, help="folder (default: docs/images)")
    parser.add_argument("--every-look", action="store_true", help="every page in each look, into build/looks")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="gantry-screenshots-") as name, ExitStack() as at_end:
        gantry = at_end.enter_context(RunningAppliance(Path(name) / "data", "--brokers", "2"))
        visitor = admin_of(gantry)
        for topic in PER_SECOND:
            visitor.submit("/topics/create", {"name": topic, "queues": "4", "perm": "read-write"})
        stop = threading.Event()
        sender = threading.Thread(target=send, args=(gantry.namesrv, stop))
        sender.start()
        at_end.callback(sender.join)
        at_end.callback(stop.set)
        begin_consuming(gantry.namesrv, at_end)
        time.sleep(given.seconds)  # charts need something to show
        with chromium(gantry, visitor, Path(name) / "profile") as browser:
            if given.every_look:
                take_every_look(gantry, visitor, browser, ROOT / "build" / "looks")
            else:
                take(gantry, browser, given.to)


def send(namesrv: str, stop: threading.Event) -> None:
    """Until it is told to stop; each second's messages are spread over it, more in some seconds than in others."""
    dice = random.Random(7)
    number = 0
    with SyncProducer(namesrv, group="shop") as producer:
        while not stop.is_set():
            burst = 1 + 0.5 * dice.random()
            wanted = [topic for topic, count in PER_SECOND.items() for _ in range(round(count * burst))]
            dice.shuffle(wanted)
            for topic in wanted:
                number += 1
                order = {
                    "order": 70_000 + number // 3,
                    "city": dice.choice(CITIES),
                    "cents": dice.randrange(500, 90_000),
                }
                body = json.dumps(order).encode()
                producer.send(Message(topic, body, tags=dice.choice(TAGS), keys=f"order-{order['order']}"))
                stop.wait(1 / len(wanted))


def begin_consuming(namesrv: str, at_end: ExitStack) -> None:
    """Groups that keep up, one that is slow, one that fails, and one whose only member leaves."""

    def handled(messages: Sequence[MessageExt]) -> ConsumeResult:
        return ConsumeResult.SUCCESS

    def slowly(messages: Sequence[MessageExt]) -> ConsumeResult:
        time.sleep(0.5)  # a slow call is what the page shows
        return ConsumeResult.SUCCESS

    def failing(messages: Sequence[MessageExt]) -> ConsumeResult:
        wrong = any(message.queue_offset % 40 == 7 for message in messages)
        return ConsumeResult.LATER if wrong else ConsumeResult.SUCCESS

    first = ConsumeFrom.FIRST_OFFSET
    groups = (("billing", "payments", handled), ("warehouse", "orders", slowly), ("carrier", "shipments", handled))
    for group, topic, listener in groups:
        consumer = SyncPushConsumer(namesrv, group=group, listener=listener, consume_from=first, concurrency=4)
        consumer.subscribe(topic)
        at_end.enter_context(consumer)
    mailer = SyncPushConsumer(namesrv, group="mailer", listener=failing, consume_from=first, max_reconsume_times=0)
    mailer.subscribe("mails")
    at_end.enter_context(mailer)
    gone = SyncPushConsumer(namesrv, group="statistics", listener=handled, consume_from=first)
    gone.subscribe("orders")
    with gone:
        time.sleep(5)  # it consumes, and leaves


@contextmanager
def chromium(gantry: RunningAppliance, visitor: Visitor, profile: Path) -> Iterator[webdriver.Chrome]:
    """A browser that is logged in as the administrator."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(require_tool("chromium", "it shows the pages"))
    for flag in (*CHROMIUM_FLAGS, f"--user-data-dir={profile}", "--hide-scrollbars"):
        options.add_argument(flag)
    driver = Service(str(require_tool("chromedriver", "it steers Chromium")))
    browser = webdriver.Chrome(options=options, service=driver)
    try:
        browser.get(f"{gantry.url}/login")
        for name, value in visitor.cookies.items():
            if name.startswith("gantry_"):
                browser.add_cookie({"name": name, "value": value})
        browser.add_cookie({"name": "gantry_theme", "value": THEMES[0]})
        yield browser
    finally:
        browser.quit()


def take(gantry: RunningAppliance, browser: webdriver.Chrome, to: Path) -> None:
    """The pages of the docs. Raises SystemExit when a picture is larger than pages may load."""
    resize(browser, WIDTH, HEIGHT)
    page = Page(browser)
    for name, (address, selector) in PAGES.items():
        browser.get(gantry.url + address)
        page.find(selector)
        time.sleep(5)  # live figures come by the socket
        path = to / f"{name}.webp"
        save(browser, path)
        if path.stat().st_size > BYTES_MAX:
            raise SystemExit(f"{path} is larger than {BYTES_MAX} bytes")


def take_every_look(gantry: RunningAppliance, visitor: Visitor, browser: webdriver.Chrome, to: Path) -> None:
    """Each page in each width, theme and language, and aloud which is wider than its window."""
    for language, theme, width in itertools.product(LANGUAGES, THEMES, WIDTHS):
        visitor.submit("/preferences/language", {"language": language, "back": "/tokens"}, page="/tokens")
        browser.add_cookie({"name": "gantry_theme", "value": theme})
        folder = to / f"{width}-{theme}-{language}"
        folder.mkdir(parents=True, exist_ok=True)
        for address in EVERY:
            resize(browser, width, HEIGHT)
            browser.get(gantry.url + address)
            time.sleep(1)  # live figures come by the socket
            wide, high = browser.execute_script(SIZE)
            if wide > width:
                print(f"{address} is {wide} px wide, in a window of {width}")
            resize(browser, width, high)
            save(browser, folder / f"{re.sub('[^a-z0-9]+', '-', address).strip('-') or 'overview'}.webp")


def resize(browser: webdriver.Chrome, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < PHONE_PX}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def save(browser: webdriver.Chrome, path: Path) -> None:
    shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 85})
    path.write_bytes(base64.b64decode(shot["data"]))
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
