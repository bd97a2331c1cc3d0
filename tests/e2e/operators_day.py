"""An operator's walk through groups and dead letters: moved with a picked time, put back by a run, discarded."""

from __future__ import annotations

import asyncio

from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver

from gantrymq import AdminClient, Message, Producer
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from gantrymq.remoting.codes import RequestCode
from tests.e2e.page import Page
from tests.waiting import until

GROUP, TOPICS = "billing", ("invoices", "reminders")
LETTERS = 3


async def _prepare(namesrv: str) -> None:
    """A group with a place in two topics, and dead letters."""
    async with Producer(namesrv, group="shop") as producer, AdminClient(namesrv) as admin:
        for topic in TOPICS:
            sent = [await producer.send(Message(topic, b"%d" % number)) for number in range(LETTERS)]
        (address,) = (await admin.cluster.masters()).values()
        await admin.groups.create_at(address, SubscriptionGroupConfig(GROUP))
        for topic in TOPICS:
            await admin.offsets.reset(GROUP, topic, 0, await admin.offsets.plan_reset(GROUP, topic, 0))
        for result in sent:
            (message, *_) = (
                await admin.messages.pull_at(address, TOPICS[-1], result.queue.queue_id, result.queue_offset, 1)
            )[0]
            fields = {
                "offset": str(message.physical_offset), "group": GROUP, "delayLevel": "-1", "unitMode": "false",
                "originMsgId": message.msg_id, "originTopic": TOPICS[-1], "consumeError": "Unpaid at billing.py:7",
            }  # fmt: skip
            await admin.calls.call(address, RequestCode.CONSUMER_SEND_MSG_BACK, fields)

        async def are_all_dead() -> bool:
            found = await admin.topics.stats_at(address, f"%DLQ%{GROUP}")
            return sum(at.max_offset - at.min_offset for at in found.offset_table.values()) == LETTERS

        await until(are_all_dead)


def walk(browser: WebDriver, page: Page, url: str, namesrv: str) -> None:
    asyncio.run(_prepare(namesrv))

    # both topics at once, to a time that is picked
    browser.get(f"{url}/group/{GROUP}/reset")
    for topic in TOPICS:
        page.click(f"input[name=topic][value={topic}]")
    page.click("[name=to] option[value=time]")
    page.click(".when-pick summary")
    page.click(".when-quick button")
    page.wait("the picked time", lambda: page.find("[name=at]").get_attribute("value") == "15 min")
    assert page.find("[name=to]").get_attribute("value") == "time"
    page.click("main form .primary")
    page.wait("both previews", lambda: len(browser.find_elements(By.CSS_SELECTOR, "main table")) == len(TOPICS))
    page.find("[name=typed_name]").send_keys(GROUP)
    page.click(".danger-button")
    page.wait("both results", lambda: len(browser.find_elements(By.CSS_SELECTOR, ".note")) == len(TOPICS))

    # counted, put back by a run that is watched, and discarded by their number
    browser.get(f"{url}/dead-letters/{GROUP}")
    page.wait("the cause", lambda: "Unpaid at billing.py:7" in page.find(".dead").text)
    page.click("[data-count]")
    page.wait("the count", lambda: page.find("[data-go]").text == f"Resend {LETTERS} messages")
    page.click("[data-go]")
    page.wait("the run's end", lambda: page.find("#resend-runs .tag").text == "Done")
    assert f"{LETTERS} resent" in page.find("#resend-runs").text
    page.click(f"a[href='/dead-letters/{GROUP}/discard']")
    page.find("[name=letters]").send_keys(str(LETTERS))
    page.click(".danger-button")
    page.wait("no letters", lambda: "No dead letters" in page.find("main").text)
