"""All checks of security together: page and REST show the same."""

from __future__ import annotations

from dataclasses import dataclass

from asgiref.sync import sync_to_async
from django.utils import timezone

from appliance.settings.appliance_config import ApplianceConfig
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import Gateway
from dashboard.security import brokers, machine, people
from dashboard.status.check import Check


@dataclass(frozen=True, slots=True)
class Review:
    """What the checks found, the worst first, and what could not be looked at."""

    checks: list[Check]
    troubles: list[str]


async def review(gateway: Gateway, settings: ApplianceConfig) -> Review:
    """Look at all of it now."""
    found = list(machine.checks(settings, await sync_to_async(machine.look)(settings.data)))
    troubles = []
    try:
        for broker in (await gateway.brokers.list()).brokers:
            try:
                told = await gateway.brokers.settings(broker)
            except GatewayError as exc:
                troubles.append(f"{broker.name}: {exc}")
                continue
            found += brokers.checks(broker.name, told, settings)
    except GatewayError as exc:
        troubles.append(str(exc))
    found += await sync_to_async(lambda: list(people.checks(timezone.now())))()
    return Review(sorted(found, key=lambda one: -one.level), troubles)
