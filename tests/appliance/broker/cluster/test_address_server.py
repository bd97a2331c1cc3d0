"""Name servers from an HTTP address server: a real one, that changes its mind, breaks and comes back."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.broker.cluster import address_server as address_servers
from appliance.broker.cluster.address_server import AddressServer, address_server_url, parse_addresses
from appliance.settings.roles import BrokerConfig
from tests.appliance.broker.cluster.registering import namesrv, registering
from tests.waiting import WITHIN_S, until


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with what the test put on the server."""

    def do_GET(self) -> None:
        status, body = self.server.answer  # type: ignore[attr-defined]
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def address_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[http.server.HTTPServer]:
    monkeypatch.setattr(address_servers, "TIMEOUT_S", WITHIN_S)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def url(server: http.server.HTTPServer) -> str:
    config = BrokerConfig(
        fetch_namesrv_addresses=True,
        address_server_domain=f"127.0.0.1:{server.server_address[1]}",
        address_server_subgroup="nsaddr-test",
    )
    asked = address_server_url(config)
    assert asked is not None
    return asked


def test_it_is_asked_only_when_no_addresses_are_configured() -> None:
    assert address_server_url(BrokerConfig()) is None
    assert address_server_url(BrokerConfig(fetch_namesrv_addresses=True, namesrv_addresses="a:1")) is None
    assert (
        address_server_url(BrokerConfig(fetch_namesrv_addresses=True)) == "http://jmenv.tbsite.net:8080/rocketmq/nsaddr"
    )


@pytest.mark.parametrize("text", ["", " ; ", "host", "host:0", "host:70000", "a b:9876", "<html>", "host:9876;oops"])
def test_an_answer_that_is_no_list_of_addresses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"empty|not host:port"):
        parse_addresses(text)


def test_addresses_are_taken_once_and_in_order() -> None:
    assert parse_addresses(" b:2;a:1; b:2;[::1]:9876\n") == ["b:2", "a:1", "[::1]:9876"]


@pytest.mark.parametrize(
    ("status", "body"), [(500, b""), (200, b""), (200, b"<html>"), (200, b"x" * 20_000), (200, b"\xff\xfe"), (302, b"")]
)
async def test_a_bad_answer_leaves_the_last_good_one(
    address_server: http.server.HTTPServer, status: int, body: bytes
) -> None:
    told: list[list[str]] = []
    server = AddressServer(url(address_server), told.append)
    address_server.answer = (200, b"a:1;b:2\n")  # type: ignore[attr-defined]
    await server.look()
    await server.look()
    address_server.answer = (status, body)  # type: ignore[attr-defined]
    await server.look()
    assert told == [["a:1", "b:2"]]
    address_server.answer = (200, b"c:3")  # type: ignore[attr-defined]
    await server.look()
    assert told == [["a:1", "b:2"], ["c:3"]]
    assert set(address_server.asked) == {"/rocketmq/nsaddr-test"}  # type: ignore[attr-defined]


async def test_a_broker_moves_to_the_name_servers_it_is_told_of(
    address_server: http.server.HTTPServer, tmp_path: Path
) -> None:
    async with namesrv(tmp_path) as old, namesrv(tmp_path) as new, registering(tmp_path) as (outer_api, topics):
        topics.create_on_send("Orders", "TBW102", 4, "")
        server = AddressServer(url(address_server), outer_api.follow)
        address_server.answer = (200, f"127.0.0.1:{old.port}".encode())  # type: ignore[attr-defined]
        await server.look()
        await until(lambda: outer_api.registered == (1, 1))
        assert old.routes.pickup_topic_route("Orders") is not None
        address_server.answer = (200, f"127.0.0.1:{new.port}".encode())  # type: ignore[attr-defined]
        await server.look()
        await until(lambda: new.routes.pickup_topic_route("Orders") is not None)
        await until(lambda: old.routes.pickup_topic_route("Orders") is None)
        await until(lambda: outer_api.registered == (1, 1))  # the new one's answer may be on its way
