"""Who answers which request code: one row a code, sorted by number, with its handler, the parts that the handler uses,
and the lane in which requests wait.

What an account needs for a code stands in appliance/acl/permission_table.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.broker.processors import (
    acl,
    admin_broker,
    admin_groups,
    admin_offsets,
    admin_progress,
    admin_topics,
    client_relay,
    clients,
    consumers,
    pull,
    query,
    queue_locks,
    replication,
    reply,
    send,
    send_back,
    transaction,
)
from appliance.broker.status import runtime_info
from appliance.remoting.lane import Route
from appliance.remoting.route_table import Row
from gantrymq.remoting.codes import RequestCode as Code

TABLE: tuple[Row[Any], ...] = (
    Row(Code.SEND_MESSAGE, send.send, send.Parts, "send"),  # 10
    Row(Code.PULL_MESSAGE, pull.pull, pull.Parts, "pull"),  # 11
    Row(Code.QUERY_MESSAGE, query.query_message, query.Parts, "query"),  # 12
    Row(Code.QUERY_CONSUMER_OFFSET, consumers.query_consumer_offset, consumers.Parts, "consumer"),  # 14
    Row(Code.UPDATE_CONSUMER_OFFSET, consumers.update_consumer_offset, consumers.Parts, "consumer"),  # 15
    Row(Code.UPDATE_AND_CREATE_TOPIC, admin_topics.update_topic, admin_topics.Parts, "admin"),  # 17
    Row(Code.UPDATE_AND_CREATE_TOPIC_LIST, admin_topics.update_topic_list, admin_topics.Parts, "admin"),  # 18
    Row(Code.GET_ALL_TOPIC_CONFIG, admin_topics.get_all_topic_config, admin_topics.Parts, "admin"),  # 21
    Row(Code.UPDATE_BROKER_CONFIG, admin_broker.update_config, admin_broker.Parts, "admin"),  # 25
    Row(Code.GET_BROKER_CONFIG, admin_broker.get_config, admin_broker.Parts, "admin"),  # 26
    Row(Code.GET_BROKER_RUNTIME_INFO, admin_broker.get_runtime_info, runtime_info.Parts, "admin"),  # 28
    Row(Code.SEARCH_OFFSET_BY_TIMESTAMP, admin_topics.search_offset, admin_topics.Parts, "admin"),  # 29
    Row(Code.GET_MAX_OFFSET, admin_topics.get_max_offset, admin_topics.Parts, "admin"),  # 30
    Row(Code.GET_MIN_OFFSET, admin_topics.get_min_offset, admin_topics.Parts, "admin"),  # 31
    Row(Code.GET_EARLIEST_MSG_STORETIME, admin_topics.get_earliest_time, admin_topics.Parts, "admin"),  # 32
    Row(Code.VIEW_MESSAGE_BY_ID, query.view_message, query.Parts, "query"),  # 33
    Row(Code.HEART_BEAT, clients.heartbeat, clients.Parts, "heartbeat"),  # 34
    Row(Code.UNREGISTER_CLIENT, clients.unregister_client, clients.Parts, "client"),  # 35
    Row(Code.CONSUMER_SEND_MSG_BACK, send_back.send_back, send_back.Parts, "send"),  # 36
    Row(Code.END_TRANSACTION, transaction.end_transaction, transaction.Parts, "transaction"),  # 37
    Row(Code.GET_CONSUMER_LIST_BY_GROUP, consumers.get_consumer_list, consumers.Parts, "consumer"),  # 38
    Row(Code.LOCK_BATCH_MQ, queue_locks.lock_queues, queue_locks.Parts, "consumer"),  # 41
    Row(Code.UNLOCK_BATCH_MQ, queue_locks.unlock_queues, queue_locks.Parts, "consumer"),  # 42
    Row(Code.GET_ALL_CONSUMER_OFFSET, admin_offsets.get_all_offsets, admin_offsets.Parts, "admin"),  # 43
    Row(Code.GET_ALL_DELAY_OFFSET, admin_broker.get_delay_offsets, admin_broker.Parts, "admin"),  # 45
    Row(Code.CHECK_CLIENT_CONFIG, clients.check_client_config, clients.Parts, "client"),  # 46
    Row(Code.UPDATE_AND_CREATE_ACL_CONFIG, acl.update_config, acl.Parts, "admin"),  # 50
    Row(Code.DELETE_ACL_CONFIG, acl.delete_config, acl.Parts, "admin"),  # 51
    Row(Code.GET_BROKER_CLUSTER_ACL_INFO, acl.get_version, acl.Parts, "admin"),  # 52
    Row(Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, acl.update_white_list, acl.Parts, "admin"),  # 53
    Row(Code.GET_BROKER_CLUSTER_ACL_CONFIG, acl.get_config, acl.Parts, "admin"),  # 54
    Row(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, admin_groups.update_group, admin_groups.Parts, "admin"),  # 200
    Row(Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, admin_groups.get_all_groups, admin_groups.Parts, "admin"),  # 201
    Row(Code.GET_TOPIC_STATS_INFO, admin_topics.get_topic_stats, admin_topics.Parts, "admin"),  # 202
    Row(Code.GET_CONSUMER_CONNECTION_LIST, admin_groups.get_consumer_connections, admin_groups.Parts, "admin"),  # 203
    Row(Code.GET_PRODUCER_CONNECTION_LIST, admin_groups.get_producer_connections, admin_groups.Parts, "admin"),  # 204
    Row(Code.DELETE_SUBSCRIPTIONGROUP, admin_groups.delete_group, admin_groups.Parts, "admin"),  # 207
    Row(Code.GET_CONSUME_STATS, admin_progress.get_consume_stats, admin_progress.Parts, "admin"),  # 208
    Row(Code.DELETE_TOPIC_IN_BROKER, admin_topics.delete_topic, admin_topics.Parts, "admin"),  # 215
    Row(Code.INVOKE_BROKER_TO_RESET_OFFSET, admin_offsets.reset_offset, admin_offsets.Parts, "admin"),  # 222
    Row(Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, client_relay.get_held_offsets, client_relay.Parts, "admin"),  # 223
    Row(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, admin_groups.update_groups, admin_groups.Parts, "admin"),  # 225
    Row(Code.QUERY_TOPIC_CONSUME_BY_WHO, admin_topics.get_topic_consumers, admin_topics.Parts, "admin"),  # 300
    Row(Code.REGISTER_FILTER_SERVER, admin_broker.register_filter_server, admin_broker.Parts, "admin"),  # 301
    Row(Code.QUERY_CONSUME_TIME_SPAN, admin_progress.query_consume_time_span, admin_progress.Parts, "admin"),  # 303
    Row(Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, admin_topics.get_system_topics, admin_topics.Parts, "admin"),  # 305
    Row(Code.CLEAN_EXPIRED_CONSUMEQUEUE, admin_broker.clean_expired_queues, admin_broker.Parts, "admin"),  # 306
    Row(Code.GET_CONSUMER_RUNNING_INFO, client_relay.get_running_info, client_relay.Parts, "admin"),  # 307
    Row(Code.QUERY_CORRECTION_OFFSET, admin_offsets.query_correction_offset, admin_offsets.Parts, "admin"),  # 308
    Row(Code.CONSUME_MESSAGE_DIRECTLY, client_relay.consume_directly, client_relay.Parts, "admin"),  # 309
    Row(Code.SEND_MESSAGE_V2, send.send, send.Parts, "send"),  # 310
    Row(Code.CLONE_GROUP_OFFSET, admin_offsets.clone_group_offset, admin_offsets.Parts, "admin"),  # 314
    Row(Code.VIEW_BROKER_STATS_DATA, admin_broker.view_stats, admin_broker.Parts, "admin"),  # 315
    Row(Code.CLEAN_UNUSED_TOPIC, admin_topics.clean_unused_topics, admin_topics.Parts, "admin"),  # 316
    Row(Code.GET_BROKER_CONSUME_STATS, admin_progress.get_broker_consume_stats, admin_progress.Parts, "admin"),  # 317
    Row(Code.SEND_BATCH_MESSAGE, send.send, send.Parts, "send"),  # 320
    Row(Code.QUERY_CONSUME_QUEUE, admin_topics.query_consume_queue, admin_topics.Parts, "admin"),  # 321
    Row(Code.RESUME_CHECK_HALF_MESSAGE, transaction.resume_check, transaction.Parts, "admin"),  # 323
    Row(Code.SEND_REPLY_MESSAGE, reply.send_reply, reply.Parts, "reply"),  # 324
    Row(Code.SEND_REPLY_MESSAGE_V2, reply.send_reply, reply.Parts, "reply"),  # 325
    Row(Code.GET_ALL_PRODUCER_INFO, admin_groups.get_all_producers, admin_groups.Parts, "admin"),  # 328
    Row(Code.DELETE_EXPIRED_COMMITLOG, admin_broker.delete_expired_log, admin_broker.Parts, "admin"),  # 329
    Row(Code.QUERY_TOPICS_BY_CONSUMER, admin_groups.get_topics_of_group, admin_groups.Parts, "admin"),  # 343
    Row(Code.QUERY_SUBSCRIPTION_BY_CONSUMER, admin_groups.get_subscription, admin_groups.Parts, "admin"),  # 345
    Row(Code.GET_TOPIC_CONFIG, admin_topics.get_topic_config, admin_topics.Parts, "admin"),  # 351
    Row(Code.GET_SUBSCRIPTIONGROUP_CONFIG, admin_groups.get_group, admin_groups.Parts, "admin"),  # 352
    Row(Code.LITE_PULL_MESSAGE, pull.pull, pull.Parts, "pull"),  # 361
    Row(Code.PROMOTE_SLAVE, replication.promote, replication.Parts, "admin"),  # 29401
    Row(Code.HOLD_MESSAGES, replication.hold, replication.Parts, "admin"),  # 29402
    Row(Code.GET_CONNECTIONS, clients.get_connections, clients.ConnectionParts, "admin"),  # 29403
    Row(Code.CLOSE_CONNECTIONS, clients.close_connections, clients.ConnectionParts, "admin"),  # 29404
    Row(Code.GET_TOPIC_FIGURES, admin_topics.get_topic_figures, admin_topics.FigureParts, "admin"),  # 29405
    Row(Code.TELL_EPOCH, replication.hear_epoch, replication.Parts, "admin"),  # 29406
)


def without_pulls(routes: Mapping[int, Route]) -> dict[int, Route]:
    """The routes of the VIP port: RocketMQ registers no pulls there, and clients don't expect them."""
    return {code: route for code, route in routes.items() if code != Code.PULL_MESSAGE}
