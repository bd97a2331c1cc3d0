"""What a start makes of the epochs that a store has on record: are they its own, do they fit the log, what was cut."""

from __future__ import annotations

import logging

from appliance.broker.epochs.history import Epochs
from appliance.broker.epochs.standing import Standing, StandingFile
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.timer.service import TimerService
from appliance.errors import StartError
from appliance.process.json_file import StateFileError
from appliance.settings.roles import BrokerConfig
from store.message_store import MessageStore

logger = logging.getLogger(__name__)


def check_role(config: BrokerConfig, standing: Standing) -> None:
    """StartError when a master is to be opened whose epoch is over."""
    epochs = standing.epochs
    if not config.is_slave and epochs.history and not epochs.is_current:
        raise StartError(
            f"this store is of epoch {epochs.current}, and epoch {epochs.highest} has begun at another broker, which "
            "is the master: set brokerRole=SLAVE and a brokerId, so that this one follows it; see "
            "docs/operations/replication.md"
        )


def settle_epochs(
    file: StandingFile,
    config: BrokerConfig,
    store: MessageStore,
    offsets: ConsumerOffsetManager,
    timer: TimerService,
) -> None:
    """Have epochs and tables agree with the log that has just been loaded. Blocks. StartError."""
    standing, end = file.standing, store.max_physical_offset
    try:
        if standing.cut_to is not None or store.is_after_crash:
            offsets.end_at(store.max_offset)
        if standing.cut_to is not None:
            timer.end_at_queue()
        epochs = standing.epochs.until(end)
        if epochs.history != standing.epochs.history:
            logger.warning("epochs begin behind the log's end", extra={"event": "epochs_cut", "physical_offset": end})
            if config.automatic_failover and not config.is_slave:
                raise StartError(_why_no_master(epochs, standing.epochs.current, end))
        if config.has_slave_port and not epochs.is_current:
            epochs = epochs.begun(end)
        file.change(epochs=epochs, cut_to=None)
    except StateFileError as exc:
        raise StartError(f"the epoch can't be put on record: {exc}") from exc


def _why_no_master(epochs: Epochs, epoch: int, end: int) -> str:
    """It lacks what was acknowledged before the epoch that etcd gave it. In another one, which etcd did not give it, it
    would serve nothing, and members that heard of that one would take over no more."""
    return (
        f"the log ends at {end}, in epoch {epochs.current}, and this broker is the master of epoch {epoch}, which "
        "begins behind that: with automaticFailover another member in sync becomes the master, and this one can follow "
        "it then; see docs/operations/replication.md"
    )
