"""The ports that an appliance listens on, and whether they are free."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence

from appliance.cli.checks.finding import Finding
from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.broker_processes import BrokerProcess


def check_ports(config: ApplianceConfig) -> Iterator[Finding]:
    for what, port, option in wanted_ports(config):
        if not is_port_free(config.bind, port):
            owner = _owner_of(port)
            yield Finding(
                f"Port {port} ({what}) is taken{owner}: stop that program, or choose another port with {option} N."
            )


def wanted_ports(config: ApplianceConfig) -> Iterator[tuple[str, int, str]]:
    """(what for, port, option that changes it) of everything that will listen."""
    yield "dashboard", config.http_port, "--http-port"
    if config.attach:
        return
    yield "name server", config.namesrv_port, "--namesrv-port"
    for what, port in broker_ports(config.broker_processes):
        yield what, port, "--broker-port"
    for what, port in config.proxy_processes:
        yield f"{what}, for RocketMQ 5 clients", port, "--proxy-port"


def broker_ports(brokers: Sequence[BrokerProcess]) -> Iterator[tuple[str, int]]:
    """(what for, port) of everything that brokers listen on."""
    for broker in brokers:
        yield broker.name, broker.port
        yield f"{broker.name}, its VIP listener", broker.vip_port
        if broker.ha_port:
            yield f"{broker.name}, for slaves", broker.ha_port


def is_port_free(host: str, port: int) -> bool:
    """Whether a listener could be opened on host:port now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def _owner_of(port: int) -> str:
    """ " by process 123 (java)", or " by another program" when the system does not tell."""
    import psutil  # only a start that fails needs it

    try:
        listeners = [item for item in psutil.net_connections("tcp") if item.status == psutil.CONN_LISTEN]
        pid = next((item.pid for item in listeners if item.laddr and item.laddr.port == port and item.pid), None)
        return f" by process {pid} ({psutil.Process(pid).name()})" if pid else " by another program"
    except psutil.Error:
        return " by another program"
