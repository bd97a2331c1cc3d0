"""The outbox."""

import django.utils.timezone
from django.db import migrations, models
from django.db.migrations.operations.base import Operation


class Migration(migrations.Migration):
    initial: bool = True

    dependencies: list[tuple[str, str]] = []

    operations: list[Operation] = [
        migrations.CreateModel(
            name="OutboxMessage",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("sent", "sent"),
                            ("failed", "failed: needs an administrator"),
                            ("discarded", "discarded"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("topic", models.CharField(max_length=255)),
                ("sharding_key", models.CharField(blank=True, max_length=255, null=True)),
                ("msg_id", models.CharField(max_length=56, verbose_name="message id")),
                ("tags", models.TextField(blank=True)),
                ("keys", models.TextField(blank=True)),
                ("properties", models.JSONField(blank=True, default=dict)),
                ("flag", models.IntegerField(default=0)),
                ("delay_level", models.SmallIntegerField(default=0)),
                ("deliver_at", models.FloatField(blank=True, help_text="seconds since the epoch", null=True)),
                ("body", models.BinaryField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("next_try_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "reserved_until",
                    models.DateTimeField(blank=True, help_text="by a relay whose database can't lock rows", null=True),
                ),
                ("tries", models.PositiveIntegerField(default=0)),
                ("refusals", models.PositiveIntegerField(default=0)),
                ("error", models.TextField(blank=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("place", models.CharField(blank=True, max_length=255, verbose_name="stored in")),
            ],
            options={
                "verbose_name": "outbox message",
                "indexes": [
                    models.Index(
                        models.F("next_try_at"), condition=models.Q(("state", "waiting")), name="gantrymq_outbox_due"
                    ),
                    models.Index(
                        condition=models.Q(("state__in", ["waiting", "failed"])),
                        fields=["topic", "sharding_key", "id"],
                        name="gantrymq_outbox_key",
                    ),
                    models.Index(fields=["state", "ended_at"], name="gantrymq_outbox_state"),
                    models.Index(fields=["msg_id"], name="gantrymq_outbox_msg_id"),
                ],
            },
        ),
    ]
