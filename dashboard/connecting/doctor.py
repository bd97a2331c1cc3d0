"""Why can an application not connect? What it would be told, tried from here: addresses, reach, TLS, accounts.

Only addresses that the name server itself tells are tried: a person's text is explained, never connected to.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
from dataclasses import dataclass

from dashboard.cluster.gateway import Gateway
from dashboard.status.board import Snapshot
from gantrymq.timeouts import timeout

REACH_TIMEOUT_S = 2.0
BROKERS_TRIED_MAX = 32
ERROR_CHARS_MAX = 2000
OK, ATTENTION, PROBLEM = "ok", "attention", "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. level: ok, attention or problem; advice: "" where there is nothing to do."""

    what: str
    level: str
    told: str
    advice: str = ""


async def examine(gateway: Gateway, snapshot: Snapshot | None) -> list[Finding]:
    """What a client would meet. Raises ClusterUnreachable when no name server answers and none ever did."""
    cluster = await gateway.brokers.list()
    findings = [_name_server(gateway.namesrv, cluster.why)]
    brokers = (*cluster.brokers, *cluster.slaves)[:BROKERS_TRIED_MAX]
    reached = await asyncio.gather(*(_why_not(broker.address) for broker in brokers))
    for broker, why in zip(brokers, reached, strict=True):
        what = f"Address of {broker.key}"
        if why is not None:
            findings.append(
                Finding(what, PROBLEM, f"clients are told {broker.address}, which is {why} from here",
                        "Start the broker, or have it say an address that clients reach: gantry up --advertise.")
            )  # fmt: skip
        elif is_loopback(broker.address):
            findings.append(
                Finding(what, ATTENTION, f"clients are told {broker.address}, which only this machine reaches",
                        "For others: gantry up --bind 0.0.0.0 --advertise ADDRESS --accounts, and their name server is "
                        "this machine's address.")
            )  # fmt: skip
        else:
            findings.append(Finding(what, OK, f"clients are told {broker.address}; it can be reached from here"))
    if not brokers:
        findings.append(Finding("Brokers", PROBLEM, "none is registered", "The Overview shows their processes."))
    return [*findings, *_doors(snapshot)]


def _name_server(address: str, why: str | None) -> Finding:
    if why is not None:
        return Finding("Name server", PROBLEM, why, "The Overview shows its process.")
    if all(is_loopback(one) for one in address.split(";")):
        return Finding(
            "Name server", ATTENTION, f"{address} answers, to programs on this machine only",
            "For others: gantry up --bind 0.0.0.0 --accounts.",
        )  # fmt: skip
    return Finding("Name server", OK, f"{address} answers")


def _doors(snapshot: Snapshot | None) -> list[Finding]:
    """TLS and accounts, as the brokers say."""
    services = [broker.facts.services for broker in snapshot.masters if broker.facts is not None] if snapshot else []
    tls = sorted({one.tls for one in services if one.tls})
    accounts = sorted({one.accounts for one in services if one.accounts})
    if not tls and not accounts:
        return [Finding("TLS and accounts", ATTENTION, "not known: these brokers do not say")]
    enforced = any("enforcing" in one for one in tls)
    return [
        Finding("TLS", OK, ", ".join(tls) or "not known",
                "Clients without TLS are refused: tls=True in Python, -Dtls.enable=true in Java." if enforced else ""),
        Finding("Accounts", OK, ", ".join(accounts) or "not known",
                "" if accounts in ([], ["not asked for"]) else
                "A client needs an access key and a secret key: gantry admin accounts set NAME --secret generate."),
    ]  # fmt: skip


async def _why_not(address: str) -> str | None:
    """None when a connection opens."""
    host, _, port = address.rpartition(":")
    try:
        async with timeout(REACH_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except TimeoutError:
        return "silent"
    except (OSError, ValueError):
        return "not reachable"
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return None


def is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# What clients print, and what it means: Java's, Go's and npm's words, and the SDK's own.
_MEANINGS = (
    (r"No route info of this topic|RouteNotFound|topic route .*not exist|the topic route info not exist",
     "The name server knows no broker with that topic.",
     "Create the topic, or look at its spelling. A client that only reads makes no topic."),
    (r"No name server address|name ?server address.*(empty|null)",
     "The client was given no name server.", "Give it the address that stands above."),
    (r"connect to .*(null|failed)|ECONNREFUSED|connection refused|ConnectError|dial tcp",
     "The address answers no connection.",
     "If it is the name server's, compare it with the one above. Another one is what the name server told: "
     "the broker has to say an address that the client reaches (--advertise)."),
    (r"sendDefaultImpl call timeout|RemotingTimeout|wait response on the channel|RequestTimeout|timed? ?out",
     "A connection is there, and no answer came in time.",
     "Often a firewall, or an address that leads elsewhere; else the broker is busy: look at its lanes."),
    (r"system busy|broker busy|SYSTEM_BUSY|TIMEOUT_CLEAN_QUEUE|too many requests",
     "The broker refuses work for the moment.", "Look at its lanes and its disk; clients try again by themselves."),
    (r"AclException|signature|No accessKey|NO_PERMISSION|no permission|CODE: ?1 .*acl",
     "The account was refused.",
     "Compare access key and secret key, and what the account may do with this topic and group."),
    (r"SSL|TLS|certificate|plain ?text|handshake",
     "One side speaks TLS and the other does not, or the certificate is not trusted.",
     "See TLS above; Java: -Dtls.enable=true, and the authority's certificate as trusted."),
    (r"disk ?full|service not available|SERVICE_NOT_AVAILABLE|the broker's disk",
     "The broker takes no messages: its disk is full, or it is a slave.", "Look at the disk on the broker's page."),
    (r"subscription.*(not exist|not latest|differ)|SUBSCRIPTION_NOT",
     "Members of the group subscribe to different things, or the group is new to the broker.",
     "The group's page names who disagrees. All members of a group need the same subscription."),
    (r"clientId|has been created before|same group name",
     "Two clients of one process use the same group or instance name.", "Give each an instance name of its own."),
    (r"MESSAGE_ILLEGAL|message body size over|MessageRejected|body.*too (large|long)",
     "The message is larger than the client or the broker takes.", "maxMessageSize is 4 MiB unless changed."),
)  # fmt: skip


def explain(text: str) -> list[tuple[str, str]]:
    """What a client's error means, and what to do: each meaning that fits. An unknown one fits none."""
    text = text[:ERROR_CHARS_MAX]
    return [(meaning, advice) for pattern, meaning, advice in _MEANINGS if re.search(pattern, text, re.IGNORECASE)]
