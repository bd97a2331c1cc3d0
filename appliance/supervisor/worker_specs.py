"""The worker processes of one appliance: their properties files and the commands that start them.

`gantry up` writes the lines that it manages (ports, addresses, folders, names) at every start and keeps all other lines
of a properties file, so any setting of RocketMQ's broker.conf can be added there.
"""

from __future__ import annotations

import dataclasses
import functools
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from appliance.process.held_broker import hold_file
from appliance.process.local_etcd import LocalEtcd, local_etcd
from appliance.settings.appliance_config import ApplianceConfig, join_address
from appliance.settings.broker_processes import BrokerProcess
from appliance.settings.loader import read_properties
from appliance.settings.properties_file import key_of
from appliance.settings.replaced_file import replace_file
from appliance.supervisor.child import ChildSpec
from appliance.supervisor.gantry_command import gantry_command, gantry_environment
from appliance.supervisor.witness import broker_died

FILE_BYTES = "mappedFileSizeCommitLog"
HEADER = "# gantry up writes these lines at every start; add other settings of RocketMQ below them; they are kept:"
FOOTER = "# (end of the lines that gantry up writes)"
WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def worker_stages(config: ApplianceConfig) -> list[list[ChildSpec]]:
    """The processes to start, in order: etcd, if it decides, the name server, all brokers at once, proxies.

    Writes their properties files. None where the dashboard is attached to another cluster.
    """
    if config.attach:
        return []
    etcd = etcd_of(config)
    first = [[_etcd(config, etcd)]] if etcd is not None else []
    brokers = [_broker(config, broker, etcd) for broker in config.broker_processes]
    proxies = [_proxy(config, name, port) for name, port in config.proxy_processes]
    return [*first, [_namesrv(config)], brokers, *([proxies] if proxies else [])]


def etcd_of(config: ApplianceConfig) -> LocalEtcd | None:
    """The etcd that this start has laid out; None where an administrator decides about promotions."""
    return local_etcd(config.etcd_folder) if config.replicas > 1 else None


def _etcd(config: ApplianceConfig, etcd: LocalEtcd) -> ChildSpec:
    command = (sys.executable, "-P", "-m", "appliance.supervisor.etcd_node", str(config.etcd_folder))
    return ChildSpec(
        name="etcd",
        role="etcd",
        command=command,
        address=etcd.address,
        says_ready=False,
        speaks_http=True,
        environment=gantry_environment(),
    )


def _namesrv(config: ApplianceConfig) -> ChildSpec:
    path = config.namesrv_folder / "namesrv.properties"
    managed = {
        "bindAddress": config.bind,
        "listenPort": str(config.namesrv_port),
        "kvConfigPath": str(config.namesrv_folder / "kvConfig.json"),
        **_namesrv_accounts(config),
        **_tls(config),
    }
    write_managed_properties(path, managed)
    return _worker(config, "namesrv", "namesrv", path, config.namesrv_address)


def _broker(config: ApplianceConfig, broker: BrokerProcess, etcd: LocalEtcd | None) -> ChildSpec:
    folder = config.brokers_folder / broker.name
    managed = {
        "brokerName": broker.broker_name,
        "brokerClusterName": config.cluster,
        "namesrvAddr": join_address(WILDCARDS.get(config.bind, config.bind), config.namesrv_port),
        "bindAddress": config.bind,
        "listenPort": str(broker.port),
        "brokerIP1": config.advertise,
        "storePathRootDir": str(folder / "store"),
        **_stores_beside(config, broker),
        **_replication(config, broker),
        **_replicas(config, etcd),
        **_accounts(config),
        **_tls(config),
    }
    path = folder / "broker.properties"
    write_managed_properties(path, managed, _first_lines(config, broker))
    spec = _worker(config, broker.name, "broker", path, config.broker_address_of(broker))
    return dataclasses.replace(spec, on_death=functools.partial(broker_died, path), hold_file=hold_file(folder))


def _proxy(config: ApplianceConfig, name: str, port: int) -> ChildSpec:
    managed = {
        "bindAddress": config.bind,
        "grpcServerPort": str(port),
        "namesrvAddr": join_address(WILDCARDS.get(config.bind, config.bind), config.namesrv_port),
        **_proxy_accounts(config),
        **_tls(config),
    }
    path = config.proxies_folder / f"{name}.properties"
    write_managed_properties(path, managed)
    spec = _worker(config, name, "proxy", path, join_address(config.advertise, port))
    return dataclasses.replace(spec, speaks_http=True)


def _stores_beside(config: ApplianceConfig, broker: BrokerProcess) -> dict[str, str]:
    """The other brokers' stores: they share a disk, so a broker that frees space has to know of their messages."""
    others = [other for other in config.broker_processes if other != broker]
    beside = [str(config.brokers_folder / other.name / "store") for other in others]
    return {"storePathsBeside": ",".join(beside)} if beside else {}


