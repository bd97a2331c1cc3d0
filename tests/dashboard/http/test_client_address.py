"""Where a request comes from, and under which address it counts."""

from __future__ import annotations

import io

import pytest
from django.core.handlers.asgi import ASGIRequest

from dashboard.http.client_address import client_address, counted_address


def request_from(client: object, *headers: tuple[bytes, bytes]) -> ASGIRequest:
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers, "client": client}
    return ASGIRequest(scope, io.BytesIO())


@pytest.mark.parametrize(
    ("client", "address"),
    [
        (["192.0.2.7", 4711], "192.0.2.7"), (["::ffff:192.0.2.7", 4711], "192.0.2.7"),
        (["2001:db8::1", 4711], "2001:db8::1"), (["/run/socket", 0], "/run/socket"), (None, "unknown"),
        ([None, None], "unknown"),
    ],
)  # fmt: skip
def test_requests_and_sockets_have_the_peers_address(client: list[object] | None, address: str) -> None:
    assert client_address({"type": "websocket", "client": client}) == address
    assert client_address(request_from(client)) == address


def test_a_header_is_not_believed() -> None:
    assert client_address(request_from(["192.0.2.7", 1], (b"x-forwarded-for", b"198.51.100.1"))) == "192.0.2.7"


def test_addresses_of_one_ipv6_network_count_as_one() -> None:
    assert counted_address("2001:db8:0:1::1") == counted_address("2001:db8:0:1:ffff::2") == "2001:db8:0:1::/64"
    assert counted_address("2001:db8:0:2::1") != counted_address("2001:db8:0:1::1")
    assert counted_address("192.0.2.7") == "192.0.2.7"
    assert counted_address("unknown") == "unknown"
