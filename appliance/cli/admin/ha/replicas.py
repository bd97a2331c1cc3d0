"""Brokers with replicas and an etcd that `gantry up` has started: begin their record there, once.

The record is begun only for members that were in none: then no message was acknowledged that counts on one. If they
were, etcd has lost it, and which log counts now is for a person to say (`gantry admin ha init`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib

from appliance.cli.admin.ha import verbs
from appliance.register.opening import open_etcd
from appliance.register.register import HA_INIT, Register
from appliance.settings.appliance_config import ApplianceConfig
from appliance.supervisor.worker_specs import etcd_of
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.members import Member
from gantrymq.errors import GantryError
from gantrymq.timeouts import timeout

LOOK_S = 0.2
NO_GROUP = "none"
NO_NAMES = "none"
IN_SYNC_AWAITED = "no slave is in sync yet"


async def begin_records(config: ApplianceConfig, within_s: float) -> list[str]:
    """Return when each broker's master is elected by etcd and has enough members in sync. Sentences say where not.

    Nothing without replicas or without etcd.
    """
    if (etcd := etcd_of(config)) is None:
        return []
    names = dict.fromkeys(broker.broker_name for broker in config.broker_processes)
    problems = list[str]()
    async with AdminClient(
        config.namesrv_address, credentials=config.client_credentials, tls=config.client_tls
    ) as admin:
        for name in names:
            found = _Members(config, admin, etcd.url, name)
            with contextlib.suppress(TimeoutError):
                async with timeout(within_s):
                    await found.until_elected()
            problems += [f"{name}: {found.lacking}"] if found.lacking else []
    return problems


class _Members:
    """Those of one broker name. lacking: what keeps them from electing a master; "" when nothing does."""

    def __init__(self, config: ApplianceConfig, admin: AdminClient, etcd_url: str, name: str) -> None:
        self._admin = admin
        self._name = name
        self._addresses = [
            config.broker_address_of(broker) for broker in config.broker_processes if broker.broker_name == name
        ]
        self._register = Register(open_etcd(etcd_url, "", "", ""), config.cluster, name)
        self._arguments = argparse.Namespace(
            broker=name,
            etcd=etcd_url,
            etcd_user="",
            etcd_password_file="",
            etcd_ca="",
            cluster_name=config.cluster,
            master=None,
            accept_unknown=False,
        )
        self.lacking = "its members were not asked yet"

    async def until_elected(self) -> None:
        """Return then, or when a person has to do something."""
        while True:
            if await self._is_settled():
                return
            await asyncio.sleep(LOOK_S)

    async def _is_settled(self) -> bool:
        try:
            known = await self._admin.succession.view(self._name, *self._addresses)
            members = [each for each in known if each.address in self._addresses]  # ports may have changed
            view = await self._register.view()
            if silent := [each.address for each in members if not each.answers]:
                self.lacking = f"{', '.join(silent)} does not answer"
                return False
            if view.term is None and any(each.info.get("memberGroup", NO_GROUP) != NO_GROUP for each in members):
                self.lacking = f"etcd has lost its record, so no member is the master: {HA_INIT}"
                return True
            if view.term is None or not all(each.number for each in members):
                verb = verbs.init if view.term is None else verbs.join
                self.lacking = "; ".join((await verb(self._admin, self._arguments)).troubles) or IN_SYNC_AWAITED
                return False
            self.lacking = _lacking(members, len(self._addresses))
        except (GantryError, OSError, TimeoutError) as exc:
            self.lacking = str(exc)
        return not self.lacking


def _lacking(members: list[Member], wanted: int) -> str:
    masters = [member for member in members if member.is_master]
    if len(masters) != 1:
        return "no member is the master yet"
    names = masters[0].info.get("slavesInSyncSet", NO_NAMES)
    in_sync = 0 if names == NO_NAMES else len(names.split(","))
    return "" if in_sync >= wanted - 2 else IN_SYNC_AWAITED
