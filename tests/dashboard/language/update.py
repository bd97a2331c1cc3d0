"""`python -m tests.dashboard.language.update`: brings the catalogs in line with the texts of pages and scripts.

New texts get an entry without a translation, entries without a text go, and all is sorted. It prints what is to be
translated. No program of GNU gettext is needed; those that translators use read the files as well.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dashboard.language.catalog import Entry, Message, read, write
from dashboard.language.compiled import SOURCES


def catalogs() -> dict[str, Path]:
    """Domain to file: what pages and what scripts say."""
    return {domain: SOURCES / "zh_Hans/LC_MESSAGES" / f"{domain}.po" for domain in ("django", "djangojs")}


def updated(entries: list[Entry], wanted: set[Message]) -> list[Entry]:
    """The entries of what is wanted; those without a translation have empty texts. The header stays."""
    known: dict[Message, Entry] = {}
    for entry in entries:  # of two that a merge left, the one with a translation
        if (not entry.message.text or entry.message in wanted) and (all(entry.texts) or entry.message not in known):
            known[entry.message] = entry
    return [*known.values(), *(Entry(message, [""]) for message in wanted - known.keys())]


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django_settings")
    import django

    django.setup()
    from tests.dashboard.language.texts import texts_of_pages, texts_of_scripts

    for domain, found in (("django", texts_of_pages()), ("djangojs", texts_of_scripts())):
        path = catalogs()[domain]
        entries = updated(read(path.read_text(encoding="utf-8"), path.name), set(found))
        path.write_text(write(entries), encoding="utf-8")
        for entry in entries:
            if not all(entry.texts):
                print(f"{found[entry.message]}: {entry.message.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
