"""The table of mqadmin's sub-commands: what is run, in this order, and what it has to print.

Words in braces are filled in by the test: addresses and names of the cluster, ids of messages that were sent, the id of
a consumer that is online, a folder. `shows` are regular expressions, each of which must be found in what the command
printed (or wrote into `file`). `needs` tells what else must be so; scene.py makes it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One run of one sub-command. limit_s: when an endless command is interrupted; None: it has to end by itself."""

    arguments: str  # as typed, {namesrv} is given to all
    shows: tuple[str, ...]
    needs: str = ""
    limit_s: float | None = None
    file: str = ""  # what the command writes instead of printing, in {folder}
    within_s: float = 0  # how long it is run again until it shows what it should

    @property
    def command(self) -> str:
        return self.arguments.split()[0]


OK = r"success"

TOPICS = (
    Case("updateTopic -c {cluster} -t AdminSpare -r 2 -w 2 -p 6", (r"create topic to {broker} success", "AdminSpare")),
    Case("updateTopic -b {broker} -t AdminSpare -r 3 -w 3 -p 6 -u true", ("readQueueNums=3", "perm=RW-")),
    Case("updateTopic -b {broker} -t AdminOrdered -r 2 -w 2 -o true", (r"set broker orderConf\. isOrder=true",)),
    Case("updateTopic -b {broker} -t Admin.Bad!Name -r 2 -w 2", ("illegal characters",)),
    Case("updateTopicPerm -b {broker} -t AdminSpare -p 4", (r"update topic perm from 6 to 4 in {broker} success",)),
    Case("updateTopicPerm -c {cluster} -t AdminSpare -p 6", (r"update topic perm from 4 to 6 in {broker} success",)),
    Case("updateTopicPerm -c {cluster} -t AdminNone -p 6", ("No topic route info",)),
    Case("topicList", ("^AdminTopic$", "^AdminSpare$", "^TBW102$", "^%RETRY%AdminGroup$")),
    Case("topicList -c", (r"#Cluster Name +#Topic +#Consumer Group", r"{cluster} +AdminTopic +AdminGroup")),
    Case("topicRoute -t AdminTopic", (r'"brokerName":"{broker_name}"', '"writeQueueNums":4', '"queueDatas"')),
    Case(
        "topicRoute -t AdminTopic -l",
        (r"#ClusterName +#BrokerName +#BrokerAddrs", r"{broker_name} +\{{0={broker}\}} +4 +4 +6"),
    ),
    Case("topicRoute -t AdminNone", ("CODE: 17  DESC: No topic route info in name server",)),
    Case("topicStatus -t AdminTopic", (r"#Broker Name +#QID +#Min Offset", r"{broker_name} +3 +0 +[1-9]")),
    Case("topicClusterList -t AdminTopic", ("^{cluster}$",)),
    Case("updateOrderConf -t AdminOrdered -m get", (r"orderConf=\[{broker_name}:2\]",)),
    Case("updateOrderConf -t AdminSpare -m put -v {broker_name}:3", (r"update orderConf success",)),
    Case("updateOrderConf -t AdminSpare -m get", (r"orderConf=\[{broker_name}:3\]",)),
    Case("updateOrderConf -t AdminSpare -m delete", (r"delete orderConf success",)),
    Case("updateOrderConf -m get -t AdminSpare", ("CODE: 22  DESC: No config item",)),
    Case("allocateMQ -t AdminTopic -i 10.0.0.1,10.0.0.2", (r'"10.0.0.1":\[', r'"queueId":3')),
)

