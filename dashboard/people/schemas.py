"""What REST takes and gives about accounts, invitations and tokens."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, cast

from ninja import Field, Schema

from dashboard.limits.names import PREFIX, PREFIXES_MAX
from dashboard.models.management import ApiToken, Invitation, User
from dashboard.people.user_accounts import OpenSession
from dashboard.rest.values import Given

RoleName = Literal["reader", "operator", "admin"]
Prefix = Annotated[str, Field(pattern=f"^{PREFIX.pattern}$", examples=["orders-"])]  # of topics and groups
Secret = Annotated[str, Field(min_length=1, max_length=1024, json_schema_extra={"format": "password"})]
ScopeName = Literal["metrics", "read", "write", "config", "admin"]


class TokenIn(Given):
    """A new token of the caller's account."""

    name: str = Field(min_length=1, max_length=64, examples=["CI"], description="what lists call it")
    scope: ScopeName = "read"
    life_days: Literal[7, 30, 90, 365] = 90


class TokenOut(Schema):
    """A token as lists show it. start: its first characters."""

    id: int
    name: str
    scope: ScopeName
    start: str
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None

    @classmethod
    def of(cls, row: ApiToken) -> TokenOut:
        return cls(
            id=row.pk, name=row.name, scope=cast(ScopeName, row.scope), start=row.prefix, created_at=row.created_at,
            expires_at=row.expires_at, last_used_at=row.last_used_at,
        )  # fmt: skip


class TokenMade(TokenOut):
    """shown_once: what a caller sends as `Authorization: Bearer …`. Only its hash is kept."""

    shown_once: str


class TokenList(Schema):
    """The newest first."""

    items: list[TokenOut]


class SessionOut(Schema):
    """A log-in that still holds. seen_at: to within a few minutes."""

    id: str
    address: str
    started_at: datetime
    seen_at: datetime
    ends_at: datetime

    @classmethod
    def of(cls, one: OpenSession) -> SessionOut:
        return cls(id=one.id, address=one.address, started_at=one.started_at, seen_at=one.seen_at, ends_at=one.ends_at)


class UserOut(Schema):
    """An account in the list."""

    name: str
    role: RoleName
    prefixes: list[str] = Field(description="it sees topics and groups whose names begin so; [] is all")
    is_open: bool
    created_at: datetime
    last_login_at: datetime | None
    issuer: str = Field(description='the OpenID Connect provider that it signs in with; "": it has a password')

    @classmethod
    def of(cls, user: User, issuer: str) -> UserOut:
        return cls(
            name=user.username, role=cast(RoleName, user.role), prefixes=list(user.prefixes),
            is_open=user.is_active, created_at=user.created_at, last_login_at=user.last_login, issuer=issuer,
        )  # fmt: skip


class UserDetailOut(UserOut):
    """One account whole."""

    sessions: list[SessionOut]
    api_access: list[TokenOut]

    @classmethod
    def whole(cls, user: User, issuer: str, sessions: list[OpenSession], tokens: list[ApiToken]) -> UserDetailOut:
        return cls(
            **UserOut.of(user, issuer).dict(),
            sessions=[SessionOut.of(one) for one in sessions],
            api_access=[TokenOut.of(row) for row in tokens],
        )


class UserList(Schema):
    """Accounts by name."""

    users: list[UserOut]
    total: int


class UserChange(Given):
    """What is absent stays. is_open false: no log-in and no token, sessions end."""

    role: RoleName | None = None
    is_open: bool | None = None
    prefixes: list[Prefix] | None = Field(
        None, max_length=PREFIXES_MAX, description="only topics and groups that begin so; [] is all"
    )


class PasswordIn(Given):
    """current: the one of now, which a token alone does not replace."""

    current: Secret = Field(description="the password of now")
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
        [], max_length=PREFIXES_MAX, description="only topics and groups that begin so; [] is all"
    )


class InvitationOut(Schema):
    """An open invitation."""

    id: int
    label: str
    role: RoleName
    prefixes: list[str]
    made_by: str
    expires_at: datetime

    @classmethod
    def of(cls, row: Invitation) -> InvitationOut:
        return cls(
            id=row.pk, label=row.label, role=cast(RoleName, row.role),
            prefixes=row.name_prefixes.split(), made_by=row.made_by.username,
            expires_at=row.expires_at,
        )  # fmt: skip


class InvitationMade(InvitationOut):
    """link: shown this once; it works once."""

    link: str


class InvitationList(Schema):
    """Those that end next first."""

    invitations: list[InvitationOut]
