"""The register of one broker name: read it, give out an epoch, keep the in-sync set on record.

Every change compares the term's revision, and every member must take what it finds there for later than what it knows
itself. What is not known after a lost answer is read back: ids are random, so a term with one's own id is one's own.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Collection, Mapping
from urllib.parse import quote

from appliance.failover.view import Beat, Figures, Holder
from appliance.register.etcd import EtcdClient, EtcdError, Is, OutcomeUnknown, Snapshot
from appliance.register.term import (
    IN_SYNC,
    LOCAL,
    Change,
    Term,
    View,
    beat_from_json,
    beat_json,
    figures_from_json,
    figures_json,
    pause_from_json,
)

PREFIX = "/gantry/1"
TERM = "term"
HISTORY = "history/"
GROUP = "group"
BEAT = "beat"
IDS = "ids/"
MEMBERS = "members/"
PAUSE = "pause"
CLUSTER = "cluster"  # the etcd in which the record was begun or adopted: a restored one has another id
HISTORY_MAX = 100  # rows; older ones are deleted when one is added
ID_BYTES = 8
HA_INIT = "run `gantry admin ha init` for this broker name first"


class Refused(EtcdError):
    """The register says otherwise; nothing was changed."""


class LogShortened(Refused):
    """This master's log may lack what others of its set have: it must not go on as the master."""


