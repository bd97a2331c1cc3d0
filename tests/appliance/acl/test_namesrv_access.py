"""The name server and strangers: a broker that nobody asked for changes no route."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.acl.access import AccessDenied, AccessOptions
from appliance.acl.account_book import AccountBook
from appliance.acl.namesrv_access import PROTECTED, NamesrvAccess
from appliance.broker.controller import BrokerController
from appliance.namesrv.controller import NamesrvController
from appliance.namesrv.table import TABLE
from appliance.settings.roles import BrokerConfig, NamesrvConfig
from gantrymq.errors import ConfigError
from gantrymq.remoting.bodies import TopicRouteData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.signature import Credentials, Stamper
from store.base.config import MessageStoreConfig
from tests.appliance.acl.cluster import ADMIN, RIGHT, WRONG, Client, SignedPeer, accounts_file, is_denied, signed_peer
from tests.appliance.peer import registration
from tests.harness import SMALL_STORE

FOR_THIS_MACHINE_AND_ADMINS = {100, 102, 103, 104, 205, 216, 318, 319, 322, 327}


@contextlib.asynccontextmanager
async def signed_namesrv(folder: Path) -> AsyncIterator[tuple[NamesrvController, SignedPeer]]:
    """A name server that has even this machine sign what it tells."""
    accounts_file(folder)
    config = NamesrvConfig(
        listen_port=0, kv_config_path=folder / "kvConfig.json", rocketmq_home=folder, write_access="signed"
    )
    async with NamesrvController(config) as namesrv, signed_peer(namesrv.port) as peer:
        yield namesrv, peer


async def brokers_of(peer: SignedPeer, topic: str = "T") -> dict[str, dict[int, str]]:
    answer = await peer.ask(None, RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    if answer.code != 0:
        return {}
    return {data.broker_name: data.broker_addrs for data in TopicRouteData.from_json(answer.body).broker_datas}


def gate(folder: Path | None, write_access: str = "loopback") -> NamesrvAccess:
    book = None
    if folder is not None:
        accounts_file(folder)
        book = AccountBook(folder)
        book.load()
    return NamesrvAccess(book, write_access=write_access, options=AccessOptions())


def is_let_in(access: NamesrvAccess, client: Client, code: int, account: Credentials | None) -> bool:
    request = RemotingCommand.request(code, {"topic": "T"})
    if account is not None:
        account.sign(request, Stamper())
    try:
        access(client, request)
    except AccessDenied:
        return False
    return True


def test_the_protected_codes_are_those_of_the_list() -> None:
    assert set(map(int, PROTECTED)) == FOR_THIS_MACHINE_AND_ADMINS <= {int(row.code) for row in TABLE}


@pytest.mark.parametrize("code", [int(row.code) for row in TABLE])
def test_strangers_may_ask_and_not_tell(tmp_path: Path, code: int) -> None:
    stranger, neighbour, itself = Client(), Client("127.0.0.1"), Client("192.0.2.1")
    mapped = Client("::ffff:127.0.0.1")
    is_open = code not in FOR_THIS_MACHINE_AND_ADMINS
    for access, has_accounts, trusts_machine in (
        (gate(tmp_path), True, True),
        (gate(None), False, True),
        (gate(tmp_path, "signed"), True, False),
        (gate(None, "signed"), False, False),
    ):
        for account in (None, WRONG, RIGHT):
            assert is_let_in(access, stranger, code, account) is is_open
        assert is_let_in(access, stranger, code, ADMIN) is (is_open or has_accounts)
        for local in (neighbour, itself, mapped):
            assert is_let_in(access, local, code, None) is (is_open or trusts_machine)


async def test_a_rogue_changes_no_route(tmp_path: Path) -> None:
    """S34."""
    async with signed_namesrv(tmp_path) as (namesrv, honest), signed_peer(namesrv.port) as rogue:
        header, body = registration("10.0.0.1:10911")
        assert (await honest.ask(ADMIN, RequestCode.REGISTER_BROKER, header, body)).code == 0
        before = await brokers_of(rogue)
        attacks = [
            (RequestCode.REGISTER_BROKER, *registration("10.6.6.6:10911")),
            (RequestCode.REGISTER_BROKER, *registration("10.6.6.6:10911", name="broker-rogue")),
            (RequestCode.UNREGISTER_BROKER, header, b""),
            (RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "broker-a"}, b""),
            (RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "T"}, b""),
            (RequestCode.PUT_KV_CONFIG, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T", "value": "rogue:1"}, b""),
            (RequestCode.UPDATE_NAMESRV_CONFIG, {}, b"configStorePath=/tmp/pwned\nkvConfigPath=/tmp/pwned"),
        ]
        for code, fields, attack_body in attacks:
            for account in (None, WRONG, RIGHT):
                assert is_denied(await rogue.ask(account, code, fields, attack_body)), (code, account)
        assert await brokers_of(rogue) == before == {"broker-a": {0: "10.0.0.1:10911"}}
        assert (await rogue.ask(None, RequestCode.GET_KV_CONFIG, {"namespace": "ORDER_TOPIC_CONFIG", "key": "T"})).code


async def test_a_broker_signs_for_the_account_in_its_file(tmp_path: Path) -> None:
    credentials = tmp_path / "tools.yml"
    credentials.write_text("accessKey: adminKey1\nsecretKey: adminSecret1\n")
    async with signed_namesrv(tmp_path) as (namesrv, peer):
        for file, expected in ((None, 0), (credentials, 1)):
            config = BrokerConfig(listen_port=0, namesrv_addresses=f"127.0.0.1:{namesrv.port}", credentials_file=file)
            store = MessageStoreConfig(root=tmp_path / f"store{expected}", **SMALL_STORE)
            async with BrokerController(config, store) as broker:
                assert await broker.outer_api.register_all() == expected
                assert len(await brokers_of(peer, "TBW102")) == expected
            assert await brokers_of(peer, "TBW102") == {}  # the good-bye is signed, too


def test_a_name_for_who_may_write_has_to_be_one() -> None:
    with pytest.raises(ConfigError, match="writeAccess=everybody"):
        NamesrvConfig(write_access="everybody")
