"""Names of alarm rules and channels: the dashboard's pages and REST, and `gantry admin`, which knows no Django."""

from __future__ import annotations

from enum import StrEnum


class RuleKind(StrEnum):
    """What a rule watches. dashboard/alerts/kinds.py says how it is read."""

    GROUP_BEHIND = "group-behind"
    GROUP_LAG = "group-lag"
    GROUP_ALONE = "group-alone"
    GROUP_RISING = "group-rising"
    GROUP_LEASE = "group-lease"
    DEAD_LETTERS = "dead-letters"
    DISK_FULL_IN = "disk-full-in"
    DISK_USED = "disk-used"
    BROKER_SILENT = "broker-silent"
    SLAVE_BEHIND = "slave-behind"
    NO_SUCCESSOR = "no-successor"
    IN_SYNC_SMALL = "in-sync-small"
    ETCD_SLOW = "etcd-slow"
    ETCD_FULL = "etcd-full"
    FAILOVER_PAUSED = "failover-paused"
    IN_ABOVE = "in-above"
    IN_BELOW = "in-below"
    OUT_BELOW = "out-below"
    TOPIC_ABOVE = "topic-above"
    TOPIC_BELOW = "topic-below"


class ChannelKind(StrEnum):
    """Where notifications are sent."""

    MAIL = "mail"
    WEBHOOK = "webhook"
    SLACK = "slack"
    DINGTALK = "dingtalk"
    FEISHU = "feishu"
    WECOM = "wecom"
    TEAMS = "teams"
    PAGERDUTY = "pagerduty"
    OPSGENIE = "opsgenie"


class RuleLevel(StrEnum):
    """How bad it is, the worse the later."""

    ATTENTION = "attention"
    PROBLEM = "problem"