class Register:
    """One broker name's part of etcd. group: of the store that uses it; "": it has joined none yet, or is a tool's.

    ha: where this broker serves slaves. renews: as a master it renews its beat. Without that no beat is on record:
    one that stands still would say that the master is gone.
    """

    def __init__(self, client: EtcdClient, cluster: str, broker_name: str) -> None:
        self._client = client
        self.group = self.ha = ""
        self.renews = False
        self.prefix = f"{PREFIX}/{quote(cluster, safe='')}/{quote(broker_name, safe='')}/"
        self._published: Term | None = None  # what this process has on record there, as far as it knows

    async def view(self) -> View:
        """EtcdError: etcd can't be asked, or what stands there can't be read. Refused: it is another group's."""
        return self._as_view(await self._client.read(self.prefix))

    def _as_view(self, snapshot: Snapshot) -> View:
        found = snapshot.values.get(TERM)
        try:
            term = None if found is None else Term.from_json(found.data)
            rows = [Change.from_json(value.data) for key, value in snapshot.values.items() if key.startswith(HISTORY)]
            beat = snapshot.values.get(BEAT)
            beat_found = None if beat is None else beat_from_json(beat.data)
            pause = snapshot.values.get(PAUSE)
            cluster = snapshot.values.get(CLUSTER)
            figures = {
                int(key.removeprefix(MEMBERS)): (value.revision, figures_from_json(value.data))
                for key, value in snapshot.values.items()
                if key.startswith(MEMBERS)
            }
            pause_found = None if pause is None else pause_from_json(pause.data)
            adopted_cluster_id = 0 if cluster is None else int(cluster.data)
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
        revisions = [0 if value is None else value.revision for value in (found, beat)]
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
            figures=figures,
        )

    async def init(self, epoch: int, epoch_id: str, owner: str, group: str = "") -> None:
        """Begin the record with this master's epoch. group: of its store already. Refused when there is one."""
        term = Term(epoch, epoch_id, owner, (owner,), LOCAL)
        empty = View(cluster_id=(await self.view()).cluster_id)
        await self._put(empty, term, start=-1, reason="init", further={GROUP: (group or str(uuid.uuid4())).encode()})

    async def join(self, store: str, number: int = 0) -> tuple[str, int]:
        """Give a store its number for ever, and return group and number; what it has already stays. number: of before,
        when etcd had to begin anew. Refused, when another one joins at the same time: ask again; OutcomeUnknown."""
        view = await self.view()
        if view.term is None:
            raise Refused(f"etcd has no record of this broker name: {HA_INIT}")
        if view.group and store in view.stores:
            return view.group, view.stores[store]
        taken, group = set(view.stores.values()), view.group or self.group or str(uuid.uuid4())
        free = number if number and number not in taken else min(set(range(1, len(taken) + 2)) - taken)
        key = f"{self.prefix}{IDS}{free}"
        compare, puts = [Is(self.prefix + TERM, view.term_revision), Is(key, 0)], {key: store.encode()}
        if not view.group:  # a record of an earlier version
            compare.append(Is(self.prefix + GROUP, 0))
            puts[self.prefix + GROUP] = group.encode()
        try:
            if await self._client.change(compare, puts) is None:
                raise Refused("the record in etcd has changed in the meantime: join again")
        except OutcomeUnknown as unknown:
            found = await self.view()
            if found.stores.get(store) != free:
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
        if await self._client.change([Is(self.prefix + TERM, view.term_revision)], {}, [self.prefix]) is None:
            raise Refused("the record in etcd has changed in the meantime: check it again")

    async def take_over(
        self, view: View, owner: str, *, above: int, start: int, reason: str, is_first: bool = False
    ) -> Term:
        """Give out the next epoch, to this owner: higher than the one on record and than `above`.

        start: where it begins in the log. is_first: nothing has to be on record yet. Refused, when the record is
        another one by now; OutcomeUnknown: the epoch may have been given to this owner, and no other gets its number.
        """
        if view.term is None and not is_first:
            raise Refused(f"etcd assigns the epochs here, but has no record:  {HA_INIT}")
        number = max(view.term.epoch if view.term else 0, above) + 1
        term = Term(number, secrets.token_hex(ID_BYTES), owner, (owner,), LOCAL, ha=self.ha)
        await self._put(view, term, start=start, reason=reason)
        return term

    async def succeed(self, view: View, term: Term, beat: Beat, *, start: int, reason: str) -> bool:
        """Give this term out without an administrator, if term and beat are as the view says and failover is not
        paused; say if it was. A renewal that came in between defeats it. OutcomeUnknown: it may still be given out."""
        row = Change(term.epoch, term.id, term.owner, start, reason, int(time.time() * 1000))
        compare = [Is(TERM, view.term_revision), Is(BEAT, view.beat_revision), Is(PAUSE, 0)]
        puts = {TERM: term.to_json(), BEAT: beat_json(beat), _row_key(row): row.to_json()}
        revision = await self._client.change(
            [Is(self.prefix + each.key, each.revision) for each in compare],
            {self.prefix + key: data for key, data in puts.items()},
            [self.prefix + key for key in _rows_too_many(view)],
            cluster_id=view.cluster_id,
        )
        return revision is not None

    async def tell(self, number: int, figures: Figures) -> None:
        """Put what a member says of itself. EtcdError."""
        await self._client.change([], {f"{self.prefix}{MEMBERS}{number}": figures_json(figures)})

    async def renew(self, beat: Beat, term_revision: int, beat_revision: int) -> int | None:
        """Put the beat, and return its revision; None when term or beat is of another revision by now. OutcomeUnknown:
        look whether it is there; EtcdError: it is not."""
        compare = [Is(self.prefix + TERM, term_revision), Is(self.prefix + BEAT, beat_revision)]
        return await self._client.change(compare, {self.prefix + BEAT: beat_json(beat)})

    async def publish(
        self,
        epoch: int,
        epoch_id: str,
        owner: str,
        in_sync: Collection[str],
        level: str,
        stores: Mapping[str, tuple[str, str]] | None = None,
    ) -> Term:
        """Have this set of an epoch on record, and return what is on record then: another epoch's term if one is.

        stores: of members that are known to have every confirmed message, by address: id of the store, and since which
        boot it has lost nothing. Of others stays what is on record. EtcdError when that is not known; as long as the
        set stays the same, what was on record before is returned.
        """
        members = tuple(sorted({owner, *in_sync}))
        try:
            view = await self.view()
        except Refused:
            raise
        except EtcdError:
            if (was := self._published) and was == Term(epoch, epoch_id, owner, members, level, was.holders, was.ha):
                return was
            raise
        holders = _holders(view, epoch, epoch_id, members, stores or {})
        wanted = Term(epoch, epoch_id, owner, members, level, holders, self.ha)
        if view.term is None:
            raise Refused(f"etcd has no record of this broker name: {HA_INIT}")
        is_still = view.beat is not None and not self.renews
        if view.term.is_of(epoch, epoch_id) and (view.term != wanted or is_still):
            if self.renews:
                _check_log(view.term, owner, holders)
            self._published = None
            if not await self._swap(view, wanted, {}, [BEAT] if is_still else ()):
                raise Refused("the record in etcd has changed in the meantime")
        self._published = wanted if view.term.is_of(epoch, epoch_id) else None
        return wanted if self._published else view.term

    # -- transactions -------------------------------------------------------------------------------------------------

    async def _put(
        self, view: View, term: Term, *, start: int, reason: str, further: Mapping[str, bytes] | None = None
    ) -> None:
        row = Change(term.epoch, term.id, term.owner, start, reason, int(time.time() * 1000))
        rows = {_row_key(row): row.to_json(), CLUSTER: str(view.cluster_id).encode(), **(further or {})}
        if not await self._swap(view, term, rows, [BEAT, *_rows_too_many(view)]):  # who renews begins a beat anew
            found = (await self.view()).term
            now = f"epoch {found.epoch} of {found.owner}" if found else "nothing"
            raise Refused(f"etcd has {now} on record: check it again")

    async def _swap(self, view: View, term: Term, rows: dict[str, bytes], old: Collection[str] = ()) -> bool:
        """Replace the term of that revision; False when it is another by now. OutcomeUnknown."""
        puts = {self.prefix + key: data for key, data in {TERM: term.to_json(), **rows}.items()}
        try:
            revision = await self._client.change(
                [Is(self.prefix + TERM, view.term_revision)], puts, [self.prefix + key for key in old]
            )
        except OutcomeUnknown as unknown:
            try:
                found = (await self.view()).term
            except EtcdError:
                raise unknown from None
            if found == term:
                return True
            if found != view.term:
                return False
            raise  # not there yet: it may still be executed
        return revision is not None


