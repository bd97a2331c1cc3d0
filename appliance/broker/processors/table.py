"""Who answers which request code: one row a code, sorted by number, with its handler and the lane in which requests
wait.

What an account needs for a code stands in appliance/acl/permission_table.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from appliance.broker.pop import handlers as pops
from appliance.broker.pop import mode_handlers as modes
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
    recall,
    replication,
    reply,
    send,
    send_back,
    transaction,
)
from appliance.remoting.lane import Route
from appliance.remoting.route_table import Row
from gantrymq.remoting.codes import RequestCode as Code

if TYPE_CHECKING:  # it calls what is here
    from appliance.broker.controller import BrokerController


TABLE: tuple[Row[BrokerController], ...] = (
    Row(Code.SEND_MESSAGE, send.send, "send"),  # 10
    Row(Code.PULL_MESSAGE, pull.pull, "pull"),  # 11
    Row(Code.QUERY_MESSAGE, query.query_message, "query"),  # 12
    Row(Code.QUERY_CONSUMER_OFFSET, consumers.query_consumer_offset, "consumer"),  # 14
    Row(Code.UPDATE_CONSUMER_OFFSET, consumers.update_consumer_offset, "consumer"),  # 15
    Row(Code.UPDATE_AND_CREATE_TOPIC, admin_topics.update_topic, "admin"),  # 17
    Row(Code.UPDATE_AND_CREATE_TOPIC_LIST, admin_topics.update_topic_list, "admin"),  # 18
    Row(Code.GET_ALL_TOPIC_CONFIG, admin_topics.get_all_topic_config, "admin"),  # 21
    Row(Code.UPDATE_BROKER_CONFIG, admin_broker.update_config, "admin"),  # 25
    Row(Code.GET_BROKER_CONFIG, admin_broker.get_config, "admin"),  # 26
    Row(Code.GET_BROKER_RUNTIME_INFO, admin_broker.get_runtime_info, "admin"),  # 28
    Row(Code.SEARCH_OFFSET_BY_TIMESTAMP, admin_topics.search_offset, "admin"),  # 29
    Row(Code.GET_MAX_OFFSET, admin_topics.get_max_offset, "admin"),  # 30
    Row(Code.GET_MIN_OFFSET, admin_topics.get_min_offset, "admin"),  # 31
    Row(Code.GET_EARLIEST_MSG_STORETIME, admin_topics.get_earliest_time, "admin"),  # 32
    Row(Code.VIEW_MESSAGE_BY_ID, query.view_message, "query"),  # 33
    Row(Code.HEART_BEAT, clients.heartbeat, "heartbeat"),  # 34
    Row(Code.UNREGISTER_CLIENT, clients.unregister_client, "client"),  # 35
    Row(Code.CONSUMER_SEND_MSG_BACK, send_back.send_back, "send"),  # 36
    Row(Code.END_TRANSACTION, transaction.end_transaction, "transaction"),  # 37
    Row(Code.GET_CONSUMER_LIST_BY_GROUP, consumers.get_consumer_list, "consumer"),  # 38
    Row(Code.LOCK_BATCH_MQ, queue_locks.lock_queues, "consumer"),  # 41
    Row(Code.UNLOCK_BATCH_MQ, queue_locks.unlock_queues, "consumer"),  # 42
    Row(Code.GET_ALL_CONSUMER_OFFSET, admin_offsets.get_all_offsets, "admin"),  # 43
    Row(Code.GET_ALL_DELAY_OFFSET, admin_broker.get_delay_offsets, "admin"),  # 45
    Row(Code.CHECK_CLIENT_CONFIG, clients.check_client_config, "client"),  # 46
    Row(Code.UPDATE_AND_CREATE_ACL_CONFIG, acl.update_config, "admin"),  # 50
    Row(Code.DELETE_ACL_CONFIG, acl.delete_config, "admin"),  # 51
    Row(Code.GET_BROKER_CLUSTER_ACL_INFO, acl.get_version, "admin"),  # 52
    Row(Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, acl.update_white_list, "admin"),  # 53
    Row(Code.GET_BROKER_CLUSTER_ACL_CONFIG, acl.get_config, "admin"),  # 54
    Row(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, admin_groups.update_group, "admin"),  # 200
    Row(Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, admin_groups.get_all_groups, "admin"),  # 201
    Row(Code.GET_TOPIC_STATS_INFO, admin_topics.get_topic_stats, "admin"),  # 202
    Row(Code.GET_CONSUMER_CONNECTION_LIST, admin_groups.get_consumer_connections, "admin"),  # 203
    Row(Code.GET_PRODUCER_CONNECTION_LIST, admin_groups.get_producer_connections, "admin"),  # 204
    Row(Code.DELETE_SUBSCRIPTIONGROUP, admin_groups.delete_group, "admin"),  # 207
    Row(Code.GET_CONSUME_STATS, admin_progress.get_consume_stats, "admin"),  # 208
    Row(Code.DELETE_TOPIC_IN_BROKER, admin_topics.delete_topic, "admin"),  # 215
    Row(Code.INVOKE_BROKER_TO_RESET_OFFSET, admin_offsets.reset_offset, "admin"),  # 222
    Row(Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, client_relay.get_held_offsets, "admin"),  # 223
    Row(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, admin_groups.update_groups, "admin"),  # 225
    Row(Code.QUERY_TOPIC_CONSUME_BY_WHO, admin_topics.get_topic_consumers, "admin"),  # 300
    Row(Code.REGISTER_FILTER_SERVER, admin_broker.register_filter_server, "admin"),  # 301
    Row(Code.QUERY_CONSUME_TIME_SPAN, admin_progress.query_consume_time_span, "admin"),  # 303
    Row(Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, admin_topics.get_system_topics, "admin"),  # 305
    Row(Code.CLEAN_EXPIRED_CONSUMEQUEUE, admin_broker.clean_expired_queues, "admin"),  # 306
    Row(Code.GET_CONSUMER_RUNNING_INFO, client_relay.get_running_info, "admin"),  # 307
    Row(Code.QUERY_CORRECTION_OFFSET, admin_offsets.query_correction_offset, "admin"),  # 308
    Row(Code.CONSUME_MESSAGE_DIRECTLY, client_relay.consume_directly, "admin"),  # 309
    Row(Code.SEND_MESSAGE_V2, send.send, "send"),  # 310
    Row(Code.CLONE_GROUP_OFFSET, admin_offsets.clone_group_offset, "admin"),  # 314
    Row(Code.VIEW_BROKER_STATS_DATA, admin_broker.view_stats, "admin"),  # 315
    Row(Code.CLEAN_UNUSED_TOPIC, admin_topics.clean_unused_topics, "admin"),  # 316
    Row(Code.GET_BROKER_CONSUME_STATS, admin_progress.get_broker_consume_stats, "admin"),  # 317
    Row(Code.SEND_BATCH_MESSAGE, send.send, "send"),  # 320
    Row(Code.QUERY_CONSUME_QUEUE, admin_topics.query_consume_queue, "admin"),  # 321
    Row(Code.RESUME_CHECK_HALF_MESSAGE, transaction.resume_check, "admin"),  # 323
    Row(Code.SEND_REPLY_MESSAGE, reply.send_reply, "reply"),  # 324
    Row(Code.SEND_REPLY_MESSAGE_V2, reply.send_reply, "reply"),  # 325
    Row(Code.GET_ALL_PRODUCER_INFO, admin_groups.get_all_producers, "admin"),  # 328
    Row(Code.DELETE_EXPIRED_COMMITLOG, admin_broker.delete_expired_log, "admin"),  # 329
    Row(Code.QUERY_TOPICS_BY_CONSUMER, admin_groups.get_topics_of_group, "admin"),  # 343
    Row(Code.QUERY_SUBSCRIPTION_BY_CONSUMER, admin_groups.get_subscription, "admin"),  # 345
    Row(Code.GET_TOPIC_CONFIG, admin_topics.get_topic_config, "admin"),  # 351
    Row(Code.GET_SUBSCRIPTIONGROUP_CONFIG, admin_groups.get_group, "admin"),  # 352
    Row(Code.LITE_PULL_MESSAGE, pull.pull, "pull"),  # 361
    Row(Code.RECALL_MESSAGE, recall.recall, "send"),  # 370
    Row(Code.QUERY_ASSIGNMENT, modes.query_assignment, "consumer"),  # 400
    Row(Code.SET_MESSAGE_REQUEST_MODE, modes.set_mode, "admin"),  # 401
    Row(Code.PROMOTE_SLAVE, replication.promote, "admin"),  # 29401
    Row(Code.HOLD_MESSAGES, replication.hold, "admin"),  # 29402
    Row(Code.GET_CONNECTIONS, clients.get_connections, "admin"),  # 29403
    Row(Code.CLOSE_CONNECTIONS, clients.close_connections, "admin"),  # 29404
    Row(Code.GET_TOPIC_FIGURES, admin_topics.get_topic_figures, "admin"),  # 29405
    Row(Code.TELL_EPOCH, replication.hear_epoch, "admin"),  # 29406
    Row(Code.JOIN_GROUP, replication.join, "admin"),  # 29407
    Row(Code.GET_FAILOVER, replication.failover, "admin"),  # 29408
    Row(Code.PAUSE_FAILOVER, replication.pause_failover, "admin"),  # 29409
    Row(Code.GET_LEASES, modes.get_leases, "admin"),  # 29410
    Row(Code.POP_MESSAGE, pops.pop, "pull"),  # 200050
    Row(Code.ACK_MESSAGE, pops.acknowledge, "consumer"),  # 200051
    Row(Code.CHANGE_MESSAGE_INVISIBLETIME, pops.change_invisible_time, "consumer"),  # 200053
    Row(Code.NOTIFICATION, pops.notify, "pull"),  # 200054
    Row(Code.BATCH_ACK_MESSAGE, pops.acknowledge_batch, "consumer"),  # 200151
)


def without_pulls(routes: Mapping[int, Route]) -> dict[int, Route]:
    """The routes of the VIP port: RocketMQ registers no pulls there, and clients don't expect them."""
    return {code: route for code, route in routes.items() if code != Code.PULL_MESSAGE}
