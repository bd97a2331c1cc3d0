"""The table of request codes in docs/compatibility.md: `python -m tests.docs.compatibility_page` renews it.

What stands around the table is written by hand.
"""

from __future__ import annotations

from appliance.broker.processors.table import TABLE as BROKER
from appliance.namesrv.table import TABLE as NAMESRV
from gantrymq.remoting.codes import RequestCode
from tests.docs.pages import ROOT, between

PAGE = ROOT / "docs" / "compatibility.md"
BEGIN, END = "<!-- written by tests/docs/compatibility_page.py -->\n", "<!-- end -->\n"


def page(old: str) -> str:
    """The page with the table as it has to be."""
    return between(old, BEGIN, END, _table())


def _table() -> str:
    rows = ["| code | name | answered by |", "|---|---|---|"]
    rows += [f"| {code.value} | {code.name} | {_who(code)} |" for code in sorted(RequestCode)]
    return "\n".join(rows) + "\n"


def _who(code: RequestCode) -> str:
    tables = (("broker", BROKER), ("name server", NAMESRV))
    servers = [name for name, table in tables if any(row.code == code for row in table)]
    return " and ".join(servers) or "client"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
