"""`gantry admin` against our broker and Apache's: what it prints, what it changes, how it fails."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from appliance.bench.peer import Peer
from appliance.cli.admin.main import NOUNS
from gantrymq import (
    AdminClient,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    SyncAdminClient,
    SyncProducer,
    SyncPushConsumer,
)
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from gantrymq.remoting.codes import RequestCode
from tests.appliance.cli.running_gantry import Gantry, gantry_admin, run_gantry
from tests.gantrymq.client.peers import running_peer
from tests.gantrymq.client.ports import closed_port
from tests.gantrymq.client.seen import Seen, numbers
from tests.harness import LocalCluster
from tests.waiting import WITHIN_S, until, wait_until


@pytest.fixture(scope="module", params=["gantry", "apache"])
def peer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with running_peer(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture
def gantry(peer: Peer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Gantry:
    """Run `gantry admin …` on the peer."""
    monkeypatch.setenv("GANTRY_NAMESRV", peer.namesrv_address)
    return lambda *words: run_gantry(capsys, "admin", *words)


@pytest.fixture
def topic(gantry: Gantry) -> str:
    name = f"admin_{next(numbers)}"
    assert gantry("topics", "create", name, "-q", "2").code == 0
    return name


def consume(peer: Peer, topic: str, count: int) -> None:
    """Consume that many messages for the group of the topic's name, and write its offsets."""
    seen: list[MessageExt] = []
    consumer = SyncPushConsumer(peer.namesrv_address, group=topic, listener=seen.extend, trace=True)
    consumer.subscribe(topic)
    with consumer:
        wait_until(lambda: len(seen) == count)


def produce(peer: Peer, topic: str, count: int) -> list[str]:
    """Send numbered messages; their ids, once queues and index have them."""
    with SyncProducer(peer.namesrv_address, group=f"P{topic}", trace=True) as producer:
        sent = [
            producer.send(Message(topic, b'{"number": %d}' % n, tags="AB"[n % 2], keys=f"key-{n}"))
            for n in range(count)
        ]
    with SyncAdminClient(peer.namesrv_address) as admin:
        wait_until(lambda: sum(at.max_offset for at in admin.topics.offsets(topic).values()) >= count)
        wait_until(lambda: admin.messages.find_by_id(topic, sent[-1].msg_id) is not None)
    return [result.msg_id for result in sent]


# -- the cluster ------------------------------------------------------------------------------------------------------


def test_the_cluster_is_shown_in_columns_that_line_up(peer: Peer, gantry: Gantry) -> None:
    deadline = time.monotonic() + WITHIN_S
    while (ran := gantry("cluster")).code and time.monotonic() < deadline:
        time.sleep(0.2)  # Apache's broker has no figures in its first second
    head, row = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert head.split()[:4] == ["CLUSTER", "BROKER", "ID", "ADDRESS"]
    assert head.index("ADDRESS") == row.index(peer.broker_address)
    (broker,) = gantry("cluster", "--json").json
    assert (broker["name"], broker["address"], broker["isAnswering"]) == (peer.broker_name, peer.broker_address, True)
    assert broker["runtime"]["brokerVersionDesc"].startswith("V4_9")
    assert gantry("brokers", "list").rows[1][1:] == [peer.broker_name, "master", peer.broker_address]
    assert "putTps" in gantry("brokers", "show", peer.broker_name).out


def test_a_setting_is_changed_after_a_look_at_it(peer: Peer, gantry: Gantry) -> None:
    before = gantry("config", "get", "fileReservedTime", "--json").json[peer.broker_name]
    planned = gantry("config", "set", "fileReservedTime=437", "--dry-run")
    assert planned.rows[1] == [peer.broker_name, "fileReservedTime", before["fileReservedTime"], "437"]
    assert planned.out.endswith("nothing was changed (--dry-run)\n")
    assert gantry("config", "get", "fileReservedTime", "--json").json[peer.broker_name] == before
    assert gantry("config", "set", "fileReservedTime=437", "-b", peer.broker_name, "--yes").code == 0
    changed = gantry("config", "get", "fileReservedTime")
    assert changed.rows[1][2] == "437"
    of_port = gantry("config", "get", "listenPort", "--json", "--sources").json[peer.broker_name]["listenPort"]
    if peer.label == "gantry":
        assert "changed while it runs, 2" in changed.out and of_port["source"] == "file"
    else:
        assert "changed while" not in changed.out and of_port["source"] == ""
    assert gantry("config", "get", "--of-namesrv", "listenPort").code == 0


