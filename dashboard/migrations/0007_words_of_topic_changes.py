"""What a kept run changed, in the words that REST has now."""

from __future__ import annotations

from typing import Any

from django.db import migrations

NOW = {"access": "perm", "keep": "retention", "skip": "reset-to-end", "again": "reset-to-begin"}


def say_in_the_words_of_now(apps: Any, schema_editor: object) -> None:
    for run in apps.get_model("dashboard", "TopicChangeRun").objects.all():
        run.wanted["what"] = NOW.get(run.wanted["what"], run.wanted["what"])
        run.save(update_fields=["wanted"])


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0006_latency")]

    operations = [migrations.RunPython(say_in_the_words_of_now, migrations.RunPython.noop)]
