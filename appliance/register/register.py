"""The register of one broker name: read it, give out an epoch, keep the in-sync set on record.

Every change compares the term's revision, and every member must take what it finds there for later than what it knows
itself. What is not known after a lost answer is read back: ids are random, so a term with one's own id is one's own.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from urllib.parse import quote

import orjson

from appliance.failover.lease import LEASE_S, Watched
from appliance.failover.older_copy import counted_since
from appliance.failover.view import Beat, Figures, Holder, Pause, Switch, TermState
from appliance.process.awake import awake_s
from appliance.process.process_identity import is_of
from appliance.register.etcd import EtcdClient, EtcdError, Is, OutcomeUnknown, Snapshot
from appliance.register.owner import holders_of, is_dead, why_not_over, why_shortened
from appliance.register.room import Trouble, trouble_of
from appliance.register.term import (
    LOCAL,
    Change,
    Term,
    View,
    beat_from_json,
    beat_json,
    cancelled_from_json,
    figures_from_json,
    figures_json,
    pause_from_json,
    pause_json,
    switch_from_json,
    switch_json,
)

PREFIX = "/gantry/1"
TERM = "term"
HISTORY = "history/"
GROUP = "group"
BEAT = "beat"
IDS = "ids/"
MEMBERS = "members/"
PAUSE = "pause"
SWITCH = "switch"
CANCELLED = "cancelled"  # the last switch that could not happen, and why
RELEASE_TRIES = 4
CLUSTER = "cluster"  # the etcd in which the record was begun or adopted: a restored one has another id
HISTORY_MAX = 100  # rows; older ones are deleted when one is added
ID_BYTES = 8
HA_INIT = "run `gantry admin ha init` for this broker name first"
RESTORED = "etcd was restored from a backup or replaced: the in-sync set that it has proves nothing"
JOIN_TRIES = 5


class Refused(EtcdError):
    """The register says otherwise; nothing was changed."""


class TakenBack(Refused):
    """The switchover for which a role was to be given up is not asked for any more."""


class LogShortened(Refused):
    """This master's log may lack what others of its set have: it must not go on as the master."""


