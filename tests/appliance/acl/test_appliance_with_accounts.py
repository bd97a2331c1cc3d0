"""`gantry up --accounts` as a user runs it: strangers stay out; dashboard, brokers and known clients stay in."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from appliance.acl.namesrv_access import PROTECTED
from gantrymq import AdminClient, ConsumeFrom, Credentials, Message, MessageExt, Producer, PushConsumer
from gantrymq.errors import GantryError, ResponseError
from gantrymq.remoting.admin_bodies import DataVersion, TopicConfig
from gantrymq.remoting.bodies import ClusterInfo
from gantrymq.remoting.codes import RequestCode
from tests.appliance.acl.cluster import is_denied, signed_peer
from tests.appliance.peer import registration
from tests.appliance_process import RunningAppliance, shared_appliance
from tests.visitor import Visitor, admin_of
from tests.waiting import until, wait_until

CLIENT = Credentials("orders-service", "choose-a-long-one")


gantry = shared_appliance("--accounts", "--brokers", "2")


def own_account(gantry: RunningAppliance) -> Credentials:
    return Credentials.from_file(Path(gantry.data) / "accounts" / "appliance.yml")


def test_accounts_are_their_owners_alone_and_the_secret_stands_nowhere_else(gantry: RunningAppliance) -> None:
    folder = Path(gantry.data) / "accounts"
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.yml")}
    assert files == {"appliance.yml", "conf/plain_acl.yml", "conf/acl/appliance.yml"}
    for path in folder.rglob("*.yml"):
        assert path.stat().st_mode & 0o777 == 0o600
    secret = own_account(gantry).secret_key
    assert secret not in gantry.output
    holders = {
        path.relative_to(gantry.data).as_posix()
        for path in Path(gantry.data).rglob("*")
        if secret.encode() in content_of(path)
    }
    assert holders == {"accounts/appliance.yml", "accounts/conf/acl/appliance.yml"}


def content_of(path: Path) -> bytes:
    """What a file holds that may be gone by now: tables and journals are written and replaced all the time."""
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size < 64 << 20 else b""
    except FileNotFoundError:
        return b""


async def test_strangers_get_nothing_and_the_own_account_everything(gantry: RunningAppliance) -> None:
    for stranger in (None, Credentials("gantry-appliance", "guessed-secret")):
        async with AdminClient(gantry.namesrv, credentials=stranger) as admin:
            with pytest.raises(ResponseError) as refused:
                await admin.brokers.runtime_info(gantry.broker)
            assert refused.value.code == 16
    async with AdminClient(gantry.namesrv, credentials=own_account(gantry)) as admin:
        brokers = (await admin.cluster.info()).broker_addr_table
        assert set(brokers) == {"broker-a", "broker-b"}
        for data in brokers.values():
            assert (await admin.brokers.runtime_info(data.broker_addrs[0]))["brokerVersionDesc"]


def attack(code: int) -> tuple[dict[str, str], bytes]:
    """Fields and body that change something where the name server believes them."""
    if code == RequestCode.REGISTER_BROKER:
        return registration("10.6.6.6:10911", name="broker-a")
    if code == RequestCode.QUERY_DATA_VERSION:
        return dict(registration("10.6.6.6:10911", name="broker-a")[0]), DataVersion().to_json()
    return {
        **registration("10.6.6.6:10911", name="broker-a")[0],
        "topic": "TBW102",
        "namespace": "ORDER_TOPIC_CONFIG",
        "key": "TBW102",
        "value": "rogue:1",
    }, b"orderMessageEnable=true"


@pytest.mark.parametrize("code", sorted(PROTECTED), ids=lambda code: code.name)
async def test_this_machine_changes_no_route_without_the_right_signature(gantry: RunningAppliance, code: int) -> None:
    """S34: the name server obeyed whoever came over loopback, accounts or not."""
    fields, body = attack(code)
    before = await shown_by(gantry)
    async with signed_peer(int(gantry.namesrv.rpartition(":")[2])) as peer:
        for account in (None, Credentials("gantry-appliance", "guessed-secret"), Credentials("nobody123", "guessed")):
            answer = await peer.ask(account, code, fields, body)
            assert is_denied(answer), (account, answer)
    assert await shown_by(gantry) == before
    assert set(before[0]) == {"broker-a", "broker-b"}


async def shown_by(gantry: RunningAppliance) -> tuple[dict[str, object], bytes, int]:
    """What strangers see of the routes: brokers, a topic's route, the answer about a key."""
    async with signed_peer(int(gantry.namesrv.rpartition(":")[2])) as peer:
        cluster = await peer.ask(None, RequestCode.GET_BROKER_CLUSTER_INFO)
        route = await peer.ask(None, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TBW102"})
        key = await peer.ask(None, RequestCode.GET_KV_CONFIG, {"namespace": "ORDER_TOPIC_CONFIG", "key": "TBW102"})
    return dict(ClusterInfo.from_json(cluster.body).broker_addr_table), route.body, key.code


async def test_the_own_account_changes_routes(gantry: RunningAppliance) -> None:
    async with AdminClient(gantry.namesrv, credentials=own_account(gantry)) as admin:
        fields = {"namespace": "ORDER_TOPIC_CONFIG", "key": "T", "value": "broker-a:1"}
        await admin.calls.call(gantry.namesrv, RequestCode.PUT_KV_CONFIG, fields)
        assert (await admin.calls.call(gantry.namesrv, RequestCode.GET_KV_CONFIG, fields)).ext_fields[
            "value"
        ] == "broker-a:1"
        await admin.calls.call(gantry.namesrv, RequestCode.DELETE_KV_CONFIG, fields)
        wiped = await admin.calls.call(
            gantry.namesrv, RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "broker-b"}
        )
        assert int(wiped.ext_fields["wipeTopicCount"])
        added = await admin.calls.call(gantry.namesrv, RequestCode.ADD_WRITE_PERM_OF_BROKER, {"brokerName": "broker-b"})
        assert int(added.ext_fields["addTopicCount"]) == int(wiped.ext_fields["wipeTopicCount"])


