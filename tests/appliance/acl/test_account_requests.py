"""Accounts and the white list, changed by request at a broker that asks for them; what is told and what never is."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from appliance.broker.controller import BrokerController
from appliance.errors import StartError
from appliance.settings.roles import BrokerConfig
from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import KVTable
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.signature import Credentials
from store.base.config import MessageStoreConfig
from tests.appliance.acl.cluster import ADMIN, WRONG, accounts_file, guarded, is_denied, sent, signed_peer
from tests.harness import SMALL_STORE


async def test_accounts_change_by_request_and_are_in_force_at_once(tmp_path: Path) -> None:
    new = Credentials("newUserKey", "newUserSecret")
    async with guarded(tmp_path) as cluster, signed_peer(cluster.broker.port) as peer:
        assert is_denied(await peer.ask(new, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER))
        fields = {"accessKey": "newUserKey", "secretKey": "newUserSecret", "admin": "false", "topicPerms": "TopicX=SUB"}
        assert (await peer.ask(ADMIN, RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, fields)).code == 0
        assert (await peer.ask(new, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)).code == 0
        assert (await peer.ask(new, RequestCode.GET_MAX_OFFSET, {"topic": "TopicX", "queueId": "0"})).code == 0
        fields |= {"topicPerms": "TopicX=DENY"}
        assert (await peer.ask(ADMIN, RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, fields)).code == 0
        assert is_denied(await peer.ask(new, RequestCode.GET_MAX_OFFSET, {"topic": "TopicX", "queueId": "0"}))
        version = await peer.ask(ADMIN, RequestCode.GET_BROKER_CLUSTER_ACL_INFO)
        assert fastjson.loads(version.ext_fields["version"].encode())["counter"] == 2
        assert version.ext_fields["brokerName"] == "broker-a" and version.ext_fields["clusterName"]
        files = fastjson.loads(version.ext_fields["allAclFileVersion"].encode())
        assert files == {str(tmp_path / "conf/plain_acl.yml"): fastjson.loads(version.ext_fields["version"].encode())}
        gone = await peer.ask(ADMIN, RequestCode.DELETE_ACL_CONFIG, {"accessKey": "newUserKey"})
        assert gone.code == 0
        assert is_denied(await peer.ask(new, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER))
        again = await peer.ask(ADMIN, RequestCode.DELETE_ACL_CONFIG, {"accessKey": "newUserKey"})
        assert again.code == ResponseCode.DELETE_ACL_CONFIG_FAILED, "nothing was there to delete"
        nobody = await peer.ask(ADMIN, RequestCode.DELETE_ACL_CONFIG, {"accessKey": " "})
        assert (nobody.code, nobody.remark) == (
            210,
            "The accesskey[] corresponding to accessConfig has been deleted failed.",
        )
        short = await peer.ask(
            ADMIN, RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, {"accessKey": "abc", "secretKey": "def"}
        )
        assert short.code == 209 and (short.remark or "").startswith("The accessKey=abc and secretKey=")


async def test_an_accounts_own_address_spares_the_signature_and_makes_no_administrator(tmp_path: Path) -> None:
    white = (
        "accounts: [{accessKey: rightKey1, secretKey: rightSecret1, whiteRemoteAddress: 127.0.0.*},"
        " {accessKey: adminKey1, secretKey: adminSecret1, admin: true, whiteRemoteAddress: 10.1.1.1}]"
    )
    async with guarded(tmp_path, white) as cluster, signed_peer(cluster.broker.port) as peer:
        await sent(peer, WRONG, "TopicX")
        for code in (RequestCode.GET_BROKER_CONFIG, RequestCode.UPDATE_AND_CREATE_TOPIC):
            answer = await peer.ask(WRONG, code, {"topic": "T"})
            assert is_denied(answer) and "admin" in (answer.remark or ""), answer
        assert is_denied(await peer.ask(Credentials("adminKey1", "wrong"), RequestCode.GET_BROKER_CONFIG))
        assert (await peer.ask(ADMIN, RequestCode.GET_BROKER_CONFIG)).code == 0, "from elsewhere it has to sign"


async def test_the_white_list_changes_by_request(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster, signed_peer(cluster.broker.port) as peer:
        maximum = {"topic": "TopicX", "queueId": "0"}
        code = RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG
        assert is_denied(await peer.ask(None, RequestCode.GET_MAX_OFFSET, maximum))
        assert (await peer.ask(ADMIN, code, {"globalWhiteAddrs": "127.0.0.1"})).code == 0
        assert (await peer.ask(None, RequestCode.GET_MAX_OFFSET, maximum)).code == 0
        assert is_denied(await peer.ask(None, code, {"globalWhiteAddrs": "*"}))
        assert is_denied(await peer.ask(None, RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG))
        bad = await peer.ask(ADMIN, code, {"globalWhiteAddrs": "10.0.0.1", "aclFileFullPath": "/etc/passwd.yml"})
        assert (bad.code, bad.remark) == (211, "The globalWhiteAddresses[10.0.0.1] has been updated failed.")
        assert (await peer.ask(ADMIN, code, {"globalWhiteAddrs": ""})).code == 0
        assert is_denied(await peer.ask(None, RequestCode.GET_MAX_OFFSET, maximum))


async def test_s25_s62_secrets_come_out_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    canary = "canary-5f2e9a"
    text = f"accounts: [{{accessKey: adminKey1, secretKey: {canary}, admin: true}}]"
    admin = Credentials("adminKey1", canary)
    said = []
    with caplog.at_level(logging.DEBUG):
        async with guarded(tmp_path, text) as cluster, signed_peer(cluster.broker.port) as peer:
            for account in (admin, Credentials("adminKey1", canary + "x"), None):
                for code in (25, 26, 28, 50, 51, 52, 53, 54):
                    fields = {"accessKey": "second12", "secretKey": f"{canary}-2", "globalWhiteAddrs": "10.0.0.1"}
                    said.append(await peer.ask(account, code, fields))
                    said.append(await peer.ask(account, code, fields | {"topicPerms": "x", "secretKey": canary[:5]}))
            said.append(await peer.ask(admin, 54))
            accounts_file(tmp_path, f"accounts: [{{accessKey: {canary}, secretKey: [")
            assert cluster.broker.accounts is not None
            await asyncio.to_thread(cluster.broker.accounts.refresh)
    assert any(answer.code == 0 and b"plainAccessConfigs" in answer.body for answer in said)
    for answer in said:
        assert canary[:12].encode() not in answer.encode()
    for record in caplog.records:
        assert canary[:12] not in str(record.__dict__), record


async def test_a_broken_accounts_file_stops_the_start_with_its_line(tmp_path: Path) -> None:
    accounts_file(tmp_path, "accounts:\n- accessKey: [\n")
    config = BrokerConfig(listen_port=0, acl_enable=True, rocketmq_home=tmp_path)
    with pytest.raises(StartError, match=r"plain_acl\.yml: line 3"):
        async with BrokerController(config, MessageStoreConfig(root=tmp_path / "store", **SMALL_STORE)):
            raise AssertionError("it started")


async def test_the_status_tells_what_was_refused(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster, signed_peer(cluster.broker.port) as peer:
        await peer.ask(None, RequestCode.GET_BROKER_RUNTIME_INFO)
        table = KVTable.from_json((await peer.ask(ADMIN, RequestCode.GET_BROKER_RUNTIME_INFO)).body).table
        assert (table["aclEnable"], table["aclAccounts"], table["aclDenied"]) == ("true", "4", "1")
        assert (table["aclDeniedByReason"], table["aclUnstampedRequests"]) == ("no_account:1", "0")
