"""A topic that a send creates here is created on the other brokers of the cluster too, at once.

RocketMQ creates it on the broker that the send happened to reach, so that the others get no messages until an operator
creates it there by hand. Here the creating broker asks a name server who else is in its cluster and lacks the topic,
and tells each with an ordinary 17 (UPDATE_AND_CREATE_TOPIC) that says where the topic comes from: a GantryMQ broker
that has it leaves it alone, one that creates no topics refuses. Nothing is passed on by those who are told.

What could not be shared is looked at again each minute, so that the number of such topics is true now.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from appliance.broker.access.access_control import outgoing_client
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import BodyError, GantryError, ResponseError
from gantrymq.message.topics import is_system_topic
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.bodies import ClusterInfo, TopicRouteData
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.timeouts import wait_for_event

logger = logging.getLogger(__name__)

CREATED_ON_SEND = "createdOnSend"  # our own ext field in 17: "true" when no operator asked for the topic
WAITING_MAX = 1000  # topics; more at a time are created where they are sent to, as in RocketMQ
GATHER_S = 0.05
RETRY_S = (0.5, 1.0, 2.0, 5.0, 10.0)
LOOK_AGAIN_S = 60.0
TIMEOUT_S = 3.0
HOPELESS = frozenset(
    {
        ResponseCode.NO_PERMISSION,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        ResponseCode.INVALID_PARAMETER,
    }
)


class TopicSharing:
    """`created` is for who creates topics on sends; run() tells the others. One topic at a time."""

    def __init__(
        self, config: BrokerConfig, name_servers: Callable[[], Sequence[str]], has_topic: Callable[[str], bool]
    ) -> None:
        """name_servers: their addresses now, in the order in which they are asked. has_topic: not deleted meanwhile."""
        self._config = config
        self._name_servers = name_servers
        self._has_topic = has_topic
        self._waiting: deque[TopicConfig] = deque()
        self._wake = asyncio.Event()
        self._client = outgoing_client(config)
        self._failed: dict[str, TopicConfig] = {}
        self.shared = 0  # topics created on other brokers since the start

    @property
    def failed(self) -> int:
        """Topics that some other broker of the cluster lacks, at the last look."""
        return len(self._failed)

    def created(self, topic: TopicConfig) -> None:
        """A send has created this topic. Costs next to nothing."""
        if not self._config.share_created_topics_enable:
            return
        if len(self._waiting) >= WAITING_MAX:
            self._note_failed(topic)
            return
        self._waiting.append(topic)
        self._wake.set()

    async def run(self) -> None:
        """Tell the others until cancelled."""
        try:
            while True:
                if not await wait_for_event(self._wake, LOOK_AGAIN_S if self._failed else None):
                    await self._look_again()
                    continue
                self._wake.clear()
                await asyncio.sleep(GATHER_S)
                while self._waiting:
                    await self._share(self._waiting.popleft())
        finally:
            await self._client.close()

    async def _look_again(self) -> None:
        """Try what could not be shared once more: brokers come back, operators create topics, topics are deleted."""
        for name, topic in list(self._failed.items()):
            if self._has_topic(name):
                try:
                    await self._tell_others(topic)
                except (GantryError, BodyError):
                    continue
            del self._failed[name]

    def _note_failed(self, topic: TopicConfig) -> None:
        if len(self._failed) < WAITING_MAX:
            self._failed[topic.topic_name] = topic

    async def _share(self, topic: TopicConfig) -> None:
        """Have the others create one topic; who does not answer is asked again, a few times."""
        for delay_s in (*RETRY_S, None):
            try:
                await self._tell_others(topic)
                return
            except (GantryError, BodyError) as exc:
                why = exc
                if isinstance(exc, ResponseError) and is_system_topic(topic.topic_name):
                    return  # Apache's brokers let no request create those: each makes its own when it is sent to
                if delay_s is None or (isinstance(exc, ResponseError) and exc.code in HOPELESS):
                    break
            if len(self._waiting) < WAITING_MAX // 2:
                await asyncio.sleep(delay_s)
        self._note_failed(topic)
        logger.warning(
            "topic not created on all brokers of the cluster",
            extra={"event": "topic_not_shared", "topic": topic.topic_name, "why": str(why)},
        )

    async def _tell_others(self, topic: TopicConfig) -> None:
        others = await self._others_without(topic.topic_name)
        outcomes = await asyncio.gather(*(self._tell(address, topic) for address in others), return_exceptions=True)
        told = [address for address, outcome in zip(others, outcomes, strict=True) if outcome is None]
        self.shared += len(told)
        if told:
            logger.info(
                "topic created on other brokers",
                extra={"event": "topic_shared", "topic": topic.topic_name, "brokers": ",".join(told)},
            )
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def _others_without(self, topic: str) -> list[str]:
        """The addresses of the cluster's other masters that don't have the topic, as a name server knows it."""
        config = self._config
        known = ClusterInfo.from_json((await self._ask(RequestCode.GET_BROKER_CLUSTER_INFO, {})).body)
        members = set(known.cluster_addr_table.get(config.cluster_name, ())) - {config.broker_name}
        if members:
            route = await self._ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
            if route.code == ResponseCode.SUCCESS:
                members -= {data.broker_name for data in TopicRouteData.from_json(route.body).queue_datas}
        masters = (known.broker_addr_table[name].master_address for name in members if name in known.broker_addr_table)
        return sorted(address for address in masters if address is not None)

    async def _ask(self, code: int, ext_fields: dict[str, str]) -> RemotingCommand:
        """Ask the first name server that answers. Raises the last one's error."""
        error: GantryError = GantryError("no name server is set")
        for address in self._name_servers():
            try:
                return await self._client.invoke(
                    address, RemotingCommand.request(code, ext_fields), timeout_s=TIMEOUT_S
                )
            except GantryError as exc:
                error = exc
        raise error

    async def _tell(self, address: str, topic: TopicConfig) -> None:
        request = RemotingCommand.request(
            RequestCode.UPDATE_AND_CREATE_TOPIC,
            {
                "topic": topic.topic_name,
                "defaultTopic": "TBW102",
                "readQueueNums": str(topic.read_queue_nums),
                "writeQueueNums": str(topic.write_queue_nums),
                "perm": str(topic.perm),
                "topicFilterType": topic.topic_filter_type,
                "topicSysFlag": str(topic.topic_sys_flag),
                "order": "false",
                CREATED_ON_SEND: "true",
            },
        )
        answer = await self._client.invoke(address, request, timeout_s=TIMEOUT_S)
        if answer.code != ResponseCode.SUCCESS:
            raise ResponseError(answer.code, answer.remark, address=address)
