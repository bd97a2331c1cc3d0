"""What a client is told: business errors travel as a Status inside an answer, whatever gRPC's own status says."""

from __future__ import annotations

from appliance.proxy.protocol.definition_pb2 import Code, Status
from gantrymq.errors import (
    GantryError,
    LeaseEnded,
    MessageRejected,
    NoBrokerYet,
    RequestTimeout,
    ResponseError,
    RouteNotFound,
)
from gantrymq.remoting.codes import ResponseCode

TEXT_CHARS_MAX = 512  # it has names out of the request
ACL_REMARK = "org.apache.rocketmq.acl"

# Broker's code to client's; any other one is an INTERNAL_SERVER_ERROR.
CODES = {
    ResponseCode.SYSTEM_BUSY.value: Code.TOO_MANY_REQUESTS,
    ResponseCode.POLLING_FULL.value: Code.TOO_MANY_REQUESTS,
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED.value: Code.NOT_IMPLEMENTED,
    ResponseCode.NO_PERMISSION.value: Code.FORBIDDEN,
    ResponseCode.TOPIC_NOT_EXIST.value: Code.TOPIC_NOT_FOUND,
    ResponseCode.SUBSCRIPTION_PARSE_FAILED.value: Code.ILLEGAL_FILTER_EXPRESSION,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST.value: Code.CONSUMER_GROUP_NOT_FOUND,
    ResponseCode.ILLEGAL_OPERATION.value: Code.BAD_REQUEST,
}


class Refused(GantryError):
    """A request that is answered with this code."""

    def __init__(self, code: Code, why: str) -> None:
        super().__init__(why)
        self.code = code


def status(code: Code, message: str = "") -> Status:
    return Status(code=code, message=(message or Code.Name(code))[:TEXT_CHARS_MAX])


def ok() -> Status:
    return status(Code.OK)


def status_of(failure: GantryError) -> Status:
    """The status that says what went wrong."""
    return status(code_of(failure), str(failure))


def code_of(failure: GantryError) -> Code:
    if isinstance(failure, Refused):
        return failure.code
    if isinstance(failure, LeaseEnded):
        return Code.INVALID_RECEIPT_HANDLE
    if isinstance(failure, ResponseError):
        if failure.code == ResponseCode.NO_PERMISSION and (failure.remark or "").startswith(ACL_REMARK):
            return Code.UNAUTHORIZED
        return CODES.get(failure.code, Code.INTERNAL_SERVER_ERROR)
    if isinstance(failure, RequestTimeout):
        return Code.PROXY_TIMEOUT
    if isinstance(failure, RouteNotFound):
        if isinstance(failure, NoBrokerYet):
            return Code.HA_NOT_AVAILABLE
        return Code.TOPIC_NOT_FOUND if failure.is_unknown else Code.FORBIDDEN
    return Code.BAD_REQUEST if isinstance(failure, MessageRejected) else Code.INTERNAL_SERVER_ERROR
