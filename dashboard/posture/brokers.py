"""Weaknesses of brokers' own settings, as each broker tells them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.urls import reverse
from django.utils.translation import gettext

from appliance.settings.appliance_config import ApplianceConfig
from dashboard.cluster.settings_table import BrokerSetting
from dashboard.posture.finding import Finding
from dashboard.status.problems import Level


def findings(broker: str, told: Sequence[BrokerSetting], settings: ApplianceConfig) -> Iterator[Finding]:
    """told: the broker's settings; settings: the appliance's."""
    values = {one.key: one.value for one in told}
    if settings.attach and values.get("aclEnable") == "false":
        yield Finding(
            code="acl-off",
            level=Level.WARN,
            title=gettext("%(broker)s asks for no account") % {"broker": broker},
            seen=gettext("aclEnable is false."),
            advice=gettext(
                "Every program that reaches it may send, read and administer. Make accounts there, and have it ask."
            ),
            lines="aclEnable=true",
        )
    if settings.accounts and values.get("aclEnable") == "false":
        yield Finding(
            code="acl-off",
            level=Level.BAD,
            title=gettext("%(broker)s asks for no account") % {"broker": broker},
            seen=gettext("aclEnable is false."),
            advice=gettext(
                "The appliance is set to ask. Take the line out of this broker's properties and start it again."
            ),
            lines="aclEnable=true",
        )
    is_reached = settings.attach or not settings.is_loopback
    if is_reached and values.get("autoCreateTopicEnable") == "true":
        yield Finding(
            code="topics-by-sending",
            level=Level.WARN,
            title=gettext("%(broker)s makes topics of any name that is sent to") % {"broker": broker},
            seen=gettext("autoCreateTopicEnable is true, and the broker is reached over the network."),
            advice=gettext("A typing error makes a topic, and so can a flood. Have topics made by people who may."),
            href=f"{reverse('broker-config', args=[broker])}?q=autoCreateTopicEnable",
            does=gettext("Change the setting"),
        )
