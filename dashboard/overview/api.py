"""/api/v1/cluster: what the Overview shows."""

from __future__ import annotations

from django.http import HttpRequest

from dashboard.access.permissions import Permission
from dashboard.cluster.errors import ClusterUnreachable
from dashboard.overview.schemas import ClusterOut
from dashboard.rest.auth import Token
from dashboard.rest.routes import Routes
from dashboard.status.board import board
from dashboard.status.verdict import judge

router = Routes()

READ = Token(Permission.CLUSTER_READ)


@router.get("", auth=READ, summary="The state of the cluster")
async def get_cluster(request: HttpRequest) -> ClusterOut:
    snapshot = board.snapshot
    if snapshot is None:
        raise ClusterUnreachable("The sampler has not looked at the cluster yet.")
    return ClusterOut.of(snapshot, judge(snapshot))
