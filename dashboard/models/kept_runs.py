"""What the record of every long run has: its state, and who stopped it."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class KeptRun(models.Model):
    """A run that dashboard/kept_runs/runner.py works on. stopped_by: the account that stopped it."""

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        STOPPED = "stopped", "Stopped"
        FAILED = "failed", _("Failed")

    class Meta:
        abstract = True

    state = models.CharField(max_length=8, choices=State.choices, default=State.RUNNING, db_index=True)
    stopped_by = models.CharField(max_length=255, blank=True)

    @property
    def is_running(self) -> bool:
        return self.state == self.State.RUNNING
