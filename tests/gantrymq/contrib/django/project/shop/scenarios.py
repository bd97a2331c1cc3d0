"""What the tests do in the project, in a process: `python -m shop.scenarios NAME …`. Prints OK at its end."""

import os
import sys
import threading
from collections import defaultdict

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402
from django.test import Client, override_settings  # noqa: E402
from django.utils import timezone  # noqa: E402

from gantrymq import Message, SyncAdminClient, SyncPullConsumer, TopicConfig  # noqa: E402
from gantrymq.contrib.django import OutboxFull, put_in_outbox, send_on_commit  # noqa: E402
from gantrymq.contrib.django import settings as own  # noqa: E402
from gantrymq.contrib.django.models import OutboxMessage, OutboxState  # noqa: E402
from gantrymq.contrib.django.outbox.relay import Relay, clean  # noqa: E402
from gantrymq.contrib.django.outbox.writing import forget_counts  # noqa: E402
from gantrymq.errors import MessageRejected  # noqa: E402
from gantrymq.testing import wait_for  # noqa: E402
from shop.models import Order  # noqa: E402

NAME_SERVERS = settings.GANTRYMQ["NAME_SERVERS"]
ORDERS, KEYS = 200, 10


class RolledBack(Exception):
    """Ends a transaction."""


def make_topic(name):
    with SyncAdminClient(NAME_SERVERS) as admin:
        admin.topics.create(TopicConfig(name, read_queue_nums=2, write_queue_nums=2))
        wait_for(lambda: name in admin.topics.names())  # brokers tell the name server in their own time


def count(topic):
    """How many messages the brokers have of it."""
    with SyncAdminClient(NAME_SERVERS) as admin:
        return sum(each.max_offset for each in admin.topics.offsets(topic).values())


def stored(topic):
    """All its messages, those of a queue in their order."""
    messages = []
    with SyncPullConsumer(NAME_SERVERS, group="scenarios", auto_commit=False) as consumer:
        consumer.assign(consumer.queues(topic))
        for queue in consumer.assigned_queues:
            consumer.seek_to_begin(queue)
        wanted = count(topic)
        while len(messages) < wanted:
            messages += consumer.poll()
    return messages


def make_due():
    """As time would: what waits for its next try is due."""
    OutboxMessage.objects.filter(state=OutboxState.WAITING).update(next_try_at=timezone.now())


def relay():
    """Send until nothing is due."""
    with Relay(own.current(), "default") as one:
        return one.run_once(threading.Event())


def prepare():
    """The tables, and topics that messages go to."""
    call_command("migrate", verbosity=0)
    call_command("makemigrations", "gantrymq", check=True, dry_run=True, verbosity=0)
    for topic in ("placed", "returned", "orders", "paid"):
        make_topic(topic)


def committing():
    """Messages leave when the transaction has committed, and never after a rollback."""
    try:
        with transaction.atomic():
            Order.objects.create(name="gone")
            send_on_commit(Message("placed", b"gone"))
            put_in_outbox(Message("orders", b"gone"))
            raise RolledBack
    except RolledBack:
        pass
    with transaction.atomic():
        Order.objects.create(name="kept")
        send_on_commit(Message("placed", b"kept"))
        row = put_in_outbox(Message("orders", b"kept", tags="t", keys=["a", "b"], properties={"p": "q"}))
        assert count("placed") == 0
    assert [message.body for message in stored("placed")] == [b"kept"]
    assert relay() == 1
    (message,) = stored("orders")
    assert (message.body, message.tags, message.keys, message.msg_id) == (b"kept", "t", ["a", "b"], row.msg_id)
    assert message.properties["p"] == "q"
    row.refresh_from_db()
    assert (row.state, row.tries) == (OutboxState.SENT, 1) and row.ended_at and " queue " in row.place
    send_on_commit(Message("nowhere", b"x"), robust=True)  # no transaction: at once; its failure is logged
    try:
        put_in_outbox(Message("orders", b""))
    except MessageRejected as exc:
        assert "at least one byte" in str(exc)


