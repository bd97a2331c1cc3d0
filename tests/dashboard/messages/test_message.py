"""One message: its tabs, its bytes, and handling it again, against a real broker and a real consumer."""

from __future__ import annotations

import asyncio
import re
import shlex
from html import unescape
from urllib.parse import urlsplit

from appliance.__main__ import main
from dashboard.cluster.gateway import Gateway
from dashboard.models.management import User
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client, Topic, api_for
from tests.dashboard.groups.group_members import consuming, waited_for

HTMX = {"hx-request": "true"}


async def place_of(gateway: Gateway, topic: str, body: bytes, *, keys: str = "") -> str:
    sent = await gateway.messages.send(Message(topic, body, keys=keys))
    return f"{sent.queue.broker_name}.{sent.queue.queue_id}.{sent.queue_offset}"


async def test_the_bytes_are_a_file_and_never_a_page(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    await make_topic("bytes", queues=1)
    body = b"<script>alert(1)</script>\x00"
    place = await place_of(gateway, "bytes", body)
    answer = await (await log_in("reader")).get(f"/topic/bytes/messages/{place}/body")
    assert answer.content == body
    assert answer["Content-Type"] == "application/octet-stream" and answer["X-Content-Type-Options"] == "nosniff"
    assert re.fullmatch(r'attachment; filename="bytes-[\w-]+\.bin"', answer["Content-Disposition"])


async def test_a_property_that_is_a_moment_is_shown_as_one(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    await make_topic("moments", queues=1)
    due = "1800000000000"
    sent = await gateway.messages.send(Message("moments", b"m", properties={"TIMER_OUT_MS": due, "mine": due}))
    place = f"{sent.queue.broker_name}.{sent.queue.queue_id}.{sent.queue_offset}"
    shown = (await (await log_in("reader")).get(f"/topic/moments/messages/{place}")).content.decode()
    moment = '<small class="muted"> <time datetime="2027-01-15T08:00:00.000Z"'
    assert f"<dt><code>TIMER_OUT_MS</code></dt><dd>{due}{moment}" in shown
    assert f"<dt><code>mine</code></dt><dd>{due}</dd>" in shown


async def test_a_lost_message_leads_to_its_topics_newest(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    await make_topic("gone", queues=1)
    broker = (await place_of(gateway, "gone", b"the only one")).split(".")[0]
    answer = await (await log_in("reader")).get(f"/topic/gone/messages/{broker}.0.999")
    shown = answer.content.decode()
    assert answer.status_code == 404 and "No such message" in shown and "No such topic" not in shown
    assert '<a href="/topic/gone">Newest messages</a>' in shown


async def test_tabs_show_keys_trace_and_groups(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    await make_topic("tabs", queues=1)
    first = await place_of(gateway, "tabs", b"first of two", keys="k")
    second = await place_of(gateway, "tabs", b"second", keys="k other")
    client = await log_in("reader")

    async def tab(name: str) -> str:
        answer = await client.get(f"/topic/tabs/messages/{second}?tab={name}", headers=HTMX)
        assert answer.status_code == 200, answer.content
        return answer.content.decode()

    related = await tab("related")
    assert "first of two" in related and first in related and "second" not in re.findall(r"<code>(.*?)</code>", related)
    assert "tracing is off" in (trace := await tab("trace")) and "Stored" in trace
    assert "No consumer group reads this topic" in (groups := await tab("consumers"))
    assert "Resend" not in groups, "a reader sends nothing"
    [broker] = (await gateway.brokers.list()).brokers
    for group, offset in (("tabs-past", 2), ("tabs-before", 1)):
        await gateway.calls.call(
            lambda admin, group=group, offset=offset: admin.offsets.set_at(broker.address, group, "tabs", 0, offset)  # type: ignore[misc]
        )
    groups = re.sub(r"<[^>]*>", " ", await tab("consumers"))
    assert re.search(r"tabs-before\s+not yet\s+none online\s+tabs-past\s+consumed\s+none online", groups), groups
    assert "Copy as Python" in await tab("message") and "Copy as Python" in await tab("no-such-tab")
    opened = (await client.get(f"/topic/tabs?open={second}&tab=related")).content.decode()
    assert "first of two" in opened and 'class="opened"' in opened


async def test_a_message_is_sent_again_as_new(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    await make_topic("again", queues=1)
    place = await place_of(gateway, "again", b"twice", keys="k")
    address = f"/topic/again/messages/{place}/again"
    answer = await (await log_in("operator")).post(address, {"do": "resend"}, headers=HTMX)
    assert "Resent" in answer.content.decode()
    page = await gateway.messages.newest(await gateway.topics.get("again"), limit=5)
    assert [bytes(message.body) for message in page.messages] == [b"twice", b"twice"]
    assert len({message.msg_id for message in page.messages}) == 2


async def test_the_lines_for_a_shell_do_as_the_button(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    await make_topic("lines", queues=1)
    place = await place_of(gateway, "lines", b"once more")
    answer = await (await log_in("operator")).get(f"/topic/lines/messages/{place}?tab=consumers")
    lines = re.findall(r"<code>(gantry admin .*?|curl .*?)</code>", answer.content.decode())
    admin, curl = map(unescape, lines)
    words = shlex.split(admin)
    assert words[-2] == "-n"
    words[-1] = gateway.namesrv
    assert await asyncio.to_thread(main, words[1:]) == 0
    (url,) = [word for word in shlex.split(curl) if word.startswith("http")]
    address = urlsplit(url).path.removeprefix("/api/v1")
    api = await api_for(await User.objects.aget(role="operator"))
    assert (await api.call("post", address))[0] == 201
    assert (await gateway.topics.get("lines")).stored == 3


async def test_one_client_handles_it_once_more(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    await make_topic("handled", queues=1)
    place = await place_of(gateway, "handled", b"work")
    message = await gateway.messages.get("handled", *_split(place))
    client = await log_in("operator")
    async with consuming(gateway, "handled-group", "handled") as seen:

        async def is_there() -> bool:
            return bool(seen and (await gateway.fate.deliveries(message)).clients)

        await waited_for(is_there)
        [(group, client_id)] = (await gateway.fate.deliveries(message)).clients
        assert (
            "handled-group"
            in (await client.get(f"/topic/handled/messages/{place}?tab=consumers", headers=HTMX)).content.decode()
        )
        before = len(seen)
        wanted = {"do": "deliver", "client": f"{group} {client_id}"}
        page = (await client.post(f"/topic/handled/messages/{place}/again", wanted, headers=HTMX)).content.decode()
        assert "answered CR_SUCCESS" in page
        assert len(seen) == before + 1
        wanted["client"] = f"{group} somewhere-else"
        page = (await client.post(f"/topic/handled/messages/{place}/again", wanted, headers=HTMX)).content.decode()
        assert "error-line" in page and len(seen) == before + 1
        api = await api_for(await User.objects.aget(username="operator"))
        at = f"/topics/handled/messages/{place}"
        status, told = await api.call("get", f"{at}/groups")
        assert (status, [(item["group"], item["client_ids"]) for item in told["items"]]) == (
            200,
            [(group, [client_id])],
        )
        status, handled = await api.call("post", f"{at}/deliver", {"group": group, "client_id": client_id})
        assert (status, handled["outcome"], len(seen)) == (200, "CR_SUCCESS", before + 2)
        assert (await api.call("get", f"{at}/trace"))[1]["steps"][0]["what"] == "Stored"
        assert (await api.call("post", f"{at}/resend"))[0] == 201


def _split(place: str) -> tuple[str, int, int]:
    broker, queue, offset = place.rsplit(".", 2)
    return broker, int(queue), int(offset)
