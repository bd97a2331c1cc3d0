"""What a consumer says of itself, and a failed message as a new one."""

from __future__ import annotations

from gantrymq.client.consume.failed_messages import retry_message
from gantrymq.client.consume.process_queue import ProcessQueue
from gantrymq.client.consume.running_info import ConsumeCounters, running_info
from gantrymq.client.consume.subscription import parse_subscription
from gantrymq.message.model import MessageQueue
from gantrymq.remoting import fastjson
from tests.gantrymq.client.messages import stored


def test_the_body_has_the_fields_tools_read() -> None:
    queue = MessageQueue("T", "b", 0)
    process_queue = ProcessQueue(queue, 5)
    process_queue.add([stored(5), stored(6)], 7)
    counters = ConsumeCounters()
    counters.sample()
    counters.consumed("T", 3, is_done=True, took_s=0.5)
    counters.consumed("T", 1, is_done=False, took_s=0.1)
    counters.pulled("T", 4, 0.2)
    info = fastjson.loads(
        running_info(
            name_servers=["n:1", "n:2"], concurrency=20, started_at_ms=17,
            subscriptions={"T": parse_subscription("T", "A", 1)}, queues={queue: process_queue}, counters=counters,
        )
    )  # fmt: skip
    held = info["mqTable"][queue]
    assert (held["commitOffset"], held["cachedMsgCount"], held["cachedMsgMinOffset"], held["droped"]) == (
        5, 2, 5, False,
    )  # fmt: skip
    status = info["statusTable"]["T"]
    assert (status["consumeFailedMsgs"], round(status["consumeRT"]), round(status["pullRT"])) == (1, 300, 200)
    assert status["consumeOKTPS"] > 0
    assert info["properties"]["PROP_NAMESERVER_ADDR"] == "n:1;n:2"
    assert info["properties"]["PROP_CONSUMER_START_TIMESTAMP"] == "17"
    assert info["subscriptionSet"][0]["tagsSet"] == ["A"]


def test_a_failed_message_keeps_its_origin_over_several_retries() -> None:
    first = stored(1, b"body", topic="T", KEYS="k", UNIQ_KEY="U", TAGS="A")
    message = retry_message(first, "%RETRY%g", 16)
    assert (message.topic, message.body) == ("%RETRY%g", b"body")
    assert message.properties == {
        "KEYS": "k", "UNIQ_KEY": "U", "TAGS": "A", "RETRY_TOPIC": "T", "ORIGIN_MESSAGE_ID": first.offset_msg_id,
        "RECONSUME_TIME": "1", "MAX_RECONSUME_TIMES": "16", "DELAY": "4",
    }  # fmt: skip
    second = stored(9, b"body", topic="T", **message.properties)
    second.reconsume_times = 1
    again = retry_message(second, "%RETRY%g", 16)
    assert (again.properties["RETRY_TOPIC"], again.properties["ORIGIN_MESSAGE_ID"]) == ("T", first.offset_msg_id)
    assert (again.properties["RECONSUME_TIME"], again.properties["DELAY"]) == ("2", "5")
