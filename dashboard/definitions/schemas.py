"""The document: what each section holds, in the words of REST. Fields come from the schemas that REST has already.

What an item does not say stays as it is; of a new one it is the default. A section that is absent is not looked at.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal, get_type_hints

from django.utils.translation import gettext
from ninja import Field, Schema
from pydantic import AfterValidator, create_model

from appliance.acl.address import compile_pattern
from appliance.settings.alert_names import ChannelKind, RuleKind
from dashboard.alerts.schemas import ChannelIn, ChannelKindName, RuleFields, RuleKindName
from dashboard.definitions.losses import Scope
from dashboard.rest.values import NUMBER_MAX, Given, Out
from dashboard.topics.schemas import TopicChange
from gantrymq.client.admin.accounts import Account
from gantrymq.message.topics import GROUP_CHARS_MAX, TOPIC_CHARS_MAX
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig

ITEMS_MAX = 10_000  # of a section
CHANGES_MAX = 500  # of one import: what is more is left for the next one
TEXT_BYTES_MAX = 1 << 20
WORD = r"^[^\s,=]+$"  # what ends a word on the wire is in none
GROUP_NAME = r"^[%|a-zA-Z0-9_-]+$"
ACCESS_KEY_CHARS_MAX = 255
Section = Literal["topics", "groups", "accounts", "alert_channels", "alert_rules"]
What = Literal["create", "change", "delete"]
AccountPerm = Literal["DENY", "PUB", "SUB", "PUB|SUB"]


class TopicDefinition(TopicChange):
    """A topic, the same on each broker that holds it. A retention of 0: no limit of the topic's own."""

    name: str = Field(min_length=1, max_length=TOPIC_CHARS_MAX)
    retention_ms: int | None = Field(None, ge=0, le=NUMBER_MAX)  # what other tools have set is exported, too


def address_wanted() -> str:
    return gettext(
        "Write addresses as brokers read them: 10.0.0.7, 10.0.0.*, 10.0.0.1-20 or 2001:db8::*, several with commas."
    )


def checked_address(text: str) -> str:
    """As the brokers check it. Raises ValueError."""
    compile_pattern(text)
    return text


class AccountDefinition(Given):
    """A broker account, without its secret: one that is there keeps its own, a new one gets one, shown once.

    topic_perms, group_perms: by name; white_remote_address: addresses that need no signature, "" for none.
    """

    access_key: str = Field(pattern=WORD, max_length=ACCESS_KEY_CHARS_MAX)
    admin: bool = False
    default_topic_perm: AccountPerm = "DENY"
    default_group_perm: AccountPerm = "DENY"
    topic_perms: dict[Annotated[str, Field(pattern=WORD)], AccountPerm] = {}
    group_perms: dict[Annotated[str, Field(pattern=WORD)], AccountPerm] = {}
    white_remote_address: Annotated[str, AfterValidator(checked_address)] = ""

    def changed(self, account: Account) -> Account:
        """The account of a broker with what is said here."""
        wanted: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        for name in ("topic_perms", "group_perms"):
            if name in wanted:
                wanted[name] = [f"{key}={perm}" for key, perm in wanted[name].items()]
        return dataclasses.replace(account, **wanted)


class ChannelDefinition(ChannelIn):
    """A channel of alerts, without its secrets; settings as REST shows them."""

    kind: ChannelKindName = ChannelKind.MAIL  # of a new one it has to be said
    settings: dict[str, str | int | bool | None] = Field({}, max_length=20)  # type: ignore[assignment]


class RuleDefinition(RuleFields):
    """An alert rule. channels: by name; none is all."""

    kind: RuleKindName = RuleKind.GROUP_BEHIND  # of a new one it has to be said, as the threshold
    threshold: float = Field(0, ge=0, allow_inf_nan=False)
    channels: list[str] = Field([], max_length=50)


def _group_fields() -> dict[str, Any]:
    """What a broker keeps of a group, all but its name."""
    types = get_type_hints(SubscriptionGroupConfig)
    bounded = {bool: bool, bool | None: bool | None, int: Annotated[int, Field(ge=0, lt=1 << 31)]}
    return {
        field.name: (bounded[types[field.name]], field.default)
        for field in dataclasses.fields(SubscriptionGroupConfig)
        if field.name != "group_name"
    }


class _GroupName(Given):
    """A consumer group, the same on each broker."""

    name: str = Field(pattern=GROUP_NAME, max_length=GROUP_CHARS_MAX)


GroupDefinition = create_model("GroupDefinition", __base__=_GroupName, **_group_fields())


class Definitions(Given):
    """The whole document."""

    version: Literal[1] = 1
    topics: list[TopicDefinition] | None = Field(None, max_length=ITEMS_MAX)
    groups: list[GroupDefinition] | None = Field(None, max_length=ITEMS_MAX)  # type: ignore[valid-type]
    accounts: list[AccountDefinition] | None = Field(None, max_length=ITEMS_MAX)
    alert_channels: list[ChannelDefinition] | None = Field(None, max_length=ITEMS_MAX)
    alert_rules: list[RuleDefinition] | None = Field(None, max_length=ITEMS_MAX)


# ---- of REST


class DefinitionsOut(Schema):
    """text: the document, as YAML. It holds no secret."""

    text: str


class DefinitionsIn(Given):
    """A document to import."""

    text: str = Field(max_length=TEXT_BYTES_MAX, description="the document, as YAML, JSON or a table of topics")
    delete: bool = Field(False, description="also delete what the document's sections do not name")
    dry_run: bool = Field(False, description="check and say what would change")
    digest: str = Field(
        "", max_length=64, description="of the preview: when something else would change by now, nothing does"
    )


class RightLostOut(Out):
    """name: of the topic or group, "" for all that the account does not name. perm: "" of administration, address."""

    scope: Scope
    name: str
    perm: Literal["", "PUB", "SUB", "PUB|SUB"]


class LossesOut(Out):
    """What an account loses. clients, groups: those that sign with it now, and what they are members of."""

    rights: list[RightLostOut]
    clients: list[str]
    groups: list[str]


class DefinitionChangeOut(Out):
    """One change. before, after: the fields that differ. refusal: why it can't be done. result null: not tried.
    losses: of an account that would have less."""

    section: Section
    name: str
    what: What
    before: dict[str, Any]
    after: dict[str, Any]
    refusal: str
    losses: LossesOut | None = None
    result: Literal["done", "failed"] | None = None
    detail: str = ""


class LeftAloneOut(Out):
    """What is there and the document does not name."""

    section: Section
    name: str


class NewAccountOut(Out):
    """A new broker account. shown_once: what it signs with; only the brokers keep it."""

    name: str
    shown_once: str


class DefinitionChangesOut(Schema):
    """is_done: false for a dry run. left: changes beyond those of one import; import again for them."""

    is_done: bool
    digest: str
    changes: list[DefinitionChangeOut]
    left: int
    left_alone: list[LeftAloneOut]
    new_accounts: list[NewAccountOut]
