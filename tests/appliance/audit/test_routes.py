"""S60: requests that administer leave a line with who, what and its outcome; others leave none; nor do secrets."""

from __future__ import annotations

import contextlib
import gc
import json
import weakref
from pathlib import Path
from typing import Any

import pytest

from appliance.acl.permission_table import ADMIN, PERMISSIONS
from appliance.audit.routes import AUDITED, HIDDEN, audited
from appliance.audit.trail_file import NAME
from appliance.errors import BrokerError
from appliance.namesrv.table import TABLE as NAMESRV_TABLE
from appliance.remoting.lane import Route
from gantrymq.client.admin.client import AdminClient
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.codes import RequestCode as Code
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.peer import connected
from tests.harness import serving

READS = {
    Code.GET_ALL_TOPIC_CONFIG, Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, Code.GET_PRODUCER_CONNECTION_LIST,
    Code.GET_ALL_PRODUCER_INFO, Code.GET_ALL_CONSUMER_OFFSET, Code.GET_ALL_DELAY_OFFSET,
    Code.GET_BROKER_CONSUME_STATS, Code.QUERY_CORRECTION_OFFSET, Code.GET_BROKER_CONFIG,
    Code.GET_BROKER_RUNTIME_INFO, Code.GET_BROKER_HA_STATUS, Code.VIEW_BROKER_STATS_DATA,
    Code.GET_BROKER_CLUSTER_ACL_INFO, Code.GET_BROKER_CLUSTER_ACL_CONFIG, Code.GET_CONNECTIONS,
    Code.GET_TOPIC_FIGURES, Code.GET_FAILOVER,
}  # fmt: skip
NOT_SERVED = {Code.REGISTER_FILTER_SERVER}  # accepted at most, never done


class Connection:
    """A client without an account."""

    access = None
    remote_text = "127.0.0.1:4711"


def lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / NAME
    return [json.loads(line) for line in path.read_bytes().splitlines()[1:]] if path.exists() else []


def test_s60_what_needs_an_administrator_and_is_no_look_leaves_a_line() -> None:
    administers = {code for code, rule in PERMISSIONS.items() if rule is ADMIN}
    assert administers - READS - NOT_SERVED <= AUDITED
    assert not AUDITED & READS
    assert {row.code for row in NAMESRV_TABLE} & AUDITED == {
        Code.PUT_KV_CONFIG, Code.DELETE_KV_CONFIG, Code.WIPE_WRITE_PERM_OF_BROKER, Code.ADD_WRITE_PERM_OF_BROKER,
        Code.DELETE_TOPIC_IN_NAMESRV, Code.UPDATE_NAMESRV_CONFIG,
    }  # fmt: skip


async def test_s60_a_broker_and_a_name_server_write_down_who_changed_what(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster:
        async with AdminClient(cluster.namesrv_address) as admin:
            await admin.topics.create(TopicConfig("audited"))
            await admin.topics.route("audited")
            await admin.topics.delete("audited")
        async with connected(cluster.broker.port) as client:
            body = b"flushDiskType=NO_SUCH\nsslPassword=x"
            answer = await client.ask(Code.UPDATE_BROKER_CONFIG, body=body)
            assert answer.code != ResponseCode.SUCCESS
    entries = lines(tmp_path / "store")
    assert [(entry["name"], entry["result"]) for entry in entries[:-1]] == [
        ("UPDATE_AND_CREATE_TOPIC", 0), ("DELETE_TOPIC_IN_BROKER", 0),
    ]  # fmt: skip
    assert entries[0]["fields"]["topic"] == "audited" and entries[0]["account"] == ""
    assert entries[0]["address"].startswith("127.0.0.1:")
    assert entries[-1]["result"] == answer.code and entries[-1]["remark"] == answer.remark
    assert entries[-1]["body"] == {"flushDiskType": "NO_SUCH", "sslPassword": HIDDEN}
    assert [entry["name"] for entry in lines(tmp_path)] == ["DELETE_TOPIC_IN_NAMESRV", "DELETE_KV_CONFIG"]


async def test_s60_secrets_of_accounts_stay_out_of_the_trail(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster, connected(cluster.broker.port) as client:
        fields = {"accessKey": "orders-service", "secretKey": "abcdefgh-secret", "AccessKey": "k", "Signature": "s"}
        await client.ask(Code.UPDATE_AND_CREATE_ACL_CONFIG, fields)
    text = (tmp_path / "store" / NAME).read_text()
    assert "abcdefgh-secret" not in text
    assert json.loads(text.splitlines()[1])["fields"] == {"accessKey": "orders-service", "secretKey": HIDDEN}


async def test_s60_a_trail_that_can_not_be_written_stops_no_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "store" / NAME).mkdir(parents=True)  # no file, whoever writes
    async with serving(tmp_path) as cluster, AdminClient(cluster.namesrv_address) as admin:
        await admin.topics.create(TopicConfig("unaudited"))
    assert any(getattr(record, "event", "") == "audit_not_written" for record in caplog.records)


async def test_s60_a_handler_has_done_its_work_before_its_line_is_written(tmp_path: Path) -> None:
    """Requests that come behind a change on the same connection find it done."""
    done: list[str] = []

    def change(connection: object, request: RemotingCommand) -> RemotingCommand:
        done.append("changed")
        return request.reply()

    code = Code.DELETE_TOPIC_IN_NAMESRV
    route = audited({code: Route(change, "namesrv")}, tmp_path)[code]
    answering = route.handler(Connection(), RemotingCommand.request(code, {"topic": "t"}))  # type: ignore[arg-type]
    assert done == ["changed"] and not lines(tmp_path)
    await answering  # type: ignore[misc]
    assert [entry["fields"] for entry in lines(tmp_path)] == [{"topic": "t"}]


async def test_s60_a_refused_request_is_gone_when_it_is_answered(tmp_path: Path) -> None:
    """What it brought may be large, and nothing searches for garbage soon."""

    class Work:
        """What the handler holds while it runs."""

    held: list[weakref.ref[Work]] = []

    def refuse(connection: object, request: RemotingCommand) -> RemotingCommand:
        work = Work()
        held.append(weakref.ref(work))
        raise BrokerError(ResponseCode.SYSTEM_ERROR, "no")

    async def refuse_later(connection: object, request: RemotingCommand) -> RemotingCommand:
        return refuse(connection, request)

    code = Code.DELETE_TOPIC_IN_NAMESRV
    gc.disable()
    try:
        for handler in (refuse, refuse_later):
            route = audited({code: Route(handler, "namesrv")}, tmp_path)[code]
            with contextlib.suppress(BrokerError):
                await route.handler(Connection(), RemotingCommand.request(code, {"topic": "t"}))  # type: ignore
        assert [one() for one in held] == [None, None]
    finally:
        gc.enable()
    assert [entry["result"] for entry in lines(tmp_path)] == [1, 1]


def test_s60_routes_that_only_read_are_left_as_they_are(tmp_path: Path) -> None:
    def answer(connection: object, request: object) -> None:
        return None

    reading = Route(answer, "admin")
    assert audited({Code.GET_BROKER_CONFIG: reading}, tmp_path)[Code.GET_BROKER_CONFIG] is reading