def _replication(config: ApplianceConfig, broker: BrokerProcess) -> dict[str, str]:
    """What both sides of a pair have, since either may be the master one day. Only this machine may copy."""
    if not config.slaves_each:
        return {}
    local = WILDCARDS.get(config.bind, config.bind)
    found = socket.getaddrinfo(local, None, type=socket.SOCK_STREAM)
    lines = {
        "slavesEnable": "true",
        "haListenPort": str(broker.ha_port),
        "brokerIP2": local,
        "haSlaveAddresses": ",".join(sorted({str(address[0]) for *_, address in found})),
    }
    if config.accounts:
        lines["haAccounts"] = "true"
    first = config.brokers_folder / broker.broker_name / "broker.properties"
    if broker.starts_as_slave and first.exists():  # a copy has files of the original's size
        settings = read_properties(first.read_text(encoding="utf-8"))
        lines |= {FILE_BYTES: settings[FILE_BYTES]} if FILE_BYTES in settings else {}
    return lines


def _replicas(config: ApplianceConfig, etcd: LocalEtcd | None) -> dict[str, str]:
    """What makes a message confirmed that all members in sync have, and no other: the same at all members, since each
    may be the master. With etcd they elect it themselves."""
    if config.replicas == 1:
        return {}
    lines = {"allAckInSyncStateSet": "true", "readConfirmedOnly": "true"}
    return lines | ({"etcdEndpoints": etcd.url, "automaticFailover": "true"} if etcd is not None else {})


def _first_lines(config: ApplianceConfig, broker: BrokerProcess) -> dict[str, str]:
    """Not managed: a promotion changes the role, and a person may want another minimum."""
    role = {"brokerRole": "SLAVE", "brokerId": str(broker.first_id)} if broker.starts_as_slave else {}
    if config.replicas == 1:
        return role
    return {"brokerRole": "SYNC_MASTER", "minInSyncReplicas": str(config.replicas - 1)} | role


def _accounts(config: ApplianceConfig) -> dict[str, str]:
    """The lines about accounts, whose folder all brokers and the name server share."""
    if not config.accounts:
        return {}
    return {
        "aclEnable": "true",
        "rocketmqHome": str(config.accounts_folder),
        "credentialsFile": str(config.own_account_file),
    }


def _namesrv_accounts(config: ApplianceConfig) -> dict[str, str]:
    """The same for the name server: with accounts, programs on this machine must sign like all others."""
    if not config.accounts:
        return {}
    return {"rocketmqHome": str(config.accounts_folder), "writeAccess": "signed"}


def _proxy_accounts(config: ApplianceConfig) -> dict[str, str]:
    """The same for a proxy, which signs with its clients' accounts and has none."""
    return {"aclEnable": "true", "rocketmqHome": str(config.accounts_folder)} if config.accounts else {}


def _tls(config: ApplianceConfig) -> dict[str, str]:
    """The lines about TLS; none without a certificate, so that a person may configure TLS in the file."""
    if not config.tls_cert:
        return {}
    trust = config.tls_trust or config.tls_cert
    return {
        "tls.server.mode": config.tls_mode or "permissive",
        "tls.server.certPath": config.tls_cert,
        "tls.server.keyPath": config.tls_key,
        "tls.server.trustCertPath": trust,
        "tls.server.need.client.auth": config.tls_client_auth,
        "useTLS": str(config.tls_mode != "disabled").lower(),
        "tls.client.certPath": config.tls_cert,
        "tls.client.keyPath": config.tls_key,
        "tls.client.trustCertPath": trust,
        "tls.client.checkHost": "false",  # see ApplianceConfig.client_tls
    }


def _worker(config: ApplianceConfig, name: str, role: str, properties: Path, address: str) -> ChildSpec:
    command = gantry_command(role, "-c", str(properties), "--log-level", config.log_level)
    return ChildSpec(name=name, role=role, command=command, address=address, environment=gantry_environment())


def write_managed_properties(path: Path, managed: Mapping[str, str], first: Mapping[str, str] | None = None) -> None:
    """Write the managed lines first and keep the others; lines that were managed last time are removed.

    first: lines of others that are added where they are missing."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = _lines(path)
    kept = [line for line in _without_managed(found) if line != HEADER and key_of(line) not in managed]
    has = {key_of(line) for line in kept}
    added = [f"{key}={value}" for key, value in (first or {}).items() if key not in has]
    lines = [HEADER, *(f"{key}={value}" for key, value in managed.items()), FOOTER, *kept, *added]
    if lines != found:  # an adopted broker may be writing this file now, so an unchanged one is left alone
        replace_file(path, "\n".join(lines) + "\n")


def _without_managed(lines: list[str]) -> list[str]:
    """The lines written by people, or by requests that changed a setting."""
    if HEADER in lines and FOOTER in lines:
        first, last = lines.index(HEADER), lines.index(FOOTER)
        return lines[:first] + lines[last + 1 :]
    return lines


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
