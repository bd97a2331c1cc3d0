"""/api/v1/definitions: topics, groups, broker accounts and alerts as one YAML document. Needs a token of the scope
config.
"""

from __future__ import annotations

from django.http import HttpRequest

from dashboard.access.permissions import Permission
from dashboard.audit.notes import note, note_nothing
from dashboard.cluster.gateway import gateway
from dashboard.definitions.document import DocumentRefused
from dashboard.definitions.importing import Imported, exported, imported, planned
from dashboard.definitions.plan import Plan
from dashboard.definitions.schemas import (
    DefinitionChangeOut,
    DefinitionChangesOut,
    DefinitionsIn,
    DefinitionsOut,
    LeftAloneOut,
    NewAccountOut,
)
from dashboard.http.client_address import client_address
from dashboard.http.request_ids import request_id
from dashboard.models.audit import Way
from dashboard.rest.auth import Token
from dashboard.rest.refusals import FormProblem, caller
from dashboard.rest.routes import Routes
from dashboard.topics.changes import Asker

router = Routes(asks_cluster=True)
READ, WRITE = Token(Permission.CONFIG_READ), Token(Permission.CONFIG_WRITE)


@router.get("", auth=READ, response=409, summary="Export the definitions: topics, groups, accounts, alerts")
async def export_definitions(request: HttpRequest) -> DefinitionsOut:
    return DefinitionsOut(text=await exported(gateway()))


@router.post("", auth=WRITE, response=409, summary="Import definitions, or show what that would change")
async def import_definitions(request: HttpRequest, body: DefinitionsIn) -> DefinitionChangesOut:
    asker = Asker(caller(request), Way.REST, client_address(request), request_id())
    try:
        if body.dry_run:
            note_nothing(request)
            return changes_of(await planned(gateway(), body.text, delete=body.delete))
        done = await imported(gateway(), body.text, asker, delete=body.delete, digest=body.digest)
    except DocumentRefused as exc:
        raise FormProblem({"text": exc.problems}) from exc
    note(request, "definitions imported", "", facts_of(done))
    return changes_of(done.plan, done)


def facts_of(done: Imported) -> dict[str, int]:
    """For the audit log, beside a line of each change."""
    failed = sum(not one.is_done for one in done.dealt)
    return {"changes": len(done.dealt), "failed": failed, "left": done.plan.left}


def changes_of(plan: Plan, done: Imported | None = None) -> DefinitionChangesOut:
    """The answer, of a plan or of what became of it."""
    if done is None:
        changes = [DefinitionChangeOut.of(one, result=None, detail="") for one in plan.now]
    else:
        changes = [
            DefinitionChangeOut.of(one.change, result="done" if one.is_done else "failed", detail=one.told)
            for one in done.dealt
        ]
    secrets = done.secrets if done is not None else {}
    return DefinitionChangesOut(
        is_done=done is not None, digest=plan.digest, changes=changes, left=plan.left,
        left_alone=[LeftAloneOut(section=section, name=name) for section, name in plan.left_alone],
        new_accounts=[NewAccountOut(name=key, shown_once=secret) for key, secret in secrets.items()],
    )  # fmt: skip
