"""REST writes the words of a field out, for types and the OpenAPI document; the models and tables have them as well."""

from __future__ import annotations

import inspect
from typing import Any, get_args

import pytest

from dashboard.access.tokens import TOKEN_LIFE_DAYS
from dashboard.alerts import schemas as alerts
from dashboard.alerts.sending.notices import ACKNOWLEDGED, FIRED, RESOLVED, TEST
from dashboard.audit import api as audit
from dashboard.brokers import api as brokers
from dashboard.cluster.settings_table import SOURCES
from dashboard.cluster.values import topic_kind
from dashboard.dead_letters import schemas as dead_letters
from dashboard.dead_letters.put_back import TO_GROUP, TO_TOPIC
from dashboard.groups import schemas as groups
from dashboard.groups.forms import TO_CHOICES
from dashboard.history import api as history
from dashboard.history.charts import RANGES
from dashboard.history.series import KEEPS
from dashboard.messages import api as messages
from dashboard.messages.trace_events import ALL, FAILED, SLOW
from dashboard.models.alerts import DeliveryState
from dashboard.models.audit import Result, Way
from dashboard.models.dead_letters import PutBackRun, PutBackState
from dashboard.models.kept_runs import KeptRun
from dashboard.models.management import ApiToken, Role
from dashboard.models.reports import ReportRun
from dashboard.people import schemas as people
from dashboard.reports import schemas as reports
from dashboard.reports.forms import INTERVALS
from dashboard.reports.forms import RANGES as DAYS
from dashboard.reports.weekly import WEEKLY
from dashboard.rest.checks import LevelWord
from dashboard.status.check import Level
from dashboard.topics import api as topics
from dashboard.topics import schemas as topic_schemas
from dashboard.topics.forms import PERMS
from gantrymq.message.topics import dlq_topic, retry_topic

FIELDS: dict[str, tuple[Any, Any]] = {
    "a change's way": (audit.WayWord, Way.values),
    "a change's result": (audit.ResultWord, Result.values),
    "a setting's source": (brokers.Source, SOURCES),
    "a role": (people.RoleName, Role.values),
    "a token's scope": (people.ScopeName, ApiToken.Scope.values),
    "a token's life": (people.TokenIn.model_fields["life_days"].annotation, TOKEN_LIFE_DAYS),
    "a report run's state": (reports.RunState, ReportRun.State.values),
    "a resend run's state": (dead_letters.ResendRunOut.model_fields["state"].annotation, PutBackRun.State.values),
    "a change run's state": (topics.TopicChangesOut.model_fields["state"].annotation, KeptRun.State.values),
    "a dead letter's state": (dead_letters.ResendRecord.model_fields["state"].annotation, PutBackState.values),
    "where a group starts": (groups.ResetIn.model_fields["to"].annotation, [to for to, _ in TO_CHOICES]),
    "a delivery's state": (alerts.NoticeOut.model_fields["state"].annotation, DeliveryState.values),
    "what a delivery tells": (
        alerts.NoticeOut.model_fields["what"].annotation,
        (FIRED, ACKNOWLEDGED, RESOLVED, TEST, WEEKLY),
    ),
    "who gets a dead letter": (dead_letters.ResendIn.model_fields["target"].annotation, (TO_GROUP, TO_TOPIC)),
    "a topic's access": (topic_schemas.Perm, PERMS),
    "a topic's kind": (topic_schemas.Kind, map(topic_kind, ("orders", "TBW102", retry_topic("g"), dlq_topic("g")))),
    "which traces": (
        inspect.signature(messages.find_traces, eval_str=True).parameters["which"].annotation,
        (ALL, FAILED, SLOW),
    ),
    "a history's kind": (history.Kind, KEEPS),
    "a history's span": (inspect.signature(history.get_history, eval_str=True).parameters["span"].annotation, RANGES),
    "a report's days": (reports.Days, [days for days, _ in DAYS]),
    "a report's interval": (reports.Minutes, [minutes for minutes, _ in INTERVALS]),
    "a check's level": (LevelWord, [level.word for level in Level]),
}


@pytest.mark.parametrize("field", FIELDS)
def test_rest_takes_and_gives_the_words_that_the_house_knows(field: str) -> None:
    written, known = FIELDS[field]
    assert set(get_args(written)) == set(known)
