"""Requests to change settings (25, 318): refusals are logged with the peer, because they may be attacks."""

from __future__ import annotations

import logging

from appliance.errors import BrokerError
from appliance.remoting.connection import ServerConnection
from appliance.settings.live import ConfigUpdate, LiveConfig
from gantrymq.log_limit import LogLimit

logger = logging.getLogger(__name__)

_log_limit = LogLimit()


async def change_settings(live_config: LiveConfig, connection: ServerConnection, body: bytes) -> ConfigUpdate:
    """Apply the changes in the body. Raises BrokerError when they are refused."""
    try:
        return await live_config.update(body)
    except BrokerError as exc:
        live_config.refusals.note(connection.remote_text)
        if _log_limit.allows("settings_refused", connection.remote_address[0]):
            facts = {"event": "settings_refused", "peer": connection.remote_text, "why": str(exc)}
            logger.warning("change of settings rejected", extra=facts)
        raise
