"""Takes the screenshots of the docs: `python -m tests.e2e.screenshots`, some four minutes.

A real appliance with two brokers has the traffic of a small shop: groups that keep up, one that is slow, one without
members, one that fails on some messages. Chromium shows the pages, 1280 pixels wide, in the light theme.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
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
    "overview": ("/", "[data-live='cluster.in']"),
    "topics": ("/topics", "tbody tr"),
    "messages": ("/topic/orders", "tr.row"),
    "groups": ("/groups", "tbody tr"),
    "group": ("/group/warehouse", "h1"),
    "alerts": ("/alerts", "h1"),
}
PER_SECOND = {"orders": 40, "payments": 25, "shipments": 15, "mails": 8}
TAGS = ("created", "paid", "cancelled")
CITIES = ("Lisbon", "Oslo", "Graz", "Turin", "Ghent")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.screenshots", description=__doc__)
    parser.add_argument("--seconds", type=float, default=TRAFFIC_S, help="of traffic before the first (default: 180)")
    parser.add_argument("--to", type=Path, default=FOLDER, help="folder (default: docs/images)")
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
        take(gantry, visitor, Path(name) / "profile", given.to)


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


def take(gantry: RunningAppliance, visitor: Visitor, profile: Path, to: Path) -> None:
    """Each page as the administrator sees it. Raises SystemExit when a picture is larger than pages may load."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(require_tool("chromium", "it shows the pages"))
    for flag in (*CHROMIUM_FLAGS, f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}", "--hide-scrollbars"):
        options.add_argument(flag)
    driver = Service(str(require_tool("chromedriver", "it steers Chromium")))
    browser = webdriver.Chrome(options=options, service=driver)
    try:
        browser.get(f"{gantry.url}/login")
        cookies = {name: value for name, value in visitor.cookies.items() if name.startswith("gantry_")}
        for name, value in {**cookies, "gantry_theme": "light"}.items():
            browser.add_cookie({"name": name, "value": value})
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        page = Page(browser)
        for name, (address, selector) in PAGES.items():
            browser.get(gantry.url + address)
            page.find(selector)
            time.sleep(5)  # live figures come by the socket
            path = to / f"{name}.webp"
            shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 85})
            path.write_bytes(base64.b64decode(shot["data"]))
            print(f"{path}: {path.stat().st_size} bytes")
            if path.stat().st_size > BYTES_MAX:
                raise SystemExit(f"{path} is larger than {BYTES_MAX} bytes")
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
