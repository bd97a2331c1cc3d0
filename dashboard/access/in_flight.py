"""How many pieces of one kind of work may be under way at once: in all, and for one key (an address, a browser)."""

from __future__ import annotations

import threading
from collections import Counter

from django.utils.translation import gettext

from gantrymq.errors import GantryError


class TooManyAtOnce(GantryError):
    """All places are taken; a moment later one may be free. Its text is a sentence for people."""


class InFlight:
    """Places for work under way. May be left from another thread than it was entered on."""

    def __init__(self, *, all_max: int, of_one_max: int) -> None:
        self.all_max = all_max
        self.of_one_max = of_one_max
        self._lock = threading.Lock()
        self._of_key: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._of_key.total()

    def enter(self, key: str) -> None:
        """Take a place, or raise TooManyAtOnce. Each place is left once, with the same key."""
        with self._lock:
            if self._of_key.total() >= self.all_max or self._of_key[key] >= self.of_one_max:
                raise TooManyAtOnce(gettext("Too many requests at once. Try again in a moment."))
            self._of_key[key] += 1

    def leave(self, key: str) -> None:
        with self._lock:
            self._of_key[key] -= 1
            if not self._of_key[key]:
                del self._of_key[key]
