"""All these verbs by noun, and the way from a call of REST to the words that make it.

A verb is an operation of REST with a name: what it takes, in which range, and what that means stands in the OpenAPI
document. Two verbs of one operation: that which says more stands first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from appliance.cli.admin.command import Command
from appliance.cli.admin.rest.calls import Call
from appliance.cli.admin.rest.operations import verb

CALLS: dict[str, dict[str, Call]] = {
    "pause": {"": verb("set_group_consuming", "GROUP", fixed={"is_on": False},
                       summary="pause a group: its members receive nothing, and it keeps its offsets")},
    "resume": {"": verb("set_group_consuming", "GROUP", fixed={"is_on": True},
                        summary="resume a paused group")},
    "reset": {"": verb("reset_group", "GROUP topics", loses=True,
                       columns="topic is_done problem skipped repeated")},
    "saved-searches": {
        "list": verb("list_saved_searches", "TOPIC", columns="id name q since until queue"),
        "create": verb("save_search", "TOPIC name"),
        "delete": verb("delete_saved_search", "TOPIC SEARCH", done="search {search_id} is deleted"),
    },
    "topic-changes": {
        "list": verb("list_topic_changes", columns="id what state started_at done failed"),
        "preview": verb("preview_topic_changes", "topics", columns="topic before after problem"),
        "start": verb("change_topics", "topics", loses=True),
        "show": verb("get_topic_changes"),
        "stop": verb("stop_topic_changes"),
    },
    "dead-letter-runs": {
        "list": verb("list_resend_runs", "GROUP",
                     columns="id state sent failed unknown before counted started_by started_at"),
        "start": verb("start_resend_run", "GROUP", loses=True),
        "show": verb("get_resend_run", "GROUP RUN"),
        "stop": verb("stop_resend_run", "GROUP RUN"),
        "resume": verb("resume_resend_run", "GROUP RUN"),
    },
    "alerts": {
        "list": verb("list_alerts",
                     columns="id level title present text started_at ended_at is_told acknowledged_by assigned_to "
                             "rule_id"),
        "show": verb("get_alert"),
        "acknowledge": verb("acknowledge_alert", fixed={"is_acknowledged": True},
                            summary="acknowledge an alert: it is shown, but no longer counted as waiting"),
        "unacknowledge": verb("acknowledge_alert", fixed={"is_acknowledged": False},
                              summary="withdraw the acknowledgement of an alert"),
        "assign": verb("assign_alert", "user"),
        "note": verb("add_alert_note", "text"),
        "deliveries": verb("list_alert_deliveries",
                           columns="id channel_id what title state attempts created_at answer"),
    },
    "alert-rules": {
        "list": verb("list_alert_rules",
                     columns="id name kind threshold clear for_s pattern level is_on channel_ids"),
        "create": verb("create_alert_rule", "name kind"),
        "set": verb("update_alert_rule", keeps=True),
        "delete": verb("delete_alert_rule", loses=True,
                       done="rule {rule_id} is deleted; for a day it can be restored on the page Alerts"),
        "preview": verb("preview_alert_rule"),
    },
    "alert-channels": {
        "list": verb("list_alert_channels", columns="id name kind is_on settings"),
        "create": verb("create_alert_channel", "name kind"),
        "set": verb("update_alert_channel", keeps=True),
        "delete": verb("delete_alert_channel", loses=True, done="channel {channel_id} is deleted"),
        "test": verb("test_alert_channel", fails=("state", "failed")),
    },
    "mutes": {
        "list": verb("list_mutes", columns="id rule_id pattern reason created_by created_at ends_at"),
        "create": verb("create_mute", "reason"),
        "end": verb("end_mute", done="mute {mute_id} has ended"),
    },
    "users": {
        "list": verb("list_users", columns="name role prefixes is_open created_at last_login_at issuer"),
        "show": verb("get_user"),
        "set": verb("update_user", without="is_open", summary="give an account another role, or other names"),
        "close": verb("update_user", fixed={"is_open": False}, loses=True,
                      summary="close an account: no log-in, no token; its sessions end"),
        "open": verb("update_user", fixed={"is_open": True}, summary="open a closed account again"),
        "end-sessions": verb("end_sessions"),
        "revoke-token": verb("revoke_token_of", before=("/users/{name}", "api_access"), loses=True,
                             done="token {token_id} of {name} is revoked"),
    },
    "invitations": {
        "list": verb("list_invitations", columns="id label role prefixes created_by expires_at"),
        "create": verb("create_invitation", "label"),
        "withdraw": verb("withdraw_invitation", done="invitation {invitation_id} is withdrawn"),
    },
    "tokens": {
        "list": verb("list_tokens", columns="id name scope start created_at expires_at last_used_at"),
        "create": verb("create_token", "name"),
        "revoke": verb("revoke_token", loses=True, done="token {token_id} is revoked"),
    },
    "password": {"": verb("change_own_password")},
    "reports": {
        "list": verb("list_reports", columns="name title last_run_id last_result_run_id"),
        "runs": verb("list_report_runs", columns="id report state since until created_at duration_s rows detail",
                     options={"report": "--report"}),
        "run": verb("run_report", "report"),
        "show": verb("get_report_run"),
        "stop": verb("stop_report_run"),
        "schedule": verb("get_report_schedule"),
        "set-schedule": verb("set_report_schedule", keeps=True),
        "promises": verb("get_promises", columns="group seconds"),
        "promise": verb("set_promise", needs="seconds"),
        "weekly": verb("get_weekly_mail"),
        "set-weekly": verb("set_weekly_mail", keeps=True, options={"channel_ids": "--channel --no-channel"}),
        "send-weekly": verb("send_weekly_mail"),
    },
}  # fmt: skip
COMMANDS: dict[str, dict[str, Command]] = {
    noun: {name: call.command for name, call in calls.items()} for noun, calls in CALLS.items()
}


def words_of(method: str, path: str, body: Mapping[str, Any] | None) -> list[str]:
    """`gantry admin` words of a call to `path` below /api/v1; none where there is no verb for it."""
    for noun, calls in CALLS.items():
        for name, call in calls.items():
            words = call.words(method, path, body)
            if words is not None:
                return [noun, *([name] if name else []), *words]
    return []
