"""Connect says what TLS means for a client: each mode, with each state of the certificate, in both languages."""

from __future__ import annotations

import asyncio
import socket
import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import translation

from appliance.certificates import ends_at
from appliance.remoting.tls import server_context
from appliance.settings.roles import BrokerConfig
from dashboard.connect.tls import ends_of, tls_check
from dashboard.status.check import Level
from gantrymq.timeouts import timeout
from tests.certificates import authority, server_fields
from tests.waiting import WITHIN_S

NOW = datetime(2026, 11, 30, tzinfo=UTC)
ENDS = {
    "good": (NOW + timedelta(days=90), Level.GOOD, "is valid until 2027-02-28", "有效期至 2027-02-28"),
    "expiring": (NOW + timedelta(days=5), Level.WARN, "expires soon, on 2026-12-05", "即将于 2026-12-05 过期"),
    "expired": (NOW - timedelta(days=1), Level.BAD, "expired on 2026-11-29", "已于 2026-11-29 过期"),
    "unread": (None, Level.WARN, "could not be read", "无法读取"),
}
MODES = {
    ("enforcing",): ("required: clients without TLS are rejected", "必须"),
    ("permissive",): ("optional: clients connect with or without TLS", "可选"),
    ("disabled", "permissive"): ("different from broker to broker", "各 Broker 不同"),
}


@pytest.mark.parametrize("modes", MODES)
@pytest.mark.parametrize("state", ENDS)
def test_each_mode_is_said_with_each_state_of_the_certificate(modes: tuple[str, ...], state: str) -> None:
    end, level, *of_certificate = ENDS[state]
    for language, mode, words in zip(("en", "zh-hans"), MODES[modes], of_certificate, strict=True):
        with translation.override(language):
            check = tls_check(modes, [end], NOW)
        assert mode in check.evidence and words in check.evidence
        assert check.level == (max(level, Level.WARN) if len(modes) > 1 else level)
        assert check.action


@pytest.mark.parametrize(
    ("modes", "level", "english", "chinese"),
    [
        (("disabled",), Level.GOOD, "off: clients connect without TLS", "未启用"),
        (("", "disabled"), Level.WARN, "without TLS; some brokers do not report it", "部分 Broker 不提供"),
        ((), Level.WARN, "unknown: these brokers do not report it", "未知"),
    ],
)
def test_without_tls_no_certificate_is_spoken_of(
    modes: tuple[str, ...], level: Level, english: str, chinese: str
) -> None:
    for language, words in (("en", english), ("zh-hans", chinese)):
        with translation.override(language):
            check = tls_check(modes, [], NOW)
        assert (check.level, check.action) == (level, "") and words in check.evidence


def test_a_certificate_that_is_not_read_or_a_broker_that_does_not_tell_is_no_good_news() -> None:
    good, expired, one_of_two = ENDS["good"][0], ENDS["expired"][0], "从这里无法读取 2 个证书中的 1 个"
    for modes, ends, level, english, chinese in (
        (
            ("enforcing",),
            [good, None],
            Level.WARN,
            "until 2027-02-28; 1 of 2 certificates could not",
            one_of_two,
        ),
        (
            ("enforcing",),
            [None, expired],
            Level.BAD,
            "1 of 2 certificates could not be read",
            one_of_two,
        ),
        (("", "enforcing"), [good], Level.WARN, "rejected; some brokers do not report it; the", "部分 Broker 不提供"),
        (("enforcing", "enforcing"), [good, good], Level.GOOD, "is valid until 2027-02-28", "有效期至 2027-02-28"),
    ):
        for language, words in (("en", english), ("zh-hans", chinese)):
            with translation.override(language):
                check = tls_check(modes, ends, NOW)
            assert check.level is level and words in check.evidence, check


async def test_the_end_is_of_the_certificate_that_the_port_shows() -> None:
    context = server_context(BrokerConfig(**server_fields()))
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    plain = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with server, plain:
        ports = [one.sockets[0].getsockname()[1] for one in (server, plain)]
        shown = await ends_of(f"127.0.0.1:{port}" for port in ports)
    assert shown == [ends_at(authority() / "server.pem"), None]


async def test_a_port_that_never_says_farewell_holds_up_no_page() -> None:
    context, is_seen = server_context(BrokerConfig(**server_fields())), threading.Event()

    def shake_hands_only(listener: socket.socket) -> None:
        with listener.accept()[0] as plain, context.wrap_socket(plain, server_side=True):
            is_seen.wait(WITHIN_S)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(asyncio.to_thread(shake_hands_only, listener))
        try:
            async with timeout(3.0):
                assert await ends_of([f"127.0.0.1:{listener.getsockname()[1]}"]) != [None]
        finally:
            is_seen.set()
            await serving
