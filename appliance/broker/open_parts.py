"""What a broker has once its port is known: its address is part of every message id, and of what name servers hear."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.broker.cluster.outer_api import BrokerOuterApi
from appliance.broker.delivery.answers import SendAnswers
from appliance.broker.delivery.offset_moved import OffsetMovedEvents
from appliance.broker.replication.follower import Follower
from appliance.broker.topics.topic_sharing import TopicSharing
from appliance.broker.transaction.check import TransactionCheckService
from appliance.broker.transaction.service import TransactionService


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenParts:
    """The parts that bear or tell the address. address: "host:port"; store_host: the same, packed as in records.

    follower: a slave's, None on a master.
    """

    port: int
    address: str
    store_host: bytes
    send_answers: SendAnswers
    offset_moved: OffsetMovedEvents
    transactions: TransactionService
    transaction_checks: TransactionCheckService
    outer_api: BrokerOuterApi
    topic_sharing: TopicSharing
    follower: Follower | None
