"""What the settings say of the network: who reaches the appliance, and with what."""

from __future__ import annotations

from collections.abc import Iterator

from appliance.cli.checks.finding import Finding
from appliance.settings.appliance_config import ApplianceConfig
from gantrymq.errors import ConfigError


def check_bind(config: ApplianceConfig) -> Iterator[Finding]:
    if config.is_loopback:
        return
    if config.attach:
        if not config.http_tls:
            yield Finding(
                f"The dashboard at {config.bind} is served over plain HTTP: give a certificate with --tls-cert.",
                is_fatal=False,
            )
        return
    if config.accounts:
        if not config.tls_cert:
            yield Finding(
                f"Brokers at {config.bind} require accounts, but the traffic of clients and browsers is not encrypted: "
                "give a certificate with --tls-cert.",
                is_fatal=False,
            )
        return
    if not config.allow_open_network:
        yield Finding(
            f"Binding to {config.bind} would let every program that reaches this machine read and write all messages: "
            "use --accounts so that brokers require accounts, or --bind 127.0.0.1, or --allow-open-network on a "
            "network you trust."
        )
        return
    yield Finding(
        f"Every program that can reach {config.bind} can read and write all messages: brokers require no account "
        "(--allow-open-network without --accounts). The dashboard still requires its password"
        f"{'' if config.http_tls else ', but over plain HTTP'}.",
        is_fatal=False,
    )


def check_tls(config: ApplianceConfig) -> Iterator[Finding]:
    """Check the certificates once, before every broker refuses them."""
    if (tls := config.client_tls) is None:
        return
    try:
        tls.context()
    except ConfigError as exc:
        yield Finding(f"TLS can't be used: {exc}.")


def check_attached(config: ApplianceConfig) -> Iterator[Finding]:
    """Whether the account for the other cluster can be read, before the first page asks for it."""
    if config.attach:
        try:
            _ = config.client_credentials
        except ConfigError as exc:
            yield Finding(f"The account for the cluster at {config.attach} can't be used: {exc}.")
