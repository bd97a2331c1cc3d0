"""Address patterns of white lists, as plain_acl.yml writes them.

    (empty)                          no address
    *   *.*.*.*   *:*:*:*:*:*:*:*    any address
    192.168.0.7   2001:db8::7        one address
    192.168.0.1,192.168.0.2          several
    192.168.0.{1,2,3}   2001:db8::{1,2}
                                     several that differ in their last part
    192.168.*.*   192.168.1-100.*   192.168.0.5-9
                                     a range in one part, any value in the parts after it
    2001:db8::*   2001:db8::1-20:*   2001:db8::1-ff
                                     the same in hexadecimal; a wildcard or range stands for the last parts

Valid patterns mean the same as in RocketMQ (RemoteAddressStrategyFactory). Patterns that RocketMQ accepts and matches
wrongly (a range before fixed parts, an octet above 255) are refused: a rule that matches other addresses than it says
would be worse than an error.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

Matches = Callable[[str], bool]
IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

ANY_ADDRESS = frozenset({"*", "*.*.*.*", "*:*:*:*:*:*:*:*"})


class AddressPatternError(ValueError):
    """Not an address pattern; the text names the wrong part."""


def any_address(address: str) -> bool:
    return True


def no_address(address: str) -> bool:
    return False


def compile_pattern(pattern: str) -> Matches:
    """Return a test whether an address (text, without port) matches the pattern. Raises AddressPatternError."""
    pattern = pattern.strip()
    if not pattern:
        return no_address
    if pattern in ANY_ADDRESS:
        return any_address
    if pattern.endswith("}"):
        return _one_of(_expanded(pattern))
    if "," in pattern:
        return _one_of([part for part in pattern.split(",") if part.strip()])
    if "*" in pattern or "-" in pattern:
        return _range_v6(pattern) if ":" in pattern else _range_v4(pattern)
    return _one_of([pattern])


def compile_patterns(patterns: list[str]) -> Matches:
    """Return a test whether an address matches any of the patterns. Raises AddressPatternError."""
    tests = [test for test in map(compile_pattern, patterns) if test is not no_address]
    if any_address in tests:
        return any_address
    if not tests:
        return no_address
    return lambda address: any(test(address) for test in tests)


def parse_address(text: str) -> IPAddress | None:
    """Parse an address of a socket; an IPv4-mapped IPv6 address (::ffff:10.0.0.1) becomes the IPv4 address."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, ipaddress.IPv6Address) else address


def _one_of(texts: list[str]) -> Matches:
    addresses = set()
    for text in texts:
        address = parse_address(text.strip())
        if address is None:
            raise AddressPatternError(f"{text.strip()!r} is not an IP address")
        addresses.add(address)
    return lambda text: parse_address(text) in addresses


def _expanded(pattern: str) -> list[str]:
    """Expand "10.0.0.{1,2}" to addresses. Braces may only stand for the last part."""
    head, brace, tail = pattern.partition("{")
    choices = [part.strip() for part in tail[:-1].split(",")]
    if not brace or not head.endswith((".", ":")) or not all(choices):
        raise AddressPatternError(f"{pattern!r}: braces hold the choices for the whole last part, like 10.0.0.{{1,2}}")
    return [head + choice for choice in choices]


def _range_v4(pattern: str) -> Matches:
    parts = [part.strip() for part in pattern.split(".")]
    if len(parts) != 4:
        raise AddressPatternError(f"{pattern!r}: an IPv4 pattern has four parts")
    spans = [_span(part, pattern, base=10, highest=255) for part in parts]
    _check_open_end(spans, pattern, 255)

    def matches(text: str) -> bool:
        address = parse_address(text)
        return isinstance(address, ipaddress.IPv4Address) and _within(address.packed, spans)

    return matches


def _range_v6(pattern: str) -> Matches:
    spans = [_span(part, pattern, base=16, highest=0xFFFF) for part in _v6_parts(pattern)]
    _check_open_end(spans, pattern, 0xFFFF)

    def matches(text: str) -> bool:
        address = parse_address(text)
        if not isinstance(address, ipaddress.IPv6Address):
            return False
        packed = address.packed
        return _within([packed[at] << 8 | packed[at + 1] for at in range(0, 16, 2)], spans)

    return matches


def _v6_parts(pattern: str) -> list[str]:
    """The eight parts, with the zeros that "::" stands for."""
    if pattern.count("::") > 1:
        raise AddressPatternError(f"{pattern!r}: '::' may appear once")
    head, double, tail = pattern.partition("::")
    before = head.split(":") if head else []
    after = tail.split(":") if tail else []
    missing = 8 - len(before) - len(after)
    if missing < 0 or (missing > 0) != bool(double):
        raise AddressPatternError(f"{pattern!r}: an IPv6 pattern has eight parts")
    return [*before, *["0"] * missing, *after]


def _span(part: str, pattern: str, *, base: int, highest: int) -> tuple[int, int]:
    """The first and last number that a part allows."""
    if part == "*":
        return 0, highest
    first, dash, last = part.partition("-")
    try:
        low = int(first, base)
        high = int(last, base) if dash else low
    except ValueError:
        raise AddressPatternError(f"{pattern!r}: {part!r} is not a number, range or *") from None
    if not 0 <= low <= high <= highest or "_" in part or "+" in part:
        raise AddressPatternError(f"{pattern!r}: {part!r} is not within 0..{highest:x}" if base == 16 else
                                  f"{pattern!r}: {part!r} is not within 0..{highest}")  # fmt: skip
    return low, high


def _check_open_end(spans: list[tuple[int, int]], pattern: str, highest: int) -> None:
    """Check that only wildcards follow the first part that is not a single number."""
    first_open = next(index for index, (low, high) in enumerate(spans) if low != high or index == len(spans) - 1)
    if first_open == 0:
        raise AddressPatternError(f"{pattern!r}: the first part has to be a number")
    if any(span != (0, highest) for span in spans[first_open + 1 :]):
        raise AddressPatternError(f"{pattern!r}: behind a range or * only * may stand")


def _within(numbers: bytes | list[int], spans: list[tuple[int, int]]) -> bool:
    return all(low <= number <= high for number, (low, high) in zip(numbers, spans, strict=True))