def failing():
    """What is refused comes again, then waits for a person; its key waits with it, and nothing else does."""
    for number in range(3):
        put_in_outbox(Message("missing", b"%d" % number), sharding_key="k")
    put_in_outbox(Message("paid", b"other"), sharding_key="k")
    first = OutboxMessage.objects.get(topic="missing", body=b"0")
    for tries in (1, 2):
        make_due()
        before = timezone.now()
        relay()
        first.refresh_from_db()
        assert first.tries == first.refusals == tries and "RouteNotFound" in first.error
        assert tries == 2 or (first.state == OutboxState.WAITING and first.next_try_at > before)
    assert first.state == OutboxState.FAILED
    assert [message.body for message in stored("paid")] == [b"other"]
    assert set(OutboxMessage.objects.filter(topic="missing").values_list("tries", flat=True)) == {2, 0}
    make_topic("missing")
    assert relay() == 0  # a person decides
    administer(first)
    assert relay() == 2
    (one, two) = stored("missing")
    assert [one.body, two.body] == [b"0", b"2"] and one.msg_id == first.msg_id


def administer(first):
    """In the admin: the page of the failed one, trying it again, discarding the one behind it."""
    User.objects.create_superuser("root", "", "word")
    browser = Client()
    assert browser.login(username="root", password="word")
    listed = browser.get("/admin/gantrymq/outboxmessage/", {"state": "failed"})
    assert b"RouteNotFound" in listed.content and b"1 outbox message" in listed.content
    page = browser.get(f"/admin/gantrymq/outboxmessage/{first.pk}/change/")
    assert page.status_code == 200 and b"no name server knows this topic" in page.content
    assert browser.get("/admin/gantrymq/outboxmessage/add/").status_code == 403
    assert browser.get(f"/admin/gantrymq/outboxmessage/{first.pk}/delete/").status_code == 403
    second = OutboxMessage.objects.get(topic="missing", body=b"1")
    sent = OutboxMessage.objects.get(topic="paid", body=b"other")
    for action, rows, told in (
        ("try_again", (first, sent), b"1 due now; 1 were sent"),
        ("discard", (second,), b"1 discarded"),
    ):
        chosen = {"action": action, "_selected_action": [row.pk for row in rows]}
        answer = browser.post("/admin/gantrymq/outboxmessage/", chosen, follow=True)
        assert told in answer.content, answer.content
    second.refresh_from_db()
    assert second.state == OutboxState.DISCARDED


def bounded():
    """So many unsent ones at most; of the sent ones the latest stay, and not for ever."""
    forget_counts()
    with override_settings(GANTRYMQ=settings.GANTRYMQ | {"OUTBOX": {"UNSENT_ROWS_MAX": 2}}):
        put_in_outbox(Message("orders", b"1"))
        put_in_outbox(Message("orders", b"2"))
        try:
            put_in_outbox(Message("orders", b"3"))
        except OutboxFull as exc:
            assert "is a relay running" in str(exc)
        else:
            raise AssertionError("a third one was taken")
    forget_counts()
    assert relay() == 2
    ended = OutboxMessage.objects.exclude(state=OutboxState.WAITING)
    assert ended.count() > 3
    clean("default", own.OutboxSettings(keep_sent_rows=3))
    assert ended.count() == 3
    put_in_outbox(Message("orders", b"waits"))
    clean("default", own.OutboxSettings(keep_sent_s=0.0))
    assert [row.state for row in OutboxMessage.objects.all()] == [OutboxState.WAITING]
    OutboxMessage.objects.all().delete()


def fill():
    """Orders of many keys, for relays that run at the same time."""
    make_topic("many")
    with transaction.atomic():
        for number in range(ORDERS):
            key = f"key-{number % KEYS}"
            put_in_outbox(Message("many", b"%d" % number, keys=key), sharding_key=key if number % KEYS else None)


def sent_once_in_order():
    """Each of them is stored once, those of a key in their order."""
    assert set(OutboxMessage.objects.values_list("state", flat=True)) == {OutboxState.SENT}
    by_key = defaultdict(list)
    for message in stored("many"):
        by_key[message.keys[0]].append(int(message.body))
    assert sum(map(len, by_key.values())) == ORDERS, {key: len(numbers) for key, numbers in by_key.items()}
    for key, numbers in by_key.items():
        assert numbers == sorted(numbers) or key == "key-0", (key, numbers)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
    print("OK")
