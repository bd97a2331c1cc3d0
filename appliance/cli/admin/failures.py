"""What goes wrong in a command of `gantry admin`, as one sentence for a person."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from gantrymq.errors import (
    ConnectError,
    GantryError,
    PartlyDone,
    RequestTimeout,
    ResponseError,
    RouteNotFound,
)

ACL_REFUSAL = "org.apache.rocketmq.acl.common.AclException:"
ACCOUNT_HINT = (
    "the account is what GANTRYMQ_ACCESS_KEY and GANTRYMQ_SECRET_KEY say, or a file that GANTRYMQ_CREDENTIALS names, "
    "such as data/accounts/appliance.yml"
)


class NotThere(GantryError):
    """What the command is about does not exist."""


class NotWanted(GantryError):
    """The person who was asked said no."""


def explain_failure(failure: Exception, namesrv: str) -> str:
    """One sentence. namesrv: the name servers that were asked, "host:port;host:port"."""
    if isinstance(failure, PartlyDone):
        where = ", ".join(f"{name} ({explain_failure(each, '')})" for name, each in sorted(failure.failures.items()))
        done = f"done at {', '.join(sorted(failure.done))}, but " if failure.done else ""
        return f"{done}failed at {where}"
    if isinstance(failure, ConnectError):
        if failure.address in namesrv:
            return f"no name server answers at {failure.address} ({plain_reason(failure.reason)}); -n names another"
        return f"{failure.address} can't be reached: {plain_reason(failure.reason)}"
    if isinstance(failure, RouteNotFound) and failure.is_unknown:
        return f"there is no topic {failure.topic}: `gantry admin topics list --all` lists them"
    if isinstance(failure, RequestTimeout):
        return f"{failure.address} did not answer within {failure.timeout_s:g} s"
    if isinstance(failure, ResponseError):
        where = f"{failure.address}: " if failure.address else ""
        if ACL_REFUSAL in (failure.remark or ""):
            why = first_sentence(failure.remark).removeprefix(ACL_REFUSAL).strip()
            return f"{where}refused: {why} (code {failure.code}); {ACCOUNT_HINT}"
        return f"{where}{first_sentence(failure.remark)} (code {failure.code})"
    return first_sentence(str(failure))


def troubles_of(failures: Mapping[str, Exception]) -> list[str]:
    """Brokers that did not answer, a sentence each."""
    return [f"broker {name}: {explain_failure(failure, '')}" for name, failure in sorted(failures.items())]


def plain_reason(reason: str) -> str:
    """Why there is no connection, in the system's own words instead of asyncio's."""
    number = re.search(r"\[Errno (\d+)\]", reason)
    if number is not None:
        return os.strerror(int(number[1])).lower()
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return "its certificate is not trusted: " + re.sub(r".*verify failed: | \(_ssl\.c:\d+\)\W*", "", reason)
    return reason or "connection closed"


def first_sentence(remark: str | None) -> str:
    """A peer's explanation without stack traces and the addresses of help pages."""
    text = (remark or "").strip().splitlines()
    if not text:
        return "no reason given"
    return re.sub(r"\s*See https?://\S+.*|,? org\.[\w.$]+\(\w+\.java:\d+\)", "", text[0]).strip()
