"""How passwords of tests are hashed: as the product does, at the least cost that Argon2 has.

Tests log in by the hundred, and each look at a password takes 20 MiB and some forty milliseconds of a core. What the
product's costs are `tests/dashboard/test_defaults.py` asks.
"""

from __future__ import annotations

from dashboard.access.passwords import Argon2Hasher


class QuickHasher(Argon2Hasher):
    time_cost = 1
    memory_cost = 8  # KiB
