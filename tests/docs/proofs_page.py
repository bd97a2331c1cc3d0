"""The tables of clients in docs/proofs.md: `python -m tests.docs.proofs_page` writes them, a test compares.

They come from the tables that the tests of interoperability run.
"""

from __future__ import annotations

from tests.docs.pages import ROOT, between
from tests.interop.go_client import FLOWS as GO
from tests.interop.java_flows import FLOWS as JAVA
from tests.interop.java_flows import WITHOUT_REQUESTS
from tests.interop.kinds.table import KINDS

PAGE = ROOT / "docs" / "proofs.md"
CLIENTS = {
    "Java 4.9.8": JAVA,
    "Java 5.3.3": tuple(flow for flow in JAVA if flow not in WITHOUT_REQUESTS),
    "Java 5.4.0": JAVA,
    "Go 2.1.2": GO,
}


def page(written: str) -> str:
    """The page with its tables as the tests have them."""
    for name, text in (("flows", _flows()), ("kinds", _kinds())):
        written = between(written, f"<!-- table: {name} -->\n", f"<!-- end: {name} -->\n", text)
    return written


def _table(head: list[str], lines: list[list[str]]) -> str:
    return "".join("| " + " | ".join(cells) + " |\n" for cells in (head, ["---"] * len(head), *lines))


def _flows() -> str:
    names = sorted({flow for flows in CLIENTS.values() for flow in flows})
    cells = [[flow, *("tested" if flow in flows else "" for flows in CLIENTS.values())] for flow in names]
    return _table(["flow", *CLIENTS], cells)


def _kinds() -> str:
    cells = [
        [name, "tested", "tested", f"no: {kind.not_from_java}" if kind.not_from_java else "tested"]
        for name, kind in KINDS.items()
    ]
    return _table(["kind", "Python to Python", "Python to Java", "Java to Python"], cells)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
