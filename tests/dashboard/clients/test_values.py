"""What is said of a client, out of its connections. Client ids are shortened to what differs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.clients.selection import in_order, select
from dashboard.clients.short_ids import in_two, shortened
from dashboard.clients.values import ClientListing, ConnectedClient, Connection, version_text
from tests.bounded import bounded


def connection(port: int, *groups: str, broker: str = "a", **more: object) -> Connection:
    return Connection(broker, f"10.0.0.1:{port}", groups=groups, **more)  # type: ignore[arg-type]


def client(name: str, *connections: Connection, **more: object) -> ConnectedClient:
    values = {"language": "JAVA", "version": 401, "producer_groups": (), "consumer_groups": ()} | more
    return ConnectedClient(name, connections=connections, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ordinal", "text"),
    [(401, "4.9.4"), (409, "4.9.8"), (213, "4.0.0"), (212, "4.0.0-SNAPSHOT"), (413, "5.0.0"), (433, "5.1.0"),
     (100, "before 4.0"), (0, "")],
)  # fmt: skip
def test_a_version_is_written_as_people_write_it(ordinal: int, text: str) -> None:
    assert version_text(ordinal) == text


def test_two_connections_are_two_processes_only_in_the_same_group_of_one_broker() -> None:
    assert client("c", connection(1, "g"), connection(2, "g")).is_twice
    assert not client("c", connection(1, "producers"), connection(2, "g")).is_twice
    assert not client("c", connection(1, "g"), connection(2, "g", broker="b")).is_twice
    assert not client("", connection(1, "g"), connection(2, "g")).is_twice


def test_what_one_broker_does_not_tell_is_not_known_of_the_client() -> None:
    told = connection(1, opened_at=5.0, has_tls=True, requests=3, rate=1.5)
    assert client("c", told, told).rate == 3.0 and client("c", told).has_tls is True
    partly = client("c", told, connection(2))
    assert (partly.rate, partly.requests, partly.has_tls, partly.since) == (None, None, None, 5.0)
    mixed = client("c", told, connection(2, has_tls=False, requests=1, rate=0.0))
    assert (mixed.has_tls, mixed.requests, mixed.rate) == (False, 4, 1.5)


def test_clients_are_found_by_every_word_and_what_is_not_known_comes_last() -> None:
    mail = client("10.0.0.1@mail", connection(1, rate=2.0, account="shop"), consumer_groups=("orders-mail",))
    audit = client("10.0.0.1@audit", connection(2), language="GO", version=317)
    tool = client("", connection(3, rate=9.0), language="", version=0)
    listing = ClientListing((mail, audit, tool), 1.0)
    assert [select(listing, part) for part in ("ORDERS", "shop", "4.9.4", ":2")] == [[mail], [mail], [mail], [audit]]
    assert select(listing) == [mail, audit] and select(listing, with_tools=True) == [mail, audit, tool]
    assert select(listing, only_twice=True) == []
    assert in_order([tool, mail, audit], "client", down=False) == [audit, mail, tool]
    assert in_order([audit, mail, tool], "rate", down=True) == [tool, mail, audit]
    assert in_order([audit, mail, tool], "rate", down=False) == [mail, tool, audit]
    assert listing.by_language() == {"GO": 1, "JAVA": 1}


HERE = ["10.0.0.7@4711#5ff31dd45d1b", "10.0.0.7@4711#4cd2c81f18c7", "10.0.0.7@4711#4cd2c9000000"]


@pytest.mark.parametrize(
    ("whole", "ids", "parts", "short"),
    [
        (HERE[0], HERE, ("10.0.0.7@4711#", "5ff31dd45d1b"), "…5ff3"),
        (HERE[1], HERE, ("10.0.0.7@4711#", "4cd2c81f18c7"), "…4cd2c8"),
        (HERE[0], [HERE[0], "10.0.0.7@88#5ff31dd45d1b"], ("10.0.0.7@", "4711#5ff31dd45d1b"), "…4711#5ff3"),
        (HERE[0], [HERE[0], "app-1"], ("", HERE[0]), "10.0.0.7@4711#5ff3"),
        (HERE[0], HERE[:1], ("", HERE[0]), "10.0.0.7@4711"),
        ("shop", ["shop", "shop-2"], ("", "shop"), "shop"),
    ],
)
def test_what_differs_is_shown(whole: str, ids: list[str], parts: tuple[str, str], short: str) -> None:
    assert in_two(whole, sorted(ids)) == parts
    assert shortened(whole, sorted(ids)) == short


@bounded(500)
@given(st.lists(st.text("ab1@#.", min_size=1, max_size=12), min_size=1, max_size=8, unique=True))
def test_no_two_look_the_same(ids: list[str]) -> None:
    ids.sort()
    assert all("".join(in_two(one, ids)) == one for one in ids)
    assert len({shortened(one, ids) for one in ids}) == len(ids)
