"""/api/v1/connect: what an application meets that connects."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Query, Schema

from dashboard.access.permissions import Permission
from dashboard.cluster.gateway import gateway
from dashboard.connect.checks import ERROR_CHARS_MAX, examine, explain
from dashboard.connect.looking import current_ticks, proxy_endpoints
from dashboard.rest.auth import Token
from dashboard.rest.checks import CheckOut
from dashboard.rest.routes import Routes
from dashboard.status.board import board

router = Routes(asks_cluster=True)
READ = Token(Permission.CLUSTER_READ)


class TickOut(Schema):
    """One of the four steps to messages that are handled."""

    title: str
    is_done: bool
    detail: str


class MeaningOut(Schema):
    """What an error may mean, and what to do."""

    meaning: str
    advice: str


class ConnectOut(Schema):
    """name_servers: what a client of RocketMQ 4 is given. proxies: what one of RocketMQ 5 is given, host:port each.
    meanings: of the error that was asked about.
    """

    name_servers: str
    proxies: list[str]
    ticks: list[TickOut]
    checks: list[CheckOut]
    meanings: list[MeaningOut]


@router.get("", auth=READ, summary="Checks for connecting an application")
async def examine_connection(
    request: HttpRequest,
    error: str = Query("", max_length=ERROR_CHARS_MAX, description="an error that a client printed, to be explained"),
) -> ConnectOut:
    proxies = await proxy_endpoints(gateway())
    checks = await examine(gateway(), board.snapshot, proxies)
    return ConnectOut(
        name_servers=gateway().namesrv,
        proxies=list(proxies),
        ticks=[
            TickOut(title=one.title, is_done=one.is_done, detail=one.told) for one in await current_ticks(gateway())
        ],
        checks=[CheckOut.of(one) for one in checks],
        meanings=[MeaningOut(meaning=meaning, advice=advice) for meaning, advice in explain(error)],
    )
