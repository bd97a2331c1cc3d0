"""The cluster that this appliance runs, looked at as a client would: name servers, brokers' addresses, slaves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from appliance.cli.checks.finding import Finding, good, warning
from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.loader import broker_settings
from appliance.settings.sign_in import is_loopback_name
from gantrymq import AdminClient
from gantrymq.client.admin.failover import FailoverStatus
from gantrymq.errors import ConfigError, GantryError
from gantrymq.remoting.bodies import BrokerData, ClusterInfo
from gantrymq.timeouts import timeout

REACH_S = 3.0
MASTER = 0
AT_ONCE = 32  # brokers that are tried at the same time


async def look(config: ApplianceConfig) -> list[Finding]:
    """Ask all name servers, and try each address that they give out."""
    looks = await asyncio.gather(*(_look_at(config, address) for address in name_servers(config)))
    return list(dict.fromkeys(finding for found in looks for finding in found))  # of a broker that two know, once


def name_servers(config: ApplianceConfig) -> list[str]:
    """Those that the brokers here register with, whatever the settings say now; without brokers, the settings'."""
    named = [config.namesrv_address]
    if not config.attach:
        with contextlib.suppress(ConfigError):  # another account's folder
            told = [its.get("namesrvAddr", "") for _, its in broker_settings(config.brokers_folder)]
            named = [text for text in told if text] or named
    return list(dict.fromkeys(address for text in named for address in text.split(";") if address))


async def _look_at(config: ApplianceConfig, address: str) -> list[Finding]:
    found: list[Finding] = []
    try:
        async with AdminClient(address, credentials=config.client_credentials, tls=config.client_tls) as admin:
            info = await admin.cluster.info()
            room = asyncio.Semaphore(AT_ONCE)
            brokers = sorted(info.broker_addr_table.items())
            of_etcd = await asyncio.gather(*(_etcd(admin, broker, data, room) for broker, data in brokers))
    except GantryError as exc:
        return [Finding(f"The name server at {address} does not answer ({exc}): see its log.")]
    found.append(good(f"The name server at {address} answers."))
    addresses = [(broker, address) for broker, data in brokers for _, address in sorted(data.broker_addrs.items())]
    if not addresses:
        found.append(Finding("No broker is registered at the name server: see the brokers' logs."))
    found += await asyncio.gather(*(_reach(config, broker, address, room) for broker, address in addresses))
    return [*found, *_slaves(config, info), *(one for several in of_etcd for one in several)]


async def _reach(config: ApplianceConfig, broker: str, address: str, room: asyncio.Semaphore) -> Finding:
    host, _, port = address.rpartition(":")
    async with room:
        try:
            async with timeout(REACH_S):
                _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
        except (OSError, ValueError, TimeoutError) as exc:
            why = str(exc) or f"no answer within {REACH_S:g} s"
            return Finding(
                f"Clients get the address {address} of {broker}, which can't be reached from here ({why}): start the "
                "broker, or advertise another address (--advertise)."
            )
    writer.close()
    if is_loopback_name(host.strip("[]")) and not config.is_loopback:
        return warning(
            f"Clients get the address {address} of {broker}, which only this machine reaches: name another with "
            "--advertise."
        )
    return good(f"Clients get the address {address} of {broker}, which can be reached from here.")


async def _etcd(admin: AdminClient, broker: str, data: BrokerData, room: asyncio.Semaphore) -> list[Finding]:
    """What brokers say of the etcd that has their record, and of their stores; those of RocketMQ, and those that don't
    answer, nothing."""
    async with room:
        with contextlib.suppress(GantryError):
            told = await admin.succession.failover(broker, *data.broker_addrs.values())
            return [
                *(
                    [Finding(f"{broker}: {told.etcd_trouble}.", is_fatal=told.is_etcd_refusing)]
                    * bool(told.etcd_trouble)
                ),
                *(_shared(broker, address, told) for address in told.shared_stores if told.is_automatic),
            ]
    return []


def _shared(broker: str, address: str, told: FailoverStatus) -> Finding:
    return warning(
        f"{broker}: the store of {address} is on a file system that machines may share, so its lock proves nothing: "
        f"after a kill the broker waits for the whole lease ({told.lease_s:.0f} s) before it is the master again. Move "
        "the store to a disk that only its machine uses."
    )


def _slaves(config: ApplianceConfig, info: ClusterInfo) -> Iterator[Finding]:
    """Those that are to run and are not registered."""
    if not config.slaves_each or config.attach:
        return
    for broker, data in sorted(info.broker_addr_table.items()):
        there = sum(number != MASTER for number in data.broker_addrs)
        if there < config.slaves_each:
            yield warning(
                f"{broker} has {there} of {config.slaves_each} slaves at the name server: the Overview and their logs "
                "say why the others are not there."
            )
        else:
            yield good(f"{broker} has its {there} slaves.")