def test_a_setting_that_no_server_has_is_refused_before_it_is_sent(peer: Peer, gantry: Gantry) -> None:
    refused = gantry("config", "set", "fileReservdTime=48")
    assert (refused.code, "did you mean fileReservedTime?" in refused.err) == (1, True)
    assert gantry("config", "set", "--of-namesrv", "nope=1").code == 1
    if peer.label == "gantry":
        idle = gantry("config", "set", "sendMessageThreadPoolNums=8", "--yes")
        assert "no setting here: sendMessageThreadPoolNums (one event loop serves all requests" in idle.out


def test_write_permission_is_taken_and_given_back(peer: Peer, gantry: Gantry, topic: str) -> None:
    assert gantry("perm", "wipe", peer.broker_name, "--dry-run").code == 0
    assert gantry("topics", "route", topic).rows[1][3] == "rw"
    assert gantry("perm", "wipe", peer.broker_name).code == 0
    assert gantry("topics", "route", topic).rows[1][3] == "r-"
    assert gantry("perm", "restore", peer.broker_name).code == 0
    assert gantry("topics", "route", topic).rows[1][3] == "rw"


def test_entries_of_the_key_value_store_come_and_go(gantry: Gantry) -> None:
    assert gantry("kv", "set", "NS", "key", "value").code == 0
    assert gantry("kv", "get", "NS", "key").out == "value\n"
    assert gantry("kv", "list", "NS", "--json").json == {"key": "value"}
    assert gantry("kv", "delete", "NS", "key", "--yes").code == 0
    missing = gantry("kv", "get", "NS", "key")
    assert (missing.code, missing.err) == (1, "gantry admin: there is no key in NS\n")
    assert gantry("kv", "get", "NS", "key", "--json").json == {"error": "there is no key in NS"}
    assert gantry("kv", "remove", "NS", "key", "--yes").code == 1


def test_cleaning_is_asked_for_at_every_broker(peer: Peer, gantry: Gantry) -> None:
    for what in ("queues", "topics", "log"):
        assert peer.broker_name in gantry("clean", what, "--yes").out


# -- topics -----------------------------------------------------------------------------------------------------------


def test_a_topic_is_made_changed_and_deleted(peer: Peer, gantry: Gantry) -> None:
    name = f"admin_{next(numbers)}"
    assert gantry("topics", "create", name, "-q", "3", "--dry-run").rows[1] == [peer.broker_name, "3", "3", "rw", "-"]
    assert gantry("topics", "route", name).code == 1
    assert gantry("topics", "create", name, "-q", "3", "--ordered").code == 0
    assert gantry("kv", "get", "ORDER_TOPIC_CONFIG", name).out == f"{peer.broker_name}:3\n"
    again = gantry("topics", "create", name)
    assert (again.code, "exists already" in again.err) == (2, True)
    assert gantry("topics", "list").rows[0] == ["TOPIC", "KIND", "QUEUES", "PERM", "BROKERS"]
    assert [name, "normal", "3", "rw", peer.broker_name] in gantry("topics", "list").rows
    changed = gantry("topics", "set", name, "--perm", "r", "-q", "5", "--json").json[peer.broker_name]
    assert (changed["before"]["perm"], changed["after"]["perm"], changed["after"]["writeQueueNums"]) == (6, 4, 5)
    refused = gantry("topics", "delete", name)
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert gantry("topics", "delete", name, "--dry-run").code == 0
    assert gantry("topics", "route", name).code == 0
    assert gantry("topics", "delete", name, "--yes").code == 0
    assert gantry("topics", "show", name).code == 1
    assert gantry("kv", "get", "ORDER_TOPIC_CONFIG", name).code == 1


