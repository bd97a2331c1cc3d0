"""What tools ask a running consumer, passed on by its broker: its state and stacks (307), a message to consume (309).

The client is asked on its telemetry stream; what it doesn't know is left out.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from appliance.proxy.brokers import BrokerSession
from appliance.proxy.callers import whole_name
from appliance.proxy.clients import Client, ClientBook
from appliance.proxy.messages.outgoing import client_message
from appliance.proxy.messages.statuses import Refused, ok
from appliance.proxy.protocol.definition_pb2 import Code, Resource
from appliance.proxy.protocol.service_pb2 import (
    PrintThreadStackTraceCommand,
    TelemetryCommand,
    VerifyMessageCommand,
)
from appliance.proxy.reporting import subscriptions_of
from gantrymq.client.connection.received_messages import read_messages
from gantrymq.errors import RecordError
from gantrymq.message.properties import RETRY_TOPIC
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand

ANSWER_S = 8.0  # brokers wait 10 s
OUTCOMES = {Code.OK: "CR_SUCCESS", Code.FAILED_TO_CONSUME_MESSAGE: "CR_LATER"}

Ask = Callable[[Client, Callable[[str], TelemetryCommand], float], Awaitable[TelemetryCommand]]


class Questions:
    """The handlers. ask: a client, by a command with a nonce."""

    def __init__(self, clients: ClientBook, ask: Ask) -> None:
        self._clients = clients
        self._ask = ask

    async def running_info(self, session: BrokerSession, address: str, request: RemotingCommand) -> RemotingCommand:
        """307: what is known of the consumer, with the stacks of its threads if they are wanted."""
        try:
            client = self._asked(session, request)
            info = {
                "mqTable": {},
                "properties": {"PROP_CONSUME_TYPE": "CONSUME_POP", "PROP_CLIENT_VERSION": client.version},
                "statusTable": {},
                "subscriptionSet": [each.to_dict() for each in subscriptions_of(client)],
            }
            if request.ext_fields.get("jstackEnable") == "true":
                answer = await self._ask(client, _print_stacks, ANSWER_S)
                info["jstack"] = answer.thread_stack_trace.thread_stack_trace
        except Refused as exc:
            return request.reply(ResponseCode.SYSTEM_ERROR, str(exc))
        return request.reply(body=fastjson.dumps(info))

    async def consume(self, session: BrokerSession, address: str, request: RemotingCommand) -> RemotingCommand:
        """309: the consumer's listener gets one message now, outside of any queue."""
        started = time.monotonic()
        try:
            client = self._asked(session, request)
            (message,) = await read_messages(request.body)
            topic = message.properties.get(RETRY_TOPIC) or message.topic
            wanted = (entry.topic for entry in client.settings.subscription.subscriptions)
            resource = next((each for each in wanted if whole_name(each) == topic), Resource(name=topic))
            shown = client_message(message, resource)

            def verify(nonce: str) -> TelemetryCommand:
                return TelemetryCommand(
                    status=ok(), verify_message_command=VerifyMessageCommand(nonce=nonce, message=shown)
                )

            answer = await self._ask(client, verify, ANSWER_S)
        except (Refused, RecordError, ValueError) as exc:
            return request.reply(ResponseCode.SYSTEM_ERROR, str(exc))
        result = {
            "autoCommit": True,
            "consumeResult": OUTCOMES.get(answer.status.code, "CR_THROW_EXCEPTION"),
            "order": client.answer is not None and client.answer.subscription.fifo,
            "spentTimeMills": int((time.monotonic() - started) * 1000),
        }
        return request.reply(
            body=fastjson.dumps(result | ({"remark": answer.status.message} if answer.status.message else {}))
        )

    def _asked(self, session: BrokerSession, request: RemotingCommand) -> Client:
        """Refused unless it is a consumer of that group, and of the session's account."""
        group, client_id = (request.ext_fields.get(name, "") for name in ("consumerGroup", "clientId"))
        client = self._clients.get(client_id)
        if client is None or not group or client.group != group or client.access_key != session.access_key:
            raise Refused(Code.BAD_REQUEST, f"consumer {client_id} of group {group} is not connected to this proxy")
        return client


def _print_stacks(nonce: str) -> TelemetryCommand:
    return TelemetryCommand(status=ok(), print_thread_stack_trace_command=PrintThreadStackTraceCommand(nonce=nonce))
