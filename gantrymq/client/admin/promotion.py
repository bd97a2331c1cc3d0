"""What speaks against the promotion of a slave: decided from what all members and name servers answered. No I/O.

The tool asks these questions, and the slave itself asks them again before it turns. Who does not answer counts as
against: it may have what the slave lacks. Two kinds of obstacles:

    known       the slave lacks something, or a master is there: a number of bytes may be accepted, the rest is forced
    unknown     no member can say that nothing is lost: `--accept-unknown` takes that, and nothing else
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from gantrymq.client.admin import apache_master as apache
from gantrymq.client.admin.members import Known, Member
from gantrymq.errors import ConfigError

ACCEPT_UNKNOWN = (
    "--accept-unknown promotes although acknowledged messages may be lost, and another master may be serving"
)
NO_REGISTER = (
    "no etcd gives out the numbers of epochs, so they are not safe: two promotions that do not hear of each other "
    "begin the same one"
)


@dataclass(frozen=True, slots=True)
class Promotion:
    """What a promotion would do. obstacles: what speaks against it, a sentence each; unknown: those among them that
    no member can answer; bytes_of: of those that say that it lacks a part of the log, how much that is; above: the
    highest epoch that any of them knows."""

    broker_name: str
    slave: Member
    obstacles: list[str]
    unknown: list[str] = field(default_factory=list)
    above: int = 0
    accepted_loss: int = 0
    others: list[str] = field(default_factory=list)  # the other members, where they serve
    from_apache: bool = False  # the master was one of Apache RocketMQ
    bytes_of: Mapping[str, int] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        """The new master's: one above the highest that any member has heard of."""
        return max(self.above, self.slave.epoch) + 1

    @property
    def has_register(self) -> bool:
        """Whether etcd gives out the number of the epoch."""
        return self.slave.info.get("epochRegister", "none") != "none"

    @property
    def is_for_register(self) -> bool:
        """Whether etcd has the in-sync set on record: then the slave reads there what no member can answer. It has
        none of an Apache master."""
        return self.has_register and not self.from_apache

    def left_with(self, *, accept_unknown: bool, accepted_bytes: int = 0) -> list[str]:
        """The obstacles that are left when what is not known is accepted, or not. accepted_bytes: which any member may
        have, and have confirmed; accepted_loss is of the master's log alone."""
        return [
            each
            for each in self.obstacles
            if not (accept_unknown and each in self.unknown) and not 0 < self.bytes_of.get(each, 0) <= accepted_bytes
        ]


def judge(
    broker_name: str,
    known: Known,
    address: str | None = None,
    *,
    accepted_loss: int = 0,
    from_apache: bool = False,
) -> Promotion:
    """The promotion of that slave, or of the one with the longest log. ConfigError without one."""
    slaves = [member for member in known.members if member.answers and not member.is_master]
    slave = chosen(slaves, address, broker_name)
    lacking = dict(_longer(slave, slaves))
    certain = list(_masters(known, slave))
    unknown = [*_silent(known, slave)]
    if from_apache:
        certain += apache.lacking(known, slave, accepted_loss)
        unknown += apache.unknown(slave)
    else:
        lacking |= dict(_lacking(slave, slaves, accepted_loss))
        certain += _ignorant(slave)
        unknown += [*_set_unknown(known, slave), *_age(known, slave), *_later(known, slave)]
    others = [member.address for member in known.members if member.address != slave.address]
    obstacles = certain + list(lacking) + unknown
    return Promotion(
        broker_name,
        slave,
        obstacles,
        unknown,
        known.highest_epoch,
        accepted_loss,
        others,
        from_apache=from_apache,
        bytes_of=lacking,
    )


def chosen(slaves: list[Member], address: str | None, broker_name: str) -> Member:
    """The slave at the address, or the one with the longest log. ConfigError."""
    if address is not None:
        slaves = [slave for slave in slaves if slave.address == address]
    if not slaves:
        which = (
            f"{address} is not a slave of {broker_name} that answers"
            if address
            else f"no slave of {broker_name} answers"
        )
        raise ConfigError(which)
    return max(slaves, key=lambda slave: slave.end)


# -- known ------------------------------------------------------------------------------------------------------------


