"""What a role may do, in words: pages show these, REST and its documentation the names."""

from __future__ import annotations

from collections.abc import Collection

from django.utils.translation import gettext_noop

from dashboard.access.permissions import Permission
from dashboard.language.sentences import gettext, joined

# In the order of a sentence about a role: first what everyone may do.
_WORDS = {
    Permission.ACCOUNT: gettext_noop("own password and API tokens"),
    Permission.CLUSTER_READ: gettext_noop("see the cluster"),
    Permission.METRICS_READ: gettext_noop("read /metrics"),
    Permission.TOPICS_READ: gettext_noop("see topics"),
    Permission.GROUPS_READ: gettext_noop("see consumer groups"),
    Permission.MESSAGES_READ: gettext_noop("read messages"),
    Permission.REPORTS_READ: gettext_noop("see reports"),
    Permission.SEARCHES_WRITE: gettext_noop("save searches"),
    Permission.TOPICS_WRITE: gettext_noop("create, change and delete topics"),
    Permission.GROUPS_WRITE: gettext_noop("change and delete consumer groups, reset offsets"),
    Permission.CLIENTS_WRITE: gettext_noop("disconnect clients"),
    Permission.MESSAGES_SEND: gettext_noop("send and resend messages"),
    Permission.REPORTS_RUN: gettext_noop("run and schedule reports"),
    Permission.ALARMS_WRITE: gettext_noop("acknowledge and mute alerts, change their rules"),
    Permission.AUDIT_READ: gettext_noop("read the audit log"),
    Permission.CONFIG_READ: gettext_noop("see brokers' settings and notification channels"),
    Permission.CONFIG_WRITE: gettext_noop("change brokers' settings and notification channels"),
    Permission.USERS_WRITE: gettext_noop("manage users"),
}


def permissions_in_words(permissions: Collection[Permission]) -> str:
    """What they allow, in the language of the page."""
    return joined((gettext(words) for permission, words in _WORDS.items() if permission in permissions), "; ")
