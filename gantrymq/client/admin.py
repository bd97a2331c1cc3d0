"""AdminClient: what operators and the dashboard ask of name servers and brokers.

Calls to the name server ask whichever answers; deletions go to all of them. Calls to a broker take its address first,
as cluster_info or topic_route gave it. All raise ConnectError, RequestTimeout or ResponseError (code and remark of the
peer).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from gantrymq.client.calls import BrokerCalls, int_field
from gantrymq.client.incoming import read_messages
from gantrymq.client.name_servers import NameServers
from gantrymq.client.results import SendResult
from gantrymq.client.sending import pack
from gantrymq.errors import RecordError, ResponseError, RouteNotFound
from gantrymq.message.model import Message, MessageExt
from gantrymq.remoting.bodies import (
    BrokerStatsData,
    ClusterInfo,
    ConsumerConnection,
    ConsumeStats,
    GroupList,
    KVTable,
    ProducerConnection,
    ResetOffsetBody,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
    TopicConfig,
    TopicConfigSerializeWrapper,
    TopicList,
    TopicRouteData,
    TopicStatsTable,
)
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import JSON, RemotingCommand
from gantrymq.remoting.signature import Credentials
from gantrymq.remoting.tls import TlsConfig

TOOLS_GROUP = "TOOLS_CONSUMER"  # the group every broker knows, for reading without belonging to a group
ADMIN_PRODUCER_GROUP = "TOOLS_PRODUCER"
LONG_MAX = (1 << 63) - 1


class AdminClient(BrokerCalls):
    """Administers a cluster: `async with AdminClient("host:port;host:port") as admin`."""

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        timeout_s: float = 5.0,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | TlsConfig | None = None,
        serialize_type: int = JSON,
    ) -> None:
        super().__init__(
            RemotingClient(credentials=credentials, tls=tls, serialize_type=serialize_type), timeout_s=timeout_s
        )
        self._name_servers = NameServers(self.remoting, name_servers, timeout_s=timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self.remoting.close()

    # -- name server --------------------------------------------------------------------------------------------------

    @property
    def name_servers(self) -> list[str]:
        """The addresses this client was given."""
        return list(self._name_servers.addresses)

    async def cluster_info(self) -> ClusterInfo:
        """Clusters, their brokers, and the brokers' addresses."""
        return ClusterInfo.from_json((await self._ask(RequestCode.GET_BROKER_CLUSTER_INFO)).body)

    async def topic_list(self) -> list[str]:
        """Every topic any broker registered, system and retry topics included."""
        answer = await self._ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        return TopicList.from_json(answer.body).topic_list

    async def topic_route(self, topic: str) -> TopicRouteData:
        """Where the topic lives. RouteNotFound when no broker has it."""
        answer = await self._name_servers.invoke(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            raise RouteNotFound(topic)
        return TopicRouteData.from_json(accepted(answer).body)

    async def delete_topic_in_namesrv(self, topic: str) -> None:
        """Make every name server forget the topic. A broker that still has it brings it back: delete it there first."""
        for address in self._name_servers.addresses:
            await self.call(address, RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": topic})

    async def kv_config(self, namespace: str, key: str) -> str | None:
        """A value of the name server's key-value configuration, None when absent."""
        answer = await self._name_servers.invoke(RequestCode.GET_KV_CONFIG, {"namespace": namespace, "key": key})
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        return accepted(answer).ext_fields.get("value")

    async def name_server_config(self, address: str) -> dict[str, str]:
        """The settings a name server runs with, under RocketMQ's names."""
        return read_properties((await self.call(address, RequestCode.GET_NAMESRV_CONFIG)).body)

    async def _ask(self, code: int, ext_fields: dict[str, str] | None = None) -> RemotingCommand:
        return accepted(await self._name_servers.invoke(code, ext_fields))

    # -- brokers ------------------------------------------------------------------------------------------------------

    async def broker_runtime_info(self, address: str) -> dict[str, str]:
        """Runtime figures, all text, under RocketMQ's names (msgPutTotalTodayNow, putTps, commitLogDiskRatio ...)."""
        return KVTable.from_json((await self.call(address, RequestCode.GET_BROKER_RUNTIME_INFO)).body).table

    async def broker_config(self, address: str) -> dict[str, str]:
        """The settings the broker runs with, under RocketMQ's names."""
        return read_properties((await self.call(address, RequestCode.GET_BROKER_CONFIG)).body)

    async def update_broker_config(self, address: str, changes: dict[str, str]) -> None:
        """Change settings of a running broker; it keeps them."""
        body = "".join(f"{name}={value}\n" for name, value in changes.items()).encode()
        await self.call(address, RequestCode.UPDATE_BROKER_CONFIG, None, body)

    async def broker_stats(self, address: str, name: str, key: str) -> BrokerStatsData:
        """A counter such as TOPIC_PUT_NUMS / topic over minute, hour and day; ResponseError when never counted."""
        ext_fields = {"statsName": name, "statsKey": key}
        return BrokerStatsData.from_json(
            (await self.call(address, RequestCode.VIEW_BROKER_STATS_DATA, ext_fields)).body
        )

    # -- topics -------------------------------------------------------------------------------------------------------

    async def topic_configs(self, address: str) -> TopicConfigSerializeWrapper:
        """Every topic of the broker with its settings."""
        return TopicConfigSerializeWrapper.from_json((await self.call(address, RequestCode.GET_ALL_TOPIC_CONFIG)).body)

    async def create_topic(self, address: str, config: TopicConfig) -> None:
        """Create the topic on this broker, or replace its settings."""
        ext_fields = {
            "topic": config.topic_name,
            "defaultTopic": "TBW102",
            "readQueueNums": str(config.read_queue_nums),
            "writeQueueNums": str(config.write_queue_nums),
            "perm": str(config.perm),
            "topicFilterType": config.topic_filter_type,
            "topicSysFlag": str(config.topic_sys_flag),
            "order": "true" if config.order else "false",
        }
        await self.call(address, RequestCode.UPDATE_AND_CREATE_TOPIC, ext_fields)

    async def delete_topic(self, address: str, topic: str) -> None:
        """Delete the topic and its queues on this broker; see delete_topic_in_namesrv for the routes."""
        await self.call(address, RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic})

    async def topic_stats(self, address: str, topic: str) -> TopicStatsTable:
        """Smallest and next offset and last store time of each queue of the topic on this broker."""
        answer = await self.call(address, RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic})
        return TopicStatsTable.from_json(answer.body)

    async def topic_groups(self, address: str, topic: str) -> list[str]:
        """The consumer groups that subscribe to the topic or have offsets on it."""
        answer = await self.call(address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": topic})
        return GroupList.from_json(answer.body).group_list

    # -- groups -------------------------------------------------------------------------------------------------------

    async def subscription_groups(self, address: str) -> SubscriptionGroupWrapper:
        """Every consumer group of the broker with its settings."""
        answer = await self.call(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        return SubscriptionGroupWrapper.from_json(answer.body)

    async def create_subscription_group(self, address: str, config: SubscriptionGroupConfig) -> None:
        """Create the group on this broker, or replace its settings."""
        await self.call(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, config.to_json())

    async def delete_subscription_group(self, address: str, group: str, *, remove_offset: bool = False) -> None:
        """Delete the group on this broker, and its offsets if wanted."""
        ext_fields = {"groupName": group, "removeOffset": "true" if remove_offset else "false"}
        await self.call(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, ext_fields)

    async def consumer_connections(self, address: str, group: str) -> ConsumerConnection:
        """Who consumes for the group, and what. ResponseError CONSUMER_NOT_ONLINE when nobody does."""
        answer = await self.call(address, RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group})
        return ConsumerConnection.from_json(answer.body)

    async def producer_connections(self, address: str, group: str) -> ProducerConnection:
        """Who produces for the group. ResponseError when nobody does."""
        answer = await self.call(address, RequestCode.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": group})
        return ProducerConnection.from_json(answer.body)

    async def consume_stats(self, address: str, group: str, topic: str | None = None) -> ConsumeStats:
        """How far the group is in each queue of the topic, or of all its topics."""
        ext_fields = {"consumerGroup": group}
        if topic is not None:
            ext_fields["topic"] = topic
        return ConsumeStats.from_json((await self.call(address, RequestCode.GET_CONSUME_STATS, ext_fields)).body)

    async def consumer_running_info(self, address: str, group: str, client_id: str) -> bytes:
        """What a running consumer says of itself: JSON in fastjson's dialect, as the client wrote it."""
        ext_fields = {"consumerGroup": group, "clientId": client_id, "jstackEnable": "false"}
        answer = await self.call(address, RequestCode.GET_CONSUMER_RUNNING_INFO, ext_fields, timeout_s=11.0)
        return answer.body

    async def reset_offset(
        self, address: str, group: str, topic: str, timestamp_ms: int, *, force: bool = True
    ) -> ResetOffsetBody:
        """Have the running consumers start again at a time (-1: the end). CONSUMER_NOT_ONLINE when none runs."""
        ext_fields = {
            "topic": topic,
            "group": group,
            "timestamp": str(timestamp_ms),
            "isForce": "true" if force else "false",
        }
        answer = await self.call(address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, ext_fields)
        return ResetOffsetBody.from_json(answer.body)

    # -- messages -----------------------------------------------------------------------------------------------------

    async def view_message(self, address: str, offset: int) -> MessageExt:
        """The message at a commit log offset (the second half of an offset message id)."""
        answer = await self.call(address, RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(offset)})
        messages = read_messages(answer.body)
        if len(messages) != 1:
            raise RecordError(f"{address} answered with {len(messages)} messages for offset {offset}")
        return messages[0]

    async def query_message(
        self,
        address: str,
        topic: str,
        key: str,
        max_messages: int = 32,
        begin_ms: int = 0,
        end_ms: int = LONG_MAX,
        *,
        unique: bool = False,
    ) -> list[MessageExt]:
        """The messages with this key (`unique`: with this unique id) stored in a span of time, none when none."""
        ext_fields = {
            "topic": topic,
            "key": key,
            "maxNum": str(max_messages),
            "beginTimestamp": str(begin_ms),
            "endTimestamp": str(end_ms),
            "_UNIQUE_KEY_QUERY": "true" if unique else "false",
        }
        answer = await self.call(
            address,
            RequestCode.QUERY_MESSAGE,
            ext_fields,
            accept=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
        )
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return []
        found = [message for message in read_messages(answer.body) if message.topic == topic]  # the index knows hashes
        return [message for message in found if (message.msg_id == key if unique else key in message.keys)]

    async def pull_messages(
        self, address: str, topic: str, queue_id: int, offset: int, max_messages: int = 32
    ) -> tuple[list[MessageExt], int, int, int]:
        """Read a queue without being a consumer of it: messages, next offset, the queue's min and max offset."""
        result = await self.pull(
            address,
            TOOLS_GROUP,
            topic,
            queue_id,
            offset,
            max_messages=max_messages,
            subscription="*",
            timeout_s=self.timeout_s,
        )
        return result.messages, result.next_offset, result.min_offset, result.max_offset

    async def send_message(
        self, address: str, message: Message, queue_id: int = 0, *, broker_name: str = ""
    ) -> SendResult:
        """Store one message in a queue of this broker. The result names the queue's broker as `broker_name` says."""
        return await self.send(address, broker_name, pack(message), ADMIN_PRODUCER_GROUP, queue_id)

    async def consumer_offsets(self, address: str, group: str, topic: str, queue_ids: Sequence[int]) -> dict[int, int]:
        """The group's next offset in each of the queues; queues without one are left out."""
        offsets = await asyncio.gather(
            *(self.consumer_offset(address, group, topic, queue_id) for queue_id in queue_ids)
        )
        return {queue_id: offset for queue_id, offset in zip(queue_ids, offsets, strict=True) if offset is not None}

    async def earliest_store_time(self, address: str, topic: str, queue_id: int) -> int:
        """Store time (ms) of the oldest message of the queue, -1 when it is empty."""
        ext_fields = {"topic": topic, "queueId": str(queue_id)}
        answer = await self.call(address, RequestCode.GET_EARLIEST_MSG_STORETIME, ext_fields)
        return int_field(answer, "timestamp", address)


def accepted(answer: RemotingCommand) -> RemotingCommand:
    """The answer itself; ResponseError when it is not a success."""
    if answer.code != ResponseCode.SUCCESS:
        raise ResponseError(answer.code, answer.remark)
    return answer


def read_properties(body: bytes) -> dict[str, str]:
    """Java properties text, as brokers send their settings: `name=value` lines."""
    pairs = (line.partition("=") for line in body.decode(errors="replace").splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}