def test_attributes_are_set_added_and_removed(peer: Peer, gantry: Gantry) -> None:
    name = f"admin_{next(numbers)}"
    made = gantry("topics", "create", name, "--attribute", "retention.ms=60000", "--attribute", "+retention.messages=7")
    if peer.label != "gantry":
        assert (made.code, "does not keep attributes" in made.err) == (1, True)
        return
    assert made.code == 0

    def kept() -> dict[str, str] | None:
        shown: dict[str, str] | None = (
            gantry("topics", "show", name, "--json").json["brokers"][peer.broker_name].get("attributes")
        )
        return shown

    assert kept() == {"retention.ms": "60000", "retention.messages": "7"}
    planned = gantry("topics", "set", name, "--attribute", "-retention.ms", "--dry-run")
    assert planned.rows[-2][-1] == "retention.messages=7"
    assert gantry("topics", "update", name, "--attribute", "-retention.ms").code == 0
    assert kept() == {"retention.messages": "7"}
    assert gantry("topics", "set", name, "-q", "3").code == 0
    assert kept() == {"retention.messages": "7"}
    assert gantry("topics", "set", name, "--attribute", "retention.messages=9").code == 0
    now = gantry("topics", "show", name)
    assert "retention.messages=9" in now.out and re.search("size in the logs +0 B", now.out)
    assert gantry("topics", "set", name, "--attribute", "-retention.messages").code == 0
    assert kept() is None
    told = gantry("topics", "set", name, "--attribute", "reserve.time=5")
    assert (told.code, "reserve.time=5" in told.out) == (0, True)
    assert "kept, without effect at a GantryMQ broker: reserve.time" in gantry("topics", "show", name).out
    refused = gantry("topics", "set", name, "--attribute", "retention.ms=1d")
    assert (refused.code, "use a whole number" in refused.err) == (1, True)
    for wrong in ("retention.ms", "-retention.ms=1", "=1", "a=1,b=2"):
        assert gantry("topics", "set", name, f"--attribute={wrong}").code == 2


def test_system_topics_are_listed_when_asked_for(gantry: Gantry) -> None:
    assert not [row for row in gantry("topics", "list", "--json").json if row["kind"] != "normal"]
    kinds = {row["topic"]: row["kind"] for row in gantry("topics", "list", "--all", "--json").json}
    assert (kinds["SCHEDULE_TOPIC_XXXX"], kinds["BenchCluster"]) == ("system", "system")


# -- groups -----------------------------------------------------------------------------------------------------------


def test_lag_is_known_where_a_group_has_been_and_unknown_elsewhere(peer: Peer, gantry: Gantry, topic: str) -> None:
    produce(peer, topic, 6)
    consume(peer, topic, 6)
    produce(peer, topic, 3)
    lag = gantry("groups", "lag", topic, "-t", topic, "--json").json
    assert (lag["lag"], [queue["consumerOffset"] for queue in lag["queues"]]) == (3, [3, 3])
    shown = gantry("groups", "lag", topic).out.splitlines()[-1]
    assert re.fullmatch(r"lag 3; [0-9.]+ messages per second delivered to members", shown)
    other = f"{topic}_partly"
    with SyncAdminClient(peer.namesrv_address) as admin:
        admin.offsets.set_at(peer.broker_address, other, topic, 0, 1)
    places = gantry("groups", "lag", other, "--json").json["queues"]
    assert [place["lag"] is None for place in places] == [False, True]
    assert "unknown in 1 queue" in gantry("groups", "lag", other).out
    assert [topic, "0"] == next(row[:2] for row in gantry("groups", "list").rows if row[0] == topic)
    assert gantry("groups", "show", topic).rows[0][0] == "BROKER"


def test_a_group_is_made_and_deleted_with_all_that_belongs_to_it(peer: Peer, gantry: Gantry, topic: str) -> None:
    produce(peer, topic, 1)
    consume(peer, topic, 1)
    assert gantry("groups", "create", topic, "--retries", "3").code == 0
    assert gantry("groups", "show", topic).rows[1][2] == "3"
    assert f"%RETRY%{topic}" in gantry("topics", "list", "--all").out
    assert gantry("groups", "delete", topic, "--yes").code == 0
    assert gantry("groups", "show", topic).code == 1
    assert f"%RETRY%{topic}" not in gantry("topics", "list", "--all").out
    assert gantry("groups", "lag", topic, "-t", topic, "--json").json["lag"] is None


