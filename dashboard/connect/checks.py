"""Why can an application not connect? What it would be told, tried from here: addresses, reach, TLS, accounts.

Only addresses that the name server itself tells are tried: a person's text is explained, never connected to.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from appliance.settings.sign_in import is_loopback_name as is_loopback_host
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import BrokerRef
from dashboard.connect.tls import ends_of, tls_check
from dashboard.language.sentences import joined
from dashboard.status.board import Snapshot
from dashboard.status.check import Check, Level
from gantrymq.timeouts import timeout

REACH_TIMEOUT_S = 2.0
BROKERS_TRIED_MAX = 32
ERROR_CHARS_MAX = 2000


async def examine(gateway: Gateway, snapshot: Snapshot | None, proxies: Sequence[str]) -> list[Check]:
    """What a client would meet. Raises ClusterUnreachable when no name server answers and none ever did."""
    cluster = await gateway.brokers.list()
    brokers, proxies = (*cluster.brokers, *cluster.slaves)[:BROKERS_TRIED_MAX], proxies[:BROKERS_TRIED_MAX]
    reached = await asyncio.gather(*(_why_not(address) for address in (*(each.address for each in brokers), *proxies)))
    found = _brokers(list(zip(brokers, reached, strict=False)))
    found = found or [
        Check(
            Level.BAD,
            gettext("Brokers"),
            gettext("none is registered"),
            gettext("The page Brokers shows their processes."),
        )
    ]
    at_proxies = [_proxy(address, why) for address, why in zip(proxies, reached[len(brokers) :], strict=True)]
    name_server = _answering(gettext("Name server"), gateway.namesrv, cluster.why)
    answering = [broker.address for broker, why in zip(brokers, reached, strict=False) if why is None]
    return [name_server, *at_proxies, *found, *await _doors(snapshot, answering)]


def _brokers(tried: Sequence[tuple[BrokerRef, str | None]]) -> list[Check]:
    """What cannot be reached each for itself; the others by who can reach them, several in one line."""
    found = [_broker(broker, why) for broker, why in tried if why is not None]
    for is_local in (True, False):
        alike = [broker for broker, why in tried if why is None and is_loopback(broker.address) == is_local]
        if len(alike) <= 1:
            found += [_broker(broker, None) for broker in alike]
            continue
        what = gettext("Addresses of %(count)s brokers") % {"count": len(alike)}
        told = {"brokers": ", ".join(broker.key for broker in alike)}
        if is_local:
            evidence = gettext("clients get addresses that only this machine reaches: %(brokers)s") % told
            found.append(Check(Level.WARN, what, evidence, _for_others()))
        else:
            evidence = gettext("clients get addresses that can be reached from here: %(brokers)s") % told
            found.append(Check(Level.GOOD, what, evidence))
    return found


def _for_others() -> str:
    return gettext(
        "For others: `gantry up --bind 0.0.0.0 --advertise ADDRESS --accounts`, and their name server is "
        "this machine's address."
    )


def _broker(broker: BrokerRef, why: str | None) -> Check:
    what, told = gettext("Address of %(key)s") % {"key": broker.key}, {"address": broker.address, "why": why}
    if why is not None:
        evidence = gettext("clients get the address %(address)s, which is %(why)s from here") % told
        action = gettext(
            "Start the broker, or advertise an address that clients reach: `gantry up --advertise ADDRESS`."
        )
        return Check(Level.BAD, what, evidence, action)
    if is_loopback(broker.address):
        evidence = gettext("clients get the address %(address)s, which only this machine reaches") % told
        return Check(Level.WARN, what, evidence, _for_others())
    evidence = gettext("clients get the address %(address)s, which can be reached from here") % told
    return Check(Level.GOOD, what, evidence)


def _proxy(address: str, why: str | None) -> Check:
    told = gettext("clients of RocketMQ 5 use %(address)s, which is %(why)s from here")
    return _answering(gettext("Proxy"), address, None if why is None else told % {"address": address, "why": why})


def _answering(what: str, address: str, why: str | None) -> Check:
    """A process at one address or more. why: what is wrong with it."""
    if why is not None:
        return Check(Level.BAD, what, why, gettext("The page Brokers shows its process."))
    told = {"address": address}
    if all(is_loopback(one) for one in address.split(";")):
        evidence = gettext("%(address)s answers, but only programs on this machine can reach it") % told
        return Check(Level.WARN, what, evidence, gettext("For others: `gantry up --bind 0.0.0.0 --accounts`."))
    return Check(Level.GOOD, what, gettext("%(address)s answers") % told)


async def _doors(snapshot: Snapshot | None, brokers: Sequence[str]) -> list[Check]:
    """TLS and accounts, as the brokers say. brokers: addresses that answer."""
    known = [broker for broker in snapshot.brokers if broker.facts is not None] if snapshot else []
    modes = {broker.address: broker.facts.services.tls for broker in known if broker.facts is not None}
    ends = await ends_of(one for one in brokers if modes.get(one, "") not in ("", "disabled"))
    told = sorted({broker.facts.services.accounts for broker in known if broker.facts is not None})
    return [tls_check(sorted(modes.values()), ends, datetime.now(UTC)), _accounts(told)]


def _accounts(told: Sequence[str]) -> Check:
    """told: of the brokers: "off", or how many accounts there are; "": one does not tell."""
    title, known = gettext("Accounts"), [one for one in told if one]
    if not known:
        return Check(Level.WARN, title, gettext("unknown: these brokers do not report it"))
    action = gettext(
        "A client needs an access key and a secret key: create an account on the page Access, or with "
        "`gantry admin accounts set NAME --secret generate`."
    )
    level = Level.GOOD if len(known) == len(told) else Level.WARN
    if known == ["off"]:
        evidence, action = gettext("off: clients need no account"), ""
    elif "off" in known:
        level, evidence = Level.WARN, gettext("required by some brokers and not by others")
    else:
        evidence = gettext("required: a client without an account is rejected")
    silent = [gettext("some brokers do not report it")] if len(known) < len(told) else []
    return Check(level, title, joined([evidence, *silent], "; "), action)


async def _why_not(address: str) -> str | None:
    """None when a connection opens."""
    host, _, port = address.rpartition(":")
    try:
        async with timeout(REACH_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except TimeoutError:
        return gettext("silent")
    except (OSError, ValueError):
        return gettext("not reachable")
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return None


def is_loopback(address: str) -> bool:
    return is_loopback_host(address.rpartition(":")[0].strip("[]"))


# What clients print, and what it means: Java's, Go's and npm's words, and the SDK's own.
_MEANINGS = (
    (
        r"No route info of this topic|RouteNotFound|topic route .*not exist|the topic route info not exist",
        _("The name server knows no broker with that topic."),
        _("Create the topic, or check its spelling. A client that only reads creates no topic."),
    ),
    (
        r"No name server address|name ?server address.*(empty|null)",
        _("The client has no name server."),
        _("Use the address above."),
    ),
    (
        r"connect to .*(null|failed)|ECONNREFUSED|connection refused|ConnectError|dial tcp",
        _("The address does not accept connections."),
        _(
            "If it is the name server's, compare it with the one above. If it differs, the name "
            "server gave it: make the broker advertise an address that the client reaches "
            "(--advertise)."
        ),
    ),
    (
        r"sendDefaultImpl call timeout|RemotingTimeout|wait response on the channel|RequestTimeout|timed? ?out",
        _("The connection is open, but no answer arrived in time."),
        _("Often a firewall, or an address that leads elsewhere; otherwise the broker is busy: check its lanes."),
    ),
    (
        r"system busy|broker busy|SYSTEM_BUSY|TIMEOUT_CLEAN_QUEUE|too many requests",
        _("The broker rejects requests at the moment."),
        _("Check its lanes and its disk; clients retry automatically."),
    ),
    (
        r"AclException|signature|No accessKey|NO_PERMISSION|no permission|CODE: ?1 .*acl",
        _("The account was rejected."),
        _("Compare access key and secret key, and what the account may do with this topic and group."),
    ),
    (
        r"SSL|TLS|certificate|plain ?text|handshake",
        _("One side uses TLS and the other does not, or the certificate is not trusted."),
        _("See TLS above; in Java: -Dtls.enable=true, and trust the authority's certificate."),
    ),
    (
        r"disk ?full|service not available|SERVICE_NOT_AVAILABLE|the broker's disk",
        _("The broker does not accept messages: its disk is full, or it is a slave."),
        _("Check the disk on the broker's page."),
    ),
    (
        r"subscription.*(not exist|not latest|differ)|SUBSCRIPTION_NOT",
        _("Members of the group have different subscriptions, or the group is new to the broker."),
        _("The group's page names the members. All members of a group need the same subscription."),
    ),
    (
        r"clientId|has been created before|same group name",
        _("Two clients of one process use the same group or instance name."),
        _("Give each its own instance name."),
    ),
    (
        r"MESSAGE_ILLEGAL|message body size over|MessageRejected|body.*too (large|long)",
        _("The message is larger than the client or the broker allows."),
        _("maxMessageSize is 4 MiB unless changed."),
    ),
)


def explain(text: str) -> list[tuple[str, str]]:
    """What a client's error means, and what to do: each meaning that fits. An unknown one fits none."""
    text = text[:ERROR_CHARS_MAX]
    return [
        (str(meaning), str(advice)) for pattern, meaning, advice in _MEANINGS if re.search(pattern, text, re.IGNORECASE)
    ]
