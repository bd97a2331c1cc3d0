"""What the name server does with each request; table.py says who serves which code.

Handlers read the header, ask route_info or kv_config, and write the answer. A missing header field raises KeyError, a
malformed one FieldError; the lanes turn both into INVALID_PARAMETER. Codes that are not in the table are answered with
REQUEST_CODE_NOT_SUPPORTED by the server (RocketMQ's name server stays silent, which costs clients their connection).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Generator
from typing import Protocol

from appliance.errors import BrokerError
from appliance.namesrv.kv_config import ORDER_TOPIC_NAMESPACE, KVConfigManager
from appliance.namesrv.route_changes import RouteChanges
from appliance.namesrv.route_info import FLAG_UNIT, FLAG_UNIT_SUB, BrokerIdentity, MasterAddresses, RouteInfoManager
from appliance.remoting.connection import ServerConnection
from appliance.remoting.header_fields import int_field, long_field, text_field
from appliance.remoting.lane import Answer
from appliance.remoting.request_body import read_body
from appliance.remoting.settings_request import change_settings
from appliance.settings.live import LiveConfig
from appliance.settings.roles import NamesrvConfig
from gantrymq.client.admin.members import EPOCH_OF
from gantrymq.errors import BodyError
from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import DataVersion, KVTable, TopicList
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.registration import body_crc32, reading_registration

logger = logging.getLogger(__name__)

SHORT_BODY_BYTES = 32 * 1024  # of a registration: some two hundred topics, in two milliseconds
DEFLATED = 32  # so much smaller is the same in the compressed shape
NAME_CHARS_MAX = 255  # of what a remark quotes

_FAQ = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."


class NamesrvParts(Protocol):
    """What these handlers use of the name server. clock: monotonic seconds."""

    config: NamesrvConfig
    live_config: LiveConfig
    routes: RouteInfoManager
    kv_config: KVConfigManager
    changes: RouteChanges
    clock: Callable[[], float]


# -- brokers ----------------------------------------------------------------------------------------------------------


def register_broker(
    parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand
) -> Answer | Awaitable[Answer]:
    """103: a broker says who it is and which topics it has. The answer holds the order-topic table, if there is one."""
    fields = request.ext_fields
    expected_crc = int_field(fields, "bodyCrc32", 0)
    if expected_crc and expected_crc != body_crc32(request.body):
        raise BrokerError(ResponseCode.SYSTEM_ERROR, "crc32 not match")
    steps = _registering(parts, connection, request)
    return parts.changes.make(steps, size_bytes=len(request.body), is_long=_is_long(request))


def _is_long(request: RemotingCommand) -> bool:
    """Whether it names more topics than are to be taken at once, some two hundred."""
    return len(request.body) > SHORT_BODY_BYTES // (DEFLATED if _is_compressed(request) else 1)


def _is_compressed(request: RemotingCommand) -> bool:
    return request.ext_fields.get("compressed", "").lower() == "true"


def _registering(
    parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand
) -> Generator[None, None, Answer]:
    fields = request.ext_fields
    broker = _broker_identity(fields)
    digest = _digest(request) if _is_long(request) else b""
    if digest and parts.routes.is_known(broker, digest, connection, parts.clock()):
        return _registered(parts, request, MasterAddresses())
    registration = yield from reading_registration(
        request.body, version=request.version, compressed=_is_compressed(request)
    )
    wrapper = registration.topic_config_serialize_wrapper
    if connection.is_closing:
        return None  # its end has removed its topics already: these would stay
    parts.routes.check_room(broker, wrapper.topic_config_table)
    epoch = long_field(fields, "masterEpoch", 0, low=0)
    superseded = parts.routes.superseded_by(broker, epoch)
    try:
        master = yield from parts.routes.registering(
            broker,
            ha_address=fields.get("haServerAddr", ""),
            topics=wrapper.topic_config_table,
            data_version=wrapper.data_version,
            filter_servers=registration.filter_server_list,
            connection=connection,
            now_s=parts.clock(),
            digest=digest,
            epoch=epoch,
            epoch_id=fields.get("masterEpochId", "")[:NAME_CHARS_MAX],
        )
    except (TypeError, ValueError) as exc:
        raise BodyError(f"topic table: {exc}") from exc
    # It registers again at once, is refused, and so hears of its end.
    if isinstance(superseded, ServerConnection) and superseded is not connection:
        superseded.close(f"{broker.address} is the master of {broker.broker_name} in epoch {epoch}")
    if connection.client != broker:
        connection.client = broker
        logger.info("broker registered", extra={"event": "broker_registered"} | broker._asdict())
    return _registered(parts, request, master)


def _registered(parts: NamesrvParts, request: RemotingCommand, master: MasterAddresses) -> RemotingCommand:
    ext_fields = {"masterAddr": master.master_address, "haServerAddr": master.ha_address}
    orders = parts.kv_config.namespace(ORDER_TOPIC_NAMESPACE)
    return request.reply(
        ext_fields={key: value for key, value in ext_fields.items() if value},
        body=b"" if orders is None else KVTable(orders).to_json(),
    )


def _digest(request: RemotingCommand) -> bytes:
    """Equal for two registrations that say the same."""
    digest = hashlib.blake2b(repr((request.version, sorted(request.ext_fields.items()))).encode())
    digest.update(request.body)
    return digest.digest()


def unregister_broker(
    parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand
) -> Answer | Awaitable[Answer]:
    """104: a broker says good-bye."""
    return parts.changes.make(_unregistering(parts, connection, request), is_long=False)


def _unregistering(
    parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand
) -> Generator[None, None, Answer]:
    broker = _broker_identity(request.ext_fields)
    parts.routes.unregister_broker(broker, parts.clock())
    connection.client = None
    logger.info("broker unregistered", extra={"event": "broker_unregistered"} | broker._asdict())
    yield  # the one step there is
    return request.reply()


def query_data_version(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """322: must this broker register, or does the name server know its topics already?"""
    offered = read_body(DataVersion, request.body)
    changed, known = parts.routes.query_data_version(_broker_identity(request.ext_fields), offered, parts.clock())
    return request.reply(
        ext_fields={"changed": "true" if changed else "false"}, body=b"" if known is None else known.to_json()
    )


def wipe_write_perm(
    parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand
) -> Answer | Awaitable[Answer]:
    """205: clients are to send nothing new to this broker."""
    return _change_write_perm(
        parts, connection, request, parts.routes.wiping_write_perm, "write permission wiped", "wipe"
    )


def add_write_perm(
    parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand
) -> Answer | Awaitable[Answer]:
    """327: the opposite of 205."""
    return _change_write_perm(
        parts, connection, request, parts.routes.adding_write_perm, "write permission added", "add"
    )


def _change_write_perm(
    parts: NamesrvParts,
    connection: ServerConnection,
    request: RemotingCommand,
    changing: Callable[[str], Generator[None, None, int]],
    done: str,
    verb: str,
) -> Answer | Awaitable[Answer]:
    broker_name = request.ext_fields["brokerName"]

    def steps() -> Generator[None, None, Answer]:
        count = yield from changing(broker_name)
        _log_change(done, connection, broker_name=broker_name, topics=count)
        return request.reply(ext_fields={f"{verb}TopicCount": str(count)})

    return parts.changes.make(steps(), is_long=True)


def get_cluster_info(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """106: all clusters, brokers and addresses; with our own field `epochOf`, what is known of that name's epochs."""
    name = request.ext_fields.get(EPOCH_OF)
    fields = parts.routes.epochs.fields(name, parts.clock()) if name is not None else None
    return request.reply(body=parts.routes.cluster_info().to_json(), ext_fields=fields)