def test_a_reset_says_what_it_skips_and_repeats_before_it_does_it(peer: Peer, gantry: Gantry, topic: str) -> None:
    produce(peer, topic, 4)
    consume(peer, topic, 4)
    plan = gantry("reset", topic, topic, "--to", "begin", "--dry-run", "--json").json
    assert (plan["repeats"], plan["skips"], plan["isOnline"]) == (4, 0, None)
    assert gantry("reset", topic, topic, "--to", "first", "--dry-run", "--json").json == plan
    assert gantry("reset", topic, topic, "--to", "begin").code == 2
    assert gantry("groups", "lag", topic, "-t", topic, "--json").json["lag"] == 0
    done = gantry("reset", topic, topic, "--to", "begin", "--yes")
    assert "repeats 4" in done.out and "offsets were written" in done.out
    assert gantry("groups", "lag", topic, "-t", topic, "--json").json["lag"] == 4
    assert gantry("reset", topic, topic, "--offset", "1", "--yes").code == 0
    assert gantry("groups", "lag", topic, "-t", topic, "--json").json["lag"] == 2
    assert gantry("clone", topic, f"{topic}_2", topic, "--yes").code == 0
    assert gantry("groups", "lag", f"{topic}_2", "--json").json["lag"] == 2
    assert gantry("reset", topic, topic, "--to", "1h", "--json", "--dry-run").json["repeats"] == 2
    assert gantry("reset", topic, topic).code == 2
    several = gantry("reset", topic, topic, f"%RETRY%{topic}", "--to", "end", "--dry-run", "--json").json
    assert [(one["topic"], one["skips"]) for one in several] == [(topic, 2), (f"%RETRY%{topic}", 0)]


# -- messages ---------------------------------------------------------------------------------------------------------


def test_messages_are_found_by_key_id_and_place(peer: Peer, gantry: Gantry, topic: str) -> None:
    ids = produce(peer, topic, 5)
    (found,) = gantry("messages", "query", topic, "-k", "key-3", "--json").json
    assert (found["msgId"], found["body"], found["tags"]) == (ids[3], '{"number": 3}', "B")
    for message_id in (ids[3], found["offsetMsgId"]):
        shown = gantry("messages", "show", topic, message_id, "--json").json
        assert (shown["message"]["body"], shown["message"]["broker"]) == ('{"number": 3}', peer.broker_name)
    place = (str(found["queueId"]), str(found["queueOffset"]))
    assert '{"number": 3}' in gantry("messages", "at", topic, *place).out
    for words in (("show", topic, "0" * 32), ("query", topic, "-k", "none"), ("at", topic, "0", "99")):
        assert gantry("messages", *words).code == 1


def test_a_topic_is_printed_by_queue_tag_and_time(peer: Peer, gantry: Gantry, topic: str) -> None:
    produce(peer, topic, 6)
    lines = [json.loads(line) for line in gantry("messages", "print", topic, "--json").out.splitlines()]
    assert sorted(line["body"] for line in lines) == [f'{{"number": {n}}}' for n in range(6)]
    assert len(gantry("messages", "print", topic, "--tag", "A").out.splitlines()) == 3
    assert len(gantry("messages", "print", topic, "--queue", "0", "--limit", "2").out.splitlines()) == 2
    assert gantry("messages", "print", topic, "--from", "end").out == ""
    assert len(gantry("messages", "print", topic, "--from", "1h", "--to", "now").out.splitlines()) == 6
    assert gantry("messages", "print", topic, "--to", "1h").out == ""
    assert len(gantry("messages", "tail", topic, "--last", "2", "--limit", "3").out.splitlines()) == 3


def test_a_message_is_sent_resent_and_followed(peer: Peer, gantry: Gantry, topic: str) -> None:
    assert gantry("send", topic, "x", "--dry-run").code == 0
    assert gantry("messages", "print", topic).out == ""
    sent = gantry("send", topic, "grüße", "--tag", "T", "-k", "k1", "-p", "a=b", "--queue", "1", "--json").json
    assert (sent["status"], sent["result"]["queue"]["queueId"]) == ("SEND_OK", 1)
    message_id = produce(peer, topic, 1)[0]
    consume(peer, topic, 2)
    again = gantry("messages", "resend", topic, message_id, "--json").json
    assert again["msgId"] != message_id
    with SyncAdminClient(peer.namesrv_address) as admin:
        wait_until(lambda: len(admin.messages.trace(message_id).records) >= 3)
    assert [row[2] for row in gantry("messages", "trace", message_id).rows[1:]] == ["Pub", "SubBefore", "SubAfter"]
    assert gantry("messages", "trace", "0" * 32).code == 1
    untold = gantry("messages", "trace", message_id, "--trace-topic", "NobodyTraces")
    assert (untold.code, "trace=True" in untold.err) == (1, True)