CLUSTER = (
    Case("clusterList", (r"#Cluster Name +#Broker Name +#BID +#Addr", r"{cluster} +{broker_name} +0 +{broker} +V4_9")),
    Case("clusterList -m", (r"#InTotalYest", r"{cluster} +{broker_name} ")),
    Case("brokerConsumeStats -b {broker} -l 0 -t 5000 -o false", (r"#Topic +#Group", "AdminTopic +AdminGroup")),
    Case("getBrokerConfig -b {broker}", ("^brokerName +=  {broker_name}", "^flushDiskType +=  ASYNC_FLUSH")),
    Case("getBrokerConfig -c {cluster}", ("Master: {broker}", "^listenPort +=")),
    Case("updateBrokerConfig -b {broker} -k fileReservedTime -v 71", (OK,)),
    Case("updateBrokerConfig -c {cluster} -k fileReservedTime -v 72", (OK,)),
    Case("cleanExpiredCQ -b {broker}", (OK,)),
    Case("cleanExpiredCQ -c {cluster}", (OK,)),
    Case("cleanExpiredCQ", (OK,)),
    Case("deleteExpiredCommitLog -b {broker}", (OK,)),
    Case("deleteExpiredCommitLog -c {cluster}", (OK,)),
    Case("cleanUnusedTopic -b {broker}", (OK,)),
    Case("cleanUnusedTopic -c {cluster}", (OK,)),
    Case("sendMsgStatus -b {broker_name} -c 3 -s 64", (r"rt=\d+ms, SendResult=SendResult \[sendStatus=SEND_OK",)),
    Case(
        "clusterRT -a 3 -s 64 -i 1",
        (r"#Cluster Name +#Broker Name", r"{broker_name} +\d+\.\d+ +3 +0"),
        limit_s=2.5,
        within_s=60,
    ),
    Case("clusterRT -a 3 -i 1 -p true", (r"\|noname\|{cluster}\|{broker_name}\|\d+",), limit_s=2.5, within_s=60),
)

NAME_SERVER = (
    Case("getNamesrvConfig", ("^={{9,}}{namesrv}=", "^listenPort +=")),
    Case("updateNamesrvConfig -k clusterTest -v false", ("update name server config success!",)),
    Case("updateKvConfig -s AdminSpace -k colour -v green", ("create or update kv config to namespace success.",)),
    Case("deleteKvConfig -s AdminSpace -k colour", ("delete kv config from namespace success.",)),
    Case(
        "wipeWritePerm -b {broker_name}",
        (r"wipe write perm of broker\[{broker_name}\] in name server\[{namesrv}\] OK",),
    ),
    Case(
        "addWritePerm -b {broker_name}", (r"add write perm of broker\[{broker_name}\] in name server\[{namesrv}\] OK",)
    ),
    Case("wipeWritePerm -b nobody", (r"OK, 0",)),
)

