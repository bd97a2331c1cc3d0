"""What speaks against the promotion of a slave whose master was one of Apache RocketMQ. No I/O.

Invariant: nothing that the Apache master acknowledged to a client is missing from the promoted log, unless a person
accepts that in words (`--accept-loss`, `--accept-unknown`, `--force`).

Apache's master answers none of the questions that a promotion asks of a master of GantryMQ: it knows no epochs, it
acknowledges with ASYNC_MASTER before any slave has a message, with SYNC_MASTER once any one of them has it, and says
nothing when it ends. A clean stop proves nothing either: it closes the port for slaves before it has sent them all.
So it has to be fenced while it runs (appliance/broker/replication/apache_fence.py): then its end is final, and the
slave has noted it. The slave has everything if its log ends exactly there, and begins no later than the master's did.
"""

from __future__ import annotations

from collections.abc import Iterator

from gantrymq.client.admin.members import Known, Member

STOP_IT = (
    "use a switch-over if it is one of GantryMQ; fence one of Apache RocketMQ (`gantry admin config set --broker NAME "
    "brokerRole=SLAVE`), and stop it once its slave has its whole log"
)


def lacking(known: Known, slave: Member, accepted_loss: int) -> Iterator[str]:
    """What is known to be missing, or another's."""
    if slave.epoch:
        yield f"{slave.address} has heard of epoch {slave.epoch}, and no Apache master begins one: omit --from-apache"
    elif known.highest_epoch:
        yield f"epoch {known.highest_epoch} has begun at a master of GantryMQ, and {slave.address} has none of it"
    begin, end = slave.apache_log
    if (missing := max(end - slave.end, slave.missing_bytes or 0)) > accepted_loss:
        yield (
            f"{slave.address} lacks {missing:,} bytes of its Apache master's log, which ended at "
            f"{slave.end + missing:,}"
        )
    if end >= 0 and (older := slave.begin - begin) > accepted_loss:
        yield (
            f"{slave.address} lacks {older:,} bytes of older messages: its log begins at {slave.begin:,}, its Apache "
            f"master's began at {begin:,}. Start it on a copy of the master's store"
        )


def unknown(slave: Member) -> Iterator[str]:
    """What no member can answer."""
    _, end = slave.apache_log
    if end < 0:
        yield (
            f"{slave.address} has not seen where the log of its Apache master ends for good, fenced for 10 s (it heard "
            f"of it {slave.heard} s ago): what that master acknowledged last may be missing"
        )
    elif slave.end > end:
        yield (
            f"{slave.address} has {slave.end - end:,} bytes more than its Apache master had when it was fenced: that "
            "one went on taking messages, and may have more"
        )
