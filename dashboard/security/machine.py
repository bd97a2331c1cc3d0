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
from dashboard.status.check import Check, Level

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


def checks(settings: ApplianceConfig, machine: Machine) -> Iterator[Check]:
    """What is open, the worst first."""
    yield from _network(settings)
    yield from _tls(settings)
    yield from _lists(settings)
    yield from _sign_in(settings)
    if machine.is_root:
        yield Check(
            name="root",
            level=Level.WARN,
            title=gettext("The appliance runs as root"),
            evidence=gettext("The process has user id 0."),
            action=gettext("Any flaw in it would have all rights of the machine. Name an account to run as."),
            lines='user = "gantry"',
        )
    if machine.open_folders:
        yield Check(
            name="folder-open",
            level=Level.BAD,
            title=gettext("Other accounts of this machine can read the data folder"),
            evidence=", ".join(machine.open_folders),
            action=gettext("Messages, password hashes and keys are there. Remove the permissions of group and others."),
            lines=f"chmod -R go= {machine.open_folders[0]}",
        )


def _network(settings: ApplianceConfig) -> Iterator[Check]:
    if settings.accounts or settings.attach:  # of another cluster its brokers tell
        return
    if settings.is_loopback:
        yield Check(
            name="no-accounts",
            level=Level.WARN,
            title=gettext("Clients need no account"),
            evidence=gettext("Every program that reaches %(bind)s can send, read and administer.")
            % {"bind": settings.bind},
            action=gettext("That is every program on this machine. Make the brokers require accounts."),
            lines="accounts = true",
        )
        return
    yield Check(
        name="open-network",
        level=Level.BAD,
        title=gettext("Everything is open to the network"),
        evidence=gettext("Brokers and name server listen on %(bind)s and accept clients without an account.")
        % {"bind": settings.bind},
        action=gettext(
            "Every program that reaches them can read, send and delete. Require accounts, or bind to 127.0.0.1."
        ),
        lines="accounts = true",
    )


def _tls(settings: ApplianceConfig) -> Iterator[Check]:
    if settings.is_loopback and not settings.tls_cert:
        return
    if not settings.http_tls:
        yield Check(
            name="no-tls",
            level=Level.BAD,
            title=gettext("Connections are not encrypted"),
            evidence=gettext("%(bind)s is reached over the network, without TLS.") % {"bind": settings.bind},
            action=gettext(
                "Passwords, tokens and messages can be read in transit. Create a certificate, then name it."
            ),
            lines='tls_cert = "/etc/gantrymq/server.pem"\ntls_mode = "enforcing"  # gantry tls create makes one',
        )
        return
    if settings.tls_mode != "enforcing" and not settings.attach:
        yield Check(
            name="tls-permissive",
            level=Level.WARN,
            title=gettext("Connections without TLS are accepted"),
            evidence=gettext("tls_mode is permissive: a client that is not set up for TLS goes unnoticed."),
            action=gettext("When all clients use TLS, reject the others."),
            lines='tls_mode = "enforcing"',
        )
    if not settings.http_hsts_s and not settings.is_loopback:
        yield Check(
            name="no-hsts",
            level=Level.WARN,
            title=gettext("Browsers can be led to plain HTTP"),
            evidence=gettext("http_hsts_s is 0."),
            action=gettext(
                "With it browsers use https only, on every port of this host; nothing there may need plain HTTP."
            ),
            lines="http_hsts_s = 31536000",
        )


def _lists(settings: ApplianceConfig) -> Iterator[Check]:
    if wide := _wide(settings.trusted_proxies):
        yield Check(
            name="proxies-wide",
            level=Level.BAD,
            title=gettext("Too many addresses count as proxies"),
            evidence=wide,
            action=gettext("A client at such an address can claim to be any other client. List only the proxies."),
            lines='trusted_proxies = "10.0.0.7"',
        )
    if wide := _wide(settings.alarm_networks):
        yield Check(
            name="alarms-wide",
            level=Level.WARN,
            title=gettext("Notifications can go to whole private networks"),
            evidence=wide,
            action=gettext(
                "A channel can make the dashboard call services in these networks. List only the receivers' addresses."
            ),
            lines='alarm_networks = "10.0.0.9"',
        )
    if "*" in settings.allowed_hosts:
        yield Check(
            name="any-host",
            level=Level.BAD,
            title=gettext("The dashboard answers to every host name"),
            evidence=gettext("allowed_hosts is %(allowed_hosts)s.") % {"allowed_hosts": settings.allowed_hosts},
            action=gettext("Another site could send requests here under its own name. List the names in use."),
            lines='allowed_hosts = "queues.example.com"',
        )


def _sign_in(settings: ApplianceConfig) -> Iterator[Check]:
    if not settings.oidc_issuer:
        return
    if settings.oidc_others != REFUSE:
        yield Check(
            name="sign-in-all",
            level=Level.WARN,
            title=gettext("Every user of the provider can read all messages"),
            evidence=gettext("oidc_others is %(oidc_others)s.") % {"oidc_others": settings.oidc_others},
            action=gettext("Name the groups that can read, and reject the others."),
            lines='oidc_roles = "GROUP=reader"\noidc_others = "refuse"',
        )
    if wide := _wide(settings.oidc_networks):
        yield Check(
            name="sign-in-wide",
            level=Level.WARN,
            title=gettext("The provider can name whole private networks"),
            evidence=wide,
            action=gettext(
                "The provider's document could make the dashboard call services in these networks. List "
                "the addresses of its hosts."
            ),
            lines='oidc_networks = "10.0.0.9"',
        )
    path = Path(settings.oidc_client_secret_file) if settings.oidc_client_secret_file else None
    if path is not None and path.is_file() and path.stat().st_mode & stat.S_IRWXO:
        yield Check(
            name="sign-in-secret",
            level=Level.BAD,
            title=gettext("Other accounts of this machine can read the client's secret"),
            evidence=str(path),
            action=gettext(
                "With it and a code of the provider, others can act as this dashboard. Restrict its permissions."
            ),
            lines=f"chmod o= {path}",
        )


def _wide(networks: str) -> str:
    """Those of the networks that hold more than a person would list."""
    known = [ipaddress.ip_network(text.strip(), strict=False) for text in networks.split(",") if text.strip()]
    return ", ".join(str(one) for one in known if one.prefixlen < (WIDE_V4 if one.version == 4 else WIDE_V6))
