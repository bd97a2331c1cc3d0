"""Requests that are passed on to consumers."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantrymq.message.record import decode_record
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.processors.tool import Tool, tool_at
from tests.appliance.peer import Peer


async def asked(tool: Tool, consumer: Peer, code: int, fields: dict[str, str], answer: bytes) -> RemotingCommand:
    """Ask the broker something it passes on; the consumer answers with `answer` and remark "said so"."""
    request = RemotingCommand.request(code, fields)
    tool.peer.write(request.encode())
    push = await consumer.read()
    consumer.write(push.reply(0, "said so", body=answer).encode())
    response = await tool.peer.read()
    assert response.opaque == request.opaque
    return response


async def test_the_offsets_consumers_hold_are_gathered(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, tool.consumer("G", "T") as consumer:
        held = b'{"consumerTable":{},"messageQueueTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:5}}'
        fields = {"topic": "T", "group": "G", "clientAddr": ""}
        answer = await asked(tool, consumer, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields, held)
        assert answer.body == (
            b'{"consumerTable":{"10.0.0.1@c":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:5}},'
            b'"messageQueueTable":{}}'
        )
        nobody = await tool.ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields | {"group": "none"})
        assert nobody.code == ResponseCode.SYSTEM_ERROR


async def test_a_consumers_own_words_are_relayed_unread(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, tool.consumer("G", "T") as consumer:
        fields = {"consumerGroup": "G", "clientId": "10.0.0.1@c", "jstackEnable": "false"}
        odd = b'{"mqTable":{{"topic":"T"}:{}}, "jstack":"x"}'
        answer = await asked(tool, consumer, RequestCode.GET_CONSUMER_RUNNING_INFO, fields, odd)
        assert (answer.code, answer.remark, answer.body) == (0, "said so", odd)


async def test_a_stored_message_is_consumed_directly(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, tool.consumer("G", "T") as consumer:
        await tool.create_topic("T")
        sent = await tool.send("T", b"again")
        fields = {"consumerGroup": "G", "clientId": "10.0.0.1@c", "msgId": sent.ext_fields["msgId"]}
        request = RemotingCommand.request(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields)
        tool.peer.write(request.encode())
        push = await consumer.read()
        assert push.ext_fields == fields | {"brokerName": "broker-a"}
        assert decode_record(push.body).body == b"again"
        consumer.write(push.reply(body=b'{"consumeResult":"CR_SUCCESS"}').encode())
        assert (await tool.peer.read()).body == b'{"consumeResult":"CR_SUCCESS"}'


async def test_a_relay_without_a_fit_consumer_fails_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.broker.processors.client_relay.RELAY_TIMEOUT_S", 0.05)
    async with tool_at(tmp_path) as tool:
        fields = {"consumerGroup": "G", "clientId": "10.0.0.1@c"}
        offline = await tool.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
        assert (offline.code, offline.remark) == (1, "The Consumer <G> <10.0.0.1@c> not online")
        async with tool.consumer("G", "T", version=60):
            old = await tool.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
            assert "too low to finish" in (old.remark or "")
        async with tool.consumer("G", "T"):
            silent = await tool.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
            assert silent.code == ResponseCode.CONSUME_MSG_TIMEOUT
        illegal, unknown = ResponseCode.INVALID_PARAMETER, ResponseCode.SYSTEM_ERROR
        for message_id, code in (("", illegal), ("xyz", illegal), ("7F00000100006D090000000000FFFFFF", unknown)):
            bad = await tool.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields | {"msgId": message_id})
            assert bad.code == code
            assert bad.remark != "system error"


async def test_a_relayed_answer_keeps_its_speaker_and_his_refusal(tmp_path: Path) -> None:
    async with tool_at(tmp_path) as tool, tool.consumer("G", "T") as consumer:
        fields = {"consumerGroup": "G", "clientId": "10.0.0.1@c"}
        request = RemotingCommand.request(RequestCode.GET_CONSUMER_RUNNING_INFO, fields)
        tool.peer.write(request.encode())
        refusal = (await consumer.read()).reply(1, "not in this process", {"why": "so"})
        refusal.language, refusal.version = "GO", 317
        consumer.write(refusal.encode())
        answer = await tool.peer.read()
        assert (answer.code, answer.remark, answer.ext_fields) == (1, "not in this process", {"why": "so"})
        assert (answer.language, answer.version, answer.opaque) == ("GO", 317, request.opaque)


async def test_clients_too_old_to_tell_their_offsets_are_not_asked(tmp_path: Path) -> None:
    fields = {"topic": "T", "group": "G", "clientAddr": ""}
    async with tool_at(tmp_path) as tool, tool.consumer("G", "T", version=27):
        answer = await tool.ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields)
        assert (answer.code, answer.remark) == (1, "the client does not support this feature. version=27")


async def test_offsets_of_the_wanted_client_only_and_of_none_that_refuses(tmp_path: Path) -> None:
    held = b'{"messageQueueTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:5}}'
    fields = {"topic": "T", "group": "G", "clientAddr": "10.0.0.1@c"}
    async with (
        tool_at(tmp_path) as tool,
        tool.consumer("G", "T") as one,
        tool.consumer("G", "T", client_id="10.0.0.2@c"),
    ):
        assert (await one.read()).code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
        answer = await asked(tool, one, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields, held)
        assert answer.body.startswith(b'{"consumerTable":{"10.0.0.1@c":{{') and b"10.0.0.2@c" not in answer.body
    async with tool_at(tmp_path / "other") as tool, tool.consumer("G", "T") as one:
        request = RemotingCommand.request(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, fields)
        tool.peer.write(request.encode())
        one.write((await one.read()).reply(1, "no", body=held).encode())
        assert (await tool.peer.read()).body == b'{"consumerTable":{},"messageQueueTable":{}}'