def _holders(
    view: View, epoch: int, epoch_id: str, members: Collection[str], stores: Mapping[str, tuple[str, str]]
) -> dict[str, Holder]:
    """Which members stand behind these addresses, as far as they have joined."""
    before = view.term.holders if view.term is not None and view.term.is_of(epoch, epoch_id) else {}
    holders = {at: before[at] for at in members if at in before}
    for at in members:
        store, boot = stores.get(at, ("", ""))
        if store in view.stores:
            holders[at] = Holder(view.stores[store], boot)
    return holders


def _check_log(before: Term, owner: str, holders: Mapping[str, Holder]) -> None:
    """LogShortened for an owner whose machine has restarted since the set was put there: others have more."""
    now = holders.get(owner)
    was = next((each for each in before.holders.values() if now is not None and each.id == now.id), None)
    if before.level == IN_SYNC and len(before.in_sync) > 1 and was is not None and now is not None and was != now:
        others = ", ".join(each for each in before.in_sync if each != owner)
        raise LogShortened(
            f"the machine of member {now.id} has restarted since it came in sync: the end of its log may be lost, and "
            f"{others} has it"
        )


def _rows_too_many(view: View) -> list[str]:
    return [_row_key(each) for each in view.history[: 1 - HISTORY_MAX]] if len(view.history) >= HISTORY_MAX else []


def _row_key(row: Change) -> str:
    return f"{HISTORY}{row.epoch:010}-{row.at_ms}"
