"""Which other clients can be measured beside the SDK, and the table of all. The clients themselves run by hand."""

from __future__ import annotations

import pytest

from tests.bench.sdk import peers
from tests.bench.sdk.flows import FLOWS, Cost
from tests.bench.sdk.peers import OTHERS, SDK, Other, missing, not_measured, render
from tests.bench.sdk.servers import Nats, Redis

NO_CLIENT = Other("no-client", "no_such_module", Redis, ("consume",))
JSON_CLIENT = Other("json-client", "json", Nats, ("consume",))


def test_what_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "found", lambda program: None)
    assert missing(NO_CLIENT) == ["no-client (a Python package)", "redis-server"]
    assert missing(JSON_CLIENT) == ["nats-server"]
    told = not_measured((NO_CLIENT, JSON_CLIENT))
    assert told.startswith(
        "Not measured: no-client (missing: no-client (a Python package), redis-server); "
        "json-client (missing: nats-server)."
    )
    assert "deploy/locks/bench.lock" in told
    assert "\n" not in told


def test_nothing_is_said_where_all_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "found", lambda program: f"/usr/bin/{program}")
    assert not_measured((JSON_CLIENT,)) == ""


def test_others_have_flows_of_the_sdk() -> None:
    for other in OTHERS:
        assert set(other.flows) <= set(FLOWS)


def test_a_ratio_is_each_rounds_own() -> None:
    sdk = [Cost(1, 10.0, 2000.0, 1.0, 4.0), Cost(1, 20.0, 3000.0, 1.0, 2.0), Cost(1, 30.0, 900.0, 2.0, 2.0)]
    one = [Cost(1, 40.0, 1000.0, 2.0, 4.0)] * 3
    two = [Cost(1, 50.0, 500.0, 3.0, 9.0)] * 3
    table = render({"consume": {SDK: sdk, "one": one}, "end to end": {SDK: sdk, "one": one, "two": two}})
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert rows == [
        ["consume", "2,000 (20)", "1,000 (40)", "", "2.00 (0.90)"],
        ["end to end", "2,000 (20)", "1,000 (40)", "500 (50)", "2.00 (0.90)"],
        ["end to end, p50, ms", "1.00", "2.00", "3.00", "2.00 (1.00)"],
        ["end to end, p99, ms", "2.00", "4.00", "9.00", "2.00 (1.00)"],
    ]


def test_where_the_rate_is_given_only_latencies_are_told() -> None:
    flow = "end to end, 200/s"
    table = render({flow: {SDK: [Cost(1, 10.0, 200.0, 1.0, 4.0)], "one": [Cost(1, 40.0, 200.0, 2.0, 2.0)]}})
    assert table.splitlines()[2:] == [
        f"| {flow}, p50, ms | 1.00 | 2.00 | 2.00 (2.00) |",
        f"| {flow}, p99, ms | 4.00 | 2.00 | 0.50 (0.50) |",
    ]


def test_the_sdk_alone_has_no_ratio() -> None:
    assert render({"consume": {SDK: [Cost(1, 10.0, 2000.0)]}}).splitlines()[-1] == "| consume | 2,000 (10) |  |"
