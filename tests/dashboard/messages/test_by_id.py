"""A message's id is an address: on a page and in REST, with and without traces, and for copies with one id."""

from __future__ import annotations

from dashboard.cluster.gateway import Gateway
from dashboard.models.management import User
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client, Topic, api_for


async def test_a_unique_id_leads_to_its_message_alone(log_in: Client, gateway: Gateway, make_topic: Topic) -> None:
    await make_topic("addressed", queues=2)
    sent = await gateway.messages.send(Message("addressed", b"find me by my id", keys="k-1"))
    page = await (await log_in("reader")).get(f"/messages/{sent.msg_id}")
    shown = page.content.decode()
    assert page.status_code == 200 and "find me by my id" in shown
    assert f'href="/messages/{sent.msg_id}?tab=trace"' in shown, "its tabs keep the address"
    typed = await (await log_in("reader")).get("/messages", {"id": f" {sent.msg_id} "})
    assert (typed.status_code, typed["Location"]) == (302, f"/messages/{sent.msg_id}"), "the box of /traces"
    api = await api_for(await User.objects.aget(username="reader"), "read")
    status, answer = await api.call("get", f"/messages/{sent.msg_id}")
    assert status == 200 and (answer["topic"], answer["body"]) == ("addressed", "find me by my id"), answer
    status, named = await api.call("get", f"/messages/{sent.msg_id}?topic=addressed")
    assert status == 200 and named == answer


async def test_an_offset_id_leads_there_too(gateway: Gateway, make_topic: Topic, users: dict[str, User]) -> None:
    await make_topic("placed-by-id", queues=1)
    sent = await gateway.messages.send(Message("placed-by-id", b"at an offset"))
    assert sent.offset_msg_id is not None
    status, answer = await (await api_for(users["reader"], "read")).call("get", f"/messages/{sent.offset_msg_id}")
    assert status == 200 and answer["message_id"] == sent.msg_id


async def test_an_id_that_no_topic_has_says_where_was_looked(log_in: Client, make_topic: Topic) -> None:
    await make_topic("empty-handed", queues=1)
    api = await api_for(await User.objects.aget(username="reader"), "read")
    status, answer = await api.call("get", "/messages/7F0000010000000000000000000000FF")
    assert status == 404 and "written to last" in answer["detail"]
    status, answer = await api.call("get", "/messages/7F0000010000000000000000000000FF?topic=empty-handed")
    assert status == 404 and answer["detail"] == "No message with this id in empty-handed."
    typed = await (await log_in("reader")).get("/messages", {"id": "a/b"})
    assert (typed.status_code, typed["Location"]) == (302, "/traces")
    page = await (await log_in("reader")).get("/messages/nothing-has-this")
    assert page.status_code == 404 and "No such message" in (shown := page.content.decode())
    assert '<a href="/traces">Messages and traces</a>' in shown, "where it is looked for"
    assert shown.count("may have expired") == 1


async def test_of_copies_with_one_id_the_one_stored_first_is_shown(
    gateway: Gateway, make_topic: Topic, users: dict[str, User]
) -> None:
    await make_topic("copied", queues=1)
    sent = await gateway.messages.send(Message("copied", b"the first"))
    await gateway.messages.send(Message("copied", b"the second", properties={"UNIQ_KEY": sent.msg_id}))
    status, answer = await (await api_for(users["reader"], "read")).call("get", f"/messages/{sent.msg_id}")
    assert status == 200 and answer["body"] == "the first"


async def test_a_program_may_ask_for_a_bodys_value(gateway: Gateway, make_topic: Topic, users: dict[str, User]) -> None:
    await make_topic("valued", queues=1)
    api = await api_for(users["reader"], "read")
    for body, form, value in (
        (b'{"id": 3}', "json", {"id": 3}),
        (b"\x81\xa2id\x03", "messagepack", {"id": 3}),
        (b"plain words", "", None),
    ):
        sent = await gateway.messages.send(Message("valued", body))
        status, answer = await api.call("get", f"/messages/{sent.msg_id}?topic=valued&decode=true")
        assert status == 200 and (answer["form"], answer["decoded"], answer["remark"]) == (form, value, "")
        status, answer = await api.call("get", f"/topics/valued/messages/{answer['place']}")
        assert status == 200 and (answer["form"], answer["decoded"]) == ("", None), "only when asked"
