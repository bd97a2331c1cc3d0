"""What a command prints acts on no terminal, whatever strangers put into names, properties and answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.bench import rpc
from appliance.cli.terminal import shown
from gantrymq import Message, SyncProducer
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.peer import registration
from tests.appliance_process import ROOT
from tests.harness import LocalCluster
from tests.waiting import WITHIN_S

NASTY = "\x1b]0;title\x07\x1b[31mred\r\u202e\u009b31m"
ACTS = set("\x1b\x07\r\u202e\u009b\x00")


def printed(*arguments: object) -> str:
    """What the command wrote, errors too."""
    command = [sys.executable, "-m", "appliance", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=WITHIN_S, check=False)
    return (done.stdout + done.stderr).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain \u3000 Zoë 数据\n\tx", "plain \u3000 Zoë 数据\n\tx"),
        ("\x1b[31m", "\\u001b[31m"),
        ("a\r\nb\x00", "a\\u000d\nb\\u0000"),
        ("\u202eabc\u2028", "\\u202eabc\\u2028"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_would_act_is_written_out_and_the_rest_stays(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_messages_act_on_no_terminal(tmp_path: Path) -> None:
    with LocalCluster(tmp_path) as cluster:
        with SyncProducer(cluster.namesrv_address) as producer:
            message = Message(
                "Inert", NASTY.encode(), tags="t", keys=[NASTY.replace("\r", "")], properties={"p": NASTY}
            )
            sent = producer.send(message)
        where = ("-n", cluster.namesrv_address)
        for command in (("messages", "show", "Inert", sent.msg_id), ("messages", "print", "Inert"), ("topics", "list")):
            for options in ((), ("--json",)):
                text = printed("admin", *command, *where, *options)
                assert text and not ACTS & set(text), (command, options, text)
        found = json.loads(printed("admin", "messages", "show", "Inert", sent.msg_id, *where, "--json"))
        assert json.dumps(NASTY) in json.dumps(found), "a program gets the property as it is"
    for what in ("records", "config"):
        for options in ((), ("--json",)):
            text = printed("store", "dump", cluster.store, what, *options)
            assert text and not ACTS & set(text), (what, options, text)


def test_what_a_server_says_acts_on_no_terminal(tmp_path: Path) -> None:
    """An address that was registered by somebody stands in the sentence that says that nobody answers there."""
    with LocalCluster(tmp_path) as cluster:
        header, body = registration(f"127.0.0.1:1{NASTY}", name="rogue", cluster="C")
        with rpc.connect(cluster.namesrv_address) as connection:
            answer = rpc.call(connection, RemotingCommand.request(RequestCode.REGISTER_BROKER, header, body))
            assert answer.code == 29 and "brokerAddr" in (answer.remark or "")
        text = printed("admin", "topics", "show", f"no{NASTY}", "-n", cluster.namesrv_address)
        assert "\\u001b" in text and not ACTS & set(text), text
