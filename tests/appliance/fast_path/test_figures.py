"""What the twin served and left to Python, by reason: so that the cause shows itself when it declines."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from appliance.broker.status.fast_path import fast_path_figures
from appliance.remoting import lanes
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import JSON, RemotingCommand
from tests.appliance.fast_path import signed
from tests.appliance.fast_path.pulls import fill, pull
from tests.appliance.fast_path.rig import Pair, Side, pair_of_brokers
from tests.appliance.fast_path.sends import batch, first_messages, send

DELAYED = "UNIQ_KEY\x01AC1100010A0018B4AAC2\x02DELAY\x013"


@pytest.fixture(autouse=True)
def no_slice_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that is parked, because a slice ended early, asks again."""
    monkeypatch.setattr(lanes, "READ_AHEAD_SECONDS", 60.0)
    monkeypatch.setattr(lanes, "TURN_SECONDS", 60.0)


def other(code: int, ext_fields: dict[str, str]) -> bytes:
    return RemotingCommand(code, ext_fields, b"", None, 9, 0, "JAVA", 401, JSON).encode()


def figures(side: Side) -> tuple[int, int, dict[str, int]]:
    assert side.fast_path is not None
    return side.fast_path.figures()


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (other(RequestCode.GET_MAX_OFFSET, {"topic": "orders", "queueId": "0"}), "code"),
        (other(RequestCode.GET_BROKER_CLUSTER_INFO, {}), "fields"),
        (send(9, b"x", "", h="no number"), "fields"),
        (send(9, b"x", "", f="4"), "kind"),
        (send(9, b"x", "", b="unknown"), "topic"),
        (send(9, b"x", "", e="99"), "topic"),
        (send(9, b"x", DELAYED), "properties"),
        (pull(9, 0, queueOffset="x"), "fields"),
        (pull(9, 9999), "offset"),
        (pull(9, 0, topic="unknown"), "offset"),
        (pull(9, 0, consumerGroup="strangers"), "subscription"),
        (pull(9, 0, expressionType="SQL92", subscription="a = 'b'"), "subscription"),
        (pull(9, 0, subscription="nothing"), "place"),
    ],
)
async def test_each_reason_is_counted_once(pair: Pair, frame: bytes, reason: str) -> None:
    """On arrival and in a turn the same request is asked about once."""
    await fill(pair, 20)
    sends, pulls, before = figures(pair.fast)
    await pair.receive(send(5) + frame)
    declined = {name: count - before.get(name, 0) for name, count in figures(pair.fast)[2].items()}
    assert (figures(pair.fast)[:2], {name: count for name, count in declined.items() if count}) == (
        (sends + 1, pulls),
        {reason: 1},
    )
    pair.check()


async def test_what_was_served_is_counted_by_kind(pair: Pair) -> None:
    await fill(pair, 20)
    before = figures(pair.fast)
    await pair.receive(send(5) + batch(6, [b"1", b"2"]) + pull(7, 0))
    await pair.receive(pull(8, 1))
    after = figures(pair.fast)
    assert (after[0] - before[0], after[1] - before[1], after[2]) == (2, 2, before[2])


async def test_a_broker_that_refuses_and_accounts_that_may_not(tmp_path: Path) -> None:
    with pair_of_brokers(tmp_path / "accounts", accounts=signed.ACCOUNTS) as pair:
        await signed.first_messages(pair)
        await pair.receive(signed.signed(signed.LOW, signed.request(9)))
        assert figures(pair.fast)[2].pop("account") == 1
    with pair_of_brokers(tmp_path / "refusing") as pair:
        await first_messages(pair)
        for side in (pair.fast, pair.plain):
            object.__setattr__(side.broker.config, "start_accept_send_timestamp", 1 << 50)
        await pair.receive(send(9))
        assert figures(pair.fast)[2]["refusing"] == 1


async def test_the_room_of_a_file_of_the_log(tmp_path: Path) -> None:
    limits: dict[str, Any] = {"commit_log_file_bytes": 64 * 1024}
    with pair_of_brokers(tmp_path, accounts=signed.ACCOUNTS, store=limits) as pair:
        await signed.first_messages(pair)
        for number in range(10, 30):
            await pair.receive(signed.signed(signed.RIGHT, signed.request(number, b"b" * 9000)))
        assert 0 < figures(pair.fast)[2]["room"] < 20
        pair.check()


def test_the_figures_of_both_ports_are_told_together(compiled: ModuleType) -> None:
    class Served:
        count = pull_count = 0

        def __init__(self, *figures: Any) -> None:
            self._figures = figures

        def figures(self) -> Any:
            return self._figures

        def serve(self, *_: object) -> int:
            raise AssertionError

    told = fast_path_figures([Served(5, 2, {"topic": 1, "code": 2}), Served(1, 0, {"topic": 3})])
    assert told == {"fastPathSends": "6", "fastPathPulls": "2", "fastPathDeclined": "topic 4, code 2"}
    assert fast_path_figures([])["fastPathDeclined"] == "none"
    assert {"topic", "code"} <= set(compiled.REASONS)