def give_up(peer: Peer, topic: str, group: str, ids: list[str]) -> None:
    """These messages of the topic become dead letters of the group, each with a cause of its own."""

    async def work() -> None:
        async with AdminClient(peer.namesrv_address) as admin:
            await admin.groups.create_at(peer.broker_address, SubscriptionGroupConfig(group))
            for number, message_id in enumerate(ids):
                found = await admin.messages.find_by_id(topic, message_id)
                assert found is not None
                fields = {
                    "offset": str(found.physical_offset), "group": group, "delayLevel": "-1", "unitMode": "false",
                    "originMsgId": found.msg_id, "originTopic": topic, "consumeError": f"Error at {number}",
                }  # fmt: skip
                await admin.calls.call(peer.broker_address, RequestCode.CONSUMER_SEND_MSG_BACK, fields)

    asyncio.run(work())


def test_dead_letters_are_listed_saved_put_back_and_discarded(peer: Peer, gantry: Gantry, topic: str) -> None:
    group = f"G{topic}"
    give_up(peer, topic, group, produce(peer, topic, 3))
    wait_until(lambda: len(gantry("dead-letters", "export", group).out.splitlines()) == 3)  # it has a route then
    (row,) = [row for row in gantry("dead-letters", "list").rows if row[0] == group]
    assert row[1] == "3"
    lines = gantry("dead-letters", "export", group).out.splitlines()
    assert {json.loads(line)["keys"][0] for line in lines} == {"key-0", "key-1", "key-2"}
    if isinstance(peer, LocalCluster):  # only our broker takes a cause
        assert gantry("dead-letters", "list", group, "--cause", "Error at 1", "--json").json == [
            {"cause": "Error at 1", "letters": 1}
        ]
    chosen = ("dead-letters", "resend", group, "--key", "key-1", "--rate", "200")
    planned = gantry(*chosen, "--dry-run")
    assert planned.code == 0 and "resend 1 dead letter" in planned.out
    assert gantry(*chosen).code == 2, "no terminal, no --yes"
    assert len(gantry(*chosen, "--yes", "--json").json) == 1
    wait_until(lambda: len(gantry("messages", "print", f"%RETRY%{group}").out.splitlines()) == 1)
    assert gantry("dead-letters", "resend", group, "--key", "nothing", "--yes").code == 1
    assert gantry("dead-letters", "resend", group, "--rate", "201", "--yes").code == 2
    assert gantry("dead-letters", "discard", group, "--letters", "2", "--yes").code == 2
    assert gantry("dead-letters", "discard", group, "--letters", "3", "--yes").code == 0
    gone = gantry("dead-letters", "list", group)
    assert gone.code == 1 and f"{group} has no dead letters" in gone.err


def test_a_message_for_later_is_delivered_then(peer: Peer, gantry: Gantry, topic: str) -> None:
    begun = time.monotonic()
    sent = gantry("send", topic, "later", "--delay-seconds", "1.5", "-k", "waits", "--tag", "T")
    assert (sent.code, ["delivered", "after", "1.5", "s"] in sent.rows) == (0, True)
    if peer.label == "gantry":
        early = gantry("messages", "print", topic).out
        assert early == "" or time.monotonic() - begun >= 1.5
        assert gantry("send", topic, "much later", "--delay-seconds", "1e9").code == 1  # more than timerMaxDelaySec
    while not (lines := gantry("messages", "print", topic, "--json").out.splitlines()):
        assert time.monotonic() < begun + WITHIN_S
        time.sleep(0.1)
    message = json.loads(lines[0])
    assert (message["body"], message["tags"], message["keys"]) == ("later", "T", ["waits"])
    plan = gantry("send", topic, "x", "--deliver-at", "2099-01-01T10:00", "--dry-run", "--json").json
    assert int(plan["properties"]["TIMER_DELIVER_MS"]) > time.time() * 1000
    for wrong in (
        ("--delay-seconds", "0"), ("--delay-seconds", "nan"), ("--delay-seconds", "soon"), ("--deliver-at", "2h"),
        ("--delay-level", "19"), ("--delay-level", "1", "--delay-seconds", "1"), ("--queue", "-1"), ("-p", "novalue"),
        ("--file", "/nowhere/at/all"),
    ):  # fmt: skip
        assert gantry("send", topic, *(() if wrong[0] == "--file" else ("x",)), *wrong).code == 2, wrong
    assert gantry("send", topic, "x", "--queue", "99").code == 1


