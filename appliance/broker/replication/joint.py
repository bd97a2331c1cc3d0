"""Where a slave's log and its master's join: found by their epochs, then seen in the bytes. No I/O."""

from __future__ import annotations

from appliance.broker.epochs.history import Epochs
from appliance.broker.replication.handshake import Hello


class LogDiverged(Exception):
    """This log is not the beginning of the master's; the text says where."""


class MasterIsOver(Exception):
    """The master's epoch is over: another broker has begun a later one."""


class MasterContested(Exception):
    """Another broker has begun the master's epoch, too: neither is followed until a person has chosen one."""


class BelowConfirmed(Exception):
    """What would be cut was confirmed here: a person has to give it up."""


def where_to_cut(
    own: Epochs, begin: int, end: int, master: Hello, *, confirmed: int = -1, yields_to: str = ""
) -> int | None:
    """Return where this log, from `begin` to `end`, has to end before it follows; None when nothing has to go.

    Only what another epoch explains is cut: in the same epoch a master whose log is shorter has lost something, and
    a person has to look. confirmed: up to there messages were acknowledged as stored on all that have to have them;
    yields_to: the id of an epoch for which a person has given up what was. MasterIsOver; LogDiverged; MasterContested;
    BelowConfirmed.
    """
    theirs = master.epochs
    if own.is_rival(theirs.highest, theirs.highest_id) and own.shares(theirs):
        raise MasterContested(
            f"epoch {own.highest} was begun twice: it is {own.highest_id} here, {theirs.highest_id} at {master.address}"
        )
    if theirs.highest < own.highest:
        raise MasterIsOver(f"the master is of epoch {theirs.current}, and epoch {own.highest} has begun")
    if not own.history or begin < 0:  # nothing is known of this log's epochs: its bytes are compared
        return None
    joint = own.joint(end, theirs, master.end)
    if joint is None:
        raise LogDiverged("the master's log has no epoch in common with this one: they are not of one broker")
    if joint >= end or not own.parted(theirs):
        return None
    if joint < begin or joint < master.begin:
        raise LogDiverged(
            f"both logs agree up to {joint} only; this one begins at {begin}, the master's at {master.begin}: "
            "start this slave again on an empty folder, or on a copy of the master's store"
        )
    if joint < confirmed and yields_to not in {each.id for each in theirs.history}:
        raise BelowConfirmed(
            f"{confirmed - joint:,} bytes behind {joint} were confirmed here, and the master at {master.address} lacks "
            "them: `gantry admin settle` gives them up"
        )
    return joint


class Joint:
    """What this log holds from a place on, to be compared with the master's bytes; no I/O."""

    def __init__(self, position: int, expected: bytes) -> None:
        self.position = position  # up to here both agree
        self.has_begun = not expected
        self.signs_of_life = 0  # since the last bytes
        self._expected = memoryview(expected)

    @property
    def is_over(self) -> bool:
        return not self._expected

    def leave_out_first_byte(self) -> None:
        self.position += 1
        self._expected = self._expected[1:]

    def compare(self, position: int, piece: memoryview) -> memoryview:
        """Return what of the master's bytes lies beyond this log's end. LogDiverged where they differ."""
        if position != self.position:
            raise LogDiverged(f"the master sends {position}, where {self.position} was asked for")
        size = min(len(piece), len(self._expected))
        if piece[:size] != self._expected[:size]:
            at = next(at for at in range(size) if piece[at] != self._expected[at])
            raise LogDiverged(
                f"at {position + at} the master's log has other bytes than this one, which ends at "
                f"{self.position + len(self._expected)}: nothing is copied, since one of them would be lost"
            )
        self.has_begun = True
        self._expected = self._expected[size:]
        self.position += size
        return piece[size:]