async def test_an_account_made_at_one_broker_holds_at_all_and_sends_and_consumes(gantry: RunningAppliance) -> None:
    async with AdminClient(gantry.namesrv, credentials=own_account(gantry)) as admin:
        fields = {
            "accessKey": CLIENT.access_key,
            "secretKey": CLIENT.secret_key,
            "topicPerms": "orders=PUB|SUB",
            "groupPerms": "printers=SUB",
        }
        await admin.calls.call(gantry.broker, RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, fields)
        for data in (await admin.cluster.info()).broker_addr_table.values():
            await admin.topics.create_at(data.broker_addrs[0], TopicConfig("orders", 2, 2))
            await until(partial(lets_in, gantry, data.broker_addrs[0]))
    got: set[bytes] = set()

    async def listener(messages: list[MessageExt]) -> None:
        got.update(message.body for message in messages)

    wanted = {b"%d" % number for number in range(8)}  # to both brokers
    async with Producer(gantry.namesrv, group="pg", credentials=CLIENT) as producer:
        for body in wanted:
            await producer.send(Message("orders", body))
        with pytest.raises(GantryError, match="No default permission for topic:invoices"):
            await producer.send(Message("invoices", b"not mine"))
        consumer = PushConsumer(
            gantry.namesrv,
            group="printers",
            listener=listener,
            consume_from=ConsumeFrom.FIRST_OFFSET,
            credentials=CLIENT,
        )
        consumer.subscribe("orders")
        async with consumer:
            await until(lambda: got == wanted)


async def lets_in(gantry: RunningAppliance, broker: str) -> bool:
    """Whether this broker knows the account already: each looks at the files once a second."""
    async with AdminClient(gantry.namesrv, credentials=CLIENT) as admin:
        try:
            await admin.calls.call(broker, RequestCode.GET_MAX_OFFSET, {"topic": "orders", "queueId": "0"})
        except ResponseError:
            return False
    return True


def test_the_dashboard_works_through_its_own_account(gantry: RunningAppliance) -> None:
    visitor = admin_of(gantry)
    for path, expected in (("/", "2 of 2"), ("/topics", "Create topic")):
        wait_until(partial(shows, visitor, path, expected))
        page = visitor.get(path)
        assert page.status == 200 and "AclException" not in page.text and "accessKey" not in page.text
    fields = {"name": "from-the-page", "queues": "4", "perm": "read-write"}
    made = visitor.submit("/topics/create", fields)
    assert made.status in (200, 204, 302, 303), made.text
    wait_until(partial(shows, visitor, "/topics", "from-the-page"))


def shows(visitor: Visitor, path: str, expected: str) -> bool:
    return expected in re.sub("<[^>]*>", "", visitor.get(path).text)