MESSAGES = (
    Case("printMsg -t AdminTopic -d true", (r"minOffset=0, maxOffset=\d+", "MSGID: {unique_id}", "body-3")),
    Case("printMsg -t AdminTopic -s TagB -d false", (r"TAGS=TagB",)),
    Case("printMsgByQueue -t AdminTopic -a {broker_name} -i 1 -p true -d true", ("MSGID: ", "BODY: body-1")),
    Case("printMsgByQueue -t AdminTopic -a {broker_name} -i 1 -f true", (r"Tag: TagA +Count: \d+",)),
    Case("consumeMessage -t AdminTopic -c 3", ("Consume ok", "MSGID: ")),
    Case("consumeMessage -t AdminTopic -b {broker_name} -i 1 -o 1 -c 2", ("Consume ok", "MSGID: ")),
    Case("consumeMessage -t AdminTopic -b {broker_name} -i 1 -s {begin} -e {now} -c 9", ("Consume ok", "MSGID: ")),
    Case(
        "queryCq -t AdminTopic -q 1 -i 0 -c 2 -b {broker}",
        ("^Queue data: $", r"^max: \d+, min: 0$", r"\{{physicOffset=\d+, physicSize=\d+"),
    ),
    Case(
        "queryCq -t AdminTopic -q 1 -i 0 -c 2 -b {broker} -g AdminGroup", ("^Subscription data: $", r'"subString":"\*"')
    ),
    Case("sendMessage -t AdminTopic -p hello -k key-a -c TagA", (r"#Broker Name +#QID", "SEND_OK")),
    Case("sendMessage -t AdminTopic -p hello -b {broker_name} -i 2 -m true -k key-t", (r"{broker_name} +2 +SEND_OK",)),
    Case("checkMsgSendRT -t AdminTopic -a 3 -s 64", (r"#Broker Name +#QID +#Send Result +#RT", "true", "Avg RT")),
    Case("queryMsgById -i {offset_id}", (r"^Topic: +AdminTopic$", r"^Queue ID: +\d", "AdminGroup", "CONSUMED")),
    Case(
        "queryMsgById -i {offset_id} -g AdminGroup -d {client_id}", ("consumeResult=CR_SUCCESS",), "AdminGroup online"
    ),
    Case("queryMsgById -i {offset_id} -g AdminGroup -d nobody", ("not online",)),
    Case("queryMsgById -i {offset_id} -s true", ("prepare resend msg", "sendStatus=SEND_OK")),
    Case("queryMsgById -i {wrong_id}", ("CODE: 1",)),
    Case("queryMsgByKey -t AdminTopic -k key-3", (r"#Message ID +#QID +#Offset", "^{unique_id} +")),
    Case("queryMsgByUniqueKey -t AdminTopic -i {unique_id}", (r"^Topic: +AdminTopic$", "key-3", "CONSUMED")),
    Case("queryMsgByUniqueKey -t AdminTopic -i {unique_id} -a", (r"^Topic: +AdminTopic$",)),
    Case(
        "queryMsgByUniqueKey -t AdminTopic -i {unique_id} -g AdminGroup -d {client_id}",
        ("consumeResult=CR_SUCCESS",),
        "AdminGroup online",
    ),
    Case("queryMsgByOffset -t AdminTopic -b {broker_name} -i 1 -o 0", (r"^Topic: +AdminTopic$", "^Queue Offset: +0$")),
    Case(
        "queryMsgTraceById -i {traced_id}",
        (r"#Type +#ProducerGroup", r"^Pub +AdminTraced-producer .* success", r"^Sub +AdminTraced .* success"),
        "a traced message",
        within_s=60,
    ),
)

GROUPS = (
    Case("updateSubGroup -b {broker} -g AdminIdle -r 3 -q 2", ("create subscription group to {broker} success.",)),
    Case("updateSubGroup -c {cluster} -g AdminIdle -d true", ("create subscription group to {broker} success.",)),
    Case("getConsumerConfig -g AdminIdle", (r"groupName +=  AdminIdle", "consumeBroadcastEnable +=  true")),
    Case("consumerConnection -g AdminGroup", (r"#ClientId +#ClientAddr", "V4_9_8", "ConsumeType: CONSUME_PASSIVELY")),
    Case("consumerConnection -g AdminGroup -b {broker}", ("V4_9_8",)),
    Case("consumerConnection -g AdminNone", ("CODE: ",)),
    Case("consumerStatus -g AdminGroup", (r"#ClientId", "Same subscription in the same group of consumer")),
    Case("consumerStatus -g AdminGroup -b {broker}", ("Same subscription in the same group of consumer",)),
    Case("consumerStatus -g AdminGroup -i {client_id}", ("#Consumer Properties#", "#Consumer Offset#", "AdminTopic")),
    Case("consumerStatus -g AdminGroup -i {client_id} -s", ("#Consumer jstack#", "ConsumeMessageThread")),
    Case("consumerProgress", (r"#Group +#Count +#Version", r"AdminGroup +1 +V4_9_8")),
    Case(
        "consumerProgress -g AdminGroup",
        (
            r"#Topic +#Broker Name +#QID",
            "Consume TPS: ",
            r"^Diff Total: \d+",
            "^AdminTopic +{broker_name} +3 ",
            "^%RETRY%AdminGroup +{broker_name} ",
        ),
        "AdminGroup's offsets, which its client first tells after ten seconds",
        within_s=60,
    ),
    Case(
        "consumerProgress -g AdminGroup -s true", ("#Client IP", r"AdminTopic .* 127\.0\.0\.1|AdminTopic .* \d+\.\d+")
    ),
    Case("consumerProgress -g AdminNone", ("CODE: 17",)),
    Case("producerConnection -g AdminProducers -t AdminLive", (r"LanguageVersion=|JAVA",), "AdminProducers online"),
    Case("producerConnection -g AdminNone -t AdminLive", ("not exist|not online",)),
    Case("producer -b {broker}", (r"producer group \(AdminProducers\) instance : clientId=",), "AdminProducers online"),
    Case("cloneGroupOffset -s AdminGroup -d AdminIdle -t AdminTopic", ("clone group offset success",)),
    Case("consumerProgress -g AdminIdle", ("CODE: 17",), "a group whose retry topic nobody made"),
    Case("getConsumerStatus -g AdminGroup -t AdminTopic", (r"^\S+ +{broker_name}",), "AdminGroup online"),
    Case("consumer -g AdminGroup", ("#ClientId|Same subscription",), "AdminGroup online"),
)

