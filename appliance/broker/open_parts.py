"""What a broker has once its port is known: its address is part of every message id, and of what name servers hear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from appliance.broker.cluster.outer_api import BrokerOuterApi
from appliance.broker.delivery.answers import SendAnswers
from appliance.broker.delivery.offset_moved import OffsetMovedEvents
from appliance.broker.epochs.turns import Cut
from appliance.broker.failover.candidate import Candidate
from appliance.broker.replication.follower import Follower
from appliance.broker.replication.ha_client import HaClient
from appliance.broker.replication.master_address import MasterAddress
from appliance.broker.replication.slave_synchronize import SlaveSynchronize
from appliance.broker.replication.state_frames import StateSink
from appliance.broker.topics.topic_sharing import TopicSharing
from appliance.broker.transaction.check import TransactionCheckService
from appliance.broker.transaction.ended import EndedHalves
from appliance.broker.transaction.service import TransactionService
from gantrymq.message.ids import encode_host

if TYPE_CHECKING:  # it calls what is here
    from appliance.broker.controller import BrokerController


@dataclass(eq=False, kw_only=True)
class OpenParts:
    """The parts that bear or tell the address, which a controller has once it is open.

    address: "host:port" as clients are told; store_host: the same, packed as in records; follower: a slave's, None on a
    master.
    """

    address: str
    store_host: bytes
    send_answers: SendAnswers
    offset_moved: OffsetMovedEvents
    transactions: TransactionService
    transaction_checks: TransactionCheckService
    outer_api: BrokerOuterApi
    topic_sharing: TopicSharing
    follower: Follower | None


def open_parts(parts: BrokerController, port: int, ended: EndedHalves) -> OpenParts:
    """Make them. ended: see TransactionService."""
    config, store = parts.config, parts.store
    host = config.advertised_address_host
    address, store_host = f"{host}:{port}", encode_host(host, port)
    master = MasterAddress(address, config.ha_master_address)
    outer_api = BrokerOuterApi(
        config,
        parts.topics,
        address=address,
        ha_address=_ha_address(parts, host, port),
        on_registered=master.registered,
        epoch=0 if config.is_slave else parts.standing.standing.epochs.current,
        on_later_epoch=lambda later, name_server: parts.heard(later.epoch, later.id, later.master, name_server),
        epoch_id=parts.standing.standing.epochs.current_id,
        may_register=lambda: parts.slaves.proof is None or parts.slaves.proof.may_register,
    )
    if parts.register is not None:
        parts.register.ha = _ha_address(parts, host, port)
    transactions = TransactionService(store, ended, store_host)
    return OpenParts(
        address=address,
        store_host=store_host,
        send_answers=SendAnswers(config.region_id, config.trace_on, store_host),
        offset_moved=OffsetMovedEvents(store, store_host),
        transactions=transactions,
        transaction_checks=TransactionCheckService(
            transactions,
            store,
            parts.topics,
            parts.offsets,
            parts.producers,
            parts.stats,
            config,
            parts.store_config,
        ),
        outer_api=outer_api,
        topic_sharing=TopicSharing(config, lambda: outer_api.addresses, parts.topics.configs.__contains__),
        follower=_follower(parts, master, outer_api, address) if config.is_slave else None,
    )


def _ha_address(parts: BrokerController, host: str, port: int) -> str:
    """Where slaves are told to connect: the port that is open for them, or the one that would be."""
    ha_port = parts.slaves.port or parts.config.ha_listen_port or port + 1
    return f"{parts.config.ha_advertised_host or host}:{ha_port}"


def _follower(parts: BrokerController, master: MasterAddress, outer_api: BrokerOuterApi, own_address: str) -> Follower:
    """What makes this broker a slave."""
    synchronize = SlaveSynchronize(parts.config, master, parts)
    sink = StateSink(
        parts,
        in_sync=parts.in_sync_file,
        ask_tables=synchronize.ask_soon,
        show=parts.show_confirmed,
    )
    ha_client = HaClient(
        parts.store,
        parts.config,
        master,
        parts.copy_mark,
        ask_again=outer_api.refresh,
        figures=synchronize.figures,
        epoch=synchronize.epoch,
        tls=synchronize.ha_tls,
        standing=parts.standing,
        member=parts.member,
        own_address=own_address,
        on_cut=lambda end: parts.turns.ask(Cut(end)),
        on_state=sink.take,
        on_connected=sink.connected,
        confirmed=lambda end: sink.in_sync.confirmed_of(end),
    )
    candidate = None
    if parts.config.automatic_failover:
        assert parts.register is not None, "automaticFailover needs etcdEndpoints"
        candidate = Candidate(parts, parts.register, ha_client, master, own_address)
    return Follower(ha_client, synchronize, sink, candidate)
