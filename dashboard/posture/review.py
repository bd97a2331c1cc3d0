"""All findings together: page and REST show the same."""

from __future__ import annotations

from dataclasses import dataclass

from asgiref.sync import sync_to_async
from django.utils import timezone

from appliance.settings.appliance_config import ApplianceConfig
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway
from dashboard.posture import brokers, machine, people
from dashboard.posture.finding import Finding


@dataclass(frozen=True, slots=True)
class Review:
    """The findings, the worst first, and what could not be looked at."""

    findings: list[Finding]
    troubles: list[str]


async def review(gateway: Gateway, settings: ApplianceConfig) -> Review:
    """Look at all of it now."""
    found = list(machine.findings(settings, await sync_to_async(machine.look)(settings.data)))
    troubles = []
    try:
        for broker in (await gateway.brokers.list()).brokers:
            try:
                told = await gateway.brokers.settings(broker)
            except GatewayError as exc:
                troubles.append(f"{broker.name}: {exc}")
                continue
            found += brokers.findings(broker.name, told, settings)
    except GatewayError as exc:
        troubles.append(str(exc))
    found += await sync_to_async(lambda: list(people.findings(timezone.now())))()
    return Review(sorted(found, key=lambda one: -one.level), troubles)