EXPORTS = (
    Case("exportMetadata -c {cluster} -f {folder}", ('"AdminTopic"', '"AdminIdle"'), file="metadata.json"),
    Case("exportMetadata -b {broker} -f {folder} -t -s", (r'"%RETRY%AdminGroup"',), file="topic.json"),
    Case("exportMetadata -b {broker} -f {folder} -g", ('"AdminIdle"',), file="subscriptionGroup.json"),
    Case("exportConfigs -c {cluster} -f {folder}", ('"{broker_name}"', "ASYNC_MASTER"), file="configs.json"),
    Case("exportMetrics -c {cluster} -f {folder}", ('"{broker_name}"', "V4_9"), file="metrics.json"),
)

# A Java consumer that is told to start elsewhere stands still for ten seconds and answers nobody: so these come last.
RESETS = (
    Case("resetOffsetByTime -g AdminGroup -t AdminTopic -s now", ("rollback consumer offset by specified group",)),
    Case(
        "resetOffsetByTime -g AdminGroup -t AdminTopic -s {begin} -f true",
        (r"{broker_name} +\d +\d+",),
        "AdminGroup online",
    ),
    Case("resetOffsetByTime -g AdminNone -t AdminTopic -s now", ("CODE: ",)),
    Case(
        "skipAccumulatedMessage -g AdminGroup -t AdminTopic -f true",
        (r"#brokerName +#queueId +#offset", "{broker_name}"),
    ),
    Case(
        "skipAccumulatedMessage -g AdminIdle -t AdminTopic -f true",
        (r"#brokerName +#queueId +#brokerOffset",),
        "offline",
    ),
    Case("resetOffsetByTimeOld -g AdminGroup -t AdminTopic -s 2026-01-01#00:00:00:000", ("#rollbackOffset",)),
)

CLEANING = (
    Case(
        "deleteTopic -c {cluster} -t AdminSpare", (r"delete topic \[AdminSpare\] from cluster \[{cluster}\] success.",)
    ),
    Case("deleteSubGroup -c {cluster} -g AdminIdle -r true", ("delete subscription group .* success",)),
    Case("deleteSubGroup -b {broker} -g AdminNone", ("delete subscription group .* success",)),
)

STATISTICS = (
    Case("brokerStatus -b {broker}", ("^bootTimestamp +:", "^putTps +:", "^sendThreadPoolQueueSize +: 0$")),
    Case("brokerStatus -c {cluster}", (r"{broker} +bootTimestamp +:",)),
    Case("statsAll", (r"#Topic +#Consumer Group +#Accumulation +#InTPS", r"AdminTopic +AdminGroup")),
    Case("statsAll -a", (r"AdminTopic +AdminGroup",), "counters, taken each ten seconds", within_s=60),
    Case("statsAll -t AdminTopic", (r"AdminTopic +AdminGroup",)),
)

COMMANDS = (*TOPICS, *CLUSTER, *NAME_SERVER, *MESSAGES, *GROUPS, *EXPORTS, *STATISTICS)


def by_arguments(case: Case) -> str:
    return case.arguments