def _masters(known: Known, slave: Member) -> Iterator[str]:
    for member in known.members:
        if member.refuses and _is_lost_master(member, slave):
            yield f"{member.address} is there, and refuses to say what it is: stop it, or use an account that may ask"
        if (rival := member.info.get("epochRival", "none")) != "none":
            yield f"{member.address} knows of a rival, epoch {rival}: `gantry admin settle` decides first"
        if member.is_master and not member.epoch:
            yield f"{member.address} answers, and is the master: {apache.STOP_IT}"
        elif member.is_master:
            yield (
                f"{member.address} answers, and is the master of epoch {member.epoch}: use a switchover, or stop it "
                "first"
            )


def _longer(slave: Member, slaves: list[Member]) -> Iterator[tuple[str, int]]:
    for other in slaves:
        if (more := other.end - slave.end) > 0:
            yield f"{other.address} has {more:,} bytes more of the log than {slave.address}", more


def _lacking(slave: Member, slaves: list[Member], accepted_loss: int) -> Iterator[tuple[str, int]]:
    told = max(member.told_in_sync for member in slaves)
    if told.epoch == slave.epoch and (lacks := told.confirmed - slave.end) > 0:
        names = ", ".join(told.names)
        yield f"{slave.address} lacks {lacks:,} bytes that were confirmed: {names} was in sync with its master", lacks
    missing = slave.missing_bytes
    if missing is not None and missing > accepted_loss:
        yield f"{slave.address} lacks {missing:,} bytes that the master had {slave.heard} s ago", missing


def _ignorant(slave: Member) -> Iterator[str]:
    if not slave.epoch:
        yield (
            f"{slave.address} knows no epochs: it has not followed a master of GantryMQ yet. If Apache RocketMQ's was "
            "its master, use --from-apache"
        )


# -- unknown ----------------------------------------------------------------------------------------------------------


def _silent(known: Known, slave: Member) -> Iterator[str]:
    """Who does not answer, the lost master left out: what it has, and the epochs that it knows, are not known."""
    told = max(member.told_in_sync for member in known.members if member.answers)
    for member in known.members:
        if member.answers or member.address == slave.address:
            continue
        if member.address in told.names:
            yield (
                f"{member.address} was in sync with the master and does not answer: it may have messages that "
                f"{slave.address} lacks"
            )
        elif not _is_lost_master(member, slave):
            yield f"{member.address} does not answer: it may have messages, or know of an epoch, that no other has"
    for server in known.name_servers:
        if not server.answers:
            yield f"the name server {server.address} does not answer: it may know of a later epoch, or of a master"


def _is_lost_master(member: Member, slave: Member) -> bool:
    return member.broker_id == 0 or member.address == slave.followed


def _set_unknown(known: Known, slave: Member) -> Iterator[str]:
    """Only a member of the set that was told last has all that was confirmed."""
    told = max(member.told_in_sync for member in known.members if member.answers)
    if not slave.epoch or slave.address in told.names:
        return
    if not told.names:
        yield f"no slave was in sync at the master's last report: {slave.address} may lack acknowledged messages"
    else:
        yield f"{slave.address} is not in sync: its master named {', '.join(told.names)} last"


def _age(known: Known, slave: Member) -> Iterator[str]:
    """A slave that heard nothing for longer may have left the set: its master went on without it."""
    told_s, gone_s = slave.told_s_ago, known.master_gone_s
    if told_s is None:
        yield f"{slave.address} has not heard of its master since it started: what it lacks is not known"
    elif told_s - (gone_s or 0.0) > slave.leave_s:
        since = (
            "and no name server saw the master end" if gone_s is None else f"and the master ended {gone_s:.1f} s ago"
        )
        yield (
            f"{slave.address} heard of its master {told_s:.1f} s ago, {since}: after {slave.leave_s:g} s a master "
            "acknowledges messages without a slave that is away"
        )


def _later(known: Known, slave: Member) -> Iterator[str]:
    """An epoch that began elsewhere: its messages are not in this log."""
    highest = known.highest_epoch
    if slave.log_epoch and highest > slave.log_epoch:
        by = next((each.epoch_master for each in known.name_servers if each.epoch == highest), "")
        who = f" at {by}" if by else ""
        yield f"epoch {highest} has begun{who}, and the log of {slave.address} is of epoch {slave.log_epoch}"
