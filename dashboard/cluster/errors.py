"""What can go wrong between the dashboard and the cluster, as types that pages, REST and sockets can tell apart.

GatewayError
├─ ClusterUnreachable     the name server does not answer, and nothing is known from before
├─ BrokerUnreachable      one broker did not answer (in time)
├─ TopicNotFound          no broker has the topic
│  └─ MessageNotFound     the topic is there, the message is not
├─ BrokerNotFound         the name server lists no such broker
├─ GroupNotFound          no broker knows the consumer group
├─ ClientNotFound         no broker has a connection of the client
├─ MemberNotFound         the client is no member of the group
├─ EntryNotFound          the name servers keep no such key
├─ TopicExists            it can't be created twice
├─ NotAllowed             a system topic would be changed
├─ NotWritable            the topic takes no messages
├─ NoSuccessor            another broker did not become the master
├─ TooManySearches        the dashboard looks through messages for too many at the moment
└─ Refused                the broker refused; the text is its remark
"""

from __future__ import annotations

from django.utils.translation import gettext_noop

from dashboard.language.sentences import gettext
from gantrymq.client.admin.accounts import NO_ACCESS_CONTROL
from gantrymq.client.results import LostMessage
from gantrymq.errors import ConnectError, GantryError, RequestTimeout, ResponseError
from gantrymq.remoting.codes import ResponseCode


class GatewayError(GantryError):
    """Root; `status` is the HTTP status that says it best, `advice` what a person can do."""

    status = 502
    advice = gettext_noop("Try again. If it persists, check the processes on the Overview.")


class ClusterUnreachable(GatewayError):
    """No name server answers."""

    status = 503
    advice = gettext_noop("The name server is starting or stopped. The page Brokers shows its process.")


class BrokerUnreachable(GatewayError):
    """A broker that had to answer did not."""

    status = 503
    advice = gettext_noop("The broker is starting, busy or stopped. The page Brokers shows its process.")


class TopicNotFound(GatewayError):
    """No broker has this topic."""

    status = 404
    advice = gettext_noop("It may have been deleted. The list of topics shows which exist.")


class MessageNotFound(TopicNotFound):
    """The topic does not hold this message."""

    advice = gettext_noop("It may have expired. The topic's Queues tab shows which offsets each queue holds.")


class MessageDamaged(MessageNotFound):
    """The message is damaged on the broker's disk."""

    def __init__(self, lost: LostMessage) -> None:
        super().__init__(gettext("This message is damaged: %(place)s") % {"place": lost})
        self.lost = lost

    advice = gettext_noop("A slave or its producer may still have it. `gantry store verify` lists all damage.")


class BrokerNotFound(GatewayError):
    """No broker of this name is registered."""

    status = 404
    advice = gettext_noop("The Overview lists the existing brokers.")


class GroupNotFound(GatewayError):
    """No broker knows this consumer group."""

    status = 404
    advice = gettext_noop(
        "A group is known once one of its consumers has connected. The list of groups shows which exist."
    )


class ClientNotFound(GatewayError):
    """No client of this id is connected."""

    status = 404
    advice = gettext_noop("It may have disconnected. The list of clients shows who is connected.")


class MemberNotFound(GatewayError):
    """The client is not connected as a member of the group."""

    status = 404
    advice = gettext_noop("Clients connect and disconnect. The group's page shows who is connected.")


class EntryNotFound(GatewayError):
    """The name servers' key-value table has no such key."""

    status = 404
    advice = gettext_noop("It may have been removed. Its namespace shows the existing entries.")


class TopicExists(GatewayError):
    """A topic of that name is there already."""

    status = 409
    advice = gettext_noop("Open it and change its settings, or choose another name.")


class NotAllowed(GatewayError):
    """It can't be done with this topic or group, or not now; the text says why."""

    status = 409
    advice = gettext_noop("Nothing was changed. The message above says why.")


class NotWritable(GatewayError):
    """The topic takes no messages: its permission, or it has no queue to write to."""

    status = 409
    advice = gettext_noop("Its settings say what the broker accepts for it.")


class NoSuccessor(GatewayError):
    """A slave did not become the master, or is not known as it yet."""

    status = 502
    advice = gettext_noop(
        "Check the broker's masters and slaves again: their current state counts. Their logs say why."
    )


class TooManySearches(GatewayError):
    """A dashboard must never be able to hurt a broker: so many searches at once, and no more."""

    status = 503
    advice = gettext_noop("Other searches are running. Try again in a few seconds.")


class Refused(GatewayError):
    """The broker refused."""

    status = 502
    advice = gettext_noop("The text is the broker's own answer.")


# What a broker's remark is about, by its code: the name in the pattern says it to translators. The English remark says
# it itself; other languages have their own words, and the remark in brackets behind them.
_REMARKS: dict[int, str] = {
    ResponseCode.SYSTEM_BUSY: gettext_noop("%(broker_is_busy)s"),
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: gettext_noop("%(request_not_supported)s"),
    ResponseCode.FLUSH_DISK_TIMEOUT: gettext_noop("%(flush_timed_out)s"),
    ResponseCode.SLAVE_NOT_AVAILABLE: gettext_noop("%(no_slave_available)s"),
    ResponseCode.FLUSH_SLAVE_TIMEOUT: gettext_noop("%(slave_too_slow)s"),
    ResponseCode.MESSAGE_ILLEGAL: gettext_noop("%(message_not_valid)s"),
    ResponseCode.SERVICE_NOT_AVAILABLE: gettext_noop("%(service_not_available)s"),
    ResponseCode.NO_PERMISSION: gettext_noop("%(no_permission)s"),
    ResponseCode.TOPIC_NOT_EXIST: gettext_noop("%(no_such_topic)s"),
    ResponseCode.SUBSCRIPTION_NOT_EXIST: gettext_noop("%(no_subscription)s"),
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: gettext_noop("%(no_such_group)s"),
    ResponseCode.CONSUMER_NOT_ONLINE: gettext_noop("%(consumer_not_online)s"),
    ResponseCode.CONSUME_MSG_TIMEOUT: gettext_noop("%(consuming_timed_out)s"),
}
_NO_ACCESS_CONTROL_PATTERN = gettext_noop("%(no_access_control)s")


def explain(exc: Exception) -> str:
    """One short phrase for a failed call, without the stack of words around it."""
    if isinstance(exc, RequestTimeout):
        return gettext("no answer within %(timeout_s)s s") % {"timeout_s": f"{exc.timeout_s:g}"}
    if isinstance(exc, TimeoutError):
        return gettext("no answer in time")
    if isinstance(exc, ConnectError):
        return gettext("not reachable (%(reason)s)") % {"reason": exc.reason}
    if isinstance(exc, ResponseError) and not exc.remark:
        return gettext("answered with code %(code)s") % {"code": int(exc.code)}
    remark = (exc.remark if isinstance(exc, ResponseError) else str(exc)) or type(exc).__name__
    pattern = _REMARKS.get(exc.code) if isinstance(exc, ResponseError) else None
    if NO_ACCESS_CONTROL in remark:
        pattern = _NO_ACCESS_CONTROL_PATTERN
    return remark if pattern is None else gettext(pattern) % {pattern[2:-2]: remark}
