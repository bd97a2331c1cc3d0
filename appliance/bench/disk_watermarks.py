"""Disk watermarks that are hardly ever reached, so that results don't depend on how full the machine's disk is."""

from __future__ import annotations

from typing import Any

STORE_MARKS: dict[str, Any] = {"disk_max_used_percent": 95, "forcibly_ratio": 0.99, "warning_ratio": 0.99}
JAVA_DISK_MARKS = {  # Apache's takes these by -D only
    "rocketmq.broker.diskSpaceCleanForciblyRatio": "0.99",
    "rocketmq.broker.diskSpaceWarningLevelRatio": "0.99",
}
DISK_MARKS = {"diskMaxUsedSpaceRatio": "95", **JAVA_DISK_MARKS}
