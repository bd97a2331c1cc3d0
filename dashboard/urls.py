"""Every address of the dashboard. URL, view and template share a name."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path, re_path

from dashboard import health
from dashboard.alerts import channel_views as alert_channels
from dashboard.alerts import handling_views as alert_handling
from dashboard.alerts import views as alerts
from dashboard.api import document
from dashboard.api.later import RestUrls
from dashboard.audit import views as audit
from dashboard.brokers import drain_views as drain
from dashboard.brokers import failover_views as failover
from dashboard.brokers import views as broker
from dashboard.clients import views as clients
from dashboard.connect import views as connect
from dashboard.dead_letters import views as letters
from dashboard.definitions import views as definitions
from dashboard.exporter import page as metrics
from dashboard.find import views as find
from dashboard.find.moved import moved
from dashboard.groups import views as groups
from dashboard.http import error_pages as errors
from dashboard.live.sockets import LiveSocket
from dashboard.messages import message_views as message
from dashboard.messages import saved_searches
from dashboard.messages import trace_views as traces
from dashboard.messages import views as messages
from dashboard.name_servers import views as name_servers
from dashboard.overview import views as overview
from dashboard.people import password_views as password
from dashboard.people import views as people
from dashboard.preferences import views as preferences
from dashboard.security import views as security
from dashboard.sign_in import provider_views as provider
from dashboard.sign_in import views as session
from dashboard.topics import change_views as topic_changes
from dashboard.topics import figure_views as topic_figures
from dashboard.topics import views as topics
from dashboard.web import documentation, static_files

TOPIC = r"^topic/(?P<name>[%|a-zA-Z0-9_-]{1,127})"

DEAD_LETTERS = r"^dead-letters/(?P<name>[%|a-zA-Z0-9_-]{1,255})"

GROUP = r"^group/(?P<name>[%|a-zA-Z0-9_-]{1,255})"

urlpatterns: list[URLPattern | URLResolver] = [
    path("", overview.overview, name="overview"),
    path("overview/live", overview.live, name="overview-live"),
    # topics
    path("topics", topics.topics, name="topics"),
    path("topics/export.csv", topics.export, name="topics-export"),
    path("topics/create", topics.create, name="topic-create"),
    path("topics/change", topic_changes.change, name="topics-change"),
    path("topics/changes/<int:number>", topic_changes.changes, name="topic-changes"),
    path("topics/changes/<int:number>/stop", topic_changes.stop, name="topic-changes-stop"),
    re_path(TOPIC + r"$", messages.messages, name="topic"),
    re_path(TOPIC + r"/export/(?P<form>jsonl|csv)$", messages.export, name="topic-export"),
    re_path(TOPIC + r"/search$", messages.search, name="topic-search"),
    re_path(TOPIC + r"/searches/save$", saved_searches.save, name="topic-search-save"),
    re_path(TOPIC + r"/searches/delete$", saved_searches.forget, name="topic-search-delete"),
    re_path(TOPIC + r"/messages/(?P<place>[^/]{1,200})$", message.message, name="topic-message"),
    re_path(TOPIC + r"/messages/(?P<place>[^/]{1,200})/body$", message.body, name="topic-message-body"),
    re_path(TOPIC + r"/messages/(?P<place>[^/]{1,200})/again$", message.again, name="topic-message-again"),
    re_path(TOPIC + r"/send$", messages.send, name="topic-send"),
    re_path(TOPIC + r"/queues$", topics.queues, name="topic-queues"),
    re_path(TOPIC + r"/groups$", topics.groups, name="topic-groups"),
    re_path(TOPIC + r"/charts$", topic_figures.charts, name="topic-charts"),
    re_path(TOPIC + r"/producers$", topic_figures.producers, name="topic-producers"),
    re_path(TOPIC + r"/settings$", topics.settings, name="topic-settings"),
    re_path(TOPIC + r"/delete$", topics.delete, name="topic-delete"),
    # consumer groups
    path("groups", groups.groups, name="groups"),
    re_path(GROUP + r"$", groups.group, name="group"),
    re_path(GROUP + r"/reset$", groups.reset, name="group-reset"),
    re_path(GROUP + r"/stacks$", groups.stacks, name="group-stacks"),
    re_path(GROUP + r"/consuming$", groups.consuming, name="group-consuming"),
    re_path(GROUP + r"/mode$", groups.mode, name="group-mode"),
    re_path(GROUP + r"/delete$", groups.delete, name="group-delete"),
    # clients
    path("connect", connect.connect, name="connect"),
    path("connect/send", connect.send_one, name="connect-send"),
    path("clients", clients.clients, name="clients"),
    path("clients/disconnect", clients.disconnect, name="client-disconnect"),
    # messages by their ids, and traces
    path("messages", message.of_id, name="message-of-id"),
    re_path(r"^messages/(?P<msg_id>[^/]{1,255})$", message.by_id, name="message"),
    path("traces", traces.traces, name="traces"),
    path("traces/further", traces.further, name="traces-further"),
    re_path(r"^trace/(?P<msg_id>[^/]{1,255})$", traces.one, name="trace"),
    # dead letters
    path("dead-letters", letters.dead_letters, name="dead-letters"),
    re_path(DEAD_LETTERS + r"$", letters.group, name="dead-letters-group"),
    re_path(DEAD_LETTERS + r"/resend$", letters.put_back, name="dead-letters-resend"),
    re_path(DEAD_LETTERS + r"/runs$", letters.runs, name="resend-runs"),
    re_path(DEAD_LETTERS + r"/runs/start$", letters.start, name="resend-start"),
    re_path(DEAD_LETTERS + r"/runs/(?P<number>[0-9]{1,18})/do$", letters.do, name="resend-do"),
    re_path(DEAD_LETTERS + r"/discard$", letters.discard, name="dead-letters-discard"),
    path("alerts", alerts.alerts, name="alerts"),
    path("alerts/<int:alert_id>", alert_handling.alert, name="alert"),
    path("alerts/<int:alert_id>/do", alert_handling.alert_do, name="alert-do"),
    path("alerts/deliveries", alerts.deliveries, name="alert-deliveries"),
    path("alerts/rules/new", alerts.rule, name="alert-rule-new"),
    path("alerts/rules/<int:rule_id>", alerts.rule, name="alert-rule"),
    path("alerts/rules/<int:rule_id>/do", alerts.rule_do, name="alert-rule-do"),
    path("alerts/rules/<int:rule_id>/would-have", alerts.would_have, name="alert-would-have"),
    path("alerts/mutes/new", alerts.mute, name="alert-mute"),
    path("alerts/mutes/<int:mute_id>/end", alerts.mute_end, name="alert-mute-end"),
    path("alerts/channels/new/<str:kind>", alert_channels.create, name="alert-channel-new"),
    path("alerts/channels/<int:channel_id>", alert_channels.channel, name="alert-channel"),
    path("alerts/channels/<int:channel_id>/test", alert_channels.test, name="alert-channel-test"),
    path("alerts/channels/<int:channel_id>/delete", alert_channels.delete, name="alert-channel-delete"),
    path("audit", audit.audit, name="audit"),
    path("audit/export.<str:form>", audit.export, name="audit-export"),
    path("reports/", include("dashboard.reports.urls")),
    # brokers
    path("brokers", broker.brokers, name="brokers"),
    re_path(r"^broker/(?P<name>[^/]{1,255})$", broker.broker, name="broker"),
    re_path(r"^broker/(?P<name>[^/]{1,255})/settings$", broker.config, name="broker-config"),
    re_path(r"^broker/(?P<name>[^/]{1,255})/master$", broker.succession, name="broker-succession"),
    re_path(r"^broker/(?P<name>[^/]{1,255})/settlement$", broker.settle, name="broker-settlement"),
    re_path(r"^broker/(?P<name>[^/]{1,255})/drain$", drain.drain, name="broker-drain"),
    re_path(r"^broker/(?P<name>[^/]{1,255})/drain/start$", drain.start, name="broker-drain-start"),
    re_path(r"^broker/(?P<name>[^/]{1,255})/drain/undo$", drain.undo, name="broker-drain-undo"),
    re_path(r"^broker/(?P<name>[^/]{1,255})/failover/pause$", failover.pause, name="broker-failover-pause"),
    re_path(r"^broker/(?P<name>[^/]{1,255})/failover/resume$", failover.resume, name="broker-failover-resume"),
    path("settings", broker.all_settings, name="settings"),
    path("accounts", definitions.accounts, name="accounts"),
    path("definitions", definitions.definitions, name="definitions"),
    path("definitions/export.yaml", definitions.export, name="definitions-export"),
    path("name-server/entries", name_servers.entries, name="name-server-entries"),
    path("name-server/entry", name_servers.entry, name="name-server-entry"),
    # accounts
    path("first-run", password.first_run, name="first-run"),
    path("login", session.login, name="login"),
    path("login/provider", provider.start, name="provider"),
    path("login/provider/back", provider.back, name="provider-back"),
    path("logout", session.logout, name="logout"),
    path("password", password.password, name="password"),
    path("security", security.security, name="security"),
    path("users", people.people, name="people"),
    path("users/<int:user_id>", people.person, name="person"),
    path("users/invitations/<int:invitation_id>/withdraw", people.withdraw, name="invitation-withdraw"),
    path("invitation", password.invitation, name="invitation"),
    path("tokens", people.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke", people.revoke, name="token-revoke"),
    path("find", find.find, name="find"),
    path("preferences/theme", preferences.theme, name="theme"),
    path("preferences/language", preferences.language, name="language"),
    path("words/<slug:language>/<slug:version>.js", preferences.words, name="words"),
    path("preferences/times", preferences.times, name="times"),
    path("docs/", documentation.docs, name="docs"),
    re_path(r"^docs/(?P<path>[\w./-]{1,200})$", documentation.docs, name="docs-page"),
    # bookmarks of 0.1.0
    path("people", moved, {"to": "people"}, name="moved-people"),
    path("people/<int:user_id>", moved, {"to": "person"}, name="moved-person"),
    re_path(r"^broker/(?P<name>[^/]{1,255})/config$", moved, {"to": "broker-config"}, name="moved-config"),
    re_path(r"^broker/(?P<name>[^/]{1,255})/succession$", moved, {"to": "broker-succession"}, name="moved-succession"),
    # programs
    path("api/v1/openapi.json", document.openapi, name="api-openapi"),
    path("api/v1/docs", document.docs, name="api-docs"),
    RestUrls(),
    path("metrics", metrics.metrics, name="metrics"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("static/<path:path>", static_files.serve, name="static"),
]

websocket_urlpatterns = [path("live", LiveSocket.as_asgi())]

handler400 = errors.bad_request
handler403 = errors.permission_denied
handler404 = errors.not_found
handler500 = errors.server_error
