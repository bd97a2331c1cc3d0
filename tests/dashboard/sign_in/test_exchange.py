"""What a provider's answer has to hold before a person is believed: S14 to S17 by another way in."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from appliance.settings.appliance_config import ApplianceConfig
from dashboard.sign_in import exchange
from dashboard.sign_in.begun import Begun
from dashboard.sign_in.errors import BadAnswer, ProviderDown, SignInProblem
from dashboard.sign_in.provider import KEYS_EACH_S, Provider
from dashboard.sign_in.wire import ANSWER_BYTES_MAX, Wire
from tests.dashboard.sign_in.lying_provider import CLIENT, SECRET, LyingProvider, lying_provider

BACK = "http://gantry.example/login/provider/back"


@pytest.fixture
def config(lying: LyingProvider, monkeypatch: pytest.MonkeyPatch) -> ApplianceConfig:
    monkeypatch.setenv("GANTRY_OIDC_CLIENT_SECRET", SECRET)
    return ApplianceConfig(oidc_issuer=lying.issuer, oidc_client_id=CLIENT, oidc_roles="admins=admin")


class Visit:
    """One sign-in against a lying provider, with a clock of its own."""

    def __init__(self, lying: LyingProvider, config: ApplianceConfig) -> None:
        self.lying, self.config, self.now = lying, config, 1000.0
        self.provider = Provider(lying.issuer, clock=lambda: self.now)

    def begin(self) -> Begun:
        self.url, self.begun = exchange.begin(Wire(self.config), self.provider, self.config, BACK)
        self.lying.nonce = self.begun.nonce
        return self.begun

    def finish(self, **told: str) -> dict[str, Any]:
        told = {"code": "a-code", "state": self.begun.state} | told
        return exchange.finish(Wire(self.config), self.provider, self.config, BACK, self.begun, told)


@pytest.fixture
def visit(lying: LyingProvider, config: ApplianceConfig) -> Visit:
    visit = Visit(lying, config)
    visit.begin()
    return visit


def test_a_sign_in_goes_by_code_pkce_state_and_nonce(visit: Visit) -> None:
    asked = {name: values[0] for name, values in parse_qs(urlsplit(visit.url).query).items()}
    proof = base64.urlsafe_b64encode(hashlib.sha256(visit.begun.verifier.encode()).digest()).rstrip(b"=").decode()
    assert asked == {
        "response_type": "code", "client_id": CLIENT, "redirect_uri": BACK, "scope": "openid profile",
        "state": visit.begun.state, "nonce": visit.begun.nonce,
        "code_challenge": proof, "code_challenge_method": "S256",
    }  # fmt: skip
    claims = visit.finish()
    assert (claims["sub"], claims["preferred_username"], claims["groups"]) == ("4711", "grace", ["admins"])
    ((_, headers, form),) = [one for one in visit.lying.asked if one[0] == "/token"]
    assert headers["Authorization"] == "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
    assert form["code_verifier"] == [visit.begun.verifier] and form["redirect_uri"] == [BACK]
    assert "client_secret" not in form


def test_the_secret_goes_into_the_form_where_the_provider_takes_it_only_there(visit: Visit) -> None:
    visit.lying.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    visit.now += 10_000
    visit.begin()
    visit.finish()
    _, headers, form = visit.lying.asked[-2]
    assert form["client_secret"] == [SECRET] and "Authorization" not in headers


def test_each_begin_has_its_own_secrets(visit: Visit) -> None:
    first, second = visit.begun, visit.begin()
    assert not {first.state, first.nonce, first.verifier} & {second.state, second.nonce, second.verifier}
    assert len({first.state, first.nonce, first.verifier}) == 3


@pytest.mark.parametrize("state", ["", "guessed", "ünlike"])
def test_another_state_is_refused_before_the_provider_is_asked(visit: Visit, state: str) -> None:
    asked = len(visit.lying.asked)
    with pytest.raises(BadAnswer, match="not started in this browser"):
        visit.finish(state=state)
    assert len(visit.lying.asked) == asked


NOW = int(time.time())
LIES: dict[str, Callable[[LyingProvider], object]] = {
    "another nonce": lambda lying: lying.claims.update(nonce="another"),
    "no nonce": lambda lying: lying.claims.update(nonce=None),
    "expired": lambda lying: lying.claims.update(exp=NOW - 3600, iat=NOW - 7200),
    "no end": lambda lying: lying.claims.update(exp=None),
    "from the future": lambda lying: lying.claims.update(iat=NOW + 86_400, exp=NOW + 90_000),
    "another issuer": lambda lying: lying.claims.update(iss="https://evil.example"),
    "for another client": lambda lying: lying.claims.update(aud="other"),
    "for several, authorized to another": lambda lying: lying.claims.update(aud=[CLIENT, "other"], azp="other"),
    "no audience": lambda lying: lying.claims.update(aud=None),
    "no subject": lambda lying: lying.claims.update(sub=None),
    "a subject that is a number": lambda lying: lying.claims.update(sub=4711),
    "another access token": lambda lying: lying.claims.update(at_hash="AAAAAAAAAAAAAAAAAAAAAA"),
    "a forged signature": lambda lying: lying.forge("first"),
    "a signature of an unknown key": lambda lying: lying.forge("second"),
    "signed with the client's secret": lambda lying: lying.sign_with_secret(),
    "no token": lambda lying: lying.token.update(id_token=None),
    "no text": lambda lying: lying.token.update(id_token=7),
    "no signature": lambda lying: lying.token.update(id_token=_unsigned(lying)),
    "rubbish": lambda lying: lying.token.update(id_token="a.b.c"),
    "a token without end": lambda lying: lying.token.update(id_token="a" * 70_000),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_token_that_does_not_hold_opens_nothing(visit: Visit, lie: str) -> None:
    LIES[lie](visit.lying)
    visit.now += KEYS_EACH_S
    with pytest.raises(BadAnswer):
        visit.finish()


def _unsigned(lying: LyingProvider) -> str:
    now = int(time.time())  # not NOW, of the import: what is refused is that nobody signed it, not its age
    claims = {"iat": now, "exp": now + 300, "nonce": lying.nonce} | lying.claims
    parts = (base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=") for one in ({"alg": "none"}, claims))
    return b".".join(parts).decode() + "."


def test_a_token_for_several_with_us_authorized_holds(visit: Visit) -> None:
    visit.lying.claims.update(aud=[CLIENT, "other"], azp=CLIENT)
    assert visit.finish()["sub"] == "4711"


def test_a_changed_key_is_asked_for_and_not_at_every_forged_token(visit: Visit) -> None:
    visit.finish()
    visit.lying.change_key("second")
    assert visit.finish()["sub"] == "4711"
    visit.lying.change_key("third")
    with pytest.raises(BadAnswer):  # newer ones were asked for a moment ago
        visit.finish()
    visit.now += KEYS_EACH_S
    assert visit.finish()["sub"] == "4711"
    visit.lying.forge("fourth")
    asked = len(visit.lying.asked)
    for _ in range(3):
        with pytest.raises(BadAnswer):
            visit.finish()
    assert "/keys" not in [path for path, *_ in visit.lying.asked[asked:]]


def test_the_answer_names_its_provider_where_the_provider_says_it_does(visit: Visit) -> None:
    with pytest.raises(BadAnswer, match="another provider"):
        visit.finish(iss="https://evil.example")
    assert visit.finish(iss=visit.lying.issuer)["sub"] == "4711"
    visit.lying.metadata["authorization_response_iss_parameter_supported"] = True
    visit.now += 10_000
    visit.begin()
    with pytest.raises(BadAnswer, match="another provider"):
        visit.finish()


def test_what_the_provider_says_in_words_is_not_shown(visit: Visit) -> None:
    with pytest.raises(BadAnswer, match=r"did not sign you in \(access_deniedb\)"):
        visit.finish(error="access_denied <b>", error_description="Call 555-1234 and tell your password")
    with pytest.raises(BadAnswer, match="no code"):
        visit.finish(code="")


def test_claims_that_are_told_only_when_asked_are_asked_for(visit: Visit) -> None:
    visit.lying.claims.update(preferred_username=None, groups=None)
    visit.lying.metadata["userinfo_endpoint"] = f"{visit.lying.issuer}/userinfo"
    visit.lying.userinfo = {"sub": "4711", "preferred_username": "grace", "groups": ["admins"], "iss": "elsewhere"}
    visit.now += 10_000
    visit.begin()
    claims = visit.finish()
    assert (claims["preferred_username"], claims["iss"]) == ("grace", visit.lying.issuer)
    assert visit.lying.asked[-1][1]["Authorization"] == "Bearer an-access-token"
    visit.lying.userinfo["sub"] = "4712"
    with pytest.raises(BadAnswer, match="another user"):
        visit.finish()


Change = Callable[[LyingProvider], object]
OTHER_ANSWERS: dict[str, tuple[Change, type[SignInProblem]]] = {
    "down": (lambda lying: lying.raw.update({"/token": (503, {}, b"")}), ProviderDown),
    "an error": (lambda lying: lying.raw.update({"/token": (400, {}, b'{"error": "invalid_grant"}')}), BadAnswer),
    "no JSON": (lambda lying: lying.raw.update({"/token": (200, {}, b"<html>")}), BadAnswer),
    "a list": (lambda lying: lying.raw.update({"/token": (200, {}, b"[1]")}), BadAnswer),
    "too long": (lambda lying: lying.raw.update({"/token": (200, {}, b" " * (ANSWER_BYTES_MAX + 1))}), BadAnswer),
    "led elsewhere": (
        lambda lying: lying.raw.update({"/keys": (302, {"Location": f"{lying.issuer}/other"}, b"")}), ProviderDown,
    ),
    "broken keys": (lambda lying: lying.raw.update({"/keys": (200, {}, b'{"keys": [{"kty": "RSA"}]}')}), BadAnswer),
    "no keys": (lambda lying: lying.raw.update({"/keys": (200, {}, b'{"keys": 7}')}), BadAnswer),
}  # fmt: skip


@pytest.mark.parametrize("answer", OTHER_ANSWERS)
def test_an_answer_that_is_none_is_told_in_words(visit: Visit, answer: str) -> None:
    change, kind = OTHER_ANSWERS[answer]
    change(visit.lying)
    with pytest.raises(kind) as told:
        visit.finish()
    assert SECRET not in str(told.value) and visit.begun.verifier not in str(told.value)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("token_endpoint", "http://keys.example/token"), ("jwks_uri", "http://10.0.0.7/keys"),
        ("userinfo_endpoint", "file:///etc/passwd"), ("authorization_endpoint", "javascript:alert(1)"),
        ("end_session_endpoint", "//evil.example"), ("issuer", "https://evil.example"),
    ],
)  # fmt: skip
def test_s23_a_document_that_leads_to_plain_http_is_not_taken(
    lying: LyingProvider, config: ApplianceConfig, name: str, url: str
) -> None:
    lying.metadata[name] = url
    with pytest.raises(BadAnswer):
        Visit(lying, config).begin()


@pytest.mark.parametrize("host", ["localhost", "[::1]", "127.0.0.2", "169.254.169.254", "10.0.0.7"])
def test_s23_a_document_has_no_services_here_asked(lying: LyingProvider, config: ApplianceConfig, host: str) -> None:
    """S23: but for the issuer's own host, private addresses are not asked, whatever the provider says."""
    lying.metadata["token_endpoint"] = f"https://{host}:1/token"
    visit = Visit(lying, config)
    visit.begin()
    with pytest.raises(ProviderDown, match="oidc_networks"):
        visit.finish()


def test_a_provider_that_is_gone_is_told_as_that(config: ApplianceConfig) -> None:
    with lying_provider() as gone:
        visit = Visit(gone, ApplianceConfig(oidc_issuer=gone.issuer, oidc_client_id=CLIENT, oidc_roles="a=admin"))
    with pytest.raises(ProviderDown, match="does not answer"):
        visit.begin()
