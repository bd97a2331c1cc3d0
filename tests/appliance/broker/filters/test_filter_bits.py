"""Filter bits never change what a read finds: the same messages, with bits and without, for any condition."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from appliance.broker.filters.consumer_filter import ConsumerFilterManager
from appliance.settings.roles import BrokerConfig
from gantrymq.message.properties import decode_properties, encode_properties
from gantrymq.message.record import decode_records
from gantrymq.remoting.bodies import SubscriptionData
from store import GetMessageStatus, MessageStore, StoreMessage
from tests.bounded import bounded
from tests.store.conftest import HOST, Clock, small_config

CONDITIONS = st.sampled_from(
    ["a > 5", "a <= 3 OR b = 'x'", "a IS NULL", "b IN ('x', 'y') AND a <> 2", "NOT (a BETWEEN 2 AND 8)", "b = a", "b"]
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {}, optional={"a": st.sampled_from(["1", "4", "7", "9", "no"]), "b": st.sampled_from("xyz9")}
    ),
    max_size=60,
)


@bounded(30)
@given(st.lists(CONDITIONS, min_size=1, max_size=4), MESSAGES, st.integers(0, 60))
def test_a_read_finds_the_same_with_and_without_bits(
    conditions: list[str], messages: list[dict[str, str]], early: int
) -> None:
    """The first `early` messages are stored before the groups come, the others get their bits."""
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock()
        filters = ConsumerFilterManager(Path(folder) / "consumerFilter.json", BrokerConfig(), clock=clock)
        config = small_config(Path(folder) / "store", consume_queue_ext_enable=True, consume_queue_ext_file_bytes=500)
        store = MessageStore(config, clock=clock, monotonic=clock)
        store.bitmap_of = filters.bitmap_of
        store.load()
        store.start()
        try:
            for number, properties in enumerate(messages):
                if number == min(early, len(messages) - 1):
                    for number_of_group, condition in enumerate(conditions):
                        filters.register(
                            str(number_of_group), [SubscriptionData("T", condition, expression_type="SQL92")]
                        )
                    clock.now += 1
                text = encode_properties(properties).encode()
                store.put_message(StoreMessage("T", 0, b"%d" % number, text, 0, 0, 1, HOST, HOST))
            for group, consumer_filter in filters.by_topic.get("T", {}).items():
                is_met = consumer_filter.condition.is_met
                expected = [number for number, properties in enumerate(messages) if is_met(properties)]
                assert _read(store, filters, group) == expected
        finally:
            store.close()


def _read(store: MessageStore, filters: ConsumerFilterManager, group: str) -> list[int]:
    """Read a queue to its end as a consumer does."""
    found = filters.get("T", group)
    assert found is not None
    numbers: list[int] = []
    offset = 0
    while True:
        result = store.get_message(group, "T", 0, offset, 8, found.content_filter)
        if result.status is GetMessageStatus.OFFSET_OVERFLOW_ONE:
            return numbers
        assert result.next_begin_offset > offset
        for message in decode_records(b"".join(result.buffers)):
            assert found.condition.is_met(decode_properties(encode_properties(message.properties)))
            numbers.append(int(message.body))
        offset = result.next_begin_offset
