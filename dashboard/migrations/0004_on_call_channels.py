"""Channels to Teams, PagerDuty and Opsgenie; the last two get one alert's notices in their order."""

from __future__ import annotations

from django.db import migrations, models

KINDS = [
    ("mail", "Mail"),
    ("webhook", "Webhook"),
    ("slack", "Slack"),
    ("dingtalk", "DingTalk"),
    ("feishu", "Feishu"),
    ("wecom", "WeCom"),
    ("teams", "Microsoft Teams"),
    ("pagerduty", "PagerDuty"),
    ("opsgenie", "Opsgenie"),
]


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0003_alert_handling")]

    operations = [
        migrations.AlterField("AlertChannel", "kind", models.CharField(choices=KINDS, max_length=16)),
        migrations.AddField(
            "AlertDelivery", "alert", models.ForeignKey("dashboard.AlertRow", null=True, on_delete=models.CASCADE)
        ),
    ]
