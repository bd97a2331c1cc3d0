"""AdminClient: what operators and the dashboard ask of name servers and brokers.

Calls to the name server ask whichever answers; changes go to all of them. Calls to one broker take its address first,
as cluster_info or topic_route gave it; calls that end in _everywhere, and those without an address, speak to every
broker that matters. All raise ConnectError, RequestTimeout or ResponseError (code and remark of the peer); PartlyDone
when some of several did not.

Parts: admin_calls (connections), admin_cluster, admin_topics, admin_groups, admin_offsets, admin_messages,
admin_accounts; what calls over several brokers return stands in admin_results.
"""

from __future__ import annotations

from gantrymq.client.admin.accounts import AccountAdmin
from gantrymq.client.admin.calls import accepted, read_properties
from gantrymq.client.admin.messages import ADMIN_PRODUCER_GROUP, LONG_MAX, TOOLS_GROUP, MessageAdmin

__all__ = ["ADMIN_PRODUCER_GROUP", "LONG_MAX", "TOOLS_GROUP", "AdminClient", "accepted", "read_properties"]


class AdminClient(MessageAdmin, AccountAdmin):
    """Administers a cluster: `async with AdminClient("host:port;host:port") as admin`."""
