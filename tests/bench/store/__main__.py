"""`python -m tests.bench.store [--quick] [--peer ours|apache] [--json FILE]`: the store without a broker.

Each stage of a message and stalls of the loop; then how soon a broker serves again after kill -9. Without a JDK and
Maven it measures GantryMQ only, and prints why.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import orjson

from appliance.bench import maven
from appliance.bench.apache_peer import ApachePeer
from appliance.bench.gantry_peer import GantryPeer
from appliance.bench.generator.build import generator_program
from appliance.bench.generator.drive import LoadProgram
from appliance.bench.peer import Peer
from tests.bench.store.report import StoreBench

FULL = {"count": 20_000, "total_bytes": 1 << 30, "stall_bytes": 3 << 30, "stall_rate": 60_000_000}
QUICK = {"count": 4_000, "total_bytes": 256 << 20, "stall_bytes": 256 << 20, "stall_rate": 60_000_000}
OURS, APACHE = "ours", "apache"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.store", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--peer", choices=(OURS, APACHE), help="only this broker; default: both")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gantry-bench-") as work:
        load = LoadProgram(generator_program())
        bench = StoreBench(Path(work), _say, load, **(QUICK if given.quick else FULL))
        text, figures = bench.run(reopened(given.peer))
    print(text, end="")
    if given.json:
        given.json.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))


def reopened(only: str | None) -> dict[str, Callable[[Path], Peer]]:
    """Brokers to open again. Raises ToolError when only Apache's is wanted and its tools are missing."""
    peers: dict[str, Callable[[Path], Peer]] = {}
    if only != APACHE:
        peers["gantry"] = GantryPeer
    if only != OURS:
        try:
            for name in ("java", "mvn"):
                maven.find_tool(name, "Apache's broker needs Java and Maven")
        except maven.ToolError as exc:
            if only == APACHE:
                raise
            _say(f"GantryMQ only: {exc}")
        else:
            peers[APACHE] = lambda home: ApachePeer(home)
    return peers


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
