"""Handles of deliveries, as RocketMQ's clients and its proxy send them."""

from __future__ import annotations

import pytest

from appliance.broker.pop.handles import Handle, counts_info
from appliance.remoting.header_fields import FieldError

WORDS = "7 1795528675671 20000 0 1 broker-a 3 9"


def test_a_handle_is_eight_words() -> None:
    handle = Handle.parse(WORDS)
    assert (handle.pop_ms, handle.kind, handle.queue_id, handle.offset) == (1795528675671, "1", 3, 9)
    assert str(handle) == WORDS


def test_a_client_may_leave_the_offset_out_and_a_proxy_adds_the_place_in_the_log() -> None:
    assert Handle.parse(WORDS.rpartition(" ")[0], 9) == Handle.parse(WORDS)
    assert Handle.parse(f"{WORDS} 3885") == Handle.parse(WORDS)


@pytest.mark.parametrize("text", ["", "1 2 3", WORDS.replace("3", "x"), WORDS.replace("9", "-9", 1), WORDS + " 1 1"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(FieldError):
        Handle.parse(text)


def test_counts_name_messages_and_the_queue() -> None:
    assert counts_info("0", 2, [(5, 1), (6, 0)]) == ["0 qo2%5 1", "0 2 0"]
