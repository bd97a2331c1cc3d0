"""succession, for threads.

Written from gantrymq.client.admin.succession, which is the one to change, by
`python -m tests.gantrymq.client.blocking.admin_twins`.
"""

from __future__ import annotations

from gantrymq.client.admin.failover import FailoverStatus
from gantrymq.client.admin.members import Known, Member
from gantrymq.client.admin.promotion import Promotion
from gantrymq.client.admin.succession import Changed, SuccessionAdmin
from gantrymq.client.blocking.base import BlockingPart


class SyncSuccessionAdmin(BlockingPart[SuccessionAdmin]):
    """`admin.succession`."""

    def view(self, broker_name: str, *further: str) -> list[Member]:
        """The members that the name servers list, and further addresses, with their figures. ConfigError."""
        return self._run(self._part().view(broker_name, *further))

    def known(self, broker_name: str, *further: str) -> Known:
        """What all members and all name servers answer; members are also those that a slave was told of.

        ConfigError when the name is unknown.
        """
        return self._run(self._part().known(broker_name, *further))

    def promotion(
        self, broker_name: str, address: str | None = None, *, accepted_loss: int = 0, from_apache: bool = False
    ) -> Promotion:
        """What it would mean to promote that slave, or else the one with the longest log. ConfigError without one.

        from_apache: its master was one of Apache RocketMQ.
        """
        return self._run(
            self._part().promotion(broker_name, address, accepted_loss=accepted_loss, from_apache=from_apache)
        )

    def promote(self, promotion: Promotion, *, force: bool = False, accept_unknown: bool = False) -> Changed:
        """Promote the slave as it was seen; refused when it has changed since. Returns once all know it.

        accept_unknown: although no member can say whether it has all that was acknowledged; force: whatever is known.
        """
        return self._run(self._part().promote(promotion, force=force, accept_unknown=accept_unknown))

    def switch(self, broker_name: str, address: str | None = None) -> tuple[Member, Promotion]:
        """What a switchover would do: the master of now, and the promotion. ConfigError without a master."""
        return self._run(self._part().switch(broker_name, address))

    def switch_over(self, master: Member, promotion: Promotion) -> Changed:
        """Hold back messages at the master until the slave has all, promote it, and wait until both know.

        When anything fails before the promotion, the master goes on. It ends within SWITCH_S, also when a broker is
        lost meanwhile: the GantryError says how far it came. While it is not known whether the slave was promoted, the
        master holds back messages until HOLD_S are over.
        """
        return self._run(self._part().switch_over(master, promotion))

    def settle(self, broker_name: str, keep: str, *, accept_unknown: bool = False) -> Changed:
        """Decide that the log of the master `keep` counts. Others give up what they have beside it, confirmed or not;
        it stays in a folder beside their stores. A master whose epoch was begun twice, or that has handed over, begins
        a higher one first.

        accept_unknown: go on although members or name servers do not answer. ConfigError; GantryError when a member
        was not notified.
        """
        return self._run(self._part().settle(broker_name, keep, accept_unknown=accept_unknown))

    def join(self, broker_name: str, address: str) -> int:
        """Have a member join its group in etcd; return its number there. GantryError.

        Asked again once if the connection breaks: a master whose record is new closes its connections until etcd has
        proved it. A member that has joined already answers with its number.
        """
        return self._run(self._part().join(broker_name, address))

    def failover(self, broker_name: str, *addresses: str) -> FailoverStatus:
        """What etcd has on record, as the first of these brokers that answers tells it; without addresses of all
        members that are known. One that etcd answers counts more. ConfigError; GantryError when none answers."""
        return self._run(self._part().failover(broker_name, *addresses))

    def failover_at(self, address: str) -> FailoverStatus:
        """The same, of one broker. ConnectError, RequestTimeout, ResponseError; BodyError."""
        return self._run(self._part().failover_at(address))

    def pause_failover(self, broker_name: str, *, who: str, why: str, until_ms: int = 0) -> None:
        """Have no broker of this name become the master by itself. until_ms: the planned end, for people; 0: none.

        ResponseError when it is paused already, or etcd does not answer.
        """
        self._run(self._part().pause_failover(broker_name, who=who, why=why, until_ms=until_ms))

    def resume_failover(self, broker_name: str, *, who: str, force: bool = False) -> None:
        """End the pause. ResponseError while the master does not renew in etcd, since it would be replaced then; force:
        also then."""
        self._run(self._part().resume_failover(broker_name, who=who, force=force))
