"""What REST takes and gives about accounts, invitations and tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from ninja import Field, Schema

from dashboard.limits.names import PREFIX, PREFIXES_MAX
from dashboard.models.management import Invitation
from dashboard.rest.lists import Listed
from dashboard.rest.values import Given, Out, named

RoleName = Literal["reader", "operator", "admin"]
Prefix = Annotated[str, Field(pattern=f"^{PREFIX.pattern}$", examples=["orders-"])]  # of topics and groups
Secret = Annotated[str, Field(min_length=1, max_length=1024, json_schema_extra={"format": "password"})]
ScopeName = Literal["metrics", "read", "write", "config", "admin"]


class TokenIn(Given):
    """A new token of the caller's account."""

    name: str = Field(min_length=1, max_length=64, examples=["CI"], description="its name in lists")
    scope: ScopeName = "read"
    life_days: Literal[7, 30, 90, 365] = 90


class TokenOut(Out):
    """A token as lists show it. start: its first characters."""

    id: int = named("pk")
    name: str
    scope: ScopeName
    start: str = named("prefix")
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None


class TokenMade(TokenOut):
    """shown_once: what a caller sends as `Authorization: Bearer …`. Only its hash is kept."""

    shown_once: str


class TokenList(Listed[TokenOut]):
    """The newest first."""


class SessionOut(Out):
    """A log-in that still holds. seen_at: to within a few minutes."""

    id: str
    address: str
    started_at: datetime
    seen_at: datetime
    ends_at: datetime


class UserOut(Out):
    """An account in the list."""

    name: str = named("username")
    role: RoleName
    prefixes: list[str] = Field(description="it sees topics and groups whose names begin so; [] is all")
    is_open: bool = named("is_active")
    created_at: datetime
    last_login_at: datetime | None = named("last_login")
    issuer: str = Field(description='the OpenID Connect provider that it signs in with; "": it has a password')


class UserDetailOut(UserOut):
    """One account whole."""

    sessions: list[SessionOut]
    api_access: list[TokenOut]


class UserList(Listed[UserOut]):
    """Accounts by name."""


class UserChange(Given):
    """What is absent stays. is_open false: no log-in and no token, sessions end."""

    role: RoleName | None = None
    is_open: bool | None = None
    prefixes: list[Prefix] | None = Field(
        None, max_length=PREFIXES_MAX, description="only topics and groups whose names begin so; [] is all"
    )


class PasswordIn(Given):
    """current: the one of now, which a token alone does not replace."""

    current: Secret = Field(description="the current password")
    password: Secret = Field(description="the new password; at least ten characters, and not a common one")


class SessionsEnded(Schema):
    """How many."""

    ended: int


class InvitationIn(Given):
    """Who is invited, and what the account may do."""

    label: str = Field(
        min_length=1, max_length=64, examples=["Ada, orders team"], description='who is meant: "Ada, orders team"'
    )
    role: RoleName = "reader"
    prefixes: list[Prefix] = Field(
        [], max_length=PREFIXES_MAX, description="only topics and groups whose names begin so; [] is all"
    )


class InvitationOut(Out):
    """An open invitation."""

    id: int = named("pk")
    label: str
    role: RoleName
    prefixes: list[str]
    created_by: str
    expires_at: datetime

    @classmethod
    def of_row(cls, row: Invitation, **more: Any) -> Self:
        return cls.of(row, prefixes=row.name_prefixes.split(), created_by=row.made_by.username, **more)


class InvitationMade(InvitationOut):
    """link: shown this once; it works once."""

    link: str


class InvitationList(Listed[InvitationOut]):
    """Those that end next first."""
