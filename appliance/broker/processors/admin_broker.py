"""What tools ask about the broker itself: its settings, figures, counters, and housekeeping on demand."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from appliance.broker.status.runtime_info import runtime_info
from appliance.broker.status.stats import StatsItem as Counter
from appliance.broker.status.stats import StatsWindow, window_of
from appliance.errors import BrokerError
from appliance.remoting.header_fields import quoted, text_field
from appliance.remoting.lane import Route
from appliance.remoting.settings_request import change_settings
from gantrymq.remoting.bodies import BrokerStatsData, KVTable, StatsItem
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand

if TYPE_CHECKING:
    from appliance.broker.controller import BrokerController
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)

MASTER_ID = "0"


# -- settings ---------------------------------------------------------------------------------------------------------


async def update_config(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """25: change settings of the running broker and of its file. What may change is a list (CVE-2023-33246)."""
    changes, remark = await change_settings(broker.live_config, connection, request.body)
    if changes:
        broker.settings_changed({change.key for change in changes})
        logger.info(
            "settings changed by request",
            extra={
                "event": "admin_settings_changed",
                "peer": connection.remote_text,
                "changes": [change._asdict() for change in changes],
            },
        )
    return request.reply(remark=remark)


def get_config(broker: BrokerController, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """26: the settings in force, and what RocketMQ's others amount to."""
    version = broker.live_config.version.to_json().decode()
    return request.reply(ext_fields={"version": version}, body=broker.live_config.text())


# -- figures ----------------------------------------------------------------------------------------------------------


def get_runtime_info(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """28: see runtime_info."""
    return request.reply(body=KVTable(runtime_info(broker)).to_json())


def view_stats(broker: BrokerController, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """315: one counter over the last minute, hour and day."""
    name, key = request.ext_fields["statsName"], request.ext_fields["statsKey"]
    counter = broker.stats.get(name, key)
    if counter is None:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"The stats <{name}> <{key}> not exist")
    return request.reply(body=_stats_data(counter).to_json())


def _stats_data(counter: Counter) -> BrokerStatsData:
    def item(window: StatsWindow) -> StatsItem:
        return StatsItem(window.sum, window.per_second, window.value_per_call)

    return BrokerStatsData(*(item(window_of(window)) for window in (counter.minute, counter.hour, counter.day)))


def get_delay_offsets(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """45: how far each delay level is delivered."""
    table = broker.schedule.wrapper()
    if not table.offset_table:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, "No delay offset in this broker")
    return request.reply(body=table.to_json())


# -- housekeeping -----------------------------------------------------------------------------------------------------


async def clean_expired_queues(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """306: delete consume queues whose messages have all expired."""
    removed = await broker.store.clean_expired_queues()
    logger.info(
        "expired queues cleaned by request",
        extra={"event": "admin_queues_cleaned", "peer": connection.remote_text, "queues": removed},
    )
    return request.reply()


def delete_expired_log(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """329: delete expired commit log files now, not at the hour of deleteWhen."""
    broker.store.delete_expired_files_soon()
    logger.info(
        "deletion of expired files by request",
        extra={"event": "admin_log_deletion", "peer": connection.remote_text},
    )
    return request.reply()


def register_filter_server(
    broker: BrokerController, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """301: a class-filter server of RocketMQ 3 says it is there. Answered, but not believed.

    RocketMQ gives the address to every consumer of the broker as a place to pull from, whoever named it.
    """
    address = text_field(request.ext_fields, "filterServerAddr")
    logger.info(
        "filter server not used",
        extra={"event": "filter_server_not_used", "peer": connection.remote_text, "address": quoted(address)},
    )
    return request.reply(ext_fields={"brokerName": broker.config.broker_name, "brokerId": MASTER_ID})


HANDLERS: dict[int, Route] = {
    RequestCode.REGISTER_FILTER_SERVER: Route(register_filter_server, "admin"),
    RequestCode.UPDATE_BROKER_CONFIG: Route(update_config, "admin"),
    RequestCode.GET_BROKER_CONFIG: Route(get_config, "admin"),
    RequestCode.GET_BROKER_RUNTIME_INFO: Route(get_runtime_info, "admin"),
    RequestCode.VIEW_BROKER_STATS_DATA: Route(view_stats, "admin"),
    RequestCode.GET_ALL_DELAY_OFFSET: Route(get_delay_offsets, "admin"),
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: Route(clean_expired_queues, "admin"),
    RequestCode.DELETE_EXPIRED_COMMITLOG: Route(delete_expired_log, "admin"),
}