# -- topics -----------------------------------------------------------------------------------------------------------


def get_route(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """105: where a topic lives. Numeric keys are always quoted, which every client reads."""
    topic = text_field(request.ext_fields, "topic")
    route = parts.routes.pickup_topic_route(topic)
    if route is None:
        remark = f"No topic route info in name server for the topic: {topic[:NAME_CHARS_MAX]}{_FAQ}"
        return request.reply(ResponseCode.TOPIC_NOT_EXIST, remark)
    if parts.config.order_message_enable:
        route.order_topic_conf = parts.kv_config.get(ORDER_TOPIC_NAMESPACE, topic)
    return request.reply(body=route.to_json())


def get_all_topics(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """206: every topic name, system and retry topics included."""
    return _topic_list(request, parts.routes.topics())


def get_topics_by_cluster(
    parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """224: topics of the cluster's brokers; none for an unknown cluster."""
    return _topic_list(request, parts.routes.topics_of_cluster(request.ext_fields["cluster"]))


def get_system_topics(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """304: names of clusters and brokers, and a broker to ask for the rest (305)."""
    return _topic_list(request, *parts.routes.system_topics())


def get_unit_topics(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """311."""
    return _topic_list(request, parts.routes.unit_topics(has=FLAG_UNIT))


def get_unit_sub_topics(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """312."""
    return _topic_list(request, parts.routes.unit_topics(has=FLAG_UNIT_SUB))


def get_unit_sub_ununit_topics(
    parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """313."""
    return _topic_list(request, parts.routes.unit_topics(has=FLAG_UNIT_SUB, has_not=FLAG_UNIT))


def delete_topic(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """216: forget a topic, in one cluster if one is named. The brokers' side is their own request (215)."""
    topic = request.ext_fields["topic"]
    parts.routes.delete_topic(topic, request.ext_fields.get("clusterName") or None)
    _log_change("topic deleted", connection, topic=topic)
    return request.reply()


# -- key-value settings -----------------------------------------------------------------------------------------------


async def put_kv(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """100: answered when the file is on disk."""
    fields = request.ext_fields
    parts.kv_config.put(text_field(fields, "namespace"), text_field(fields, "key"), text_field(fields, "value"))
    await parts.kv_config.save()
    _log_change("kv config put", connection, namespace=fields["namespace"], key=fields["key"])
    return request.reply()


async def delete_kv(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """102: success also when there was none."""
    fields = request.ext_fields
    parts.kv_config.delete(fields["namespace"], fields["key"])
    await parts.kv_config.save()
    _log_change("kv config deleted", connection, namespace=fields["namespace"], key=fields["key"])
    return request.reply()


def get_kv(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """101."""
    namespace, key = text_field(request.ext_fields, "namespace"), text_field(request.ext_fields, "key")
    value = parts.kv_config.get(namespace, key)
    if value is None:
        return request.reply(
            ResponseCode.QUERY_NOT_FOUND,
            f"No config item, Namespace: {namespace[:NAME_CHARS_MAX]} Key: {key[:NAME_CHARS_MAX]}",
        )
    return request.reply(ext_fields={"value": value})


def get_kv_namespace(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """219: an emptied namespace is an empty table, one that never was is not found."""
    namespace = text_field(request.ext_fields, "namespace")
    entries = parts.kv_config.namespace(namespace)
    if entries is None:
        return request.reply(ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {namespace[:NAME_CHARS_MAX]}")
    return request.reply(body=KVTable(entries).to_json())


# -- the name server's own settings -----------------------------------------------------------------------------------


async def update_config(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """318: change what may be changed from afar; paths may not (CVE-2023-37582)."""
    changes, remark = await change_settings(parts.live_config, connection, request.body)
    _log_change("config updated", connection, changes=[change._asdict() for change in changes], remark=remark)
    return request.reply(remark=remark)


def get_config(parts: NamesrvParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """319: the settings in force, one `key=value` a line."""
    return request.reply(body=parts.live_config.text())


# -- helpers ----------------------------------------------------------------------------------------------------------


def _broker_identity(fields: dict[str, str]) -> BrokerIdentity:
    for name in ("clusterName", "brokerName", "brokerAddr"):
        if len(fields[name]) > NAME_CHARS_MAX:
            raise BrokerError(
                ResponseCode.INVALID_PARAMETER, f"header field {name} has more than {NAME_CHARS_MAX} characters"
            )
        if not fields[name].isprintable():  # every tool prints them
            raise BrokerError(ResponseCode.INVALID_PARAMETER, f"header field {name} has characters that can't be shown")
    return BrokerIdentity(
        fields["clusterName"], fields["brokerName"], long_field(fields, "brokerId", low=0), fields["brokerAddr"]
    )


def _topic_list(request: RemotingCommand, topics: list[str], broker_address: str | None = None) -> RemotingCommand:
    if broker_address is not None:
        return request.reply(body=TopicList(topics, broker_address).to_json())
    return request.reply(body=fastjson.dumps({"topicList": topics}))  # of thousands, as they are


def _log_change(what: str, connection: ServerConnection, **facts: object) -> None:
    """Tell the operator who changed what."""
    logger.info("changed by a request", extra={"event": what.replace(" ", "_"), "peer": connection.remote_text} | facts)
