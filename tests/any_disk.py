"""Marks that let a store work on a disk however full: what a test finds must not depend on the machine it runs on.

Every store of the tests gets them (broker processes have them from appliance.bench.peer); tests about the marks set
RocketMQ's, or their own, and say how full the disk is.
"""

from __future__ import annotations

from typing import Any

from appliance.bench.disk_watermarks import STORE_MARKS

ANY_DISK = STORE_MARKS
ROCKETMQS_MARKS: dict[str, Any] = {"disk_max_used_percent": 75, "forcibly_ratio": 0.85, "warning_ratio": 0.90}
