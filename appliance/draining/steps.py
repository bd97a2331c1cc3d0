"""The steps of a drain, in the order in which clients see no error:

1. The name servers' routes say that the broker can't be written. Producers go on at other brokers; those that have not
   renewed their routes yet are still accepted.
2. When every client has renewed its routes, the broker rejects messages, too (brokerPermission=4, which outlives a
   restart). Who sends all the same sends again, to another broker. A consumer that fails keeps its message and tries
   again, as there is no retry topic to write to.
3. Each group with members consumes what is there; then the broker can be stopped.

`undrain` is the way back from each step. Who calls waits between the steps: nothing here sleeps.
"""

from __future__ import annotations

from gantrymq.client.admin.client import AdminClient

ROUTES_S = 35.0  # clients renew routes every 30 s
AGAIN_S = 1.0  # between two calls of `leave_routes`
PERMISSION, READ, ALL = "brokerPermission", "4", "6"


async def leave_routes(admin: AdminClient, name: str) -> None:
    """Step 1. To be called again until step 2: a new topic brings the permission back."""
    await admin.name_servers.wipe_write_perm(name)


async def reject_writes(admin: AdminClient, address: str) -> None:
    """Step 2."""
    await admin.brokers.update_config(address, {PERMISSION: READ})


async def rejects_writes(admin: AdminClient, address: str) -> bool:
    """Whether step 2 is done."""
    return (await admin.brokers.config(address)).get(PERMISSION) == READ


async def undrain(admin: AdminClient, name: str, address: str) -> None:
    """The broker accepts messages, and the routes say so."""
    await admin.brokers.update_config(address, {PERMISSION: ALL})
    await admin.name_servers.add_write_perm(name)
