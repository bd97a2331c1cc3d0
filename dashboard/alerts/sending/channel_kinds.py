"""Each kind of channel, declared once: its settings, which of them are secret, what is sent, what the answer means.

The form, REST's body, the command and what pages and audit log may show follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_noop

from appliance.settings.alert_names import ChannelKind
from dashboard.alerts.sending.chats import Built, dingtalk, feishu, slack, teams, webhook, wecom
from dashboard.alerts.sending.incidents import OPSGENIE, PAGERDUTY, opsgenie, pagerduty

Builder = Callable[[Mapping[str, Any], str, float, str], Built]  # settings, notice, now, delivery


@dataclass(frozen=True, slots=True)
class Kind:
    """settings: in the form's order; language is of each. secrets: those that come in and never go out.

    place: those that say who gets the secrets: a secret goes to no other place. needed: what cannot be empty.
    build: None for mail, which is no request. answer_codes: where an answer of 200 says whether it was accepted; 0 is
    yes. is_one_by_one: a request is about one alert, and the receiver keeps its state.
    """

    settings: tuple[str, ...]
    secrets: tuple[str, ...]
    place: tuple[str, ...]
    build: Builder | None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    answer_codes: tuple[str, ...] = ()
    is_one_by_one: bool = False
    help: Mapping[str, str] = field(default_factory=dict)

    def shown(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """What of a channel's settings may go out."""
        return {name: known.get(name) for name in self.settings if name not in self.secrets}

    def address(self, known: Mapping[str, Any]) -> str:
        """The URL that is called; "" of mail."""
        return str(known.get(self.place[0]) or "") if self.build is not None else ""


def _chat(build: Builder, *codes: str, signs: bool = False, help: str = "") -> Kind:
    secrets = ("url", "secret") if signs else ("url",)
    return Kind(secrets, secrets, ("url",), build, answer_codes=codes, help={"url": help} if help else {})


KINDS: dict[str, Kind] = {
    ChannelKind.MAIL: Kind(
        ("host", "port", "security", "username", "password", "sender", "recipients"), ("password",), ("host", "port"),
        None,
    ),
    ChannelKind.WEBHOOK: _chat(webhook, signs=True),
    ChannelKind.SLACK: _chat(slack),
    ChannelKind.DINGTALK: _chat(dingtalk, "errcode", signs=True),
    ChannelKind.FEISHU: _chat(feishu, "code", "StatusCode", signs=True),
    ChannelKind.WECOM: _chat(wecom, "errcode"),
    ChannelKind.TEAMS: _chat(
        teams, help=gettext_noop("Of a workflow that starts when a webhook request is received. It is not shown again.")
    ),
    ChannelKind.PAGERDUTY: Kind(
        ("endpoint", "routing_key"), ("routing_key",), ("endpoint",), pagerduty, {"endpoint": PAGERDUTY},
        is_one_by_one=True,
        help={"endpoint": gettext_noop("In the EU: https://events.eu.pagerduty.com/v2/enqueue"),
              "routing_key": gettext_noop("Of an integration “Events API v2” of a service. A test opens an incident.")},
    ),
    ChannelKind.OPSGENIE: Kind(
        ("endpoint", "api_key"), ("api_key",), ("endpoint",), opsgenie, {"endpoint": OPSGENIE}, is_one_by_one=True,
        help={"endpoint": gettext_noop("In the EU: https://api.eu.opsgenie.com"),
              "api_key": gettext_noop("Of an integration “API”. A test opens an alert.")},
    ),
}  # fmt: skip
SECRETS = tuple(dict.fromkeys(name for kind in KINDS.values() for name in kind.secrets))


def described() -> str:
    """The settings of each kind, as REST and the command describe them."""
    by_settings: dict[tuple[str, ...], list[str]] = {}
    for key, kind in KINDS.items():
        by_settings.setdefault(kind.settings, []).append(str(key))
    told = (f"of {_listed(keys)} {_listed(names)}" for names, keys in by_settings.items())
    return "; ".join(told)


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
