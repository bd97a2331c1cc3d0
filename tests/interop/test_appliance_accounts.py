"""`gantry up --accounts` and RocketMQ's own command line: it needs an account here as everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.appliance_process import RunningAppliance
from tests.interop.mqadmin.session import TOOLS_OF_THE_PEER, MqAdminSession
from tests.interop.mqadmin.tool import MqAdmin

OPERATOR = "operator-1", "choose-a-long-one"
# Each changes a route or a key, and what (an expression) it prints when it did.
COMMANDS = {
    "updateKvConfig -s Mine -k key -v value": "create or update kv config to namespace success",
    "deleteKvConfig -s Mine -k key": "delete kv config from namespace success",
    "wipeWritePerm -b broker-b": r"wipe write perm of broker\[broker-b\] in name server\[.*\] OK",
    "addWritePerm -b broker-b": r"add write perm of broker\[broker-b\] in name server\[.*\] OK",
    "updateTopic -c DefaultCluster -t FromMqadmin -r 1 -w 1": "create topic to",
    "deleteTopic -c DefaultCluster -t FromMqadmin": r"delete topic \[FromMqadmin\] from NameServer success",
}


@pytest.fixture(scope="module")
def gantry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAppliance]:
    """Two brokers; an operator's account stands in the file from the start."""
    data = tmp_path_factory.mktemp("mqadmin-accounts") / "data"
    accounts = data / "accounts" / "conf" / "plain_acl.yml"
    accounts.parent.mkdir(parents=True)
    accounts.write_text("accounts:\n- {{accessKey: {}, secretKey: {}, admin: true}}\n".format(*OPERATOR))
    accounts.chmod(0o600)
    with RunningAppliance(data, "--accounts", "--brokers", "2") as running:
        yield running


def test_mqadmin_with_an_account_works_with_two_brokers_and_without_one_changes_nothing(
    gantry: RunningAppliance, mqadmin: MqAdmin, tmp_path: Path
) -> None:
    with MqAdminSession(tmp_path, TOOLS_OF_THE_PEER) as session:

        def printed(command: str) -> str:
            return session.run(*command.split(), "-n", gantry.namesrv).text

        for signs in (None, ("gantry-appliance", "guessed-secret"), (OPERATOR[0], "guessed-secret")):
            if signs:
                session.sign_with(*signs)
            for command, success in COMMANDS.items():
                text = printed(command)
                assert "AclException" in text and not re.search(success, text), (signs, command, text)
        session.sign_with(*OPERATOR)
        brokers = printed("clusterList")
        assert "broker-a" in brokers and "broker-b" in brokers
        for command, success in COMMANDS.items():
            text = printed(command)
            assert re.search(success, text), (command, text)
