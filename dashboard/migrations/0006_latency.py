"""End-to-end latency by topic and group."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0005_saved_searches")]

    operations = [
        migrations.CreateModel(
            name="LatencyBlock",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("topic", models.CharField(max_length=255)),
                ("group", models.CharField(max_length=255)),
                ("step_s", models.PositiveIntegerField()),
                ("start", models.PositiveBigIntegerField()),
                ("counts", models.BinaryField()),
                ("unmeasured", models.PositiveBigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["topic", "group", "step_s", "start"], name="latency_block_once")
                ],
                "indexes": [
                    models.Index(fields=["group", "start"], name="latency_block_group"),
                    models.Index(fields=["step_s", "start"], name="latency_block_step"),
                ],
            },
        ),
    ]
