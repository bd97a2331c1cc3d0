"""Handlers of the requests that brokers send to a running push consumer, mostly for tools."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from gantrymq.client.connection.received_messages import read_messages
from gantrymq.client.consume.assignment import Assignment
from gantrymq.client.consume.failed_messages import restore_topic
from gantrymq.client.consume.listener_calls import ListenerCalls
from gantrymq.client.consume.options import PushConsumerOptions
from gantrymq.client.results import ConsumeResult
from gantrymq.message.namespaces import Namespace
from gantrymq.message.topics import retry_topic
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import ResetOffsetBody
from gantrymq.remoting.client import RequestHandler
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand

logger: logging.Logger = logging.getLogger(__name__)

UNKNOWN_GROUP = "the consumer group does not exist in this client"


class ConsumerRequestHandlers:
    """Answers for one consumer. `running_info` makes the body of 307, with stacks when told so."""

    def __init__(
        self,
        options: PushConsumerOptions,
        namespace: Namespace,
        assignment: Assignment,
        calls: ListenerCalls,
        running_info: Callable[[bool], bytes],
    ) -> None:
        self._group = namespace.wrap(options.group)  # as brokers name it
        self._retry_topic = retry_topic(options.group)
        self._namespace = namespace
        self._assignment = assignment
        self._calls = calls
        self._running_info = running_info
        self._is_ordered = options.ordered

    def handlers(self) -> dict[int, RequestHandler]:
        """The handlers by request code."""
        return {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._ids_changed,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self._reset_offset,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._consumer_status,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._tell_running_info,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self._consume_directly,
        }

    async def _ids_changed(self, address: str, request: RemotingCommand) -> None:
        if request.ext_fields.get("consumerGroup") == self._group:
            self._assignment.rebalance_wanted.set()

    async def _reset_offset(self, address: str, request: RemotingCommand) -> None:
        if request.ext_fields.get("group") == self._group:
            table = ResetOffsetBody.from_json(request.body).offset_table
            offsets = {self._namespace.unwrap_queue(queue): offset for queue, offset in table.items()}
            logger.info(
                "offsets reset (group=%s, queues=%s)",
                self._group,
                len(offsets),
                extra={"event": "offsets_reset", "group": self._group, "queues": len(offsets)},
            )
            await self._assignment.restart(offsets)

    async def _consumer_status(self, address: str, request: RemotingCommand) -> RemotingCommand:
        topic = self._namespace.unwrap(request.ext_fields.get("topic", ""))
        held = [(queue, messages) for queue, messages in self._assignment.held.items() if queue.topic == topic]
        offsets = {self._namespace.wrap_queue(queue): messages.commit_offset for queue, messages in held}
        return request.reply(body=fastjson.dumps({"messageQueueTable": offsets}))

    async def _tell_running_info(self, address: str, request: RemotingCommand) -> RemotingCommand:
        if request.ext_fields.get("consumerGroup") != self._group:
            return request.reply(ResponseCode.SYSTEM_ERROR, UNKNOWN_GROUP)
        return request.reply(body=self._running_info(request.ext_fields.get("jstackEnable") == "true"))

    async def _consume_directly(self, address: str, request: RemotingCommand) -> RemotingCommand:
        """A tool gives one message to the listener, outside of any queue."""
        if request.ext_fields.get("consumerGroup") != self._group:
            return request.reply(ResponseCode.SYSTEM_ERROR, UNKNOWN_GROUP)
        messages = await read_messages(request.body, request.ext_fields.get("brokerName", ""))
        self._namespace.unwrap_topics(messages)
        for message in messages:
            restore_topic(message, self._retry_topic, self._namespace)
        started = time.monotonic()
        remark = None
        try:
            result = await self._calls.call(messages)
            outcome = "CR_SUCCESS" if result is ConsumeResult.SUCCESS else "CR_LATER"
        except Exception as exc:  # the listener's own; the tool wants to see it
            outcome, remark = "CR_THROW_EXCEPTION", repr(exc)
        answer = {
            "autoCommit": True,
            "consumeResult": outcome,
            "order": self._is_ordered,
            "spentTimeMills": int((time.monotonic() - started) * 1000),
        }
        return request.reply(body=fastjson.dumps(answer | ({"remark": remark} if remark else {})))
