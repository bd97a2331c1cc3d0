"""Weaknesses of brokers' own settings, as each broker tells them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.urls import reverse

from dashboard.cluster.settings_table import BrokerSetting
from dashboard.posture.finding import Finding
from dashboard.status.problems import Level


def findings(broker: str, settings: Sequence[BrokerSetting], *, accounts: bool, is_loopback: bool) -> Iterator[Finding]:
    """accounts, is_loopback: what the appliance's settings say."""
    values = {one.key: one.value for one in settings}
    if accounts and values.get("aclEnable") == "false":
        yield Finding(
            code="acl-off", level=Level.BAD, title=f"{broker} asks for no account", seen="aclEnable is false.",
            advice="The appliance is set to ask. Take the line out of this broker's properties and start it again.",
            lines="aclEnable=true",
        )  # fmt: skip
    if not is_loopback and values.get("autoCreateTopicEnable") == "true":
        yield Finding(
            code="topics-by-sending", level=Level.WARN, title=f"{broker} makes topics of any name that is sent to",
            seen="autoCreateTopicEnable is true, and the broker is reached over the network.",
            advice="A typing error makes a topic, and so can a flood. Have topics made by people who may.",
            href=f"{reverse('broker-config', args=[broker])}?q=autoCreateTopicEnable", does="Change the setting",
        )  # fmt: skip
