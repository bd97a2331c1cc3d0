"""Requests to one broker, a method each, that more than one kind of client makes.

The first argument is always the broker's address. A method returns what the answer means, or raises ResponseError with
the broker's code and remark. Topics and groups are plain names here; the namespace is added on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from gantrymq.client.connection.answer_fields import int_field
from gantrymq.client.connection.pull_reader import PullReader
from gantrymq.client.connection.send_codec import Outgoing, send_request, send_result
from gantrymq.client.results import PullResult, SendResult
from gantrymq.errors import RecordError
from gantrymq.message import properties as names
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.message.namespaces import NO_NAMESPACE, Namespace
from gantrymq.remoting.bodies import CheckClientRequestBody, ConsumerIdList, HeartbeatData, SubscriptionData
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import ONLY_FORWARD_FIELD, RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.failures import refused

SUCCESS = frozenset({ResponseCode.SUCCESS.value})
PULL_COMMIT_OFFSET = 1  # bits of a pull's sysFlag
PULL_SUSPEND = 2
PULL_SUBSCRIPTION = 4
PULL_READ_AGAIN = 1 << 20  # GantryMQ's own: the first message was damaged, so the broker looks at it; others ignore it


class BrokerCalls:
    """One broker request a method, over one RemotingClient."""

    def __init__(
        self, remoting: RemotingClient, *, timeout_s: float = 3.0, namespace: Namespace = NO_NAMESPACE
    ) -> None:
        self.remoting = remoting
        self.timeout_s = timeout_s
        self._namespace = namespace

    async def call(
        self,
        address: str,
        code: int,
        ext_fields: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        accept: Collection[int] = SUCCESS,
        timeout_s: float | None = None,
    ) -> RemotingCommand:
        """Invoke and return the answer; ResponseError unless its code is one of `accept`."""
        request = RemotingCommand.request(code, ext_fields, body)
        answer = await self.remoting.invoke(address, request, timeout_s=self._time(timeout_s))
        if answer.code not in accept:
            raise refused(answer, address, code)
        return answer

    def _time(self, timeout_s: float | None) -> float:
        return self.timeout_s if timeout_s is None else timeout_s

    def _whole(self, name: str) -> str:
        return self._namespace.wrap(name)

    # -- offsets ------------------------------------------------------------------------------------------------------

    async def max_offset(self, address: str, topic: str, queue_id: int) -> int:
        """The offset the queue's next message will get."""
        return await self._offset(address, RequestCode.GET_MAX_OFFSET, topic, queue_id)

    async def min_offset(self, address: str, topic: str, queue_id: int) -> int:
        """The smallest offset that can still be read."""
        return await self._offset(address, RequestCode.GET_MIN_OFFSET, topic, queue_id)

    async def search_offset(self, address: str, topic: str, queue_id: int, timestamp_ms: int) -> int:
        """The offset of the message nearest to that store time."""
        ext_fields = {"topic": self._whole(topic), "queueId": str(queue_id), "timestamp": str(timestamp_ms)}
        answer = await self.call(address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, ext_fields)
        return int_field(answer, "offset", address)

    async def _offset(self, address: str, code: RequestCode, topic: str, queue_id: int) -> int:
        answer = await self.call(address, code, {"topic": self._whole(topic), "queueId": str(queue_id)})
        return int_field(answer, "offset", address)

    async def consumer_offset(
        self, address: str, group: str, topic: str, queue_id: int, *, or_zero: bool = True
    ) -> int | None:
        """The next offset the group will consume, None when it has none there yet.

        or_zero: where it has none, brokers may answer 0 in a queue that is all young, as RocketMQ 4's always do.
        """
        ext_fields = {"consumerGroup": self._whole(group), "topic": self._whole(topic), "queueId": str(queue_id)}
        answer = await self.call(
            address,
            RequestCode.QUERY_CONSUMER_OFFSET,
            ext_fields if or_zero else ext_fields | {"setZeroIfNotFound": "false"},
            accept=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
        )
        return None if answer.code == ResponseCode.QUERY_NOT_FOUND else int_field(answer, "offset", address)

    async def update_consumer_offset(
        self, address: str, group: str, topic: str, queue_id: int, offset: int, *, only_forward: bool = False
    ) -> int:
        """Tell the broker that the group consumed everything before `offset`; return the offset that it has now.

        only_forward: a broker of GantryMQ keeps a larger one that it has. Apache's writes what it gets.
        """
        ext_fields = {"consumerGroup": self._whole(group), "topic": self._whole(topic)}
        ext_fields |= {"queueId": str(queue_id), "commitOffset": str(offset)}
        if only_forward:
            ext_fields[ONLY_FORWARD_FIELD] = "true"
        answer = await self.call(address, RequestCode.UPDATE_CONSUMER_OFFSET, ext_fields)
        return int_field(answer, "offset", address) if "offset" in answer.ext_fields else offset

    # -- being a client -----------------------------------------------------------------------------------------------

    async def heartbeat(self, address: str, heartbeat: HeartbeatData) -> str | None:
        """Register this connection's producers and consumers, or keep them registered.

        Returns the broker's remark about their groups, None when there is none.
        """
        body = whole_heartbeat(heartbeat, self._namespace).to_json()
        request = RemotingCommand.request(RequestCode.HEART_BEAT, None, body)
        connection = await self.remoting.connection(address, request, self.timeout_s)
        answer = await self.remoting.submit(connection, request, self.timeout_s)
        if answer.code != ResponseCode.SUCCESS:
            raise refused(answer, address, RequestCode.HEART_BEAT)
        connection.greeting = answer
        return answer.remark or None

    async def unregister(
        self, address: str, client_id: str, *, producer_group: str | None = None, consumer_group: str | None = None
    ) -> None:
        """Leave the groups at once; otherwise the broker would wait for the end of the heartbeats."""
        ext_fields = {"clientID": client_id}
        if producer_group is not None:
            ext_fields["producerGroup"] = self._whole(producer_group)
        if consumer_group is not None:
            ext_fields["consumerGroup"] = self._whole(consumer_group)
        await self.call(address, RequestCode.UNREGISTER_CLIENT, ext_fields)

    async def consumer_ids(self, address: str, group: str) -> list[str]:
        """The client ids that consume for the group right now."""
        answer = await self.call(address, RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": self._whole(group)})
        return ConsumerIdList.from_json(answer.body).consumer_id_list

    # -- messages -----------------------------------------------------------------------------------------------------

    async def send(
        self,
        address: str,
        broker_name: str,
        outgoing: Outgoing,
        group: str,
        queue_id: int,
        *,
        timeout_s: float | None = None,
    ) -> SendResult:
        """Store a message in a queue."""
        request = send_request(outgoing, group, queue_id)
        answer = await self.remoting.invoke(address, request, timeout_s=self._time(timeout_s))
        return send_result(answer, outgoing, MessageQueue(outgoing.topic, broker_name, queue_id), address)

    async def check_subscription(
        self, address: str, client_id: str, group: str, subscription: SubscriptionData
    ) -> None:
        """Have the broker compile an SQL condition. ResponseError when it refuses it."""
        subscription = replace(subscription, topic=self._whole(subscription.topic))
        body = CheckClientRequestBody(client_id, self._whole(group), subscription).to_json()
        await self.call(address, RequestCode.CHECK_CLIENT_CONFIG, None, body)

    async def send_back(
        self,
        address: str,
        group: str,
        message: MessageExt,
        *,
        topic: str,
        delay_level: int = 0,
        max_reconsume_times: int = 16,
        timeout_s: float = 5.0,
    ) -> None:
        """Have the broker deliver the message to the group again, later. delay_level 0: the broker decides."""
        ext_fields = {
            "offset": str(message.physical_offset),
            "group": self._whole(group),
            "delayLevel": str(delay_level),
            "originMsgId": message.msg_id,
            "originTopic": self._whole(topic),
            "unitMode": "false",
            "maxReconsumeTimes": str(max_reconsume_times),
        }
        for field, name in (("consumeError", names.CONSUME_ERROR), ("consumeErrorText", names.CONSUME_ERROR_TEXT)):
            if name in message.properties:
                ext_fields[field] = message.properties[name]
        await self.call(address, RequestCode.CONSUMER_SEND_MSG_BACK, ext_fields, timeout_s=timeout_s)

    async def pull(
        self,
        address: str,
        group: str,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        broker_name: str = "",
        max_messages: int = 32,
        commit_offset: int | None = None,
        suspend_s: float = 0.0,
        subscription: str | None = None,
        sub_version: int = 0,
        expression_type: str = SubscriptionData.TAG,
        timeout_s: float = 30.0,
        take: Callable[[PullResult], None] | None = None,
    ) -> PullResult:
        """Read from a queue. suspend_s: how long the broker may wait for a message; subscription: instead of the one in
        the group's heartbeat; commit_offset: the group's progress, for the broker to keep. take: is given the result
        before it is returned, as soon as its bytes are there if that is no long work.

        A message that is damaged, and damaged again when it is read alone, is skipped: it is `lost` in the result.
        """
        queue = MessageQueue(topic, broker_name, queue_id)
        ext_fields = {
            "consumerGroup": self._whole(group),
            "topic": self._whole(topic),
            "queueId": str(queue_id),
            "queueOffset": str(offset),
            "maxMsgNums": str(max_messages),
            "sysFlag": "",
            "commitOffset": str(commit_offset or 0),
            "suspendTimeoutMillis": str(int(suspend_s * 1000)),
            "subVersion": str(sub_version),
            "expressionType": expression_type,
        }
        if subscription is not None:
            ext_fields["subscription"] = subscription
        sys_flag = PULL_SUBSCRIPTION if subscription is not None else 0
        first = (PULL_COMMIT_OFFSET if commit_offset is not None else 0) | (PULL_SUSPEND if suspend_s else 0)
        ext_fields["sysFlag"] = str(sys_flag | first)
        try:
            reader = PullReader(address, queue, offset, self._namespace, take)
            return await self._pulled(reader, address, ext_fields, timeout_s)
        except RecordError:  # damaged, or half written when it was read
            reader = PullReader(address, queue, offset, self._namespace, take, is_second=True)
            ext_fields |= {"sysFlag": str(sys_flag | PULL_READ_AGAIN), "maxMsgNums": "1"}
            return await self._pulled(reader, address, ext_fields, timeout_s)

    async def _pulled(
        self, reader: PullReader, address: str, ext_fields: dict[str, str], timeout_s: float
    ) -> PullResult:
        request = RemotingCommand.request(RequestCode.PULL_MESSAGE, dict(ext_fields))
        await self.remoting.invoke_for(reader, address, request, timeout_s=timeout_s)
        return await reader.result()


def whole_heartbeat(heartbeat: HeartbeatData, namespace: Namespace) -> HeartbeatData:
    """The heartbeat with the names that brokers know."""
    if not namespace:
        return heartbeat
    producers = [replace(each, group_name=namespace.wrap(each.group_name)) for each in heartbeat.producer_data_set]
    consumers = []
    for each in heartbeat.consumer_data_set:
        wanted = [replace(data, topic=namespace.wrap(data.topic)) for data in each.subscription_data_set]
        consumers.append(replace(each, group_name=namespace.wrap(each.group_name), subscription_data_set=wanted))
    return HeartbeatData(heartbeat.client_id, producers, consumers)
