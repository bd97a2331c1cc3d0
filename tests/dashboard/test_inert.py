"""S20: whatever producers and consumers put into texts stays text, on every page that shows it."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.test import AsyncClient

from appliance.reports.runs import RunFolder, write_json
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.message_values import MessageLine
from dashboard.live.tail import render_lines
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client, Topic
from tests.dashboard.finished_run import finished_run
from tests.dashboard.script_payloads import PAYLOADS

HARMLESS = "harmless"
SCRIPTS_OF_A_PAGE = 5
ADDRESSES = {"href", "src", "action", "formaction", "data", "xlink:href", "poster", "srcset"}


class Elements(HTMLParser):
    """What a browser would make of a page: how many elements of each kind, and what in them could run."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.runs: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.counts[tag] += 1
        for name, value in attributes:
            is_handler = name.startswith(("on", "hx-on")) or name == "srcdoc"
            is_address = name in ADDRESSES or name.startswith("hx-")
            if is_handler or (is_address and re.match(r"\s*(javascript|data|vbscript):", value or "", re.IGNORECASE)):
                self.runs.append(f"<{tag} {name}={value!r}>")


def nasty_message(topic: str, text: str) -> Message:
    """The text wherever a producer may put one."""
    plain = re.sub(r"\s", "_", text)
    return Message(topic, text.encode(), tags=plain[:100], keys=[plain], properties={"p": text, plain[:60]: "v"})


def test_s20_there_are_a_hundred_payloads_and_most_would_be_seen_unescaped() -> None:
    assert len(set(PAYLOADS)) == len(PAYLOADS) == 100
    would_run = [text for text in PAYLOADS if Elements(text).runs or "<script" in text.lower()]
    assert len(would_run) >= 85


async def test_s20_a_message_is_text_in_list_and_detail(log_in: Client, make_topic: Topic, gateway: Gateway) -> None:
    texts = [HARMLESS, '{"harmless": 1}', *PAYLOADS]
    await make_topic("inert", queues=1, messages=[nasty_message("inert", text) for text in texts])
    client = await log_in("reader")
    page = await gateway.messages.newest(await gateway.topics.get("inert"), limit=len(texts))
    of_text = {message.body.decode(): message for message in page.messages}
    assert len(of_text) == len(texts)
    kinds: dict[str, set[str]] = {}
    for text in texts:
        message = of_text[text]
        place = f"{message.broker_name}.{message.queue_id}.{message.queue_offset}"
        shown = ["<table>" + "".join(render_lines("inert", [MessageLine.of(message)])) + "</table>"]
        shown += [await page_of(client, f"/topic/inert/messages/{place}{form}") for form in ("", "?as=text", "?as=hex")]
        elements = Elements("".join(shown))
        assert elements.runs == [], text
        assert elements.counts["script"] == 3 * SCRIPTS_OF_A_PAGE, text
        kinds[text] = set(elements.counts)
    ours = kinds[HARMLESS] | kinds['{"harmless": 1}']
    assert {text: kinds[text] - ours for text in PAYLOADS if not kinds[text] <= ours} == {}


async def test_s20_lists_and_searches_are_text(log_in: Client, make_topic: Topic) -> None:
    await make_topic("inert-list", queues=1, messages=[nasty_message("inert-list", text) for text in PAYLOADS])
    client = await log_in("reader")
    addresses = ("/topic/inert-list", "/topics", "/groups")
    ours = {address: Elements(await page_of(client, address)).counts["script"] for address in addresses}
    for text in PAYLOADS:
        for address in addresses:
            response = await client.get(
                address, {"q": text, "since": text, "queue": text, "sort": text, "older": text, "open": text}
            )
            elements = Elements(response.content.decode())
            assert elements.runs == [] and elements.counts["script"] == ours[address], (address, text)


@pytest.mark.slow
async def test_s20_names_in_a_report_are_text(log_in: Client, tmp_path: Path, settings: Any) -> None:
    settings.APPLIANCE = dataclasses.replace(django_settings.APPLIANCE, data=tmp_path)
    run = await finished_run(tmp_path)
    path = RunFolder.in_data(tmp_path, run.run_id).path / "page.json"
    report = json.loads(path.read_text())
    client = await log_in("reader")
    ours = Elements(await page_of(client, f"/reports/runs/{run.run_id}")).counts
    for text in PAYLOADS:
        for row in (*report["topics"], *report["rows"], *report["chart"]["series"]):
            row["topic"] = text
        report["notes"] = [text]
        write_json(path, report)
        for address in (f"/reports/runs/{run.run_id}", "/reports/"):
            elements = Elements(await page_of(client, address))
            assert elements.runs == [], text
        assert Elements(await page_of(client, f"/reports/runs/{run.run_id}")).counts == ours, text


async def page_of(client: AsyncClient, address: str) -> str:
    response = await client.get(address)
    assert response.status_code == 200, (address, response.status_code)
    return response.content.decode()
