"""Fixtures for pytest: `pytest_plugins = ["gantrymq.testing.plugin"]` in conftest.py.

gantrymq_name_servers    the address of a real broker's name server: the one of --gantrymq-name-servers or of
                         GANTRYMQ_TEST_NAME_SERVERS, else a broker of the appliance, started once for all tests
gantrymq_topic           the name of a topic of the test's own, gone after it; good as a group's name too
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator

import pytest

from gantrymq.client.blocking.admin import SyncAdminClient
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.testing.broker import running_broker
from gantrymq.testing.waiting import wait_for

VARIABLE = "GANTRYMQ_TEST_NAME_SERVERS"
NAME_CHARS = 60  # of the test's name in its topic's
QUEUES = 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--gantrymq-name-servers`."""
    parser.getgroup("gantrymq").addoption(
        "--gantrymq-name-servers",
        metavar="HOST:PORT",
        default=os.environ.get(VARIABLE),
        help=f"name servers of a broker that runs (or {VARIABLE}); without it one is started",
    )


@pytest.fixture(scope="session")
def gantrymq_name_servers(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name servers of a real broker."""
    given = pytestconfig.getoption("--gantrymq-name-servers")
    if given:
        yield str(given)
        return
    with running_broker(tmp_path_factory.mktemp("gantrymq")) as name_servers:
        yield name_servers


@pytest.fixture
def gantrymq_topic(request: pytest.FixtureRequest, gantrymq_name_servers: str) -> Iterator[str]:
    """A topic of the test's own."""
    plain = re.sub(r"[^a-zA-Z0-9]+", "_", str(request.node.name)).strip("_")[:NAME_CHARS]
    topic = f"{plain}-{secrets.token_hex(4)}"
    with SyncAdminClient(gantrymq_name_servers) as admin:
        admin.topics.create(TopicConfig(topic, read_queue_nums=QUEUES, write_queue_nums=QUEUES))
        wait_for(lambda: topic in admin.topics.names(), what=f"the name server knows the topic {topic}")
        yield topic
        admin.topics.delete(topic)
