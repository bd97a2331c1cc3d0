"""`aclRequireStamp=true`, as docs/security.md has it: who is refused, and who goes on."""

from __future__ import annotations

from pathlib import Path

from gantrymq import AdminClient, Credentials, Message, Producer
from gantrymq.remoting.codes import RequestCode
from tests.appliance.acl.cluster import is_denied, send_fields, signed_peer
from tests.appliance_process import PROPERTIES, RunningAppliance

ACCOUNTS = """\
accounts:
- {accessKey: sdk-client, secretKey: choose-a-long-one, admin: true}
- {accessKey: java-client, secretKey: choose-a-long-one, topicPerms: [Orders=PUB], requireStamp: false}
"""
KEY = {"namespace": "N", "key": "K", "value": "V"}


def required(data: Path) -> None:
    """A data folder whose operator said so in both files."""
    broker = "".join(f"{key}={value}\n" for key, value in PROPERTIES.items())
    for name, text in {
        "accounts/conf/plain_acl.yml": ACCOUNTS,
        "brokers/broker-a/broker.properties": broker + "aclRequireStamp=true\n",
        "namesrv/namesrv.properties": "aclRequireStamp=true\n",
    }.items():
        path = data / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o600)


async def test_only_what_can_stamp_goes_on(tmp_path: Path) -> None:
    """S38: broker and name server refuse what could be sent again, but of an account that may."""
    required(tmp_path / "data")
    plain = Credentials("sdk-client", "choose-a-long-one", stamped=False)
    with RunningAppliance(tmp_path / "data", "--accounts") as gantry:
        sdk = Credentials("sdk-client", "choose-a-long-one")
        async with Producer(gantry.namesrv, group="pg", credentials=sdk) as producer:
            await producer.send(Message("Orders", b"stamped"))
        async with AdminClient(gantry.namesrv, credentials=sdk) as admin:
            assert (await admin.calls.call(gantry.namesrv, RequestCode.PUT_KV_CONFIG, dict(KEY))).code == 0
            assert set((await admin.cluster.info()).broker_addr_table) == {"broker-a"}, "brokers sign with stamps"
            figures = await admin.brokers.runtime_info(gantry.broker)
            assert figures["aclUnstampedRequests"] == "0"
        for address, code, fields in (
            (gantry.broker, RequestCode.SEND_MESSAGE_V2, send_fields("Orders")),
            (gantry.namesrv, RequestCode.PUT_KV_CONFIG, KEY),
        ):
            async with signed_peer(int(address.rpartition(":")[2])) as peer:
                answer = await peer.ask(plain, code, fields, b"body")
                assert is_denied(answer) and "stamped requests only" in (answer.remark or "")
        java = Credentials("java-client", "choose-a-long-one", stamped=False)
        async with signed_peer(int(gantry.broker.rpartition(":")[2])) as peer:
            assert (await peer.ask(java, RequestCode.SEND_MESSAGE_V2, send_fields("Orders"), b"body")).code == 0
    log = (tmp_path / "data" / "logs" / "broker-a.log").read_text()
    assert "reason=no_stamp" in log
