"""Weaknesses of the appliance's settings, its folder and its process. Pure but for `look` and rights of a file."""

from __future__ import annotations

import ipaddress
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.utils.translation import gettext

from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.sign_in import REFUSE
from dashboard.posture.finding import Finding
from dashboard.status.problems import Level

WIDE_V4, WIDE_V6 = 16, 48  # a network with a shorter prefix is no list of proxies or receivers
PRIVATE_FOLDERS = ("", "dashboard", "accounts")  # below the data folder


@dataclass(frozen=True, slots=True)
class Machine:
    """What is not in the settings. open_folders: those that other accounts of the machine may look into."""

    is_root: bool
    open_folders: tuple[str, ...] = ()


def look(data: Path) -> Machine:
    """Look at the process and at the data folder."""
    folders = [data / name for name in PRIVATE_FOLDERS if (data / name).is_dir()]
    others = stat.S_IRWXG | stat.S_IRWXO
    return Machine(os.geteuid() == 0, tuple(str(one) for one in folders if one.stat().st_mode & others))


def findings(settings: ApplianceConfig, machine: Machine) -> Iterator[Finding]:
    """What is open, the worst first."""
    yield from _network(settings)
    yield from _tls(settings)
    yield from _lists(settings)
    yield from _sign_in(settings)
    if machine.is_root:
        yield Finding(
            code="root",
            level=Level.WARN,
            title=gettext("The appliance runs as root"),
            seen=gettext("The process has user id 0."),
            advice=gettext(
                "Whatever goes wrong in it goes wrong with all rights of the machine. Name an account to run as."
            ),
            lines='user = "gantry"',
        )
    if machine.open_folders:
        yield Finding(
            code="folder-open",
            level=Level.BAD,
            title=gettext("Other accounts of this machine may look into the data folder"),
            seen=", ".join(machine.open_folders),
            advice=gettext("Messages, password hashes and keys lie there. Take the rights of group and others away."),
            lines=f"chmod -R go= {machine.open_folders[0]}",
        )


def _network(settings: ApplianceConfig) -> Iterator[Finding]:
    if settings.accounts or settings.attach:  # of another cluster its brokers tell
        return
    if settings.is_loopback:
        yield Finding(
            code="no-accounts",
            level=Level.WARN,
            title=gettext("Clients need no account"),
            seen=gettext("Every program that reaches %(bind)s may send, read and administer.")
            % {"bind": settings.bind},
            advice=gettext("That is every program on this machine. Have brokers ask for accounts."),
            lines="accounts = true",
        )
        return
    yield Finding(
        code="open-network",
        level=Level.BAD,
        title=gettext("The network may do everything"),
        seen=gettext("Brokers and name server listen on %(bind)s and ask for no account.") % {"bind": settings.bind},
        advice=gettext(
            "Each program that reaches them may read, send and delete. Ask for accounts, or bind to 127.0.0.1."
        ),
        lines="accounts = true",
    )


def _tls(settings: ApplianceConfig) -> Iterator[Finding]:
    if settings.is_loopback and not settings.tls_cert:
        return
    if not settings.http_tls:
        yield Finding(
            code="no-tls",
            level=Level.BAD,
            title=gettext("Connections are not encrypted"),
            seen=gettext("%(bind)s is reached over the network, without TLS.") % {"bind": settings.bind},
            advice=gettext("Passwords, tokens and messages can be read on the way. Make a certificate, then name it."),
            lines='tls_cert = "/etc/gantrymq/server.pem"\ntls_mode = "enforcing"  # gantry tls create makes one',
        )
        return
    if settings.tls_mode != "enforcing" and not settings.attach:
        yield Finding(
            code="tls-permissive",
            level=Level.WARN,
            title=gettext("Connections without TLS are accepted, too"),
            seen=gettext("tls_mode is permissive: a client that is not set up for TLS goes unnoticed."),
            advice=gettext("When all clients use TLS, refuse the others."),
            lines='tls_mode = "enforcing"',
        )
    if not settings.http_hsts_s and not settings.is_loopback:
        yield Finding(
            code="no-hsts",
            level=Level.WARN,
            title=gettext("Browsers may be led to plain HTTP"),
            seen=gettext("http_hsts_s is 0."),
            advice=gettext(
                "With it browsers use https only, on every port of this host; nothing there may need plain HTTP."
            ),
            lines="http_hsts_s = 31536000",
        )


def _lists(settings: ApplianceConfig) -> Iterator[Finding]:
    if wide := _wide(settings.trusted_proxies):
        yield Finding(
            code="proxies-wide",
            level=Level.BAD,
            title=gettext("Too many addresses count as proxies"),
            seen=wide,
            advice=gettext("A client at such an address may claim to be any other one. Name the proxies themselves."),
            lines='trusted_proxies = "10.0.0.7"',
        )
    if wide := _wide(settings.alarm_networks):
        yield Finding(
            code="alarms-wide",
            level=Level.WARN,
            title=gettext("Notices may go to whole private networks"),
            seen=wide,
            advice=gettext("A channel may make the dashboard call services there. Name the receivers' addresses."),
            lines='alarm_networks = "10.0.0.9"',
        )
    if "*" in settings.allowed_hosts:
        yield Finding(
            code="any-host",
            level=Level.BAD,
            title=gettext("The dashboard answers to every host name"),
            seen=gettext("allowed_hosts is %(allowed_hosts)s.") % {"allowed_hosts": settings.allowed_hosts},
            advice=gettext("A page elsewhere could send requests here under a name of its own. List the names in use."),
            lines='allowed_hosts = "queues.example.com"',
        )


def _sign_in(settings: ApplianceConfig) -> Iterator[Finding]:
    if not settings.oidc_issuer:
        return
    if settings.oidc_others != REFUSE:
        yield Finding(
            code="sign-in-all",
            level=Level.WARN,
            title=gettext("All people that the provider knows may read all messages"),
            seen=gettext("oidc_others is %(oidc_others)s.") % {"oidc_others": settings.oidc_others},
            advice=gettext("Name the groups that may read, and refuse the others."),
            lines='oidc_roles = "GROUP=reader"\noidc_others = "refuse"',
        )
    if wide := _wide(settings.oidc_networks):
        yield Finding(
            code="sign-in-wide",
            level=Level.WARN,
            title=gettext("The provider may name whole private networks"),
            seen=wide,
            advice=gettext("Its document could have services there asked. Name the addresses of its hosts."),
            lines='oidc_networks = "10.0.0.9"',
        )
    path = Path(settings.oidc_client_secret_file) if settings.oidc_client_secret_file else None
    if path is not None and path.is_file() and path.stat().st_mode & stat.S_IRWXO:
        yield Finding(
            code="sign-in-secret",
            level=Level.BAD,
            title=gettext("Other accounts of this machine may read the client's secret"),
            seen=str(path),
            advice=gettext("With it and a code of the provider they are this dashboard. Take the rights away."),
            lines=f"chmod o= {path}",
        )


def _wide(networks: str) -> str:
    """Those of the networks that hold more than a person would list."""
    known = [ipaddress.ip_network(text.strip(), strict=False) for text in networks.split(",") if text.strip()]
    return ", ".join(str(one) for one in known if one.prefixlen < (WIDE_V4 if one.version == 4 else WIDE_V6))
