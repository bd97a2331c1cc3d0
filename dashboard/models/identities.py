"""Which account is whose at an OpenID Connect provider."""

from __future__ import annotations

from django.db import models

from dashboard.models.management import User


class Identity(models.Model):
    """An account that signs in with a provider: its role is the provider's word, and it has no password here."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="identity")
    issuer = models.CharField(max_length=512)
    subject = models.CharField(max_length=255)  # the provider's own id of the person, which never changes
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="identity_of_one_person")]
