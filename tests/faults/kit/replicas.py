"""Masters and slaves as processes: small files, quick heartbeats, and what they say of themselves."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq import SyncAdminClient
from gantrymq.client.admin.succession import Changed
from gantrymq.errors import ConfigError, GantryError, ResponseError
from gantrymq.remoting.codes import RequestCode
from tests.harness import LocalCluster
from tests.waiting import wait_until

TOPIC = "Copied"
FILES = {"mappedFileSizeCommitLog": str(1 << 20), "haSendHeartbeatInterval": "200", "haHousekeepingInterval": "1000"}
SYNC = FILES | {  # what was acknowledged, two have
    "slavesEnable": "true",
    "brokerRole": "SYNC_MASTER",
    "allAckInSyncStateSet": "true",
    "minInSyncReplicas": "2",
    "slaveTimeout": "2000",
}
ASYNC = FILES | {"slavesEnable": "true"}

Member = TypeVar("Member", bound=LocalCluster)


def runtime_info(peer: LocalCluster) -> dict[str, str]:
    try:
        with SyncAdminClient(peer.namesrv_address, timeout_s=5) as admin:
            return admin.brokers.runtime_info(peer.broker_address)
    except GantryError:  # stopped, or not up yet
        return {}


def figures(peer: LocalCluster) -> dict[str, str]:
    """The same of one that runs, for a look that decides: a starved one may answer too late for the first."""
    found: dict[str, str] = {}
    wait_until(lambda: found.update(runtime_info(peer)) or found)
    return found


def is_master(broker: LocalCluster) -> bool:
    return runtime_info(broker).get("brokerRole", "SLAVE") != "SLAVE"


def only_master(members: Sequence[Member]) -> Member:
    """Which of these is it, once one alone is; all run."""
    found: list[Member] = []

    def is_one() -> bool:
        found[:] = [each for each in members if figures(each)["brokerRole"] != "SLAVE"]
        return len(found) == 1

    wait_until(is_one)
    return found[0]


def settled(members: Sequence[Member], is_well: Callable[[dict[str, str]], bool] | None = None) -> Member:
    """The only master, once both others are in sync with it. is_well: of what it says of itself; it takes messages."""
    found: list[Member] = []

    def is_settled() -> bool:
        infos = [runtime_info(each) for each in members]
        masters = [number for number, info in enumerate(infos) if info.get("brokerRole", "SLAVE") != "SLAVE"]
        found[:] = [members[number] for number in masters]
        if len(masters) != 1 or infos[masters[0]].get("slavesInSyncSet", "").count(",") != 1:
            return False
        return (is_well or takes_messages)(infos[masters[0]])

    try:
        wait_until(is_settled)
    except TimeoutError:
        for each in members:  # what each says of itself, for who looks at a failed test
            told = ("poch", "lave", "aster", "roof", "ailover", "ole")
            info = runtime_info(each)
            print(each.home.name, {key: value for key, value in info.items() if any(part in key for part in told)})
        raise
    return found[0]


def takes_messages(info: dict[str, str]) -> bool:
    return info["messagesHeld"] == "false"


def is_on_record(info: dict[str, str]) -> bool:
    return info["inSyncSetPublished"] == "on record"


def make_topic(master: LocalCluster, topic: str, queues: int = 1) -> None:
    """Ask until it is there: a master that etcd does not prove for a moment closes the connection without an answer."""

    def is_there() -> bool:
        try:
            rpc.create_topic(master.broker_address, topic, queues)
        except GantryError:
            return False
        return True

    wait_until(is_there)


def promote(slave: LocalCluster) -> Changed:
    """Make it the master, whatever it lacks; a starved machine may let it answer too late for the first look."""

    def has_answered() -> bool:
        try:
            with SyncAdminClient(slave.namesrv_address, timeout_s=10) as admin:
                asked = admin.succession.promotion(slave.broker_name, slave.broker_address, accepted_loss=1 << 20)
                changed.append(admin.succession.promote(asked, accept_unknown=True))  # it has just joined, perhaps
        except ConfigError as exc:
            if "that answers" not in str(exc):
                raise
        return bool(changed)

    changed: list[Changed] = []
    wait_until(has_answered)
    return changed[0]


def promote_checked(slave: LocalCluster, *, accept_unknown: bool = False) -> Changed:
    """As a person's command does it, once. ConfigError for what speaks against it."""
    with SyncAdminClient(slave.namesrv_address, timeout_s=5) as admin:
        promotion = admin.succession.promotion(slave.broker_name, slave.broker_address)
        return admin.succession.promote(promotion, accept_unknown=accept_unknown)