class Register:
    """One broker name's part of etcd. group: of the store that uses it; "": it has joined none yet, or is a tool's.

    ha: where this broker serves slaves. session: of its process, with automatic failover: as a master it renews its
    beat then. Without it no beat is on record: one that stands still would say that the master is gone. lease_s: of the
    settings. is_store_local: the lock of this broker's store keeps out other machines.
    """

    def __init__(self, client: EtcdClient, cluster: str, broker_name: str) -> None:
        self._client = client
        self.group = self.ha = self.session = ""
        self.lease_s: float = LEASE_S
        self.is_store_local = False
        self._before = Watched()  # the beat of the process whose epoch this one goes on with
        self.prefix = f"{PREFIX}/{quote(cluster, safe='')}/{quote(broker_name, safe='')}/"
        self._published: Term | None = None  # what this process has on record there, as far as it knows
        self._unsettled_at = -1  # the term's revision that a set was sent to replace, which etcd may still execute
        self._has_claimed = False  # this process has had its session there
        self.takes_back = False  # it may have its role again, though it gave it up

    async def view(self) -> View:
        """EtcdError: etcd can't be asked, or what stands there can't be read. Refused: it is another group's."""
        return self._as_view(await self._client.read(self.prefix))

    async def trouble(self) -> Trouble:
        """Whether etcd has room for changes."""
        return await trouble_of(self._client, self.prefix + TERM)

    def _as_view(self, snapshot: Snapshot) -> View:
        found = snapshot.values.get(TERM)
        try:
            term = None if found is None else Term.from_json(found.data)
            rows = [Change.from_json(value.data) for key, value in snapshot.values.items() if key.startswith(HISTORY)]
            beat = snapshot.values.get(BEAT)
            beat_found = None if beat is None else beat_from_json(beat.data)
            pause, switch = snapshot.values.get(PAUSE), snapshot.values.get(SWITCH)
            cluster = snapshot.values.get(CLUSTER)
            figures = _figures(snapshot)
            pause_found = None if pause is None else pause_from_json(pause.data)
            switch_found = None if switch is None else switch_from_json(switch.data)
            adopted_cluster_id = 0 if cluster is None else int(cluster.data)
            cancelled = snapshot.values.get(CANCELLED)
            cancelled_found = ("", "") if cancelled is None else cancelled_from_json(cancelled.data)
            group = snapshot.values[GROUP].data.decode() if GROUP in snapshot.values else ""
            stores = {
                value.data.decode(): int(key.removeprefix(IDS))
                for key, value in snapshot.values.items()
                if key.startswith(IDS)
            }
        except ValueError as exc:
            raise EtcdError(f"{self.prefix} in etcd is damaged: {exc}") from exc
        if self.group and group and group != self.group:
            raise Refused(
                f"{self.prefix} in etcd is of group {group}, and this store is of group {self.group}: its messages are "
                "of another cluster, or etcdEndpoints names another one's etcd"
            )
        history = tuple(sorted(rows, key=lambda row: (row.epoch, row.at_ms)))
        revisions = [0 if value is None else value.revision for value in (found, beat, pause, switch, cancelled)]
        return View(
            term,
            revisions[0],
            history,
            group,
            stores,
            beat_found,
            revisions[1],
            cluster_id=snapshot.cluster_id,
            adopted_cluster_id=adopted_cluster_id,
            pause=pause_found,
            pause_revision=revisions[2],
            switch=switch_found,
            switch_revision=revisions[3],
            cancelled=cancelled_found,
            cancelled_revision=revisions[4],
            figures=figures,
        )

    async def init(self, epoch: int, epoch_id: str, owner: str, group: str = "") -> None:
        """Begin the record with this master's epoch. group: of its store already. Refused when there is one."""
        term = Term(epoch, epoch_id, owner, (owner,), LOCAL)
        empty = View(cluster_id=(await self.view()).cluster_id)
        await self._put(empty, term, start=-1, reason="init", further={GROUP: (group or str(uuid.uuid4())).encode()})

    async def join(self, store: str, number: int = 0) -> tuple[str, int]:
        """Give a store its number for ever, and return group and number; what it has already stays. number: of before,
        when etcd had to begin anew. Refused, when the record changed under each of JOIN_TRIES; OutcomeUnknown."""
        for _ in range(JOIN_TRIES):  # others join at the same time, and the master changes its set
            joined = await self._join(store, number)
            if joined is not None:
                return joined
        raise Refused("the record in etcd has changed in the meantime: join again")

    async def _join(self, store: str, number: int) -> tuple[str, int] | None:
        view = await self.view()
        _check_record(view)
        if view.group and store in view.stores:
            return view.group, view.stores[store]
        taken, group = set(view.stores.values()), view.group or self.group or str(uuid.uuid4())
        free = number if number and number not in taken else min(set(range(1, len(taken) + 2)) - taken)
        key = f"{self.prefix}{IDS}{free}"
        compare = [*self._is_record(view), Is(self.prefix + TERM, view.term_revision), Is(key, 0)]
        puts = {key: store.encode()}
        if not view.group:  # a record of an earlier version
            compare.append(Is(self.prefix + GROUP, 0))
            puts[self.prefix + GROUP] = group.encode()
        try:
            if await self._client.change(compare, puts, cluster_id=view.cluster_id) is None:
                return None
        except OutcomeUnknown as unknown:
            found = await self.view()
            if (found.cluster_id, found.stores.get(store)) != (view.cluster_id, free):
                raise unknown  # it may still be executed: to join again finds it, or is refused
        return group, free

    async def adopt(self, view: View, epoch: int, epoch_id: str, owner: str) -> None:
        """Have the record follow this master's epoch: it is later than the one on record, or etcd was restored.

        Refused when the record has changed since, or a later epoch stands there.
        """
        if view.term is None:
            raise Refused(f"etcd has no record of this broker name: {HA_INIT}")
        if view.term.epoch > epoch:
            raise Refused(f"etcd has epoch {view.term.epoch} of {view.term.owner} on record, a later one than {epoch}")
        await self._put(view, Term(epoch, epoch_id, owner, (owner,), LOCAL), start=-1, reason="adopt")

    async def remove(self, view: View) -> None:
        """Delete all of this broker name. Refused when the record has changed since."""
        compare = [*self._is_record(view), Is(self.prefix + TERM, view.term_revision)]
        if await self._client.change(compare, {}, [self.prefix], cluster_id=view.cluster_id) is None:
            raise Refused("the record in etcd has changed in the meantime: check it again")

    async def take_over(
        self,
        view: View,
        owner: str,
        *,
        above: int,
        start: int,
        reason: str,
        is_first: bool = False,
        holder: Holder | None = None,
        epoch_id: str = "",
    ) -> Term:
        """Give out the next epoch, to this owner: higher than the one on record and than `above`.

        start: where it begins in the log. is_first: nothing has to be on record yet. holder: which member the owner is,
        if it has joined: so it finds its own epoch there when it was killed before it began it. epoch_id: random, for
        an owner that has to know it before. Refused, when the record is another one by now; OutcomeUnknown: the epoch
        may have been given to this owner, and no other gets its number.
        """
        if view.term is None and not is_first:
            raise Refused(f"etcd assigns the epochs here, but has no record:  {HA_INIT}")
        number, epoch_id = max(view.term.epoch if view.term else 0, above) + 1, epoch_id or secrets.token_hex(ID_BYTES)
        term = Term(number, epoch_id, owner, (owner,), LOCAL, ha=self.ha, session=self.session)
        holders = {} if holder is None else {owner: holder}
        term = dataclasses.replace(term, state=TermState.OPENING, holders=holders)
        await self._put(view, term, start=start, reason=reason)
        return term

    async def settle(self, view: View) -> None:
        """Put the term there again as it is: whatever compares this revision is not executed any more, or has been.
        EtcdError, OutcomeUnknown: that is not known."""
        if view.term is not None:
            await self._swap(view, view.term, {})

    async def succeed(self, view: View, term: Term, beat: Beat, *, start: int, reason: str, out_ms: int = -1) -> bool:
        """Give this term out, if term, beat and switch are as the view says and failover is not paused; say if it
        was. A renewal that came in between defeats it, and so does a switch that was asked for or cancelled.
        OutcomeUnknown: it may still be given out."""
        row = Change(term.epoch, term.id, term.owner, start, reason, int(time.time() * 1000), out_ms)
        revisions = {TERM: view.term_revision, BEAT: view.beat_revision, SWITCH: view.switch_revision, PAUSE: 0}
        puts = {TERM: term.to_json(), BEAT: beat_json(beat), _row_key(row): row.to_json()}
        revision = await self._client.change(
            [Is(self.prefix + key, revision) for key, revision in revisions.items()],
            {self.prefix + key: data for key, data in puts.items()},
            [self.prefix + key for key in (SWITCH, *_rows_too_many(view))],
            cluster_id=view.cluster_id,
        )
        return revision is not None

    async def pause(self, view: View, pause: Pause) -> None:
        """No member takes over by itself until it is resumed. Refused when it is paused, or the term has changed."""
        compare = {PAUSE: 0, TERM: view.term_revision}
        await self._put_by_person(view, compare, {PAUSE: pause_json(pause)}, (), "failover is paused already, or")

    async def resume(self, view: View) -> None:
        """Refused when this pause has ended meanwhile."""
        await self._put_by_person(view, {PAUSE: view.pause_revision}, {}, (PAUSE,), "")

    async def _put_by_person(
        self,
        view: View,
        compare: Mapping[str, int],
        puts: Mapping[str, bytes],
        deletes: Collection[str],
        or_else: str,
    ) -> None:
        """Refused with what else may be, when something does not compare, and in an etcd that the record does not name.
        OutcomeUnknown, also when another etcd answers than the one that was read."""
        _check_record(view)
        revision = await self._client.change(
            [*self._is_record(view), *(Is(self.prefix + key, revision) for key, revision in compare.items())],
            {self.prefix + key: data for key, data in puts.items()},
            [self.prefix + key for key in deletes],
            cluster_id=view.cluster_id,
        )
        if revision is None:
            raise Refused(f"{or_else} the record in etcd has changed in the meantime: check it again".strip())

    def _is_record(self, view: View) -> list[Is]:
        """Compares: it is this record, and no other one that may have the same revisions in another etcd. Only a backup
        of this record passes for it."""
        adopted = view.adopted_cluster_id
        return [Is(self.prefix + CLUSTER, data=str(adopted).encode())] if adopted else []

    async def tell(self, number: int, figures: Figures, view: View) -> bool:
        """Put what a member says of itself, unless the term has changed since it looked: another group's record, at the
        same address, has a member of that number, too. Say if it was. EtcdError."""
        compare = [*self._is_record(view), Is(self.prefix + TERM, view.term_revision)]
        puts = {f"{self.prefix}{MEMBERS}{number}": figures_json(figures)}
        return await self._client.change(compare, puts, cluster_id=view.cluster_id) is not None

    async def renew(self, beat: Beat, term_revision: int, beat_revision: int, cluster_id: int) -> int | None:
        """Put the beat, and return its revision; None when term or beat is of another revision by now. cluster_id: of
        the etcd whose revisions these are. OutcomeUnknown: look whether it is there; EtcdError: it is not."""
        compare = [Is(self.prefix + TERM, term_revision), Is(self.prefix + BEAT, beat_revision)]
        return await self._client.change(compare, {self.prefix + BEAT: beat_json(beat)}, cluster_id=cluster_id)

    async def publish(
        self,
        epoch: int,
        epoch_id: str,
        owner: str,
        in_sync: Collection[str],
        level: str,
        stores: Mapping[str, tuple[str, str]] | None = None,
        *,
        end: int = -1,
    ) -> Term:
        """Have this set of an epoch on record, and return what is on record then: another epoch's term if one is.
        stores: of members that are known to have every confirmed message, by address: id of the store, and since which
        boot it has lost nothing. Of others stays what is on record. EtcdError when that is not known; as long as the
        set stays the same, what was on record before is returned. A set that was sent and may still be executed is
        prevented first: what this returns stays on record until the next call. end: of the owner's log, -1: not known.
        """
        members = tuple(sorted({owner, *in_sync}))
        try:
            view = await self.view()
        except Refused:
            raise
        except EtcdError:
            if (was := self._published) and was == Term(
                epoch, epoch_id, owner, members, level, was.holders, was.ha, self.session
            ):
                return was
            raise
        holders = holders_of(view, epoch, epoch_id, members, stores or {})
        wanted = Term(epoch, epoch_id, owner, members, level, holders, self.ha, self.session)
        _check_record(view)
        assert view.term is not None
        is_still = view.beat is not None and not self.session
        if view.term.is_of(epoch, epoch_id) and self.session:
            self._check_claim(view.term)
        may_change = self._unsettled_at == view.term_revision  # another revision prevents it
        if view.term.is_of(epoch, epoch_id) and (view.term != wanted or is_still or may_change):
            if self.session:
                self._check_owner(view, view.term, owner, holders, end)
            self._published, self._unsettled_at = None, view.term_revision
            is_claim = self.session not in ("", view.term.session)
            if not await self._swap(view, wanted, {}, [BEAT] if is_still else (), compares_beat=is_claim):
                raise Refused("the record in etcd has changed in the meantime")
            self._unsettled_at = -1
        self._published = wanted if view.term.is_of(epoch, epoch_id) else None
        self._has_claimed |= self._published is not None
        self.takes_back &= self._published is None
        return wanted if self._published else view.term

    def _check_claim(self, term: Term) -> None:
        """Refused when the epoch is not this process's any more. One that starts has its store's lock, so the process
        before it is dead, and it takes over its epoch; the term's revision says whether another member was faster."""
        if not self._has_claimed or self.takes_back:
            return
        if term.session not in ("", self.session):
            raise Refused(
                "another process has this epoch: a copy of this store is open as a master. Start this one again"
            )
        if term.state == TermState.RELEASED:
            raise Refused("this master has given up its role")

    def _check_owner(self, view: View, term: Term, owner: str, holders: Mapping[str, Holder], end: int) -> None:
        """Refused for an owner whose log may lack a part, or while the process before may go on."""
        if why := why_shortened(view, term, owner, holders.get(owner), end, has_claimed=self._has_claimed):
            raise LogShortened(why)
        lease_s, is_local = self.lease_of(view.beat), self.is_store_local
        if why := why_not_over(view, term, self.session, self._before, lease_s, awake_s(), is_store_local=is_local):
            raise Refused(why)

    def is_dead(self, term: Term) -> bool:
        """Whether the process of this term is known to be dead, if it had this store."""
        return is_dead(term, self.session, is_store_local=self.is_store_local)

    def lease_of(self, beat: Beat | None) -> float:
        """So long to wait for a master: its settings may say more than these, as while all members' are changed."""
        return max(self.lease_s, 0.0 if beat is None else beat.lease_s)

    async def release(self, epoch: int, epoch_id: str, end: int, *, switch: str = "") -> bool:
        """No member is the master of this epoch any more, whose log ends there; say if that is so. Only when nothing
        more is accepted and confirmed here: a successor does not wait. switch: the id of the one for which it is, if
        it is for one. TakenBack: that is gone, so no release for it is executed any more. EtcdError, OutcomeUnknown:
        it may be so."""
        view = await self.view()
        return await self._release(
            view, lambda term: term.is_of(epoch, epoch_id) and term.session == self.session, end, switch
        )

    async def witness(self, process: str) -> bool:
        """Release the epoch of a dead process, by its identity; say if it had one. Only who reaped it may say that it
        is dead: of a process that still runs this would make two masters. EtcdError, OutcomeUnknown."""
        view = await self.view()
        return await self._release(view, lambda term: is_of(term.session, process), -1)

    async def _release(self, view: View, is_its: Callable[[Term], bool], end: int, switch: str = "") -> bool:
        """Whatever that process sent and etcd has not executed yet compares an earlier revision of the term."""
        for _ in range(RELEASE_TRIES):
            term = view.term
            if term is None or not is_its(term):
                return False
            if term.state == TermState.RELEASED:
                return True
            if switch and (view.switch is None or view.switch.id != switch):
                raise TakenBack("the switchover is not asked for any more")
            if await self._swap(view, term.released(end), {}, compares_switch=bool(switch)):
                return True
            view = await self.view()  # a change of the set came first
        return False

    async def switch(self, view: View, switch: Switch) -> None:
        """Have the master give its role to a member. Refused when another switch is there, or the term has changed. An
        unclean one takes the place of the one that was seen: no master is there to cancel that."""
        compare = {
            SWITCH: 0 if switch.is_planned else view.switch_revision,
            CANCELLED: view.cancelled_revision,
            TERM: view.term_revision,
            PAUSE: 0,
        }
        or_else = "failover is paused, a switchover is under way, or"
        await self._put_by_person(view, compare, {SWITCH: switch_json(switch)}, (CANCELLED,), or_else)

    async def drop_switch(self, view: View, reason: str, asked: str = "", *, has_not_begun: bool = False) -> None:
        """The switch can't happen: say why. asked: the id of one that etcd may have, or may still put there: it can't
        any more. Refused when it has gone or come meanwhile. has_not_begun: and when the term has changed since."""
        puts = {CANCELLED: orjson.dumps([asked if view.switch is None else view.switch.id, reason])}
        compare = {SWITCH: view.switch_revision} | ({TERM: view.term_revision} if has_not_begun else {})
        await self._put_by_person(view, compare, puts, (SWITCH,), "")

    # -- transactions -------------------------------------------------------------------------------------------------

    async def _put(
        self, view: View, term: Term, *, start: int, reason: str, further: Mapping[str, bytes] | None = None
    ) -> None:
        row = Change(term.epoch, term.id, term.owner, start, reason, int(time.time() * 1000))
        rows = {_row_key(row): row.to_json(), CLUSTER: str(view.cluster_id).encode(), **(further or {})}
        if not await self._swap(
            view, term, rows, [BEAT, SWITCH, *_rows_too_many(view)]
        ):  # who renews begins a beat anew
            found = (await self.view()).term
            now = f"epoch {found.epoch} of {found.owner}" if found else "nothing"
            raise Refused(f"etcd has {now} on record: check it again")

    async def _swap(
        self,
        view: View,
        term: Term,
        rows: dict[str, bytes],
        old: Collection[str] = (),
        *,
        compares_beat: bool = False,
        compares_switch: bool = False,
    ) -> bool:
        """Replace the term of that revision; False when it is another by now. compares_beat: or when who has the term
        has renewed since; compares_switch: or when a switch has come or gone. OutcomeUnknown."""
        if (was := view.term) is not None:
            before, now = ((each.id, each.holders.get(each.owner)) for each in (was, term))
            term = dataclasses.replace(term, since=counted_since(before, now, was.since, view.term_revision))
        puts = {self.prefix + key: data for key, data in {TERM: term.to_json(), **rows}.items()}
        compare = [Is(self.prefix + TERM, view.term_revision)]
        if compares_beat:
            compare.append(Is(self.prefix + BEAT, view.beat_revision))
        if compares_switch:
            compare.append(Is(self.prefix + SWITCH, view.switch_revision))
        try:
            deletes = [self.prefix + key for key in old]
            revision = await self._client.change(compare, puts, deletes, cluster_id=view.cluster_id)
        except OutcomeUnknown as unknown:
            try:
                found = await self.view()
            except EtcdError:
                raise unknown from None
            if found.cluster_id != view.cluster_id or found.term_revision == view.term_revision:
                raise  # it tells nothing of the one that was meant, or is not there yet: it may still be executed
            return found.term == term
        return revision is not None


def _figures(snapshot: Snapshot) -> dict[int, tuple[int, Figures]]:
    """What members say of themselves, with the revision of each. ValueError."""
    return {
        int(key.removeprefix(MEMBERS)): (value.revision, figures_from_json(value.data))
        for key, value in snapshot.values.items()
        if key.startswith(MEMBERS)
    }


def _check_record(view: View) -> None:
    """Refused without a record, and in an etcd that was restored: members may use the one of before."""
    if view.term is None:
        raise Refused(f"etcd has no record of this broker name: {HA_INIT}")
    if view.is_restored:
        raise Refused(f"it has epoch {view.term.epoch} of {view.term.owner} on record, and {RESTORED}")


def _rows_too_many(view: View) -> list[str]:
    return [_row_key(each) for each in view.history[: 1 - HISTORY_MAX]] if len(view.history) >= HISTORY_MAX else []


def _row_key(row: Change) -> str:
    return f"{HISTORY}{row.epoch:010}-{row.at_ms}"
