"""Where what mqadmin prints about us may differ from what it prints about Apache RocketMQ 4.9.7, and why.

A line of a shape that only one of them has must be found by an expression here. An entry that finds nothing any more
is an error, too: the list says what is so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Difference(NamedTuple):
    """Lines of some commands that only one side prints."""

    commands: str  # an expression for the command with its arguments
    ours: str  # lines that only we print; "" for none
    theirs: str
    reason: str
    always: bool = True  # else it shows in a long run alone


FIGURE = r"^(<address> )?"

DIFFERENCES = (
    Difference(
        "^(guarded )?brokerStatus",
        ours=FIGURE + r"(getFoundTps|getMissTps|getTransferedTps|putTps) ?: <n> <n> <n>$",
        theirs=FIGURE + r"(getFoundTps|getMissTps|getTransferedTps|putTps) ?:( <n>){0,2}$",
        reason="rates over 10, 60 and 600 s: RocketMQ leaves those out for which it has not run long enough yet",
    ),
    Difference(
        "^(guarded )?brokerStatus|^exportMetrics",
        ours=r"(diskGrowthBytesPerSecond|diskSecondsTo(Full|NextMark)) ?: <n>$|putMessageDistributeTime ?: \[.+\]:<n>$",
        theirs=r"putMessageDistributeTime ?: null$",
        reason="figures of the last minute, once a broker has run for one",
        always=False,
    ),
    Difference(
        "",
        ours=r"\bRMQ_SYS_TRANS_HALF_TOPIC\b",
        theirs="",
        reason="the first look for open transactions makes it, a minute after the start",
        always=False,
    ),
    Difference(
        "^statsAll -a",
        ours=r"^Admin\w+ Admin\w+( <n>){5}$",
        theirs=r"^Admin\w+ Admin\w+( <n>){5}$",
        reason="counters are taken each ten seconds: which groups were active is a matter of the moment",
        always=False,
    ),
    Difference(
        "^(guarded )?brokerStatus",
        ours=FIGURE
        + r"\w+(Queue|ThreadPoolQueue)(Capacity|Size|HeadWaitTimeMills|Served|Rejected|Expired|OnewayRefused) ?: <n>$",
        theirs="",
        reason="we tell of every lane of requests, and what it served and refused",
    ),
    Difference(
        "^(guarded )?brokerStatus",
        ours=FIGURE + r"getTransferredTps ?: <n> <n> <n>$",
        theirs="",
        reason="RocketMQ 5 spells it so, and its exportMetrics fails without it",
    ),
    Difference(
        "^(guarded )?brokerStatus",
        ours=FIGURE + r"(transaction|timer)\w+ ?: <n>$",
        theirs="",
        reason="figures of ours about transactions and waiting messages",
    ),
    Difference(
        "^(guarded )?brokerStatus",
        ours=FIGURE + r"(acl\w+|connections|connectionsParked|connectionsRefusedForFiles|consumerBehindBytesMax"
        r"|fastPath(Declined|Pulls|Sends)?"
        r"|consumerFilters|messagesDamaged\w*|disk(Device|Filled|Free|Others|Reserved|Store)\w*|openFilesMax|outOfFilesSecondsAgo|settingsRefused\w*"
        r"|epoch(HandedTo|Highest|Id|Register|Rival|Start)?|inSyncSetPublished|member(Boot|Group|Number|Store)|haAccounts|master(FencedBy|Proof)|memory(Free|Mapped|Other|Pool|Request|Subscription|Swapped|Timer)?Bytes|messagesHeld|mayBeginEpoch|haTlsMode|roleGiven"
        r"|disk(Clean|Force|Next|Refuse)MarkRatio|heldPullRequests|pop(DeadLetters|MessagesOut|MessagesOutByGroup|OldestOutMs|Redelivered|RedeliveredByGroup|Waiting)|nameServersRegistered|offsetMovedEventsLeftOut|settingsIgnored|brokerRole|slave(BehindBytes|Differences|IdBefore)|confirmedOffset|slaves(Connected|Gone|InSync|InSyncSet)"
        r"|subscriptionDisagreements"
        r"|suspendedGroups|tablesNotSaved|tlsMode|topicRetentionExpired|topicsNotShared|topicsShared) ?:.*$",
        theirs="",
        reason="figures of ours: the dashboard shows them",
    ),
    Difference(
        "^getNamesrvConfig",
        ours="",
        theirs=r"^\w+(ThreadPoolNums|Threads|SemaphoreValue|AllocatorEnable|NativeSelector|ThreadPoolQueueCapacity)"
        r" = \S+$",
        reason="there are no thread pools, semaphores and buffer pools of Netty here",
    ),
    Difference(
        "^getBrokerConfig",
        ours=r"^((autoDeleteUnusedStats|messageIndexSafe) = true|(transferMsgByHeap"
        r"|serverPooledByteBufAllocatorEnable|useReentrantLockWhenPutMessage) = false)$",
        theirs=r"^((autoDeleteUnusedStats|messageIndexSafe) = false|(transferMsgByHeap"
        r"|serverPooledByteBufAllocatorEnable|useReentrantLockWhenPutMessage) = true)$",
        reason="settings that do nothing here are told with what they amount to",
    ),
    Difference(
        "^getBrokerConfig",
        ours=r"^(dLegerGroup|dLegerPeers|dLegerSelfId|haMasterAddress|preferredLeaderId|storePathDLedgerCommitLog"
        r"|rmqAddressServerDomain|rmqAddressServerSubGroup) =.*$",
        theirs="",
        reason="what RocketMQ leaves out while nobody set it",
    ),
    Difference(
        "^getNamesrvConfig",
        ours="",
        theirs=r"^(clusterTest|configStorePath|productEnvName) = \S*$",
        reason="there is no cluster test, and where its file lies is nobody's business",
    ),
    Difference(
        "^get(Broker|Namesrv)Config",
        ours=r"^(tls\.|rocketmq\.|com\.rocketmq\.|aclRequireStamp|aclStampWindowMs|bindAddress|writeAccess|useTLS)\S*"
        r" ?=.*$",
        theirs=r"^useTLS = false$",
        reason="what Java takes from -D and from its TLS file are settings here; so are the ways to bind and guard",
    ),
    Difference(
        "^get(Broker|Namesrv)Config",
        ours=r"^rocketmqHome =$",
        theirs=r"^rocketmqHome = <home>$",
        reason="no home is needed here but for accounts",
    ),
    Difference(
        "^getNamesrvConfig",
        ours=r"^(brokerChannelExpiredTime|connectTimeoutMillis|scanNotActiveBrokerInterval) = <n>$",
        theirs=r"^writeBufferLowWaterMark = <n>$",
        reason="constants of RocketMQ that are settings here, and the other way round",
    ),
    Difference(
        "^getBrokerConfig",
        ours=r"^(allAckInSyncStateSet|automaticFailover|brokerElectionPriority|cleanFileForciblyForOthers|clusterTest|createdAMinuteMax|credentialsFile|enableControllerMode|etcd\w+|failoverLeaseSeconds|fastPathEnable|haAccounts|haMaxTimeSlaveNotCatchup|haSlaveAddresses|haTlsMode|minInSyncReplicas|readConfirmedOnly"
        r"|heartbeatSubscriptionsMax|lockQueuesMax|maxStoreBytes|messageKeysMax"
        r"|queueLockGraceTime|readOnlyCommitLogStorePaths|storePathsBeside|shareCreatedTopicsEnable|slavesEnable|timerMaxDelaySec|timerWheelEnable|traceMessageKeysMax"
        r"|messageStorePlugIn) =.*$",
        theirs="",
        reason="settings of ours, and constants and empty values of RocketMQ that it does not list",
    ),
    Difference(
        "^getBrokerConfig",
        ours=r"^enablePropertyFilter = true$",
        theirs=r"^enablePropertyFilter = false$",
        reason="SQL subscriptions work without having to be switched on",
    ),
    Difference(
        "^statsAll -a",
        ours=r"^\S+ <n> <n> <n> NO_CONSUMER$",
        theirs=r"^\S+ <n> <n> <n> NO_CONSUMER$",
        reason="counters are taken each ten seconds: which topics were active is a matter of the moment",
    ),
    Difference(
        "^guarded (updateTopic|deleteAclConfig)",
        ours=r"CODE: 16 DESC: org.apache.rocketmq.acl.common.AclException: No accessKey is configured$",
        theirs=r"CODE: 1 DESC: org.apache.rocketmq.acl.common.AclException: No accessKey is configured,",
        reason="a refusal has a code of its own, and does not tell where in the broker's code it was thought of",
    ),
    Difference(
        "^guarded updateAclConfig",
        ours=r"and secretKey=\*\*\* cannot be null",
        theirs=r"and secretKey=s cannot be null",
        reason="no secret is told",
    ),
    Difference(
        "^guarded getAclConfig",
        ours=r"^secretKey : \*{8}$",
        theirs=r"^secretKey : \w+Secret<n>$",
        reason="no secret is told",
    ),
    Difference(
        "^updateTopic",
        ours=r"CODE: 29 DESC: The specified topic contains illegal characters",
        theirs=r"CODE: 1 DESC: The specified topic contains illegal characters",
        reason="the mistake of who asks has a code of its own",
    ),
    Difference("^exportConfigs", ours=r"useTLS $", theirs=r"useTLS false$", reason="empty: as tls.server.mode has it"),
)


def unaccepted(command: str, ours: Iterable[str], theirs: Iterable[str]) -> list[str]:
    """The lines of two shapes that differ without a reason: "+" before ours, "-" before theirs."""
    accepted = [difference for difference in DIFFERENCES if re.search(difference.commands, command)]
    added = _left(set(ours) - set(theirs), [difference.ours for difference in accepted])
    lost = _left(set(theirs) - set(ours), [difference.theirs for difference in accepted])
    return [f"+ {line}" for line in added] + [f"- {line}" for line in lost]


def stale(ours: Mapping[str, Iterable[str]], theirs: Mapping[str, Iterable[str]]) -> list[Difference]:
    """The differences that apply to a command of ours and find nothing in the shapes."""
    return [
        difference
        for difference in DIFFERENCES
        if difference.always
        and any(re.search(difference.commands, command) for command in ours)
        and not (_finds(difference, difference.ours, ours) and _finds(difference, difference.theirs, theirs))
    ]


def _finds(difference: Difference, pattern: str, shapes: Mapping[str, Iterable[str]]) -> bool:
    lines = (line for command in shapes if re.search(difference.commands, command) for line in shapes[command])
    return not pattern or any(re.search(pattern, line) for line in lines)


def _left(lines: set[str], patterns: list[str]) -> list[str]:
    return sorted(line for line in lines if not any(pattern and re.search(pattern, line) for pattern in patterns))
