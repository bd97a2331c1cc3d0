"""Settings that let a store work on a disk however full and slow: a test must not depend on the machine it runs on.

Every store of the tests gets them (broker processes have the marks from appliance.bench.peer); tests about the marks
set RocketMQ's, or their own, and say how full the disk is. An append that takes a second, because its process stood
still or the disk does, would have messages refused for up to another second.
"""

from __future__ import annotations

from typing import Any

from appliance.bench.disk_watermarks import STORE_MARKS

APPEND_MS_MAX = 86_400_000
ANY_DISK: dict[str, Any] = {**STORE_MARKS, "page_cache_busy_ms": APPEND_MS_MAX}
SLOW_DISK = {"osPageCacheBusyTimeOutMills": str(APPEND_MS_MAX)}  # the same for a broker process
ROCKETMQS_MARKS: dict[str, Any] = {"disk_max_used_percent": 75, "forcibly_ratio": 0.85, "warning_ratio": 0.90}
