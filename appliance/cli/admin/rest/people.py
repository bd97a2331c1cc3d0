"""`gantry admin people`, `invitations`, `tokens` and `password`."""

from __future__ import annotations

from appliance.cli.admin.options import not_negative, positive
from appliance.cli.admin.rest.calls import Call
from appliance.cli.admin.rest.fields import Field
from appliance.cli.admin.rest.values import choice

ROLES = ("reader", "operator", "admin")
SCOPES = ("metrics", "read", "write", "config", "admin")
ROLE = Field("role", "--role", "reader, operator or admin", choice(*ROLES))
NAMES = Field("prefixes", "--names", "only topics and groups that begin so; repeatable", kind="many",
              nothing="--all-names")  # fmt: skip
PERSON = "/users/{name}"

CALLS = {
    "people": {
        "list": Call(
            "accounts of people", "GET", "/users",
            query=(
                Field("q", "--find", "part of the name"),
                Field("offset", "--skip", "leave out so many", not_negative),
                Field("limit", "--limit", "show at most so many (default: 100)", positive),
            ),
            rows="users", columns=("name", "role", "prefixes", "is_open", "created_at", "last_login_at", "issuer"),
        ),
        "show": Call("one account with its sessions and tokens", "GET", PERSON),
        "set": Call("give an account another role, or other names", "PUT", PERSON, (ROLE, NAMES)),
        "close": Call(
            "close an account: no log-in, no token; its sessions end", "PUT", PERSON, fixed={"is_open": False},
            loses=True,
        ),
        "open": Call("open a closed account again", "PUT", PERSON, fixed={"is_open": True}),
        "end-sessions": Call(
            "end an account's sessions", "DELETE", PERSON + "/sessions",
            query=(Field("session", "--session", "only the one of this id"),),
        ),
        "revoke-token": Call(
            "revoke a token of an account", "DELETE", PERSON + "/tokens/{token_id}",
            before=(PERSON, "api_access"), done="token {token_id} of {name} is revoked", loses=True,
        ),
    },
    "invitations": {
        "list": Call("open invitations, with their ids", "GET", "/invitations", rows="invitations",
                     columns=("id", "label", "role", "prefixes", "made_by", "expires_at")),
        "create": Call(
            "invite a person; the link is shown once", "POST", "/invitations",
            (Field("label", "WHO", 'who is meant: "Ada, orders team"', is_needed=True), ROLE, NAMES),
        ),
        "withdraw": Call(
            "withdraw an invitation", "DELETE", "/invitations/{invitation_id}", before=("/invitations", "invitations"),
            done="invitation {invitation_id} is withdrawn",
        ),
    },
    "tokens": {
        "list": Call("one's own API tokens, with their ids", "GET", "/tokens", rows="items",
                     columns=("id", "name", "scope", "start", "created_at", "expires_at", "last_used_at")),
        "create": Call(
            "make a token, which is shown once", "POST", "/tokens",
            (
                Field("name", "NAME", "what lists call it", is_needed=True),
                Field("scope", "--scope", f"{', '.join(SCOPES)} (default: read)", choice(*SCOPES)),
                Field("life_days", "--days", "7, 30, 90 or 365 (default: 90)", positive),
            ),
        ),
        "revoke": Call(
            "revoke one of one's own tokens", "DELETE", "/tokens/{token_id}", before=("/tokens", "items"),
            done="token {token_id} is revoked", loses=True,
        ),
    },
    "password": {
        "": Call(
            "change one's own password; sessions end", "PUT", "/account/password",
            (
                Field("current", "", "the password of now", kind="secret"),
                Field("password", "", "the new password", kind="secret"),
            ),
        ),
    },
}  # fmt: skip
