"""Nothing is sent into private networks (S23), whatever way an address is written."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest

from dashboard.outward.targets import NotResolved, TargetRefused, may_send_to, resolve, split_url

PRIVATE = [
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "224.0.0.1", "255.255.255.255", "240.0.0.1", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a00:1::",
    "fec0::1", "feff::1", "192.88.99.1", "2002:c058:6301::", "64:ff9b:1::a00:1", "not an address", "",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@pytest.mark.parametrize("address", PRIVATE)
def test_s23_private_addresses_are_refused(address: str) -> None:
    assert not may_send_to(address, ())


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_taken(address: str) -> None:
    assert may_send_to(address, ())


def test_a_private_network_can_be_allowed_and_opens_no_other() -> None:
    allowed = [ipaddress.ip_network("10.0.0.0/24")]
    assert may_send_to("10.0.0.7", allowed) and may_send_to("::ffff:10.0.0.7", allowed)
    assert not may_send_to("10.0.1.7", allowed) and not may_send_to("127.0.0.1", allowed)


def test_a_name_with_one_private_address_is_refused_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def both(*_: Any, **__: Any) -> list[Any]:
        return [(2, 1, 6, "", ("8.8.8.8", 443)), (2, 1, 6, "", ("127.0.0.1", 443))]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with pytest.raises(TargetRefused, match=r"127\.0\.0\.1"):
        resolve("rebinding.example", 443, (), "alarm_networks")


def test_a_name_without_address_may_have_one_later(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror("unknown")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with pytest.raises(NotResolved):
        resolve("gone.example", 443, (), "alarm_networks")


@pytest.mark.parametrize(
    "url",
    ["", "ftp://a/", "file:///etc/passwd", "gopher://a/", "https://", "https://name:word@host/", "https://a:99999/",
     "http://a b/", "http://a/\r\nX: y", "//a/", "a"],
)  # fmt: skip
def test_addresses_that_are_none_are_refused(url: str) -> None:
    with pytest.raises(TargetRefused):
        split_url(url)
