"""A store whose files have an age, for tests of what is deleted."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from store import MessageStore, MessageStoreConfig
from tests.any_disk import ROCKETMQS_MARKS
from tests.store import conftest
from tests.store.conftest import OpenStore, message

NOON = 1_700_049_600.0  # never within the deletion hour of the tests


def small_config(root: Path, **settings: Any) -> MessageStoreConfig:
    return conftest.small_config(root, **{**ROCKETMQS_MARKS, **settings})


def fill(store: MessageStore) -> None:
    for number in range(300):
        store.put_message(message(bytes(1000), keys=f"k{number}"))
    store.put_message(message(topic="Quiet"))
    store.log_flusher.finish()
    store.queue_flusher.finish()


def age(config: MessageStoreConfig, now: float, hours: float) -> None:
    for path in config.commit_log_folders[0].iterdir():
        os.utime(path, (now - hours * 3600, now - hours * 3600))


def aged(open_store: OpenStore, root: Path, hours: float = 73, **settings: Any) -> MessageStore:
    """A full store whose files are so old at noon."""
    config = small_config(root, **settings)
    store = open_store(config)
    fill(store)
    age(config, NOON, hours)
    return store


def hour_of(now: float) -> str:
    return str(time.localtime(now).tm_hour)


def other_hour(now: float) -> str:
    return str((time.localtime(now).tm_hour + 12) % 24)
