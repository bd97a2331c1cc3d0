"""Who answers which request code at the name server: one row a code, sorted by number.

What an account needs for a code stands in appliance/acl/namesrv_access.py.
"""

from __future__ import annotations

from appliance.namesrv import processors
from appliance.namesrv.processors import NamesrvParts
from appliance.remoting.route_table import Row
from gantrymq.remoting.codes import RequestCode as Code

LANE = "namesrv"  # the one for all

TABLE: tuple[Row[NamesrvParts], ...] = (
    Row(Code.PUT_KV_CONFIG, processors.put_kv, LANE),  # 100
    Row(Code.GET_KV_CONFIG, processors.get_kv, LANE),  # 101
    Row(Code.DELETE_KV_CONFIG, processors.delete_kv, LANE),  # 102
    Row(Code.REGISTER_BROKER, processors.register_broker, LANE),  # 103
    Row(Code.UNREGISTER_BROKER, processors.unregister_broker, LANE),  # 104
    Row(Code.GET_ROUTEINFO_BY_TOPIC, processors.get_route, LANE),  # 105
    Row(Code.GET_BROKER_CLUSTER_INFO, processors.get_cluster_info, LANE),  # 106
    Row(Code.WIPE_WRITE_PERM_OF_BROKER, processors.wipe_write_perm, LANE),  # 205
    Row(Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, processors.get_all_topics, LANE),  # 206
    Row(Code.DELETE_TOPIC_IN_NAMESRV, processors.delete_topic, LANE),  # 216
    Row(Code.GET_KVLIST_BY_NAMESPACE, processors.get_kv_namespace, LANE),  # 219
    Row(Code.GET_TOPICS_BY_CLUSTER, processors.get_topics_by_cluster, LANE),  # 224
    Row(Code.GET_SYSTEM_TOPIC_LIST_FROM_NS, processors.get_system_topics, LANE),  # 304
    Row(Code.GET_UNIT_TOPIC_LIST, processors.get_unit_topics, LANE),  # 311
    Row(Code.GET_HAS_UNIT_SUB_TOPIC_LIST, processors.get_unit_sub_topics, LANE),  # 312
    Row(Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, processors.get_unit_sub_ununit_topics, LANE),  # 313
    Row(Code.UPDATE_NAMESRV_CONFIG, processors.update_config, LANE),  # 318
    Row(Code.GET_NAMESRV_CONFIG, processors.get_config, LANE),  # 319
    Row(Code.QUERY_DATA_VERSION, processors.query_data_version, LANE),  # 322
    Row(Code.ADD_WRITE_PERM_OF_BROKER, processors.add_write_perm, LANE),  # 327
)
