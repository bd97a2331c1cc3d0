"""How passwords are hashed: Argon2id at OWASP's parameters for 19 MiB.

Django's default takes 100 MiB for each check, which is half of what the whole web process may use.
"""

from __future__ import annotations

from django.contrib.auth.hashers import Argon2PasswordHasher


class Argon2Hasher(Argon2PasswordHasher):
    """Argon2id, 19 MiB, two passes, one lane."""

    time_cost = 2
    memory_cost = 19 * 1024  # KiB
    parallelism = 1
