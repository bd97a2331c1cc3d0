"""The property text and Java's string hash."""

from __future__ import annotations

import pytest

from gantrymq.message import properties


def test_the_text_has_separators_between_pairs_only() -> None:
    assert properties.encode_properties({"A": "1", "B": "2"}) == "A\x011\x02B\x012"
    assert properties.encode_properties({}) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A\x011\x02", {"A": "1"}),
        ("A\x01\x02B\x012", {"B": "2"}),
        ("\x011\x02B\x012", {"B": "2"}),
        ("A\x011\x02A\x012", {"A": "2"}),
        ("A\x01a\x01b", {"A": "a\x01b"}),
        ("nonsense", {}),
        ("", {}),
    ],
)
def test_the_parser_follows_javas_rules(text: str, expected: dict[str, str]) -> None:
    assert properties.decode_properties(text) == expected
    assert properties.decode_properties(text.encode()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"TAGS\x01a\x02KEYS\x01b", b"a"), (b"KEYS\x01b\x02TAGS\x01a", b"a"), (b"MYTAGS\x01x\x02TAGS\x01a\x02", b"a"),
        (b"TAGS\x01a\x02TAGS\x01b", b"b"), (b"TAGS\x01a\x02TAGS\x01\x02", b"a"), (b"MYTAGS\x01x", None), (b"", None),
    ],
)  # fmt: skip
def test_one_property_is_found_without_decoding(text: bytes, expected: bytes | None) -> None:
    assert properties.find_property(text, b"TAGS") == expected


def test_properties_are_replaced_and_removed_in_place_of_their_text() -> None:
    text = properties.replace_properties(b"A\x011\x02WAIT\x01true\x02B\x012\x02", {b"WAIT": None, b"A": b"9"})
    assert text == b"B\x012\x02A\x019"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("TagA", 2598919),
        ("TagB", 2598920),
        ("", 0),
        ("polygenelubricants", -(1 << 31)),
        ("日本", 835047),
        ("\U0001f600", 55357 * 31 + 56832),
    ],
)
def test_the_hash_is_javas(text: str, code: int) -> None:
    assert properties.string_hash_code(text) == code
