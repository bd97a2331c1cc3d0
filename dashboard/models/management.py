"""Management state: who may log in, which tokens open the API, what was measured. Messages never live here."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.core.validators import RegexValidator
from django.db import connection, models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    """What an account may do, from least to most; the table of permissions stands in access.py."""

    READER = "reader", _("Reader")
    OPERATOR = "operator", _("Operator")
    ADMIN = "admin", _("Administrator")


class Times(models.TextChoices):
    """In which zone an account reads moments; "local" is that of the browser."""

    UTC = "utc", _("UTC")
    LOCAL = "local", _("Local")
    BOTH = "both", _("Both")


class UserManager(BaseUserManager["User"]):
    """Creates accounts with a hashed password; finds them without regard to case."""

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(username__iexact=username or "")

    async def aget_by_natural_key(self, username: str | None) -> User:
        return await self.aget(username__iexact=username or "")

    def create_user(self, username: str, password: str, role: str = Role.READER) -> User:
        user = self.model(username=username, role=role)
        user.set_password(password)
        user.save(using=self._db)
        return user


class User(AbstractBaseUser):
    """A person who logs in to the dashboard. Names are unique without regard to case (stored as typed)."""

    username = models.CharField(
        max_length=64,
        unique=True,
        validators=[RegexValidator(r"^[\w.@+-]+\Z", _("Letters, digits and . @ + - _ only."))],
    )
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.READER)
    is_active = models.BooleanField(default=True)
    name_prefixes = models.TextField(blank=True, default="")  # separated by spaces; "": every topic and group
    language = models.CharField(max_length=16, blank=True, default="")  # "": as the browser asks
    times = models.CharField(max_length=5, choices=Times.choices, default=Times.BOTH)
    created_at = models.DateTimeField(auto_now_add=True)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "username"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints = [models.UniqueConstraint(Lower("username"), name="user_name_whatever_the_case")]

    def __str__(self) -> str:
        return self.username

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The beginnings of the topics and groups that the account may see; () is all of them."""
        return tuple(self.name_prefixes.split())


class SetupToken(models.Model):
    """The one-time token that makes the first administrator. Only its SHA-256 is kept."""

    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class Invitation(models.Model):
    """A one-time link that makes an account of a role. Only its secret's SHA-256 is kept. label: who is meant."""

    token_hash = models.CharField(max_length=64, unique=True)
    role = models.CharField(max_length=16, choices=Role.choices)
    label = models.CharField(max_length=64)
    name_prefixes = models.TextField(blank=True, default="")  # as an account's
    made_by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="invitations")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)  # used or withdrawn


class LoginFailure(models.Model):
    """One failed log-in, or one under way; lockout.py counts them and forgets old ones."""

    account_key = models.CharField(max_length=64)  # lower case, cut
    source = models.CharField(max_length=64)  # an address, or a known browser
    is_known_browser = models.BooleanField(default=False)
    at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["account_key", "at"]),
            models.Index(fields=["source", "at"]),
            models.Index(fields=["at"]),
        ]


class BookingTurn(models.Model):
    """One row as a lock for recording log-in attempts: counting and recording are one step."""

    @classmethod
    def take(cls) -> None:
        """Wait for the turn; call it in a transaction. SQLite's immediate transactions take turns by themselves."""
        if connection.features.has_select_for_update:
            cls.objects.get_or_create(pk=1)
            cls.objects.select_for_update().get(pk=1)


class ApiToken(models.Model):
    """A bearer token for /api/v1. The secret is shown once; its SHA-256 stays. Never outlives its account's rights."""

    class Scope(models.TextChoices):
        METRICS = "metrics", _("Read /metrics only")
        READ = "read", _("Read only")
        WRITE = "write", _("Read and write")
        CONFIG = "config", _("Read, write and change brokers' settings")
        ADMIN = "admin", _("Everything that the account can do, including accounts and tokens")

    name = models.CharField(max_length=64)
    prefix = models.CharField(max_length=12)  # the readable start of the token, to recognise it in a list
    token_hash = models.CharField(max_length=64, unique=True)
    scope = models.CharField(max_length=8, choices=Scope.choices, default=Scope.READ)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]


class MetricSample(models.Model):
    """One minute of the cluster, down-sampled from the live seconds. A null was not known; it was not zero."""

    at = models.DateTimeField(unique=True)  # the start of the minute
    in_rate = models.FloatField(null=True)  # messages per second, mean
    in_rate_max = models.FloatField(null=True)
    out_rate = models.FloatField(null=True)
    out_rate_max = models.FloatField(null=True)
    stored_messages = models.BigIntegerField(null=True)  # at the end of the minute
    disk_ratio = models.FloatField(null=True)  # 0…1, the fullest broker
    brokers_answering = models.PositiveIntegerField(default=0)
    slaves = models.PositiveIntegerField(
        null=True
    )  # connected, the most at one moment; null: no broker tells of slaves
    slaves_in_sync = models.PositiveIntegerField(null=True)  # the fewest at one moment
    slave_behind_bytes = models.BigIntegerField(null=True)  # the most of any slave
    slave_behind_messages = models.BigIntegerField(null=True)
    slave_behind_s = models.FloatField(null=True)
    slave_bytes_rate = models.FloatField(null=True)  # bytes a second to all slaves, mean

    class Meta:
        ordering = ["at"]
