"""Weaknesses of brokers' own settings, as each broker tells them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.urls import reverse
from django.utils.translation import gettext

from appliance.settings.appliance_config import ApplianceConfig
from dashboard.cluster.settings_table import BrokerSetting
from dashboard.status.check import Check, Level


def checks(broker: str, told: Sequence[BrokerSetting], settings: ApplianceConfig) -> Iterator[Check]:
    """told: the broker's settings; settings: the appliance's."""
    values = {one.key: one.value for one in told}
    if settings.attach and values.get("aclEnable") == "false":
        yield Check(
            name="acl-off",
            level=Level.WARN,
            title=gettext("%(broker)s accepts clients without an account") % {"broker": broker},
            evidence=gettext("aclEnable is false."),
            action=gettext(
                "Every program that reaches it can send, read and administer. Create accounts there, and require them."
            ),
            lines="aclEnable=true",
        )
    if settings.accounts and values.get("aclEnable") == "false":
        yield Check(
            name="acl-off",
            level=Level.BAD,
            title=gettext("%(broker)s accepts clients without an account") % {"broker": broker},
            evidence=gettext("aclEnable is false."),
            action=gettext(
                "The appliance requires accounts. Remove the line from this broker's properties and start it again."
            ),
            lines="aclEnable=true",
        )
    is_reached = settings.attach or not settings.is_loopback
    if is_reached and values.get("autoCreateTopicEnable") == "true":
        yield Check(
            name="topics-by-sending",
            level=Level.WARN,
            title=gettext("%(broker)s creates a topic for any name that a client sends to") % {"broker": broker},
            evidence=gettext("autoCreateTopicEnable is true, and the broker is reached over the network."),
            action=gettext(
                "A typing error creates a topic, and so can a flood. Let only administrators create topics."
            ),
            link=f"{reverse('broker-config', args=[broker])}?q=autoCreateTopicEnable",
            link_text=gettext("Change the setting"),
        )
