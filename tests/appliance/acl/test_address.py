"""appliance/acl/address.py: the patterns of white lists."""

from __future__ import annotations

import pytest

from appliance.acl.address import AddressPatternError, compile_pattern, compile_patterns

FITS = [
    ("*", "10.0.0.1", True),
    ("*.*.*.*", "10.0.0.1", True),
    ("*:*:*:*:*:*:*:*", "::1", True),
    ("", "10.0.0.1", False),
    ("   ", "10.0.0.1", False),
    ("10.0.0.1", "10.0.0.1", True),
    ("10.0.0.1", "10.0.0.10", False),
    ("10.0.0.1", "::ffff:10.0.0.1", True),
    ("2001:db8::7", "2001:0DB8:0:0::7", True),
    ("2001:db8::7", "2001:db8::8", False),
    ("10.0.0.1,10.0.0.3", "10.0.0.3", True),
    ("10.0.0.1,10.0.0.3", "10.0.0.2", False),
    ("10.0.0.{1,2,30}", "10.0.0.30", True),
    ("10.0.0.{1,2,30}", "10.0.0.3", False),
    ("2001:db8::{1,ab}", "2001:db8::ab", True),
    ("2001:db8::{1,ab}", "2001:db8::a", False),
    ("10.10.103.*", "10.10.103.255", True),
    ("10.10.103.*", "10.10.104.1", False),
    ("10.10.*.*", "10.10.1.2", True),
    ("10.10.1-100.*", "10.10.100.9", True),
    ("10.10.1-100.*", "10.10.101.9", False),
    ("10.10.1-100.*", "10.10.0.9", False),
    ("10.0.0.5-9", "10.0.0.9", True),
    ("10.0.0.5-9", "10.0.0.10", False),
    ("10.0.0.0-0", "10.0.0.0", True),
    ("10.*.*.*", "10.9.8.7", True),
    ("10.*.*.*", "2001:db8::1", False),
    ("2001:db8::*", "2001:db8::ffff", True),
    ("2001:db8::*", "2001:db8::1:1", False),
    ("2001:db8:1:2:3:4:5:10-1f", "2001:db8:1:2:3:4:5:1a", True),
    ("2001:db8:1:2:3:4:5:10-1f", "2001:db8:1:2:3:4:5:20", False),
    ("2002:ac5:78::1-200:*", "2002:ac5:78::1ff:9", True),
    ("2002:ac5:78::1-200:*", "2002:ac5:78::201:9", False),
    ("2001:db8::*", "10.0.0.1", False),
    ("fe80::1", "fe80::1%eth0", True),
    ("10.0.0.1", "not an address", False),
]


@pytest.mark.parametrize(("pattern", "address", "expected"), FITS)
def test_a_pattern_lets_in_what_it_says(pattern: str, address: str, expected: bool) -> None:
    assert compile_pattern(pattern)(address) is expected


@pytest.mark.parametrize(
    "pattern",
    [
        "10.0.0",
        "10.0.0.256",
        "10.0.0.9-5",
        "10.0.0.-5",
        "10.0.*.1",
        "10.1-5.2.*",
        "*.0.0.1",
        "10.0.0.1{2,3}",
        "10.0.0.{1,}",
        "10.0.0.{1,*}",
        "10.0.0.1,somewhere",
        "example.org",
        "2001:db8::1::*",
        "2001:db8:1:2:3:4:5:6:*",
        "2001:db8:*",
        "2001:db8::1-g",
        "10.0.0.1_0-20",
    ],
)
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(AddressPatternError):
        compile_pattern(pattern)


def test_several_patterns_let_in_what_any_of_them_lets_in() -> None:
    matches = compile_patterns(["", "10.0.0.1", "192.168.*.*"])
    assert matches("10.0.0.1") and matches("192.168.3.4") and not matches("10.0.0.2")
    assert not compile_patterns([])("10.0.0.1")
    assert compile_patterns(["10.0.0.1", "*"])("::1")
