"""Whose word counts about where a request came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.settings.appliance_config import FORWARDED, X_FORWARDED, ApplianceConfig
from dashboard.web.proxies import HOPS_MAX, Seen, TrustedProxies
from gantrymq.errors import ConfigError

PROXY, STRANGER, CLIENT = "10.0.0.7", "192.0.2.1", "203.0.113.9"
TRUSTED = "10.0.0.0/24, ::1"


def seen(peer: str = PROXY, *, family: str = X_FORWARDED, scheme: str = "http", **headers: str) -> Seen:
    config = ApplianceConfig(data=Path("data"), trusted_proxies=TRUSTED, proxy_headers=family)
    given = {name.replace("_", "-").lower(): value.split("|") for name, value in headers.items()}
    proxies = TrustedProxies(config.trusted_networks, config.proxy_headers)
    return proxies.seen(
        peer, 4711, scheme, lambda name: [value.encode() for value in given.get(name.decode().lower(), [])]
    )


def test_a_strangers_headers_are_ignored() -> None:
    headers = {"X_Forwarded_For": CLIENT, "X_Forwarded_Proto": "https", "X_Forwarded_Host": "evil.example"}
    assert seen(STRANGER, **headers) == Seen(STRANGER, 4711, "http")
    assert seen(STRANGER, family=FORWARDED, Forwarded=f"for={CLIENT};proto=https") == Seen(STRANGER, 4711, "http")


def test_a_trusted_proxys_headers_are_believed() -> None:
    headers = {"X_Forwarded_For": CLIENT, "X_Forwarded_Proto": "https", "X_Forwarded_Host": "gantry.example"}
    assert seen(**headers) == Seen(CLIENT, 0, "https", b"gantry.example")
    assert seen("::1", **headers) == Seen(CLIENT, 0, "https", b"gantry.example")
    assert seen("::ffff:10.0.0.7", **headers).address == CLIENT


@pytest.mark.parametrize(
    ("chain", "client"),
    [
        (f"{STRANGER}, {CLIENT}", CLIENT),  # what stands left of the client is the client's own invention
        (f"{STRANGER}, {CLIENT}, 10.0.0.8", CLIENT),
        (f"{STRANGER}|{CLIENT}", CLIENT),  # two lines of one header
        (f"{CLIENT}:5123", CLIENT),
        ("[2001:db8::9]:443, 10.0.0.8", "2001:db8::9"),
        ("2001:db8::9", "2001:db8::9"),
        ("10.0.0.9, 10.0.0.8", "10.0.0.9"),
        ("unknown, 10.0.0.8", "10.0.0.8"),
        ("nonsense", PROXY),
        ("", PROXY),
        (", ,", PROXY),
        (", ".join([CLIENT] + ["10.0.0.8"] * (HOPS_MAX + 5)), "10.0.0.8"),
    ],
)
def test_the_rightmost_that_is_no_proxy_is_the_client(chain: str, client: str) -> None:
    assert seen(X_Forwarded_For=chain).address == client


def test_schemes_belong_to_their_hops_when_there_are_as_many() -> None:
    chain = f"{STRANGER}, {CLIENT}, 10.0.0.8"
    assert seen(X_Forwarded_For=chain, X_Forwarded_Proto="http, https, http").scheme == "https"
    assert seen(X_Forwarded_For=chain, X_Forwarded_Proto="https").scheme == "https"
    assert seen(X_Forwarded_For=chain, X_Forwarded_Proto="gopher").scheme == "http"
    assert seen(X_Forwarded_Proto="wss").scheme == "https"


def test_the_other_family_of_headers_is_not_read() -> None:
    assert seen(Forwarded=f"for={CLIENT};proto=https") == Seen(PROXY, 4711, "http")
    assert seen(family=FORWARDED, X_Forwarded_For=CLIENT, X_Forwarded_Proto="https") == Seen(PROXY, 4711, "http")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"for={CLIENT};proto=https;host=gantry.example", Seen(CLIENT, 0, "https", b"gantry.example")),
        ('For="[2001:db8::9]:4711";Proto=https, for=10.0.0.8;proto=http', Seen("2001:db8::9", 0, "https")),
        (f"for={STRANGER};proto=http, for={CLIENT};proto=https", Seen(CLIENT, 0, "https")),
        ("for=_hidden;proto=https", Seen(PROXY, 4711, "https")),
        (";;=;", Seen(PROXY, 4711, "http")),
    ],
)
def test_forwarded_is_read_as_rfc_7239_says(line: str, expected: Seen) -> None:
    assert seen(family=FORWARDED, Forwarded=line) == expected


@pytest.mark.parametrize("wrong", ["10.0.0.1/24", "proxy.example", "10.0.0.0/33"])
def test_what_is_no_network_is_refused_with_an_example(wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"such as 10\.0\.0\.7 or 10\.0\.0\.0/24"):
        ApplianceConfig(data=Path("data"), trusted_proxies=wrong)
    with pytest.raises(ConfigError, match="x-forwarded or forwarded"):
        ApplianceConfig(data=Path("data"), proxy_headers="via")
