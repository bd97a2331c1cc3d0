"""What RocketMQ 5's command line and the commands about accounts must print: tables like the one of mqadmin_commands.

A 4.9 broker refuses many commands of RocketMQ 5's tools (it does not know their requests); ours serves those that the
old ones have a counterpart for.
"""

from __future__ import annotations

from dataclasses import replace

from tests.interop.mqadmin.commands import CLEANING, COMMANDS, OK, RESETS, Case
from tests.interop.mqadmin.session import UNLISTED_NAMES

_FIVE_SHOWS = {
    "consumerProgress -g AdminGroup": ("#Inflight", r"Consume Diff Total: \d+", "Consume Inflight Total: 0"),
    "resetOffsetByTime -g AdminGroup -t AdminTopic -s now": (r"#brokerName +#queueId +#offset", "{broker_name}"),
}


def _with_five(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    """The same cases as RocketMQ 5's tools have them."""
    listed = [case for case in cases if case.command not in UNLISTED_NAMES]
    return tuple(replace(case, shows=_FIVE_SHOWS.get(case.arguments, case.shows)) for case in listed)


FIVE = (
    *_with_five(COMMANDS),
    Case("updateTopic -b {broker} -t AdminFive -r 1 -w 1 -a +retention.ms=3600000", (OK,)),
    Case("topicRoute -t AdminFive", (r'"writeQueueNums":1',)),
    Case("updateTopic -b {broker} -t AdminFive -r 1 -w 1 -a +retention.messages=9,-retention.ms", (OK,)),
    Case("exportMetadata -b {broker} -f {folder} -t", ('"AdminFive"',), file="topic.json"),
    Case("deleteTopic -c {cluster} -t AdminFive", (OK,)),
    Case("setConsumeMode -b {broker} -t AdminTopic -g AdminGroup -m POP -q 1", ("success",)),
    Case("haStatus -b {broker}", ("CODE: 3 ",), "no replication here"),
    Case("getBrokerEpoch -b {broker_name}", ("CODE: 3 ",), "no controller here"),
    Case("getColdDataFlowCtrInfo -b {broker}", ("CODE: 3 ",), "no control of cold data here"),
)

FIVE_LAST = _with_five((*RESETS, *CLEANING))

# First what an account is needed for, without one; then with the administrator's.
REFUSED = (
    Case("topicList", ("BenchCluster",), "routes are everybody's"),
    Case("updateTopic -b {broker} -t AdminRefused -r 1 -w 1", ("AclException: ",)),
    Case("deleteAclConfig -b {broker} -a adminKey1", ("AclException: ",)),
)
GUARDED = (
    Case("clusterAclConfigVersion -b {broker}", ("^{cluster} +{broker_name} +{broker} ", "get broker's plain access")),
    Case("clusterAclConfigVersion -c {cluster}", (r"#Cluster Name +#Broker Name", "get cluster's plain access")),
    Case(
        "updateAclConfig -b {broker} -a newKey123 -s newSecret123 -t TopicX=PUB,TopicY=SUB -g GroupX=SUB -u SUB",
        (r"create or update plain access config to {broker} success",),
    ),
    Case("updateAclConfig -c {cluster} -a newKey123 -s newSecret456 -m false -w 10.0.0.*", (OK,)),
    Case("updateAclConfig -b {broker} -a short -s s", ("CODE: ",)),
    Case("getAclConfig -b {broker}", (r"accessKey +: newKey123", r"topicPerms +: \[TopicX=PUB, TopicY=SUB\]")),
    Case("getAclConfig -c {cluster}", (r"accessKey +: adminKey1",)),
    Case("updateGlobalWhiteAddr -b {broker} -g 10.1.2.3,10.1.3.*", (OK,)),
    Case("updateGlobalWhiteAddr -c {cluster} -g 10.1.2.3", (OK,)),
    Case("deleteAclConfig -b {broker} -a newKey123", (r"delete plain access config account from {broker} success",)),
    Case("deleteAclConfig -c {cluster} -a nobody123", ("CODE: 210 ",)),
    Case("getAclConfig -b  {broker}", (r"globalWhiteRemoteAddresses: \[10.1.2.3\]", r"accessKey +: adminKey1")),
    Case("updateTopic -c {cluster} -t AdminGuarded -r 1 -w 1", (OK,)),
    Case("brokerStatus -b {broker}", ("^bootTimestamp +:",)),
)