async def test_running_clients_say_what_they_do(peer: Peer, capsys: pytest.CaptureFixture[str]) -> None:
    name, gate, seen = f"admin_{next(numbers)}", asyncio.Event(), Seen()

    async def listener(messages: list[Any]) -> None:
        await seen(messages)
        await gate.wait()

    gantry = functools.partial(gantry_admin, capsys, peer.namesrv_address)
    assert (await gantry("topics", "create", name, "-q", "1")).code == 0
    async with Producer(peer.namesrv_address, group=f"P{name}") as producer:
        consumer = PushConsumer(peer.namesrv_address, group=name, listener=listener)
        consumer.subscribe(name)
        async with consumer:
            sent = await producer.send(Message(name, b"stuck"))
            await until(lambda: len(seen.messages) == 1)
            info = (await gantry("consumers", name, "--stacks", "--json")).json[consumer.client_id]
            (worker,) = info["workers"]
            assert (worker["msgIds"], worker["topic"], worker["queueOffset"]) == ([sent.msg_id], name, 0)
            assert "await gate.wait()" in info["jstack"]
            shown = (await gantry("consumers", name)).out
            assert consumer.client_id in shown and sent.msg_id in shown
            gate.set()
            delivered = (await gantry("messages", "deliver", name, sent.msg_id, "-g", name, "--json")).json
            assert (delivered["outcome"], len(seen.messages)) == ("CR_SUCCESS", 2)
            lag = (await gantry("groups", "lag", name, "-t", name, "--clients", "--json")).json
            assert [queue["clientId"] for queue in lag["queues"]] == [consumer.client_id]
            assert consumer.client_id in (await gantry("groups", "show", name)).out
            assert f"P{name}" in (await gantry("producers")).out
            moved = await gantry("reset", name, name, "--to", "end", "--yes")
            assert "running consumers were notified" in moved.out
            refused = await gantry("reset", name, name, "--offset", "0", "--yes")
            assert (refused.code, "is running" in refused.err) == (2, True)
            listed = await gantry("clients", "list", consumer.client_id)
            closing = await gantry("clients", "disconnect", consumer.client_id, "--dry-run")
            if peer.label == "apache":  # it knows no such request, and that is said
                assert (listed.code, closing.code) == (1, 1) and "29403" in listed.err
            else:
                assert name in listed.out and consumer.client_id in closing.out
                closed = await gantry("clients", "disconnect", consumer.client_id, "--yes")
                assert (closed.code, "closed" in closed.out) == (0, True)
                assert (await gantry("clients", "disconnect", "no-such-client", "--yes")).code == 1


