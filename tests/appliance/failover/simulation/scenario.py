"""One scenario from a seed: three members and etcd, faults for a while; then all heals, and a master has to come."""

from __future__ import annotations

from appliance.broker.epochs.history import Epochs
from appliance.failover.own import Role
from appliance.failover.view import Beat, Holder, Term, TermState
from tests.appliance.failover.simulation.etcd import Etcd, State
from tests.appliance.failover.simulation.faults import Faults
from tests.appliance.failover.simulation.member import Member, Process
from tests.appliance.failover.simulation.world import ANY, Mixture, Rules, World

MEMBERS = 3
HEALED_S = 3.0  # and the lease: from healing to a master
ACCEPTS_WITHOUT_LOOKING = 0.1  # between looking at the proof and appending a process may stand still


def run(seed: int, rules: Rules | None = None, mixture: Mixture = ANY) -> World:
    """Run one scenario to its end. Violation."""
    world = World(seed, rules or Rules(), mixture)
    term = Term(
        1,
        "init",
        1,
        "",
        "init",
        TermState.RELEASED,
        frozenset({Holder(1, "boot1")}),
        lease_s=world.lease_s,
    )
    stores = {number: f"store{number}" for number in range(1, MEMBERS + 1)}
    world.etcd = Etcd(State(term, 1, Beat("init", 0), 1, 1, stores=stores))
    for number, store in stores.items():
        member = world.members[number] = Member(world, number, store)
        if number == 1:
            member.disk.epochs, member.disk.master_of = Epochs().begun(0, 0, "init"), "init"
        member.start()
    world.at(1.0, _produce, world, [0])
    world.run_until(8.0)
    faults = Faults(world)
    world.run_until(8.0 + mixture.chaos_s * (0.3 + world.rng.random()))
    faults.stop()
    world.run_until(world.now + 1.0)  # what ends by itself at about this moment
    faults.heal()
    _see_that_a_master_comes(world)
    return world


def _produce(world: World, number: list[int]) -> None:
    """Producers send to whoever serves; consumers read from any member."""
    rng = world.rng
    world.at(rng.random() * 0.2, _produce, world, number)
    for member in world.members.values():
        process = member.process
        if process is None or member.paused_until > world.now:
            continue
        world.checker.shows(process, process.confirmed if world.rules.gates_reads else len(process.disk.log))
        if process.role != Role.MASTER:
            continue
        if process.is_proven() or rng.random() < ACCEPTS_WITHOUT_LOOKING:
            for _ in range(rng.randint(1, 3)):
                number[0] += 1
                process.disk.log.append(number[0])
            process.copying.appended()


def _see_that_a_master_comes(world: World) -> None:
    """Within a lease and three seconds, unless the record shows no member that has all that was acknowledged."""
    began, limit = world.now, world.lease_s * 1.02 + HEALED_S
    if any(each.process is not None and each.process.role == Role.TAKEN for each in world.members.values()):
        limit += 2 * world.mixture.open_s  # it closes, and opens
    may_win = _may_win(world)
    while world.now < began + limit and _master(world) is None:
        world.run_until(world.now + 0.1)
    master = _master(world)
    if master is None and may_win:
        term = world.etcd.state.term
        world.checker.fail(f"no master {limit:.1f} s after all was healed; {may_win} could win; etcd has {term}")
    if master is not None:
        world.checker.slowest_s = max(world.checker.slowest_s, world.now - began)
        confirmed = world.checker.confirmations
        world.run_until(world.now + 6.0)
        if world.checker.confirmations == confirmed and _master(world) is master:
            world.checker.fail(f"{master} confirms nothing after all was healed: {master.required}")


def _master(world: World) -> Process | None:
    found = [each.process for each in world.members.values() if each.process is not None and each.process.is_proven()]
    return found[0] if found else None


def _may_win(world: World) -> list[int]:
    """By the record alone, and not by the rules that are looked at."""
    term, found = world.etcd.state.term, []
    for member in world.members.values():
        entries = [each for each in term.in_sync if each.id == member.id]
        boots = {f"boot{member.boots}", "" if member.process is None else member.process.clean_boot}
        if boots.intersection(each.boot for each in entries):
            found.append(member.id)
    return found