def take_over(slaves: Sequence[Member], *, accept_unknown: bool = False) -> Member:
    """Promote one of them as that command does: as soon as all that has to be asked for it has answered."""
    promoted: list[Member] = []

    def is_done() -> bool:
        for slave in slaves:
            try:
                promote_checked(slave, accept_unknown=accept_unknown)
            except GantryError as exc:
                print(exc)
                if not is_master(slave):  # else its answer was lost
                    continue
            promoted.append(slave)
            return True
        return False

    wait_until(is_done)
    return promoted[0]


def refused(slave: LocalCluster, words: str = "", *, accept_unknown: bool = False) -> None:
    """That command is refused, in these words: a starved member's silence is another reason, so it is asked again."""

    def is_refused() -> bool:
        try:
            promote_checked(slave, accept_unknown=accept_unknown)
        except (ConfigError, ResponseError) as exc:
            print(exc)
            return re.search(words, str(exc)) is not None
        except GantryError as exc:  # no answer in time
            print(exc)
            return False
        raise AssertionError(f"{slave.broker_address} was promoted")

    wait_until(is_refused)


def ask_slave_alone(slave: LocalCluster, *, accept_unknown: bool = False) -> None:
    """What a tool does that asks nobody else: the slave asks all that it can reach."""
    info = figures(slave)
    fields = {"epoch": info["epochHighest"], "end": info["commitLogMaxOffset"]}
    fields["acceptUnknown"] = str(accept_unknown).lower()
    rpc.ask(slave.broker_address, RequestCode.PROMOTE_SLAVE, fields, timeout_s=30)


def is_same(master: LocalCluster, slave: LocalCluster) -> bool:
    end = runtime_info(master).get("commitLogMaxOffset")
    return end is not None and runtime_info(slave).get("commitLogMaxOffset") == end


def log_of(peer: Peer) -> bytes:
    files = sorted((peer.store / "commitlog").iterdir())
    return b"".join(path.read_bytes() for path in files).rstrip(b"\0")


class Replica(LocalCluster):
    """A slave with an id of its own: there may be several."""

    def __init__(self, home: Path, master: Peer, number: int, properties: Mapping[str, str]) -> None:
        super().__init__(home, broker_properties=properties)
        self.join_as_slave(master)
        self._extra_properties["brokerId"] = str(number)

    def start(self) -> None:
        self.start_broker()


@contextlib.contextmanager
def replicated(
    folder: Path, properties: Mapping[str, str], of_slaves: Mapping[str, str] | None = None, *, slaves: int = 2
) -> Iterator[list[LocalCluster]]:
    """A master, and slaves that copy from it. of_slaves: their settings; None: the master's."""
    with contextlib.ExitStack() as stack:
        master = stack.enter_context(LocalCluster(folder / "master", broker_properties=properties))
        members = [master]
        for number in range(1, slaves + 1):
            slave = Replica(folder / f"slave{number}", master, number, of_slaves or properties)
            members.append(stack.enter_context(slave))
        for slave in members[1:]:
            wait_until(lambda slave=slave: runtime_info(slave).get("slaveState") == "copying")  # type: ignore[misc]
        yield members