def test_a_loss_is_asked_about_at_a_terminal(peer: Peer, topic: str) -> None:
    for answer, code in ((b"no\n", 1), (b"\x04", 1), (None, 130), (b"y\n", 0)):
        master, slave = pty.openpty()
        command = [sys.executable, "-m", "appliance", "admin", "-n", peer.namesrv_address, "topics", "delete", topic]
        process = subprocess.Popen(command, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            assert process.stdout is not None
            seen = b""
            while not seen.endswith(b"[y/N] "):
                piece = os.read(process.stdout.fileno(), 4096)
                assert piece, seen
                seen += piece
            if answer is None:
                while process.poll() is None:  # once is lost when it comes between prompt and read
                    process.send_signal(signal.SIGINT)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(timeout=10)  # a second one would hit what leaves because of the first
            else:
                os.write(master, answer)
            assert process.wait(timeout=120) == code
        finally:
            process.kill()
            process.communicate()
            os.close(master)
            os.close(slave)


# -- failing ----------------------------------------------------------------------------------------------------------


def test_failures_are_one_sentence_and_an_exit_code(gantry: Gantry) -> None:
    nobody = gantry("cluster", "-n", closed_port(), "--timeout", "1")
    assert nobody.code == 1
    assert nobody.err.startswith("gantry admin: no name server answers at ")
    assert nobody.err.count("\n") == 1
    assert "error" in gantry("cluster", "-n", closed_port(), "--timeout", "1", "--json").json
    assert gantry("topics", "route", "nope").err == (
        "gantry admin: there is no topic nope: `gantry admin topics list --all` lists them\n"
    )
    assert gantry("brokers", "show", "nope").code == 1
    assert gantry("topics", "create", "with space").code == 2
    for wrong in (
        ("topics",),
        ("nonsense",),
        ("reset", "g", "t", "--to", "someday"),
        ("reset", "g", "t", "--to", "end", "--by", "3"),
        ("reset", "g", "t", "--to", "end", "--dashboard", "http://127.0.0.1:1"),
        ("config", "set", "novalue"),
    ):
        assert gantry(*wrong).code == 2


def test_common_options_stand_where_one_likes(peer: Peer, gantry: Gantry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANTRY_NAMESRV", closed_port())
    here = ("-n", peer.namesrv_address)
    assert gantry(*here, "topics", "list").code == 0
    assert gantry("topics", *here, "list").code == 0
    assert gantry("topics", "list", *here).code == 0
    assert gantry("--json", f"--namesrv={peer.namesrv_address}", "cluster").json[0]["name"] == peer.broker_name
    assert gantry("--timeout", "5", "topics", "--json", "list", *here).json is not None
    assert gantry("-n", closed_port(), "cluster", *here).code == 0  # the last one counts
    misplaced = gantry("-q", "3", "topics", "create", "x")
    assert (misplaced.code, "after the verb" in misplaced.err) == (2, True)
    for wrong in ("nowhere", "a:b", ""):
        refused = gantry("cluster", "-n", wrong)
        assert (refused.code, "such as 127.0.0.1:9876" in refused.err) == (2, True)
    monkeypatch.setenv("GANTRY_NAMESRV", "nowhere")
    assert "GANTRY_NAMESRV: 'nowhere' is not HOST:PORT" in gantry("cluster").err


def test_a_wrong_word_is_answered_with_the_right_one(gantry: Gantry) -> None:
    for words, hint in (
        (("topic", "list"), "did you mean topics?"),
        (("topics", "lst"), "did you mean list?"),
        (("topics", "create", "x", "--queus", "3"), "did you mean --queues?"),
        (("topics", "create", "a/b"), "a good name is orders-paid"),
        (("config", "set", "novalue"), "such as fileReservedTime=48"),
        (("clean", "logs"), "did you mean log?"),
        (("send", "t", "two", "words"), "quotes keep a text with spaces together"),
        (("messages", "at", "t", "0", "last"), "such as 0"),
        (("cluster", "--tls-key", "k.pem"), "--tls-cert"),
        (("cluster", "--tls-trust", "/nowhere/ca.pem"), "/nowhere/ca.pem"),
        (("cluster", "--timeout", "-1"), "such as 2.5"),
    ):
        ran = gantry(*words)
        assert (ran.code, hint in ran.err) == (2, True), (words, ran)
    for noun in ([], ["topics"], ["accounts"]):
        ran = gantry(*noun)
        assert (ran.code, ran.err.startswith("usage: gantry admin")) == (2, True)
    for absent in ("topics list -c nope", "groups lag nope", "consumers nope"):
        assert gantry(*absent.split()).code == 1, absent


def test_every_noun_explains_itself(gantry: Gantry) -> None:
    assert "GANTRY_NAMESRV" in gantry("--help").out
    for noun, (module, _) in NOUNS.items():
        ran = gantry(noun, "--help")
        assert (ran.code, "usage: gantry admin" in ran.out) == (0, True)
        for verb in importlib.import_module(f"appliance.cli.admin.{module}").COMMANDS[noun]:
            ran = gantry(noun, *([verb] if verb else []), "--help")
            assert (ran.code, "--tls-key FILE" in ran.out) == (0, True), (noun, verb)
