"""Hosts and message ids."""

from __future__ import annotations

import pytest

from gantrymq.message import ids


def test_the_offset_id_is_apaches() -> None:
    host = ids.encode_host("127.0.0.1", 20911)
    assert ids.offset_message_id(host, 0xE0) == "7F000001000051AF00000000000000E0"
    assert ids.decode_offset_message_id("7F000001000051AF00000000000000E0") == ("127.0.0.1", 20911, 0xE0)


def test_ipv6_hosts_make_longer_ids() -> None:
    message_id = ids.offset_message_id(ids.encode_host("2001:db8::1", 10911), 5)
    assert len(message_id) == 56
    assert ids.decode_offset_message_id(message_id) == ("2001:db8::1", 10911, 5)


def test_a_mapped_address_is_stored_as_ipv4() -> None:
    assert ids.encode_host("::ffff:10.1.2.3", 1) == ids.encode_host("10.1.2.3", 1)


@pytest.mark.parametrize("text", ["", "zz", "7F000001", "0" * 40])
def test_what_is_no_id_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        ids.decode_offset_message_id(text)


def test_unique_ids_differ_and_look_like_javas() -> None:
    made = {ids.create_unique_id() for _ in range(1000)}
    assert len(made) == 1000
    assert {len(text) for text in made} <= {32, 56}
    assert all(text == text.upper() for text in made)
