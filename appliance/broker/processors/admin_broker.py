"""What tools ask about the broker itself: its settings, metrics, counters, and housekeeping on demand."""

from __future__ import annotations

import functools
import logging
from collections.abc import Set
from typing import TYPE_CHECKING, Protocol

from appliance.broker.delivery.schedule import ScheduleMessageService
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.pop.service import PopService
from appliance.broker.status.runtime_info import runtime_info
from appliance.broker.status.stats import BrokerStatsManager, StatsWindow, window_of
from appliance.broker.status.stats import StatsItem as Counter
from appliance.broker.transaction.service import TransactionService
from appliance.errors import BrokerError
from appliance.remoting.header_fields import quoted, text_field
from appliance.remoting.settings_request import change_settings
from appliance.settings.live import LiveConfig
from appliance.settings.roles import BrokerConfig
from gantrymq.remoting.admin_bodies import BrokerStatsData, KVTable, StatsItem
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.message_store import MessageStore

if TYPE_CHECKING:
    from appliance.broker.controller import BrokerController
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)

MASTER_ID = "0"


class AdminBrokerParts(Protocol):
    """What these handlers use of the broker."""

    config: BrokerConfig
    live_config: LiveConfig
    store: MessageStore
    stats: BrokerStatsManager
    schedule: ScheduleMessageService
    offsets: ConsumerOffsetManager
    pop: PopService
    transactions: TransactionService

    def settings_changed(self, keys: Set[str], /) -> None:
        """See BrokerController."""


# -- settings ---------------------------------------------------------------------------------------------------------


async def update_config(
    parts: AdminBrokerParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """25: change settings of the running broker and of its file. What may change is a list (CVE-2023-33246)."""
    changes, remark = await change_settings(parts.live_config, connection, request.body)
    if changes:
        parts.settings_changed({change.key for change in changes})
        logger.info(
            "settings changed by a request",
            extra={
                "event": "admin_settings_changed",
                "peer": connection.remote_text,
                "changes": [change._asdict() for change in changes],
            },
        )
    return request.reply(remark=remark)


def get_config(parts: AdminBrokerParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """26: the settings in force, and what RocketMQ's others amount to. The header says where they come from."""
    version = parts.live_config.version.to_json().decode()
    return request.reply(ext_fields={"version": version} | parts.live_config.origins(), body=parts.live_config.text())


# -- metrics ----------------------------------------------------------------------------------------------------------


def get_runtime_info(
    parts: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """28: see runtime_info."""
    return request.reply(body=KVTable(runtime_info(parts)).to_json())


def view_stats(parts: AdminBrokerParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """315: one counter over the last minute, hour and day."""
    name, key = request.ext_fields["statsName"], request.ext_fields["statsKey"]
    counter = parts.stats.get(name, key)
    if counter is None:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"The stats <{name}> <{key}> not exist")
    return request.reply(body=_stats_data(counter).to_json())


def _stats_data(counter: Counter) -> BrokerStatsData:
    def item(window: StatsWindow) -> StatsItem:
        return StatsItem(window.sum, window.per_second, window.value_per_call)

    return BrokerStatsData(*(item(window_of(window)) for window in (counter.minute, counter.hour, counter.day)))


def get_delay_offsets(
    parts: AdminBrokerParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """45: how far each delay level is delivered."""
    table = parts.schedule.wrapper()
    if not table.offset_table:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, "No delay offset in this broker")
    return request.reply(body=table.to_json())


# -- housekeeping -----------------------------------------------------------------------------------------------------


async def clean_expired_queues(
    parts: AdminBrokerParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """306: delete consume queues whose messages have all expired.

    A slave leaves offsets to its master.
    """
    removed = await parts.store.clean_expired_queues(
        None if parts.config.is_slave else functools.partial(_begin_again, parts)
    )
    parts.pop.book.drop_void()
    logger.info(
        "expired queues cleaned by a request",
        extra={"event": "admin_queues_cleaned", "peer": connection.remote_text, "queues": removed},
    )
    return request.reply()


def _begin_again(parts: AdminBrokerParts, topic: str, queue_id: int) -> None:
    parts.offsets.begin_again(topic, queue_id)
    parts.transactions.begin_again(topic)


def delete_expired_log(
    parts: AdminBrokerParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """329: delete expired commit log files now, not at the hour of deleteWhen."""
    parts.store.cleaner.delete_soon()
    logger.info(
        "deletion of expired files requested",
        extra={"event": "admin_log_deletion", "peer": connection.remote_text},
    )
    return request.reply()


def register_filter_server(
    parts: AdminBrokerParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """301: a class-filter server of RocketMQ 3 says it is there. Answered, but not believed.

    RocketMQ gives the address to every consumer of the broker as a place to pull from, without a check of who named it.
    """
    address = text_field(request.ext_fields, "filterServerAddr")
    logger.info(
        "filter server not used",
        extra={"event": "filter_server_not_used", "peer": connection.remote_text, "address": quoted(address)},
    )
    return request.reply(ext_fields={"brokerName": parts.config.broker_name, "brokerId": MASTER_ID})
